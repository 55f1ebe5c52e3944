/* Ed25519 by OpenSSL. */
#include "auditlog/head_key.h"
#include "id/diag.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

enum { PUBLIC_BYTES = 32, PEM_BYTES_MAX = 64 * 1024 };

static const char purpose[] = "firn audit head 1"; /* with its NUL */

enum { SIGNED_BYTES_MAX = sizeof purpose + HEAD_BYTES_MAX };

struct head_signer {
    EVP_PKEY *key;
    uint8_t id[HEAD_KEY_BYTES];
};

struct head_keys {
    size_t n;
    struct {
        EVP_PKEY *key;
        uint8_t id[HEAD_KEY_BYTES];
    } v[HEAD_KEYS_MAX];
};

static size_t put_signed(const struct head *h, uint8_t out[SIGNED_BYTES_MAX])
{
    memcpy(out, purpose, sizeof purpose);
    return sizeof purpose + head_encode(h, out + sizeof purpose);
}

/* A key's name. False: it is not Ed25519. */
static bool name_key(EVP_PKEY *key, uint8_t out[HEAD_KEY_BYTES])
{
    uint8_t public[PUBLIC_BYTES], digest[EVP_MAX_MD_SIZE];
    size_t len = sizeof public;
    if (EVP_PKEY_get_id(key) != EVP_PKEY_ED25519 ||
        EVP_PKEY_get_raw_public_key(key, public, &len) != 1 ||
        EVP_Digest(public, len, digest, NULL, EVP_sha256(), NULL) != 1)
        return false;
    memcpy(out, digest, HEAD_KEY_BYTES);
    return true;
}

/* Instead of a question on the terminal. */
static int no_passphrase(char *p, int size, int writing, void *user)
{
    (void)p, (void)size, (void)writing, (void)user;
    return -1;
}

static BIO *open_pem(struct slice pem)
{
    return pem.p && pem.len <= PEM_BYTES_MAX ? BIO_new_mem_buf(pem.p, (int)pem.len) : NULL;
}

/* --- signing --- */

int head_signer_new(struct slice pem, struct head_signer **out, struct firn_diag *d)
{
    BIO *bio = open_pem(pem);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    struct head_signer *s = calloc(1, sizeof *s);
    int r = 0;
    if (!s)
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    else if (!key)
        r = firn__diag(d, FIRN_EFORMAT, 0,
                       "no private key in PEM without a passphrase: make one with openssl genpkey "
                       "-algorithm ed25519");
    else if (!name_key(key, s->id))
        r = firn__diag(d, FIRN_ENOTSUP, 0,
                       "the key is not Ed25519: make one with openssl genpkey -algorithm ed25519");
    BIO_free(bio);
    ERR_clear_error();
    if (r) {
        EVP_PKEY_free(key);
        free(s);
        return r;
    }
    s->key = key;
    *out = s;
    return 0;
}

void head_signer_free(struct head_signer *s)
{
    if (s)
        EVP_PKEY_free(s->key);
    free(s);
}

void head_signer_public(const struct head_signer *s, struct buf *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *p = NULL;
    if (bio && PEM_write_bio_PUBKEY(bio, s->key) == 1) {
        long n = BIO_get_mem_data(bio, &p);
        buf_add(out, p, (size_t)n);
    } else {
        out->failed = true;
    }
    BIO_free(bio);
}

int head_sign(const struct head_signer *s, const struct head *h, struct head_sig *out)
{
    uint8_t text[SIGNED_BYTES_MAX];
    size_t text_len = put_signed(h, text), len = HEAD_SIG_BYTES;
    struct head_sig sig = { .there = true };
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool done = ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, s->key) == 1 &&
                EVP_DigestSign(ctx, sig.bytes, &len, text, text_len) == 1 && len == HEAD_SIG_BYTES;
    EVP_MD_CTX_free(ctx);
    if (!done) {
        ERR_clear_error();
        return FIRN_ENOMEM;
    }
    memcpy(sig.key, s->id, sizeof sig.key);
    *out = sig;
    return 0;
}

/* --- checking --- */

int head_keys_new(struct head_keys **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? 0 : FIRN_ENOMEM;
}

void head_keys_free(struct head_keys *k)
{
    for (size_t i = 0; k && i < k->n; i++)
        EVP_PKEY_free(k->v[i].key);
    free(k);
}

size_t head_keys_count(const struct head_keys *k)
{
    return k->n;
}

static EVP_PKEY *find(const struct head_keys *k, const uint8_t id[HEAD_KEY_BYTES])
{
    for (size_t i = 0; i < k->n; i++)
        if (memcmp(k->v[i].id, id, HEAD_KEY_BYTES) == 0)
            return k->v[i].key;
    return NULL;
}

/* The key is transferred. */
static int add(struct head_keys *k, EVP_PKEY *key, struct firn_diag *d)
{
    uint8_t id[HEAD_KEY_BYTES];
    int r = 0;
    bool named = name_key(key, id);
    if (!named)
        r = firn__diag(d, FIRN_ENOTSUP, 0, "a key is not Ed25519");
    else if (!find(k, id) && k->n == HEAD_KEYS_MAX)
        r = firn__diag(d, FIRN_ERANGE, 0, "too many public keys (at most %d)", HEAD_KEYS_MAX);
    if (r || find(k, id)) {
        EVP_PKEY_free(key);
        return r;
    }
    k->v[k->n].key = key;
    memcpy(k->v[k->n++].id, id, sizeof id);
    return 0;
}

/* The next block of PEM. 0: `*out` is the public key, or NULL at the end of the text. */
static int next_key(BIO *bio, EVP_PKEY **out, struct firn_diag *d)
{
    char *name = NULL, *header = NULL;
    unsigned char *der = NULL;
    long len = 0;
    int r = 0;
    *out = NULL;
    ERR_clear_error();
    if (PEM_read_bio(bio, &name, &header, &der, &len) == 1) {
        const unsigned char *p = der;
        bool is_public = strcmp(name, PEM_STRING_PUBLIC) == 0;
        *out = is_public ? d2i_PUBKEY(NULL, &p, len) : NULL;
        if (!*out)
            r = firn__diag(d, FIRN_EFORMAT, 0,
                           is_public ? "a public key cannot be read"
                                     : "what is there is not a public key: openssl pkey -pubout "
                                       "writes one");
    } else if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
        r = firn__diag(d, FIRN_EFORMAT, 0, "the PEM text is malformed");
    }
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(der, (size_t)len);
    return r;
}

int head_keys_add(struct head_keys *k, struct slice pem, struct firn_diag *d)
{
    BIO *bio = open_pem(pem);
    EVP_PKEY *key = NULL;
    size_t before = k->n, found = 0;
    int r = bio ? next_key(bio, &key, d) : firn__diag(d, FIRN_EFORMAT, 0, "no PEM text");
    for (; r == 0 && key; found++) {
        r = add(k, key, d);
        if (r == 0)
            r = next_key(bio, &key, d);
    }
    if (r == 0 && found == 0)
        r = firn__diag(d, FIRN_EFORMAT, 0, "no public key in PEM: openssl pkey -pubout writes one");
    ERR_clear_error();
    BIO_free(bio);
    while (r && k->n > before)
        EVP_PKEY_free(k->v[--k->n].key);
    return r;
}

int head_check(const struct head_keys *k, const struct head *h, const struct head_sig *sig)
{
    uint8_t text[SIGNED_BYTES_MAX];
    EVP_PKEY *key = sig->there ? find(k, sig->key) : NULL;
    if (!key)
        return FIRN_ENOENT;
    size_t len = put_signed(h, text);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestVerify(ctx, sig->bytes, HEAD_SIG_BYTES, text, len) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return good ? 0 : FIRN_EAUTH;
}
