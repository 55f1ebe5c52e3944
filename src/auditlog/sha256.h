/*
 * sha256.h - SHA-256 by OpenSSL with the algorithm looked up once. Of a struct sha256 one thread at
 * a time.
 */
#ifndef FIRN_AUDITLOG_SHA256_H
#define FIRN_AUDITLOG_SHA256_H

#include "firn/error.h"

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

typedef struct evp_md_ctx_st EVP_MD_CTX; /* as OpenSSL has them */
typedef struct evp_md_st EVP_MD;

struct sha256 { /* zeroed: closed */
    EVP_MD_CTX *ctx;
    EVP_MD *md;
};

FIRN_MUSTUSE int sha256_open(struct sha256 *h); /* FIRN_ENOMEM */
void sha256_close(struct sha256 *h);

/* The digest of `len` bytes. What was opened does not fail (firn_assert). */
void sha256_of(struct sha256 *h, const void *p, size_t len, uint8_t out[SHA256_BYTES]);

#endif
