/*
 * Version 7: 48 bits ms | version | counter's high 12 | variant | counter's low 14 | 48 random.
 * What all of this protects: (ms, counter) of one generator only moves forward, whatever the clock
 * does. The counter starts with its top bit clear, so half its range, 33 million IDs, is
 * left for any one millisecond. Tested in tests/unit/id/uuid.c.
 */
#include "firn/uuid.h"
#include "id/rng_take.h"
#include "id/uuid_set.h"

enum { COUNTER_BITS = 26, COUNTER_LOW_BITS = 14, RANDOM_BITS = 48 };
#define COUNTER_MAX ((UINT32_C(1) << COUNTER_BITS) - 1)
#define MS_MAX      ((UINT64_C(1) << 48) - 1)

_Static_assert(sizeof(struct firn_uuid_v7_gen) == 32, "ABI: shrink reserved_ when adding a field");

int firn_uuid_v7(struct firn_uuid_v7_gen *g, uint64_t unix_ms, struct firn_rng *rng,
                 struct firn_uuid *out)
{
    if (!g || !rng || !out)
        return FIRN_EINVAL;
    if (unix_ms > MS_MAX)
        return FIRN_ERANGE;

    if (unix_ms >= g->fresh_ms_ || g->counter_ == COUNTER_MAX) {
        uint64_t ms = unix_ms >= g->fresh_ms_ ? unix_ms : g->fresh_ms_;
        if (ms > MS_MAX)
            return FIRN_ERANGE;
        g->fresh_ms_ = ms + 1;
        g->counter_ = (uint32_t)firn__rng_take_u64(rng) & COUNTER_MAX >> 1;
    } else {
        g->counter_++;
    }

    uint64_t random = firn__rng_take_u64(rng);
    uint64_t counter = g->counter_;
    uuid_set(out, 7, (g->fresh_ms_ - 1) << 16 | counter >> COUNTER_LOW_BITS,
             counter << RANDOM_BITS | random >> (64 - RANDOM_BITS));
    return 0;
}

int firn_uuid_v7_fill(struct firn_uuid_v7_gen *g, uint64_t unix_ms, struct firn_rng *rng,
                      struct firn_uuid *ids, size_t n, size_t *out_n)
{
    if (!g || !rng || (!ids && n > 0) || !out_n)
        return FIRN_EINVAL;
    int r = 0;
    size_t done = 0;
    while (done < n && (r = firn_uuid_v7(g, unix_ms, rng, &ids[done])) == 0)
        done++;
    if (done == 0 && r)
        return r;
    *out_n = done;
    return 0;
}
