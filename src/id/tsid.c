/*
 * TSID, high bit first: 42 bits ms since epoch | node | counter, 22 bits together.
 * What all of this protects: (ms, counter) of one generator only moves forward, whatever the clock
 * does.
 */
#include "firn/tsid.h"
#include "id/bytes.h"
#include "id/crockford_u128.h"
#include "id/rng_take.h"

enum { TAIL_BITS = 22, FIRST_DIGIT_MAX = 15 };
#define TAIL_MAX ((UINT32_C(1) << TAIL_BITS) - 1)
#define MS_MAX   ((UINT64_C(1) << 42) - 1)

_Static_assert(sizeof(struct firn_tsid_gen) == 48, "ABI: shrink reserved_ when adding a field");

int firn_tsid_parse(const char *p, size_t len, struct firn_tsid *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    if (len != FIRN_TSID_TEXT_LEN)
        return FIRN_EFORMAT;
    unsigned seen = 0;
    unsigned __int128 v = crockford_read(firn__crockford_any, p, FIRN_TSID_TEXT_LEN, &seen);
    if (seen > 31)
        return FIRN_EFORMAT;
    if (firn__crockford_any[(uint8_t)p[0]] > FIRST_DIGIT_MAX)
        return FIRN_ERANGE;
    store_be64(out->b, (uint64_t)v);
    return 0;
}

void firn_tsid_format(const struct firn_tsid *id, char out[FIRN_TSID_TEXT_BUF])
{
    crockford_write(FIRN__CROCKFORD_UPPER, load_be64(id->b), out, FIRN_TSID_TEXT_LEN);
    out[FIRN_TSID_TEXT_LEN] = '\0';
}

uint64_t firn_tsid_u64(const struct firn_tsid *id)
{
    return load_be64(id->b);
}

struct firn_tsid firn_tsid_from_u64(uint64_t v)
{
    struct firn_tsid id;
    store_be64(id.b, v);
    return id;
}

uint64_t firn_tsid_unix_ms(const struct firn_tsid *id, uint64_t epoch_ms)
{
    return (load_be64(id->b) >> TAIL_BITS) + epoch_ms;
}

uint32_t firn_tsid_tail(const struct firn_tsid *id)
{
    return (uint32_t)load_be64(id->b) & TAIL_MAX;
}

int firn_tsid_cmp(const struct firn_tsid *a, const struct firn_tsid *b)
{
    uint64_t x = load_be64(a->b), y = load_be64(b->b);
    return (x > y) - (x < y);
}

int firn_tsid_random(uint64_t epoch_ms, uint64_t unix_ms, struct firn_rng *rng,
                     struct firn_tsid *out)
{
    if (!rng || !out)
        return FIRN_EINVAL;
    if (unix_ms < epoch_ms || unix_ms - epoch_ms > MS_MAX)
        return FIRN_ERANGE;
    uint32_t tail;
    firn__rng_take(rng, &tail, sizeof tail);
    store_be64(out->b, (unix_ms - epoch_ms) << TAIL_BITS | (tail & TAIL_MAX));
    return 0;
}

int firn_tsid_gen_init(struct firn_tsid_gen *g, uint64_t epoch_ms, unsigned node_bits,
                       uint32_t node)
{
    if (!g || node_bits > FIRN_TSID_NODE_BITS_MAX || node >> node_bits != 0)
        return FIRN_EINVAL;
    memset(g, 0, sizeof *g);
    g->epoch_ms_ = epoch_ms;
    g->node_ = node << (TAIL_BITS - node_bits);
    g->counter_max_ = TAIL_MAX >> node_bits;
    return 0;
}

int firn_tsid_next(struct firn_tsid_gen *g, uint64_t unix_ms, struct firn_rng *rng,
                   struct firn_tsid *out)
{
    if (!g || !rng || !out)
        return FIRN_EINVAL;
    if (unix_ms < g->epoch_ms_ || unix_ms - g->epoch_ms_ > MS_MAX)
        return FIRN_ERANGE;

    uint64_t ms = unix_ms - g->epoch_ms_;
    if (ms >= g->fresh_ms_ || g->counter_ == g->counter_max_) {
        uint32_t seed;
        if (ms < g->fresh_ms_)
            ms = g->fresh_ms_;
        if (ms > MS_MAX)
            return FIRN_ERANGE;
        firn__rng_take(rng, &seed, sizeof seed);
        g->fresh_ms_ = ms + 1;
        g->counter_ = seed & g->counter_max_ >> 1;
    } else {
        g->counter_++;
    }
    store_be64(out->b, (g->fresh_ms_ - 1) << TAIL_BITS | g->node_ | g->counter_);
    return 0;
}
