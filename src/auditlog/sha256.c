/* SHA-256 of bytes in one piece. Tested by tests/unit/auditlog/merkle.c. */
#include "auditlog/sha256.h"
#include "platform/assert.h"

#include <openssl/evp.h>
#include <stdbool.h>

int sha256_open(struct sha256 *h)
{
    *h = (struct sha256){ EVP_MD_CTX_new(), EVP_MD_fetch(NULL, "SHA256", NULL) };
    if (h->ctx && h->md)
        return 0;
    sha256_close(h);
    return FIRN_ENOMEM;
}

void sha256_close(struct sha256 *h)
{
    EVP_MD_CTX_free(h->ctx);
    EVP_MD_free(h->md);
    *h = (struct sha256){ NULL, NULL };
}

void sha256_of(struct sha256 *h, const void *p, size_t len, uint8_t out[SHA256_BYTES])
{
    bool done = EVP_DigestInit_ex2(h->ctx, h->md, NULL) == 1 &&
                EVP_DigestUpdate(h->ctx, p, len) == 1 && EVP_DigestFinal_ex(h->ctx, out, NULL) == 1;
    firn_assert(done);
}
