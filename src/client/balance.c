/* Chooses servers by load and latency, and avoids those that fail. */
#include "client/balance.h"
#include "platform/assert.h"

bool balance_is_out(const struct health *h, uint64_t now_ms)
{
    if (h->clash || h->out_until_ms == 0)
        return h->clash;
    return now_ms < h->out_until_ms || h->busy > 0; /* one call at a time probes it */
}

/* The less busy one; if equally busy, the faster one. */
static bool better(const struct health *a, const struct health *b)
{
    if (a->busy != b->busy)
        return a->busy < b->busy;
    return a->latency_us < b->latency_us;
}

static size_t nth_set(uint64_t set, uint64_t n)
{
    while (n-- > 0)
        set &= set - 1;
    return (size_t)__builtin_ctzll(set);
}

static uint64_t back_ms(const struct health *h)
{
    return h->clash ? UINT64_MAX : h->out_until_ms;
}

size_t balance_pick(const struct health *h, size_t n, uint64_t tried, uint64_t now_ms,
                    uint64_t random)
{
    uint64_t in = 0;
    size_t nearest = n;
    for (size_t i = 0; i < n; i++) {
        if (tried >> i & 1)
            continue;
        if (!balance_is_out(&h[i], now_ms))
            in |= UINT64_C(1) << i;
        else if (nearest == n || back_ms(&h[i]) < back_ms(&h[nearest]))
            nearest = i;
    }
    if (!in)
        return nearest;
    uint64_t count = (uint64_t)__builtin_popcountll(in);
    size_t a = nth_set(in, (random & UINT32_MAX) % count);
    if (count == 1)
        return a;
    in &= ~(UINT64_C(1) << a);
    size_t b = nth_set(in, (random >> 32) % (count - 1));
    return better(&h[b], &h[a]) ? b : a;
}

void balance_begin(struct health *h)
{
    h->busy++;
}

void balance_end(struct health *h, enum verdict v, uint64_t took_us, uint64_t now_ms)
{
    firn_assert(h->busy > 0);
    h->busy--;
    if (v == SERVER_FINE) {
        uint32_t us = took_us < UINT32_MAX / 8 ? (uint32_t)took_us : UINT32_MAX / 8;
        h->latency_us = h->latency_us ? (h->latency_us * 7 + us) / 8 : us;
        h->slips = h->outs = 0;
        h->out_until_ms = 0;
        return;
    }
    h->slips++;
    if (v == SERVER_SLIPPED && h->slips < SLIPS_MAX && h->out_until_ms == 0)
        return;
    uint64_t out_ms = (uint64_t)OUT_FIRST_MS << (h->outs < 16 ? h->outs : 16);
    if (h->out_until_ms > now_ms)
        return; /* calls that were under way when it was put out: they count once */
    h->outs++;
    h->out_until_ms = now_ms + (out_ms < OUT_MAX_MS ? out_ms : OUT_MAX_MS);
}
