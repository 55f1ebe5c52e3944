/*
 * latency.h - how long something took, counted in buckets that double: 16 us, 32 us ... 16.8 s, and
 * one for what took longer. 200 bytes, for the histograms of /metrics (daemon/metrics.h);
 * histogram.h is for percentiles. One thread adds, any thread reads: adding is a load and a store,
 * without a lock.
 */
#ifndef FIRN_WIRE_LATENCY_H
#define FIRN_WIRE_LATENCY_H

#include <stddef.h>
#include <stdint.h>

enum {
    LATENCY_FIRST_BITS = 4, /* the first bucket ends at 2^4 us */
    LATENCY_BOUNDS = 21,    /* the last bound is 2^24 us */
};

struct latency { /* zeroed is empty; relaxed atomics */
    uint64_t sum_ns;
    uint64_t bucket[LATENCY_BOUNDS + 1]; /* the last one has no upper bound */
};

/* The upper bound of a bucket, inclusive. */
static inline uint64_t latency_bound_us(size_t bucket)
{
    return UINT64_C(1) << (bucket + LATENCY_FIRST_BITS);
}

static inline size_t latency_bucket(uint64_t ns)
{
    uint64_t us = ns / 1000 + (ns % 1000 > 0);
    if (us <= UINT64_C(1) << LATENCY_FIRST_BITS)
        return 0;
    size_t bucket = 64 - (size_t)__builtin_clzll(us - 1) - LATENCY_FIRST_BITS;
    return bucket < LATENCY_BOUNDS ? bucket : LATENCY_BOUNDS;
}

static inline void latency__more(uint64_t *counter, uint64_t n)
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

static inline void latency_add(struct latency *l, uint64_t ns, uint64_t times)
{
    latency__more(&l->sum_ns, ns * times);
    latency__more(&l->bucket[latency_bucket(ns)], times);
}

/* Adds all of `from`, which another thread may be writing, to `into`, which is the caller's. */
static inline void latency_merge(struct latency *into, const struct latency *from)
{
    into->sum_ns += __atomic_load_n(&from->sum_ns, __ATOMIC_RELAXED);
    for (size_t i = 0; i <= LATENCY_BOUNDS; i++)
        into->bucket[i] += __atomic_load_n(&from->bucket[i], __ATOMIC_RELAXED);
}

#endif
