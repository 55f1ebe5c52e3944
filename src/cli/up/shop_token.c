/*
 * The issuer of firn up shop: a P-256 key and tokens that are signed with it (RFC 7515, ES256). The
 * private half stays in the folder, readable by its owner alone; gateways get the public one.
 * Tested in tests/integration/gateway_shop.py.
 */
#include "cli/say.h"
#include "cli/up/shop.h"
#include "platform/mono.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    TOKEN_S = 24 * 60 * 60,
    TOKEN_BUF = 1024,
    PART_BYTES = 32, /* of r and of s in a signature */
    DER_BYTES = 128,
};

static FILE *create(const char *path, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!f && fd >= 0)
        close(fd);
    if (!f)
        say_trouble("cannot write %s: %s", path, strerror(errno));
    return f;
}

/* The key of the folder; one that is not there is made. NULL: reported. */
static EVP_PKEY *signing_key(const char *dir)
{
    char path[SITE_PATH_BUF + 16];
    snprintf(path, sizeof path, "%s/token-key.pem", dir);
    FILE *f = fopen(path, "r");
    EVP_PKEY *key = f ? PEM_read_PrivateKey(f, NULL, NULL, NULL) : EVP_EC_gen("P-256");
    bool fresh = !f;
    if (f)
        fclose(f);
    if (!key) {
        say_trouble("%s: it is no private key: remove it, and a new one is made", path);
        return NULL;
    }
    if (!fresh)
        return key;
    f = create(path, 0600);
    bool good = f && PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1;
    if (f && fclose(f) != 0)
        good = false;
    if (good)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

static int write_public(const char *dir, EVP_PKEY *key)
{
    char path[SITE_PATH_BUF + 16];
    snprintf(path, sizeof path, "%s/token.pem", dir);
    FILE *f = create(path, 0640);
    if (!f)
        return STATUS_TROUBLE;
    bool good = PEM_write_PUBKEY(f, key) == 1;
    return fclose(f) == 0 && good ? -1 : say_trouble("cannot write %s", path);
}

/* A token's next part: base64 with '-' and '_' and without padding, behind a dot. */
static void add_base64url(char out[TOKEN_BUF], const unsigned char *p, size_t n)
{
    size_t len = strlen(out);
    if (len + 1 + (n + 2) / 3 * 4 + 1 > TOKEN_BUF)
        return; /* never: the claims are short */
    if (len > 0)
        out[len++] = '.';
    EVP_EncodeBlock((unsigned char *)out + len, p, (int)n);
    for (char *c = out + len; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c == '=' ? '\0' : *c;
}

/* r and s, 32 bytes each, of the signature over `text`. */
static bool sign(EVP_PKEY *key, const char *text, unsigned char out[2 * PART_BYTES])
{
    unsigned char der[DER_BYTES];
    const unsigned char *at = der;
    size_t n = sizeof der;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestSign(ctx, der, &n, (const unsigned char *)text, strlen(text)) == 1;
    EVP_MD_CTX_free(ctx);
    ECDSA_SIG *sig = good ? d2i_ECDSA_SIG(NULL, &at, (long)n) : NULL;
    good = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), out, PART_BYTES) == PART_BYTES &&
           BN_bn2binpad(ECDSA_SIG_get0_s(sig), out + PART_BYTES, PART_BYTES) == PART_BYTES;
    ECDSA_SIG_free(sig);
    return good;
}

static int write_token(const char *dir, EVP_PKEY *key, const char *user)
{
    static const char header[] = "{\"alg\":\"ES256\",\"typ\":\"JWT\",\"kid\":\"shop-1\"}";
    char path[SITE_PATH_BUF + 16], claims[256], token[TOKEN_BUF] = "";
    unsigned char signature[2 * PART_BYTES];
    unsigned long long now = clock_read_ns(CLOCK_REALTIME) / 1000000000;
    int n = snprintf(claims, sizeof claims,
                     "{\"iss\":\"firn-up-shop\",\"aud\":\"shop\",\"sub\":\"%s\",\"roles\":["
                     "\"customer\"],\"iat\":%llu,\"exp\":%llu}",
                     user, now, now + TOKEN_S);
    add_base64url(token, (const unsigned char *)header, sizeof header - 1);
    add_base64url(token, (const unsigned char *)claims, (size_t)n);
    if (!sign(key, token, signature))
        return say_trouble("OpenSSL cannot sign a token: is it a P-256 key in %s/token-key.pem?",
                           dir);
    add_base64url(token, signature, sizeof signature);
    snprintf(path, sizeof path, "%s/token-%s", dir, user);
    FILE *f = create(path, 0600);
    if (!f)
        return STATUS_TROUBLE;
    fprintf(f, "%s\n", token);
    return fclose(f) == 0 ? -1 : say_trouble("cannot write %s: %s", path, strerror(errno));
}

int shop_tokens(const char *dir)
{
    EVP_PKEY *key = signing_key(dir);
    if (!key)
        return STATUS_TROUBLE;
    int r = write_public(dir, key);
    if (r < 0)
        r = write_token(dir, key, "456");
    if (r < 0)
        r = write_token(dir, key, "457");
    EVP_PKEY_free(key);
    return r;
}
