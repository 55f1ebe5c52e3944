/*
 * firn/tsid.h - TSID: 42 bits of milliseconds since 2020 and 22 bits that are random, or a node and
 * a counter. It sorts by time as a number, as bytes and as its text, 13 digits of Crockford
 * base 32. Functions without a generator may be called from any thread; a generator belongs to one
 * thread, and a child of fork() needs another node number.
 */
#ifndef FIRN_TSID_H
#define FIRN_TSID_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "firn/error.h"
#include "firn/random.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_TSID_TEXT_LEN      13 /* 0DXBQ9H279R05 */
#define FIRN_TSID_TEXT_BUF      14
#define FIRN_TSID_EPOCH_MS      UINT64_C(1577836800000) /* 2020-01-01, unless agreed otherwise */
#define FIRN_TSID_NODE_BITS_MAX 20                      /* of 22; the rest counts */

struct firn_tsid {
    uint8_t b[8]; /* most significant first */
};

/* 13 digits in either case; I and L are read as 1, O as 0, as the reference does. FIRN_EFORMAT:
 * anything else, also hyphens and the letter U.
 * FIRN_ERANGE: more than 64 bits, the first digit more than F. */
FIRN_API FIRN_MUSTUSE int firn_tsid_parse(const char *p, size_t len, struct firn_tsid *out);

/* The same for a text that ends with a NUL. */
static inline FIRN_MUSTUSE int firn_tsid_parse_str(const char *text, struct firn_tsid *out)
{
    return firn_tsid_parse(text, text ? strlen(text) : 0, out);
}

/* Upper case, and a NUL. */
FIRN_API void firn_tsid_format(const struct firn_tsid *id, char out[FIRN_TSID_TEXT_BUF]);

/* The number that databases store. */
FIRN_API uint64_t firn_tsid_u64(const struct firn_tsid *id);
FIRN_API struct firn_tsid firn_tsid_from_u64(uint64_t v);

/* When it was made, and the 22 bits after the time. `epoch_ms` is what its makers agreed on. */
FIRN_API uint64_t firn_tsid_unix_ms(const struct firn_tsid *id, uint64_t epoch_ms);
FIRN_API uint32_t firn_tsid_tail(const struct firn_tsid *id);

FIRN_API int firn_tsid_cmp(const struct firn_tsid *a, const struct firn_tsid *b);

/* Time and 22 random bits, without state: two of one millisecond are the same once in 4 million
 * pairs. FIRN_ERANGE: the time is before the epoch or 139 years after it. */
FIRN_API FIRN_MUSTUSE int firn_tsid_random(uint64_t epoch_ms, uint64_t unix_ms,
                                           struct firn_rng *rng, struct firn_tsid *out);

struct firn_tsid_gen { /* all private: made by firn_tsid_gen_init() */
    uint64_t epoch_ms_;
    uint64_t fresh_ms_; /* since the epoch: from here on the clock is ahead of all IDs made */
    uint32_t node_;     /* in its place, above the counter */
    uint32_t counter_;  /* of the last ID */
    uint32_t counter_max_;
    uint32_t reserved_[5];
};

/*
 * A generator for one node of 2^node_bits, each with a number of its own; with 0 bits and node 0
 * all of the tail counts. Usual is 10: 1024 nodes. FIRN_EINVAL: too many bits, or a node that they
 * do not hold.
 */
FIRN_API FIRN_MUSTUSE int firn_tsid_gen_init(struct firn_tsid_gen *g, uint64_t epoch_ms,
                                             unsigned node_bits, uint32_t node);

/*
 * The IDs of one generator always rise. The counter starts each millisecond at a random place in
 * its lower half. When it is used up, the time in the IDs goes a millisecond ahead of the clock;
 * when the clock stands or steps back, time stays and the counter goes on. A generator that ran
 * ahead knows it, one made anew does not: start it no sooner than the time of the last ID.
 * FIRN_ERANGE as above.
 */
FIRN_API FIRN_MUSTUSE int firn_tsid_next(struct firn_tsid_gen *g, uint64_t unix_ms,
                                         struct firn_rng *rng, struct firn_tsid *out);

#ifdef __cplusplus
}
#endif
#endif
