/*
 * histogram.h - counts values in buckets, for percentiles of millions of latencies.
 * Buckets are log-linear: below 256 every value has its own, above that each doubling is divided
 * into 128, so a percentile is at most 1/128 above the true value. All 64 bits fit; recording
 * allocates nothing and costs a few instructions. One thread; merge the threads' histograms at the
 * end.
 */
#ifndef FIRN_WIRE_HISTOGRAM_H
#define FIRN_WIRE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
    HISTOGRAM_SUB_BITS = 7,
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_SUB_BITS - 1) * (1 << HISTOGRAM_SUB_BITS) +
                        2 * (1 << HISTOGRAM_SUB_BITS),
};

struct histogram { /* zeroed is empty */
    uint64_t total, min, max;
    uint64_t bucket[HISTOGRAM_BUCKETS];
};

void histogram_reset(struct histogram *h);

static inline size_t histogram__index(uint64_t value)
{
    unsigned top = 63u - (unsigned)__builtin_clzll(value | 1);
    unsigned shift = top > HISTOGRAM_SUB_BITS ? top - HISTOGRAM_SUB_BITS : 0;
    return ((size_t)shift << HISTOGRAM_SUB_BITS) + (size_t)(value >> shift);
}

/* Inline: it runs once per request. */
static inline void histogram_add(struct histogram *h, uint64_t value, uint64_t times)
{
    if (h->total == 0 || value < h->min)
        h->min = value;
    if (value > h->max)
        h->max = value;
    h->total += times;
    h->bucket[histogram__index(value)] += times;
}

/* Adds all of `from` to `into`. */
void histogram_merge(struct histogram *into, const struct histogram *from);

/* A percentile: the upper end of the bucket up to which at least `per_million` of a million values
 * lie. 500000 is the median, 999000 is p99.9. Never above the largest value; 0 without values. */
uint64_t histogram_at(const struct histogram *h, uint32_t per_million);

#endif
