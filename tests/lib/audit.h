/* audit.h - rows and Ed25519 keys for the tests of src/auditlog. */
#ifndef AUDIT_H
#define AUDIT_H

#include "auditlog/head_key.h"
#include "auditlog/chain.h"
#include "t.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

static inline struct slice text_of(const char *s)
{
    return (struct slice){ s, strlen(s) };
}

/* Always the same row for an ID. */
static inline struct chain_row row_of(uint64_t id)
{
    return (struct chain_row){ .id = id,
                               .map_version = 3,
                               .at_us = INT64_C(1763510400000000) + (int64_t)(id % 1000000),
                               .tenant = text_of("acme"),
                               .user = text_of(id % 2 ? "user-17" : "user-18"),
                               .actor = text_of("admin@example.com"),
                               .action = text_of("email.changed"),
                               .detail = text_of("{\"new\":\"b@x\",\"old\":\"a@x\",\"n\":1}") };
}

/* The PEM of the key whose 32 secret bytes are all `seed`. */
static inline struct slice key_pem(uint8_t seed, bool public, char out[512])
{
    uint8_t secret[32];
    memset(secret, seed, sizeof secret);
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, sizeof secret);
    BIO *bio = BIO_new(BIO_s_mem());
    T_OK(key && bio);
    T_EQ(public ? PEM_write_bio_PUBKEY(bio, key)
                : PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL),
         1);
    int n = BIO_read(bio, out, 511);
    T_OK(n > 0);
    out[n] = '\0';
    BIO_free(bio);
    EVP_PKEY_free(key);
    return (struct slice){ out, (size_t)n };
}

static inline struct head_signer *signer_of(uint8_t seed)
{
    char pem[512];
    struct head_signer *s = NULL;
    struct firn_diag d = { 0, "" };
    T_EQ(head_signer_new(key_pem(seed, false, pem), &s, &d), 0, "%s", d.text);
    return s;
}

static inline void add_key(struct head_keys *k, uint8_t seed)
{
    char pem[512];
    struct firn_diag d = { 0, "" };
    T_EQ(head_keys_add(k, key_pem(seed, true, pem), &d), 0, "%s", d.text);
}

#endif
