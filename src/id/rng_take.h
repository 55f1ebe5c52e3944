/*
 * rng_take.h - the hot path of firn/random.h, inlined into formats that draw a few bytes per ID.
 * firn__entropy() and firn__entropy_era() are what src/id asks of the platform: bytes from the
 * kernel, or no return; and a number that changes every few milliseconds, after which a new seed
 * is due.
 *
 * A signal handler may draw from the generator of the thread that it interrupts. busy_ is set
 * before anything else is read, so a draw inside another one sees it and takes its bytes from the
 * kernel. A handler that never returns (longjmp) leaves it set: from then on every draw asks the
 * kernel.
 */
#ifndef FIRN_ID_RNG_TAKE_H
#define FIRN_ID_RNG_TAKE_H

#include <string.h>

#include "firn/random.h"

void firn__entropy(void *out, size_t len);
uint64_t firn__entropy_era(void);
void firn__rng_refill(struct firn_rng *r, size_t len);

/* Against signals on the same thread the order of the instructions is enough. */
#define RNG_ORDER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

typedef uint8_t rng_bytes16 __attribute__((vector_size(16)));

/* For draws that were interrupted or interrupt another one; by value, so that the usual draw stays
 * in registers. */
uint64_t firn__entropy_u64(void);
rng_bytes16 firn__entropy_16(void);

/* A draw of `len` bytes begins: where they lie, or NULL inside another draw. */
static inline uint8_t *firn__rng_begin(struct firn_rng *r, size_t len)
{
    if (__builtin_expect(r->busy_ != 0, 0))
        return NULL;
    r->busy_ = 1;
    RNG_ORDER();
    if (__builtin_expect(r->left_ < len, 0))
        firn__rng_refill(r, len);
    return r->pool_ + (r->end_ - r->left_);
}

/* It ends. False: a signal handler called fork(), and this is the child, whose page was wiped after
 * the bytes were read or before. */
static inline int firn__rng_end(struct firn_rng *r, size_t len)
{
    r->left_ -= (uint32_t)len;
    RNG_ORDER();
    if (__builtin_expect(r->busy_ == 0, 0)) {
        memset(r, 0, sizeof *r); /* a refill may have gone on with what was the parent's */
        return 0;
    }
    r->busy_ = 0;
    return 1;
}

static inline uint64_t firn__rng_take_u64(struct firn_rng *r)
{
    uint64_t v;
    uint8_t *from = firn__rng_begin(r, sizeof v);
    if (__builtin_expect(!from, 0))
        return firn__entropy_u64();
    memcpy(&v, from, sizeof v);
    memset(from, 0, sizeof v); /* handed out once, then gone */
    return firn__rng_end(r, sizeof v) ? v : firn__entropy_u64();
}

static inline rng_bytes16 firn__rng_take_16(struct firn_rng *r)
{
    rng_bytes16 v;
    uint8_t *from = firn__rng_begin(r, sizeof v);
    if (__builtin_expect(!from, 0))
        return firn__entropy_16();
    memcpy(&v, from, sizeof v);
    memset(from, 0, sizeof v);
    return firn__rng_end(r, sizeof v) ? v : firn__entropy_16();
}

/* Up to FIRN_RNG_POOL_BYTES. */
static inline void firn__rng_take(struct firn_rng *r, void *out, size_t len)
{
    uint8_t *from = firn__rng_begin(r, len);
    if (__builtin_expect(!from, 0)) {
        firn__entropy(out, len);
        return;
    }
    memcpy(out, from, len);
    memset(from, 0, len);
    if (__builtin_expect(!firn__rng_end(r, len), 0))
        firn__entropy(out, len);
}

#endif
