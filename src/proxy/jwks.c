/*
 * Reads keys. The text of a JWK is taken into fixed buffers first and judged as a whole afterwards,
 * because its members come in any order.
 */
#include "proxy/jwks.h"
#include "id/diag.h"
#include "proxy/base64url.h"
#include "wire/json_read.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <string.h>

enum {
    RSA_BYTES_MAX = JWKS_RSA_BITS_MAX / 8,
    TEXT_MAX = (RSA_BYTES_MAX + 2) / 3 * 4, /* of the longest member, an RSA modulus */
    RSA_E_BYTES_MAX = 8,
    POINT_BYTES = 32,
    NAME_MAX_LEN = 255,
};

static const char *const alg_name[JWT_ALGS] = {
    [JWT_HS256] = "HS256", [JWT_RS256] = "RS256", [JWT_ES256] = "ES256", [JWT_EDDSA] = "EdDSA"
};

const char *jwt_alg_name(enum jwt_alg alg)
{
    return alg_name[alg];
}

/* ---- keys of OpenSSL ---- */

static EVP_PKEY *pkey_of(const char *type, OSSL_PARAM_BLD *build)
{
    EVP_PKEY *out = NULL;
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (!params || !ctx || EVP_PKEY_fromdata_init(ctx) <= 0 ||
        EVP_PKEY_fromdata(ctx, &out, EVP_PKEY_PUBLIC_KEY, params) <= 0)
        out = NULL;
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    return out;
}

static EVP_PKEY *rsa_key(const unsigned char *n, size_t n_len, const unsigned char *e, size_t e_len)
{
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    BIGNUM *bn_n = BN_bin2bn(n, (int)n_len, NULL), *bn_e = BN_bin2bn(e, (int)e_len, NULL);
    EVP_PKEY *out = NULL;
    if (build && bn_n && bn_e && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, bn_n) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, bn_e))
        out = pkey_of("RSA", build);
    BN_free(bn_n);
    BN_free(bn_e);
    OSSL_PARAM_BLD_free(build);
    return out;
}

/* OpenSSL refuses a point that is not on the curve. */
static EVP_PKEY *p256_key(const unsigned char point[1 + 2 * POINT_BYTES])
{
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY *out = NULL;
    if (build &&
        OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) &&
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point,
                                         1 + 2 * POINT_BYTES))
        out = pkey_of("EC", build);
    OSSL_PARAM_BLD_free(build);
    return out;
}

/* What the key is decides the algorithm. NULL: fine. Else what is wrong with it. */
static const char *judge(EVP_PKEY *pkey, enum jwt_alg *out)
{
    char group[32];
    if (EVP_PKEY_is_a(pkey, "RSA")) {
        int bits = EVP_PKEY_get_bits(pkey);
        BIGNUM *e = NULL;
        *out = JWT_RS256;
        if (bits < JWKS_RSA_BITS_MIN)
            return "an RSA key needs at least 2048 bits";
        if (bits > JWKS_RSA_BITS_MAX)
            return "an RSA key may have at most 8192 bits";
        if (!EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_RSA_E, &e))
            return "the RSA key has no exponent";
        bool odd = BN_is_odd(e) && !BN_is_one(e) && BN_num_bits(e) <= RSA_E_BYTES_MAX * 8;
        BN_free(e);
        return odd ? NULL : "the exponent of an RSA key must be odd, above 1 and below 2^64";
    }
    *out = JWT_EDDSA;
    if (EVP_PKEY_is_a(pkey, "ED25519"))
        return NULL;
    *out = JWT_ES256;
    if (EVP_PKEY_is_a(pkey, "EC") &&
        EVP_PKEY_get_group_name(pkey, group, sizeof group, NULL) == 1 &&
        strcmp(group, "prime256v1") == 0)
        return NULL;
    return "only RSA, P-256 and Ed25519 keys can be used";
}

/* ---- the set ---- */

static void key_done(struct jwks_key *k)
{
    EVP_PKEY_free(k->pkey);
    OPENSSL_cleanse(k, sizeof *k);
}

static void shrink_to(struct jwks *set, size_t n)
{
    while (set->n > n)
        key_done(&set->key[--set->n]);
}

void jwks_done(struct jwks *set)
{
    shrink_to(set, 0);
    *set = (struct jwks){ 0 };
}

static bool same_kid(const struct jwks_key *k, struct slice kid)
{
    return k->named && slice_is(kid, k->kid);
}

bool jwks_knows(const struct jwks *set, struct slice kid)
{
    for (size_t i = 0; i < set->n; i++)
        if (same_kid(&set->key[i], kid) || set->key[i].any_kid)
            return true;
    return false;
}

const struct jwks_key *jwks_find(const struct jwks *set, struct slice alg, struct slice kid,
                                 bool *out_ambiguous)
{
    const struct jwks_key *found = NULL;
    *out_ambiguous = false;
    for (size_t i = 0; i < set->n; i++)
        if (same_kid(&set->key[i], kid)) /* no other key has it */
            return slice_is(alg, alg_name[set->key[i].alg]) ? &set->key[i] : NULL;
    for (size_t i = 0; i < set->n; i++) {
        const struct jwks_key *k = &set->key[i];
        if (!slice_is(alg, alg_name[k->alg]) || (kid.p && !k->any_kid))
            continue;
        if (found) {
            *out_ambiguous = true;
            return NULL;
        }
        found = k;
    }
    return found;
}

/* A free place for a key of that kid (absent: none). */
static int place(struct jwks *set, struct slice kid, struct jwks_key **out, struct firn_diag *d)
{
    if (set->n == JWKS_KEYS_MAX)
        return firn__diag(d, FIRN_ERANGE, 0, "too many keys (at most %d)", JWKS_KEYS_MAX);
    if (kid.len > JWKS_KID_MAX)
        return firn__diag(d, FIRN_ERANGE, 0, "a kid has %zu bytes (at most %d)", kid.len,
                          JWKS_KID_MAX);
    for (size_t i = 0; i < set->n; i++)
        if (same_kid(&set->key[i], kid))
            return firn__diag(d, FIRN_EFORMAT, 0,
                              "two keys have the kid \"%.64s\": give each key its own",
                              set->key[i].kid);
    struct jwks_key *k = &set->key[set->n];
    *k = (struct jwks_key){ .named = kid.p != NULL };
    if (kid.p)
        memcpy(k->kid, kid.p, kid.len);
    *out = k;
    return 0;
}

static int add_secret(struct jwks *set, struct slice kid, const void *p, size_t len,
                      struct firn_diag *d)
{
    struct jwks_key *k = NULL;
    if (len < JWKS_SECRET_MIN || len > JWKS_SECRET_MAX)
        return firn__diag(d, FIRN_EFORMAT, 0, "a secret for HS256 has %zu bytes (%d to %d)", len,
                          JWKS_SECRET_MIN, JWKS_SECRET_MAX);
    int r = place(set, kid, &k, d);
    if (r)
        return r;
    k->alg = JWT_HS256;
    k->secret_len = len;
    memcpy(k->secret, p, len);
    set->n++;
    return 0;
}

/* `pkey` is transferred, also on error. */
static int add_pkey(struct jwks *set, struct slice kid, EVP_PKEY *pkey, struct firn_diag *d)
{
    struct jwks_key *k = NULL;
    enum jwt_alg alg = JWT_HS256; /* which no key pair has */
    const char *wrong = pkey ? judge(pkey, &alg) : "the key is not valid";
    int r = wrong ? firn__diag(d, FIRN_EFORMAT, 0, "%s", wrong) : place(set, kid, &k, d);
    ERR_clear_error();
    if (r) {
        EVP_PKEY_free(pkey);
        return r;
    }
    k->alg = alg;
    k->pkey = pkey;
    set->n++;
    return 0;
}

static struct slice kid_slice(const char *kid)
{
    return (struct slice){ kid, kid ? strlen(kid) : 0 };
}

int jwks_add_secret(struct jwks *set, const char *kid, const void *p, size_t len,
                    struct firn_diag *d)
{
    int r = add_secret(set, kid_slice(kid), p, len, d);
    if (r == 0)
        set->key[set->n - 1].any_kid = !kid;
    return r;
}

int jwks_add_pem(struct jwks *set, const char *kid, const char *p, size_t len, struct firn_diag *d)
{
    if (memmem(p, len, "PRIVATE KEY-----", 16))
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "this is a private key: give the public one (openssl pkey -pubout)");
    BIO *bio = len < JWKS_BYTES_MAX ? BIO_new_mem_buf(p, (int)len) : NULL;
    EVP_PKEY *pkey = bio ? PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    if (!pkey)
        return firn__diag(d, FIRN_EFORMAT, 0, "no PEM text of a PUBLIC KEY");
    int r = add_pkey(set, kid_slice(kid), pkey, d);
    if (r == 0)
        set->key[set->n - 1].any_kid = !kid;
    return r;
}

/* ---- JSON ---- */

struct member {
    char text[TEXT_MAX + 1];
    size_t len;
    bool there;
};

enum member_name { KTY, USE, ALG, KID, CRV, N, E, X, Y, K, MEMBERS };
static const char *const member_name[MEMBERS] = { "kty", "use", "alg", "kid", "crv",
                                                  "n",   "e",   "x",   "y",   "k" };

struct jwk {
    struct member m[MEMBERS];
    bool private;     /* a member of a private key is there */
    bool ops, verify; /* key_ops is there; "verify" is in it */
};

static bool is(const struct member *m, const char *text)
{
    return m->there && strcmp(m->text, text) == 0;
}

static int read_ops(struct json_reader *j, struct jwk *w)
{
    int r = json_array(j);
    w->ops = true;
    while (r == 0 && (r = json_element(j)) > 0) {
        char op[64];
        r = json_string(j, op, sizeof op, NULL);
        w->verify |= r == 0 && strcmp(op, "verify") == 0;
    }
    return r;
}

static int read_member(struct json_reader *j, const char *name, struct jwk *w, struct firn_diag *d)
{
    static const char *const secret[] = { "d", "p", "q", "dp", "dq", "qi", "oth" };
    for (size_t i = 0; i < MEMBERS; i++)
        if (strcmp(name, member_name[i]) == 0) {
            struct member *m = &w->m[i];
            if (m->there)
                return firn__diag(d, FIRN_EFORMAT, 0, "the member \"%s\" is there twice", name);
            m->there = true;
            return json_string(j, m->text, sizeof m->text, &m->len);
        }
    for (size_t i = 0; i < sizeof secret / sizeof secret[0]; i++)
        w->private |= strcmp(name, secret[i]) == 0;
    return strcmp(name, "key_ops") == 0 ? read_ops(j, w) : json_skip(j);
}

/* The algorithm of a key of this kind; JWT_ALGS: none that is known here. */
static enum jwt_alg kind_of(const struct jwk *w)
{
    if (is(&w->m[KTY], "oct"))
        return JWT_HS256;
    if (is(&w->m[KTY], "RSA"))
        return JWT_RS256;
    if (is(&w->m[KTY], "EC") && is(&w->m[CRV], "P-256"))
        return JWT_ES256;
    return is(&w->m[KTY], "OKP") && is(&w->m[CRV], "Ed25519") ? JWT_EDDSA : JWT_ALGS;
}

static bool usable(const struct jwk *w)
{
    const struct member *use = &w->m[USE], *alg = &w->m[ALG];
    enum jwt_alg kind = kind_of(w);
    if (kind == JWT_ALGS || (use->there && !is(use, "sig")) || (w->ops && !w->verify))
        return false;
    /* "Ed25519" is RFC 9864's name for what EdDSA means with this curve. */
    return !alg->there || is(alg, alg_name[kind]) || (kind == JWT_EDDSA && is(alg, "Ed25519"));
}

static int decode(const struct jwk *w, enum member_name name, void *out, size_t cap, size_t exactly,
                  size_t *out_len, struct firn_diag *d)
{
    const struct member *m = &w->m[name];
    if (!m->there)
        return firn__diag(d, FIRN_EFORMAT, 0, "the member \"%s\" is missing", member_name[name]);
    int r = base64url_read((struct slice){ m->text, m->len }, out, cap, out_len);
    if (r)
        return firn__diag(d, FIRN_EFORMAT, 0, "the member \"%s\" is %s", member_name[name],
                          r == FIRN_ENOSPC ? "too long" : "not base64url");
    if (exactly && *out_len != exactly)
        return firn__diag(d, FIRN_EFORMAT, 0, "the member \"%s\" has %zu bytes, not %zu",
                          member_name[name], *out_len, exactly);
    return 0;
}

static int add_jwk(struct jwks *set, const struct jwk *w, struct firn_diag *d)
{
    unsigned char a[RSA_BYTES_MAX], b[1 + 2 * POINT_BYTES];
    size_t a_len = 0, b_len = 0;
    struct slice kid = { w->m[KID].there ? w->m[KID].text : NULL, w->m[KID].len };
    int r = 0;
    enum jwt_alg kind = kind_of(w);
    if (kind != JWT_HS256 && w->private)
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "it holds a private key: remove \"d\" and replace the key, for it has "
                          "been shown here");
    switch (kind) {
    case JWT_HS256:
        r = decode(w, K, a, JWKS_SECRET_MAX, 0, &a_len, d);
        r = r ? r : add_secret(set, kid, a, a_len, d);
        OPENSSL_cleanse(a, sizeof a);
        return r;
    case JWT_RS256:
        r = decode(w, N, a, sizeof a, 0, &a_len, d);
        r = r ? r : decode(w, E, b, RSA_E_BYTES_MAX, 0, &b_len, d);
        return r ? r : add_pkey(set, kid, rsa_key(a, a_len, b, b_len), d);
    case JWT_ES256:
        b[0] = 4; /* an uncompressed point */
        r = decode(w, X, b + 1, POINT_BYTES, POINT_BYTES, &b_len, d);
        r = r ? r : decode(w, Y, b + 1 + POINT_BYTES, POINT_BYTES, POINT_BYTES, &b_len, d);
        return r ? r : add_pkey(set, kid, p256_key(b), d);
    case JWT_EDDSA:
        r = decode(w, X, b, POINT_BYTES, POINT_BYTES, &b_len, d);
        return r ? r
                 : add_pkey(set, kid,
                            EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, b, POINT_BYTES), d);
    case JWT_ALGS:
        break;
    }
    return 0;
}

/* One JWK object, or what else has the member "keys": then *out_keys, and the reader stands before
 * its value. */
static int read_key(struct json_reader *j, struct jwks *set, struct jwk *w, bool *out_keys,
                    struct firn_diag *d)
{
    char name[NAME_MAX_LEN + 1];
    *w = (struct jwk){ 0 };
    int r = json_object(j);
    while (r == 0 && (r = json_member(j, name, sizeof name)) > 0) {
        if (out_keys && strcmp(name, "keys") == 0) {
            *out_keys = true;
            return 0;
        }
        r = read_member(j, name, w, d);
    }
    if (r)
        return r;
    if (!w->m[KTY].there)
        return firn__diag(d, FIRN_EFORMAT, 0, "the member \"kty\" is missing");
    if (usable(w))
        return add_jwk(set, w, d);
    set->ignored++;
    return 0;
}

/* The array of a set, then the rest of the object around it. */
static int read_keys(struct json_reader *j, struct jwks *set, struct jwk *w, struct firn_diag *d)
{
    char name[NAME_MAX_LEN + 1];
    unsigned index = 0;
    int r = json_array(j);
    while (r == 0 && (r = json_element(j)) > 0) {
        struct firn_diag inner = { 0, "" };
        struct firn_diag *outer = j->diag;
        j->diag = &inner;
        r = read_key(j, set, w, NULL, &inner);
        j->diag = outer;
        if (r)
            return firn__diag(d, r, inner.column, "key %u: %.170s", index, inner.text);
        index++;
    }
    while (r == 0 && (r = json_member(j, name, sizeof name)) > 0) {
        if (strcmp(name, "keys") == 0)
            return firn__diag(d, FIRN_EFORMAT, 0, "the member \"keys\" is there twice");
        r = json_skip(j);
    }
    return r;
}

int jwks_read(struct jwks *set, const char *p, size_t len, struct firn_diag *d)
{
    struct json_reader j;
    struct jwk w;
    const size_t before = set->n, ignored = set->ignored;
    bool keys = false;
    if (len > JWKS_BYTES_MAX)
        return firn__diag(d, FIRN_ERANGE, 0, "the key set has %zu bytes (at most %d)", len,
                          JWKS_BYTES_MAX);
    json_start(&j, p, len, d);
    int r = read_key(&j, set, &w, &keys, d);
    if (r == 0 && keys)
        r = read_keys(&j, set, &w, d);
    if (r == 0)
        r = json_finish(&j);
    if (r == 0 && set->n == before)
        r = firn__diag(d, FIRN_EFORMAT, 0,
                       "no key for HS256, RS256, ES256 or EdDSA is in it (%zu of other kinds)",
                       set->ignored - ignored);
    OPENSSL_cleanse(&w, sizeof w);
    if (r) {
        shrink_to(set, before);
        set->ignored = ignored;
    }
    return r == FIRN_ENOSPC ? FIRN_EFORMAT : r;
}
