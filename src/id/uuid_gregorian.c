/*
 * Versions 1 and 6: 60 bits of 100 ns since 1582-10-15, cut up by 1 and in order in 6, then 14 bits
 * of clock sequence and 48 of node.
 * What all of this protects: one generator never stamps a tick twice. last_ticks_ only rises, so
 * this holds without the clock sequence; that tells generators of one node apart, and readers that
 * the clock was set back. Tested in tests/unit/id/uuid.c.
 */
#include "firn/uuid.h"
#include "id/rng_take.h"
#include "id/uuid_set.h"

#define TICKS_MAX ((UINT64_C(1) << 60) - 1)
enum { CLOCK_SEQ_MAX = (1 << 14) - 1, MULTICAST = 0x01 };

_Static_assert(sizeof(struct firn_uuid_gregorian_gen) == 40,
               "ABI: shrink reserved_ when adding a field");

void firn_uuid_gregorian_init(struct firn_uuid_gregorian_gen *g, const uint8_t node[6],
                              struct firn_rng *rng)
{
    memset(g, 0, sizeof *g);
    firn__rng_take(rng, &g->clock_seq_, sizeof g->clock_seq_);
    g->clock_seq_ &= CLOCK_SEQ_MAX;
    if (node) {
        memcpy(g->node_, node, sizeof g->node_);
        return;
    }
    firn__rng_take(rng, g->node_, sizeof g->node_);
    g->node_[0] |= MULTICAST;
}

static int stamp(struct firn_uuid_gregorian_gen *g, uint64_t unix_ticks, uint64_t *out_ticks)
{
    if (unix_ticks > TICKS_MAX - FIRN_UUID_UNIX_EPOCH_TICKS)
        return FIRN_ERANGE;
    uint64_t clock = unix_ticks + FIRN_UUID_UNIX_EPOCH_TICKS;
    uint64_t ticks = clock > g->last_ticks_ ? clock : g->last_ticks_ + 1;
    if (ticks > TICKS_MAX)
        return FIRN_ERANGE;
    if (clock < g->clock_ticks_)
        g->clock_seq_ = (g->clock_seq_ + 1) & CLOCK_SEQ_MAX;
    g->clock_ticks_ = clock;
    g->last_ticks_ = *out_ticks = ticks;
    return 0;
}

static uint64_t v1_high(uint64_t t)
{
    return t << 32 | (t >> 32 & 0xffff) << 16 | t >> 48;
}

static uint64_t v6_high(uint64_t t)
{
    return t >> 12 << 16 | (t & 0xfff);
}

static uint64_t low_half(const struct firn_uuid_gregorian_gen *g)
{
    uint64_t node = 0;
    for (int i = 0; i < 6; i++)
        node = node << 8 | g->node_[i];
    return (uint64_t)g->clock_seq_ << 48 | node;
}

int firn_uuid_v1(struct firn_uuid_gregorian_gen *g, uint64_t unix_ticks, struct firn_uuid *out)
{
    uint64_t t;
    if (!g || !out)
        return FIRN_EINVAL;
    int r = stamp(g, unix_ticks, &t);
    if (r != 0)
        return r;
    uuid_set(out, 1, v1_high(t), low_half(g));
    return 0;
}

int firn_uuid_v6(struct firn_uuid_gregorian_gen *g, uint64_t unix_ticks, struct firn_uuid *out)
{
    uint64_t t;
    if (!g || !out)
        return FIRN_EINVAL;
    int r = stamp(g, unix_ticks, &t);
    if (r != 0)
        return r;
    uuid_set(out, 6, v6_high(t), low_half(g));
    return 0;
}

static int reorder(const struct firn_uuid *id, int from, int to, struct firn_uuid *out)
{
    uint64_t t;
    if (!id || !out)
        return FIRN_EINVAL;
    if (firn_uuid_version(id) != from)
        return FIRN_ENOTSUP;
    int r = firn_uuid_ticks(id, &t);
    if (r == 0)
        uuid_set(out, (uint64_t)to, to == 6 ? v6_high(t) : v1_high(t), load_be64(id->b + 8));
    return r;
}

int firn_uuid_v1_to_v6(const struct firn_uuid *id, struct firn_uuid *out)
{
    return reorder(id, 1, 6, out);
}

int firn_uuid_v6_to_v1(const struct firn_uuid *id, struct firn_uuid *out)
{
    return reorder(id, 6, 1, out);
}
