/*
 * Generators under a lease: each layout turns the window into its own ticks (lease_ticks.h).
 * Tests: tests/unit/coord/stamps.c, tests/unit/server/minter.c; the simulator runs it with faults.
 */
#include "coord/stamps.h"
#include "coord/lease_ticks.h"
#include "coord/mutant.h"
#include "id/diag.h"
#include "id/minmax.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <string.h>

/* --- the plan --- */

/* Whether two layouts make the same number of the same slot, tick and sequence number; the width of
 * the time and the flags do not matter for that. */
static bool same_numbers(const struct firn_layout *a, const struct firn_layout *b)
{
    struct firn_bits s = a->field[FIRN_FIELD_SEQ], t = b->field[FIRN_FIELD_SEQ];
    for (uint64_t slot = 1; slot < SLOTS_MAX; slot <<= 1)
        if (firn_layout_slot_bits(a, slot) != firn_layout_slot_bits(b, slot))
            return false;
    return a->epoch_ms == b->epoch_ms && a->tick_us == b->tick_us && s.width == t.width &&
           (s.width == 0 || s.shift == t.shift) &&
           a->field[FIRN_FIELD_TIME].shift == b->field[FIRN_FIELD_TIME].shift;
}

int stamp_plan_init(struct stamp_plan *p, const struct firn_layout *snowflake, struct firn_diag *d)
{
    static const char *const presets[LEASED_N] = { NULL, "sonyflake", "tsid" };
    *p = (struct stamp_plan){ 0 };
    p->layout[LEASED_SNOWFLAKE] = *snowflake;
    for (int i = LEASED_SONYFLAKE; i < LEASED_N; i++) {
        int r = firn_layout_parse(presets[i], strlen(presets[i]), 0, &p->layout[i], d);
        if (r)
            return r;
    }
    for (int i = 0; i < LEASED_N; i++) {
        const struct firn_bits *field = p->layout[i].field;
        bool shard_is_slot = field[FIRN_FIELD_DC].width + field[FIRN_FIELD_NODE].width == 0;
        p->shard_max[i] = shard_is_slot ? 0 : (UINT64_C(1) << field[FIRN_FIELD_SHARD].width) - 1;
        p->share[i] = (enum leased)i;
        for (int k = 0; k < i; k++)
            if (same_numbers(&p->layout[k], &p->layout[i]) && !FIRN_MUTANT(st_equal_apart))
                p->share[i] = p->share[k];
        firn_assert(p->share[i] <= (enum leased)i && p->share[p->share[i]] == p->share[i]);
    }
    p->lease = *snowflake;
    p->lease.tick_us = 1000;
    if (snowflake->flags & FIRN_LAYOUT_DECODE_ONLY)
        return firn__diag(d, FIRN_EINVAL, 0, "the layout is decode-only: it has no node to lease");
    return 0;
}

/* --- windows --- */

static bool is_open(const struct stamps *s, int i)
{
    return atomic_load_explicit(&s->open[i], memory_order_relaxed);
}

/* How far ahead of the clock stamps may be. Just after a FENCE, or in a new store, slots begin
 * ahead of the clock: then as far as the floor of a new store reaches, less one (see slot_floor()).
 */
static uint32_t drift_ms(const struct stamp_plan *p, const struct lease_view *v, bool floor)
{
    uint64_t ticks = floor ? v->window + v->max_drift - 1 : v->max_drift;
    return (uint32_t)(ticks * p->lease.tick_us / 1000);
}

/* Where the window ends now. The drift above the floor grows with the clock, but the floor does
 * not: a fence covers stamps only as far as the limit that both give (lease.h). */
static uint64_t end_of(const struct stamp_plan *p, int i, const struct lease_view *v)
{
    uint64_t until = v->grant.until;
    if (v->stamp_end && v->stamp_end < until && !FIRN_MUTANT(st_past_floor))
        until = v->stamp_end;
    return lease_ticks_until(&p->layout[i], &p->lease, until + FIRN_MUTANT(st_past_grant));
}

/* Start generator i on the grant, above everything that was stamped before. */
static void start(struct stamps *s, const struct stamp_plan *p, int i, const struct lease_view *v,
                  const struct stamps_above *above, const struct firn_clock *clock)
{
    const struct slot_grant *g = &v->grant;
    const struct firn_layout *l = &p->layout[i];
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    uint64_t from = lease_ticks_from(l, &p->lease, g->from);
    o.slot = g->slot;
    o.policy = FIRN_POLICY_BORROW;
    o.max_drift_ms = drift_ms(p, v, v->floor_tick != 0);
    o.clock = clock;
    o.from = max64(max64(from, above->tick[i] + 1), 1);
    if (FIRN_MUTANT(same_tick_slot_change))
        o.from = max64(from, 1);
    o.until = end_of(p, i, v);
    if (o.until <= o.from || g->slot >= firn_layout_slots(l))
        return; /* not one whole tick yet: the next extension brings it */
    firn_assert(o.until <= lease_ticks_until(l, &p->lease, g->until),
                "window=[%" PRIu64 ", %" PRIu64 ")", o.from, o.until);
    s->first[i] = o.from;
    bool ok = firn_shared_init(&s->generator[i], l, &o) == 0;
    atomic_store_explicit(&s->open[i], ok, memory_order_release);
}

void stamps_follow(struct stamps *s, const struct stamp_plan *p, const struct lease_view *v,
                   const struct stamps_above *above, const struct firn_clock *clock)
{
    firn_assert(v->grant.gen == s->gen && !v->grant.closed && v->grant.from <= v->grant.until,
                "grant %" PRIu64 " on %" PRIu64 " from=%" PRIu64 " until=%" PRIu64, v->grant.gen,
                s->gen, v->grant.from, v->grant.until);
    for (int i = 0; i < LEASED_N; i++) {
        if (p->share[i] != (enum leased)i)
            continue;
        if (!is_open(s, i)) {
            start(s, p, i, v, above, clock);
            continue;
        }
        /* A window is never shortened. One that was raised before the floor counted reaches above
         * stamp_end, so the floor must not let stamps go further ahead than usual. */
        uint64_t end = end_of(p, i, v);
        bool beyond = __atomic_load_n(&s->generator[i].until_, __ATOMIC_RELAXED) > end;
        bool floor = v->floor_tick && !beyond;
        uint64_t drift = drift_ms(p, v, floor) * UINT64_C(1000) / p->layout[i].tick_us;
        if (!FIRN_MUTANT(st_drift_kept))
            __atomic_store_n(&s->generator[i].drift_, drift, __ATOMIC_RELAXED);
        firn_shared_extend(&s->generator[i], end);
    }
}

void stamps_begin(struct stamps *s, const struct stamp_plan *p, const struct lease_view *v,
                  const struct stamps_above *above, const struct firn_clock *clock)
{
    s->gen = v->grant.gen;
    for (int i = 0; i < LEASED_N; i++)
        atomic_store_explicit(&s->open[i], false, memory_order_relaxed);
    stamps_follow(s, p, v, above, clock);
}

/* The highest tick that generator i may have stamped. Numbers drawn beyond the window were
 * refused, so none was stamped there. */
static uint64_t stamped(const struct stamps *s, int i, uint64_t tick)
{
    uint64_t until = __atomic_load_n(&s->generator[i].until_, __ATOMIC_RELAXED);
    return min64(tick, until - 1);
}

void stamps_end(struct stamps *s, const struct stamp_plan *p, struct stamps_above *above)
{
    for (int i = 0; i < LEASED_N; i++) {
        uint64_t tick = 0;
        if (p->share[i] != (enum leased)i || !is_open(s, i))
            continue;
        firn_shared_close(&s->generator[i], &tick);
        if (!FIRN_MUTANT(st_last_forgotten))
            above->tick[i] = max64(above->tick[i], stamped(s, i, tick));
    }
}

uint64_t stamps_above_highest(const struct stamps_above *above, const struct stamp_plan *p)
{
    uint64_t highest = 0;
    for (int i = 0; i < LEASED_N; i++)
        if (above->tick[i])
            highest = max64(highest, lease_ticks_stamped(&p->layout[i], &p->lease, above->tick[i]));
    return highest;
}

uint64_t stamps_highest(const struct stamps *s, const struct stamp_plan *p)
{
    struct stamps_above above = { { 0 } };
    for (int i = 0; i < LEASED_N; i++) {
        const struct firn_shared *g = &s->generator[i];
        if (p->share[i] != (enum leased)i || !is_open(s, i))
            continue;
        uint64_t word = __atomic_load_n(&g->word_, __ATOMIC_RELAXED);
        if (word >> 63) /* closed: stamps_end() noted it */
            continue;
        above.tick[i] = stamped(s, i, (word - 1) >> g->seq_bits_);
    }
    return stamps_above_highest(&above, p);
}

/* --- shares --- */

static uint64_t load(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

void stamps_room(const struct stamps *s, const struct stamp_plan *p, enum leased which,
                 struct stamps_room *out)
{
    which = p->share[which];
    const struct firn_shared *g = &s->generator[which];
    uint64_t word, until;
    *out = (struct stamps_room){ 0, 0 };
    if (!is_open(s, (int)which) || (word = load(&g->word_)) >> 63)
        return;
    uint64_t ns = g->clock_->now_ns(g->clock_);
    uint64_t now = ns < g->epoch_ns_ ? 0 : (ns - g->epoch_ns_) / g->tick_ns_;
    uint64_t reached = max64(now, max64(load(&g->held_), load(&g->floor_)));
    until = min64(reached + load(&g->drift_) + 1, load(&g->until_));
    uint64_t base = max64(now, s->first[which]) << g->seq_bits_, end = until << g->seq_bits_;
    uint64_t next = max64(word, now << g->seq_bits_);
    out->full = end > base ? end - base : 0;
    out->left = end > next ? min64(end - next, out->full) : 0;
}

int stamps_share(const struct stamps_room *room, uint64_t n)
{
    bool small = n <= STAMPS_SMALL;
    uint64_t keep = small ? 0 : room->full / 2, span = small ? room->full / 2 : room->full / 4;
    /* A request that is larger than all that large ones may have waits until nearly all is left. */
    uint64_t need = min64(keep + n, room->full - room->full / 16);
    if (!small && (room->left < need || room->full == 0))
        return -1;
    uint64_t above = room->left - keep;
    int k = 0;
    while (k < STAMPS_SHARE_MAX && above < span >> k)
        k++;
    return k;
}
