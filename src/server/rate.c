/* GCRA on a table of atomics. Tested in tests/unit/server/guard.c. */
#include "server/rate.h"

struct rate rate_of(uint64_t per_second, uint64_t burst)
{
    const uint64_t second = UINT64_C(1000000000) * RATE_TICKS_PER_NS, slack_max = UINT64_C(1) << 63;
    struct rate r = { 0, 0 };
    if (per_second == 0)
        return r;
    r.interval = second / per_second ? second / per_second : 1;
    if (burst > 0 && __builtin_mul_overflow(burst - 1, r.interval, &r.slack))
        r.slack = slack_max;
    if (r.slack >
        slack_max) /* so that it can be added to the time of a machine that runs for years */
        r.slack = slack_max;
    return r;
}

/* The client's place, or a free one. Two loops that look for the same client at once may both take
 * a place; from the next request on both use the first of the two. */
static struct rate_bucket *find(struct rate_table *t, uint64_t client, uint64_t now)
{
    struct rate_bucket *set = &t->bucket[client % (RATE_BUCKETS / RATE_WAYS) * RATE_WAYS];
    for (int i = 0; i < RATE_WAYS; i++)
        if (atomic_load_explicit(&set[i].client, memory_order_relaxed) == client)
            return &set[i];
    for (int i = 0; i < RATE_WAYS; i++) {
        uint64_t old = atomic_load_explicit(&set[i].client, memory_order_relaxed);
        if (atomic_load_explicit(&set[i].due, memory_order_relaxed) > now)
            continue;
        if (atomic_compare_exchange_strong_explicit(&set[i].client, &old, client,
                                                    memory_order_relaxed, memory_order_relaxed) ||
            old == client)
            return &set[i];
    }
    return &set[client >> 62];
}

bool rate_take(struct rate_table *t, const struct rate *r, uint64_t client, uint64_t now_ns,
               uint64_t *out_wait_ns)
{
    uint64_t now = now_ns * RATE_TICKS_PER_NS, from;
    struct rate_bucket *b = find(t, client, now);
    uint64_t due = atomic_load_explicit(&b->due, memory_order_relaxed);
    do {
        from = due > now ? due : now;
        if (from - now > r->slack) {
            *out_wait_ns = (from - now - r->slack + RATE_TICKS_PER_NS - 1) / RATE_TICKS_PER_NS;
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&b->due, &due, from + r->interval,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool rate_owes(struct rate_table *t, uint64_t client, uint64_t slack, uint64_t now_ns,
               uint64_t *out_wait_ns)
{
    uint64_t now = now_ns * RATE_TICKS_PER_NS;
    uint64_t due = atomic_load_explicit(&find(t, client, now)->due, memory_order_relaxed);
    if (due <= now || due - now <= slack)
        return false;
    *out_wait_ns = (due - now - slack + RATE_TICKS_PER_NS - 1) / RATE_TICKS_PER_NS;
    return true;
}

void rate_charge(struct rate_table *t, uint64_t client, uint64_t ticks, uint64_t now_ns)
{
    const uint64_t debt_max = UINT64_C(1) << 62; /* so that it can be added to the time */
    uint64_t now = now_ns * RATE_TICKS_PER_NS, from, to;
    struct rate_bucket *b = find(t, client, now);
    uint64_t due = atomic_load_explicit(&b->due, memory_order_relaxed);
    do {
        from = due > now ? due : now;
        to = from - now > debt_max || ticks > debt_max ? now + debt_max : from + ticks;
    } while (!atomic_compare_exchange_weak_explicit(&b->due, &due, to, memory_order_relaxed,
                                                    memory_order_relaxed));
}

void rate_reset(struct rate_table *t)
{
    for (uint32_t i = 0; i < RATE_BUCKETS; i++)
        atomic_store_explicit(&t->bucket[i].due, 0, memory_order_relaxed);
}
