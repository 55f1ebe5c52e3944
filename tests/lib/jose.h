/*
 * jose.h - the issuer's side of JSON Web Tokens, for tests: base64url, keys as JWKs, signatures.
 * Independent of src/proxy, which only verifies.
 */
#ifndef JOSE_H
#define JOSE_H

#include "t.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <string.h>

enum { JOSE_TOKEN_BUF = 16384 };

/* Appends to `out`, which ends with a NUL. */
static inline void jose_base64url(char *out, const void *data, size_t len)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const unsigned char *p = data;
    char *to = out + strlen(out);
    uint32_t bits = 0;
    int n = 0;
    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | p[i];
        for (n += 8; n >= 6; n -= 6)
            *to++ = set[bits >> (n - 6) & 63];
    }
    if (n > 0)
        *to++ = set[bits << (6 - n) & 63];
    *to = '\0';
}

struct jose_key {
    const char *alg;
    EVP_PKEY *pkey;     /* NULL: a secret */
    const char *secret; /* 32 bytes or more */
};

static inline struct jose_key jose_key_new(const char *alg)
{
    struct jose_key k = { .alg = alg };
    if (strcmp(alg, "HS256") == 0)
        k.secret = "0123456789abcdef0123456789abcdef";
    else if (strcmp(alg, "RS256") == 0)
        k.pkey = EVP_RSA_gen(2048);
    else if (strcmp(alg, "ES256") == 0)
        k.pkey = EVP_EC_gen("P-256");
    else
        k.pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    T_OK(k.pkey || k.secret);
    return k;
}

/* Its public part (a secret's only part) as a JWK, behind what stands in `out`. */
static inline void jose_jwk(char *out, const struct jose_key *k, const char *kid)
{
    char *to = out + strlen(out);
    unsigned char raw[133];
    size_t len = 0;
    to += sprintf(to, "{\"kid\":\"%s\",", kid);
    if (k->secret) {
        to += sprintf(to, "\"kty\":\"oct\",\"k\":\"");
        jose_base64url(to, k->secret, strlen(k->secret));
    } else if (EVP_PKEY_is_a(k->pkey, "RSA")) {
        unsigned char n[512];
        BIGNUM *bn = NULL;
        T_OK(EVP_PKEY_get_bn_param(k->pkey, OSSL_PKEY_PARAM_RSA_N, &bn));
        int bytes = BN_bn2bin(bn, n);
        BN_free(bn);
        to += sprintf(to, "\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"");
        jose_base64url(to, n, (size_t)bytes);
    } else if (EVP_PKEY_is_a(k->pkey, "EC")) {
        T_OK(EVP_PKEY_get_octet_string_param(k->pkey, OSSL_PKEY_PARAM_PUB_KEY, raw, sizeof raw,
                                             &len));
        T_EQ(len, 65);
        to += sprintf(to, "\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"");
        jose_base64url(to, raw + 1, 32);
        strcat(to, "\",\"y\":\"");
        jose_base64url(to, raw + 33, 32);
    } else {
        len = sizeof raw;
        T_OK(EVP_PKEY_get_raw_public_key(k->pkey, raw, &len));
        to += sprintf(to, "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"");
        jose_base64url(to, raw, len);
    }
    strcat(to, "\"}");
}

/* The signature of `input` in JOSE's form; returns its length. */
static inline size_t jose_signature(const struct jose_key *k, const char *input,
                                    unsigned char out[1024])
{
    const unsigned char *in = (const unsigned char *)input;
    size_t len = 1024;
    unsigned hmac_len = 0;
    if (k->secret) {
        HMAC(EVP_sha256(), k->secret, (int)strlen(k->secret), in, strlen(input), out, &hmac_len);
        return hmac_len;
    }
    unsigned char der[1024];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ed = EVP_PKEY_is_a(k->pkey, "ED25519"), ec = EVP_PKEY_is_a(k->pkey, "EC");
    T_OK(EVP_DigestSignInit_ex(ctx, NULL, ed ? NULL : "SHA256", NULL, NULL, k->pkey, NULL) == 1 &&
         EVP_DigestSign(ctx, der, &len, in, strlen(input)) == 1);
    EVP_MD_CTX_free(ctx);
    if (!ec) {
        memcpy(out, der, len);
        return len;
    }
    const unsigned char *p = der;
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &p, (long)len);
    BN_bn2binpad(ECDSA_SIG_get0_r(sig), out, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(sig), out + 32, 32);
    ECDSA_SIG_free(sig);
    return 64;
}

/* A token of this header and these claims, any text. */
static inline void jose_sign(char out[JOSE_TOKEN_BUF], const struct jose_key *k, const char *header,
                             const char *claims)
{
    unsigned char sig[1024];
    out[0] = '\0';
    jose_base64url(out, header, strlen(header));
    strcat(out, ".");
    jose_base64url(out, claims, strlen(claims));
    size_t len = jose_signature(k, out, sig);
    strcat(out, ".");
    jose_base64url(out, sig, len);
}

static inline void jose_key_done(struct jose_key *k)
{
    EVP_PKEY_free(k->pkey);
    k->pkey = NULL;
}

#endif
