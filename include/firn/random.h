/*
 * firn/random.h - random bits good enough for secrets, without a system call per ID.
 * A ChaCha12 generator with fast key erasure: each refill makes a new key first, and bytes that
 * were handed out are wiped, so a later look at memory tells nothing about earlier IDs.
 * A struct firn_rng belongs to one thread. firn_rng_thread() gives each thread its own; it survives
 * fork(): the child's page is wiped by the kernel and seeded anew before its first byte.
 *
 * It takes a new seed from the kernel, and from the processor where that has RDRAND, whenever 4 ms
 * have passed or a mebibyte was handed out. So two copies of a virtual machine that were resumed
 * from one snapshot differ from their next seed on: at once in a thread that draws now and then; in
 * one that was busy, after up to 512 bytes and what it draws within 4 ms.
 *
 * Async-signal-safe: firn_rng_bytes(), firn_rng_u64(), firn_rng_below(), and what draws from a
 * generator and keeps no other state (firn_uuid_v4(), firn_ulid_make(), firn_ksuid_make(),
 * firn_nanoid()), also on the generator that the interrupted code is drawing from; and
 * firn_rng_thread() in a thread that has called it before.
 */
#ifndef FIRN_RANDOM_H
#define FIRN_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_RNG_SEED_BYTES 32
#define FIRN_RNG_POOL_BYTES \
    992 /* what one refill leaves to hand out: 16 blocks less the next key */

struct firn_rng {      /* all private: complete only so that it can live in your stack or struct */
    uint32_t left_;    /* bytes of pool_ before end_ that may be handed out at once */
    uint32_t end_;     /* what lies behind it comes after a look at the time */
    uint32_t ration_;  /* how many bytes the last look allowed */
    uint32_t refills_; /* since the seed */
    uint32_t source_;  /* 0 on a page wiped by fork(): the next refill seeds from the kernel */
    volatile uint32_t busy_; /* 1 during a draw: a draw in a signal handler then asks the kernel */
    uint64_t era_;           /* when it was seeded */
    uint32_t key_[8];
    uint8_t pool_[FIRN_RNG_POOL_BYTES];
};

/* A generator whose output the seed decides: for tests and simulations. Copies of it made by fork()
 * repeat each other. For real IDs take firn_rng_thread(). */
FIRN_API void firn_rng_init(struct firn_rng *r, const uint8_t seed[FIRN_RNG_SEED_BYTES]);

/* The calling thread's generator, seeded by getrandom(2). It lives until the thread ends. Never
 * NULL: a system that gives no entropy or no memory stops the process, because an ID made without
 * it could repeat. */
FIRN_API struct firn_rng *firn_rng_thread(void);

FIRN_API void firn_rng_bytes(struct firn_rng *r, void *out, size_t len);
FIRN_API uint64_t firn_rng_u64(struct firn_rng *r);

/* Uniform in 0..bound-1, without modulo bias; `bound` 0 gives 0. */
FIRN_API uint32_t firn_rng_below(struct firn_rng *r, uint32_t bound);

#ifdef __cplusplus
}
#endif
#endif
