/*
 * counter24.h - (second, 24-bit counter) pairs that never repeat, for XID and ObjectID.
 * The counter runs on from second to second, as their specifications have it, so it may pass its
 * end inside one. What must hold: a second gives each of its 2^24 counters once. The second
 * therefore only moves forward, whatever the clock does, and a used-up second answers FIRN_EAGAIN
 * until the next.
 */
#ifndef FIRN_ID_COUNTER24_H
#define FIRN_ID_COUNTER24_H

#include <stdint.h>

#include "firn/error.h"

#define COUNTER24_MAX 0xffffffu

/* The pair to use now: `*second`, which is updated, and `*out`. `*left`, the counters that this
 * second still has, starts at COUNTER24_MAX + 1, `*second` at 0, `*next` anywhere. */
static inline int counter24_next(uint64_t unix_ms, uint32_t *second, uint32_t *left, uint32_t *next,
                                 uint32_t *out)
{
    uint64_t s = unix_ms / 1000;
    if (s > UINT32_MAX)
        return FIRN_ERANGE;
    if (s > *second) {
        *second = (uint32_t)s;
        *left = COUNTER24_MAX + 1;
    }
    if (*left == 0)
        return FIRN_EAGAIN;
    --*left;
    *out = *next & COUNTER24_MAX;
    *next = *out + 1;
    return 0;
}

#endif
