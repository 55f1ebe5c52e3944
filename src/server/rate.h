/*
 * rate.h - limits on clients' requests: the generic cell rate algorithm (GCRA) on a table of
 * atomics that all loops share. Nothing is allocated, locked or cleaned up, however many clients
 * there are: a client that has used up nothing needs no place in the table, so its place is free
 * for another. When more clients are busy than there are places, some of them share one: they are
 * slowed down, never let through. Any thread may call everything at any time.
 */
#ifndef FIRN_SERVER_RATE_H
#define FIRN_SERVER_RATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { RATE_BUCKETS = 65536, RATE_WAYS = 4 }; /* 1 MiB; a client may be in one of 4, a cache line */

struct rate_bucket {
    _Atomic uint64_t client; /* 0: never used */
    _Atomic uint64_t due;    /* when all that was taken is paid for, in ticks */
};

struct rate_table {
    _Alignas(64) struct rate_bucket bucket[RATE_BUCKETS];
};

/* Time is counted in 1/16 ns: a thousand million requests per second are one every 16 ticks. */
enum { RATE_TICKS_PER_NS = 16 };
struct rate {
    uint64_t interval; /* ticks that a request costs; 0: no limit */
    uint64_t slack;    /* how far `due` may be ahead of now: burst - 1 requests */
};

struct rate rate_of(uint64_t per_second, uint64_t burst);

/* One request of `client` (not 0; a good hash). False: too fast, nothing is taken, and *out_wait_ns
 * says when it would pass. Needs an interval. */
bool rate_take(struct rate_table *t, const struct rate *r, uint64_t client, uint64_t now_ns,
               uint64_t *out_wait_ns);

/* Whether `client` still has more to pay for than `slack` ticks; *out_wait_ns says until when. */
bool rate_owes(struct rate_table *t, uint64_t client, uint64_t slack, uint64_t now_ns,
               uint64_t *out_wait_ns);

/* So many ticks more for it to pay for, whatever it owes. */
void rate_charge(struct rate_table *t, uint64_t client, uint64_t ticks, uint64_t now_ns);

/* Forget all, when another rate begins. */
void rate_reset(struct rate_table *t);

#endif
