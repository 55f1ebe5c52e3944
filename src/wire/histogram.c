/* Log-linear histograms: merging and percentiles. */
#include "wire/histogram.h"

#include <string.h>

_Static_assert(HISTOGRAM_BUCKETS == 7424, "the last bucket ends at 2^64 - 1");

void histogram_reset(struct histogram *h)
{
    memset(h, 0, sizeof *h);
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    if (from->total == 0)
        return;
    if (into->total == 0 || from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
    into->total += from->total;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->bucket[i] += from->bucket[i];
}

/* The largest value that falls into the bucket. */
static uint64_t bucket_last(size_t index)
{
    size_t sub = (size_t)1 << HISTOGRAM_SUB_BITS;
    if (index < 2 * sub)
        return index;
    size_t shift = (index >> HISTOGRAM_SUB_BITS) - 1;
    uint64_t first = (uint64_t)(index - shift * sub) << shift;
    return first + (((uint64_t)1 << shift) - 1);
}

uint64_t histogram_at(const struct histogram *h, uint32_t per_million)
{
    if (h->total == 0)
        return 0;
    /* Rank, rounded up, without overflow however many were counted. */
    uint64_t whole = h->total / 1000000, rest = h->total % 1000000;
    uint64_t rank = whole * per_million + (rest * per_million + 999999) / 1000000;
    if (rank == 0)
        return h->min;
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->bucket[i];
        if (seen >= rank) {
            uint64_t value = bucket_last(i);
            return value > h->max ? h->max : value;
        }
    }
    return h->max;
}
