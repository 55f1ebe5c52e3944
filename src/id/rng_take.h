/*
 * rng_take.h - the hot path of firn/random.h, inlined into formats that draw a few bytes per ID.
 * firn__entropy() is the one thing src/id asks of the platform: bytes from the kernel, or no
 * return.
 */
#ifndef FIRN_ID_RNG_TAKE_H
#define FIRN_ID_RNG_TAKE_H

#include <string.h>

#include "firn/random.h"

void firn__entropy(void *out, size_t len);
void firn__rng_refill(struct firn_rng *r);

/* Up to FIRN_RNG_POOL_BYTES; a constant `len` becomes a load and a store. */
static inline void firn__rng_take(struct firn_rng *r, void *out, size_t len)
{
    if (__builtin_expect(r->left_ < len, 0))
        firn__rng_refill(r);
    uint8_t *from = r->pool_ + (FIRN_RNG_POOL_BYTES - r->left_);
    memcpy(out, from, len);
    memset(from, 0, len); /* handed out once, then gone */
    r->left_ -= (uint32_t)len;
}

#endif
