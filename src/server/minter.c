/*
 * Generators under a lease: each layout turns the window into its own ticks (coord/lease_ticks.h).
 * Before each stamp the board's version is compared: one load when nothing changed.
 */
#include "server/minter.h"
#include "coord/lease_ticks.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KINDS_MAX 32

struct minter {
    const struct minter_plan *plan;
    struct board *board;
    struct board_clock clock;
    uint64_t version; /* of the board when it was last looked at */
    uint64_t gen;     /* the grant that the generators stand on; 0: none */
    uint32_t lane;
    struct firn_gen generator[LEASED_N];
    bool open[LEASED_N];        /* stands on the grant `gen`, which has at least one of its ticks */
    uint64_t stamped[LEASED_N]; /* the last tick before it was retired: never again at or below */
    bool closed;
    uint64_t highest; /* tick of the lease */
    _Atomic uint64_t last;
    _Atomic uint64_t counted[KINDS_MAX];
    struct firn_mint *mint[KINDS_MAX];
};

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

int minter_plan_init(struct minter_plan *p, const struct firn_layout *snowflake, uint32_t lanes,
                     struct firn_diag *d)
{
    static const char *const presets[LEASED_N] = { NULL, "sonyflake", "tsid" };
    *p = (struct minter_plan){ .lanes = lanes };
    p->layout[LEASED_SNOWFLAKE] = *snowflake;
    for (int i = LEASED_SONYFLAKE; i < LEASED_N; i++) {
        int r = firn_layout_parse(presets[i], strlen(presets[i]), 0, &p->layout[i], d);
        if (r)
            return r;
    }
    for (int i = 0; i < LEASED_N; i++) {
        p->share[i] = (enum leased)i;
        for (int k = 0; k < i; k++)
            if (same_numbers(&p->layout[k], &p->layout[i]))
                p->share[i] = p->share[k];
        firn_assert(p->share[i] <= (enum leased)i && p->share[p->share[i]] == p->share[i]);
    }
    p->lease = *snowflake;
    p->lease.tick_us = 1000;
    if (snowflake->flags & FIRN_LAYOUT_DECODE_ONLY) {
        snprintf(d->text, sizeof d->text, "the layout is decode-only: it has no node to lease");
        return FIRN_EINVAL;
    }
    if (lanes > UINT64_C(1) << snowflake->field[FIRN_FIELD_SEQ].width) {
        snprintf(d->text, sizeof d->text,
                 "the layout's sequence is too narrow to be shared by %u loops: set loops to fewer",
                 lanes);
        return FIRN_EINVAL;
    }
    return 0;
}

enum leased minter_leased(const struct firn_kind *kind)
{
    static const char *const names[LEASED_N] = { "snowflake", "sonyflake", "tsid" };
    for (int i = 0; i < LEASED_N; i++)
        if (strcmp(kind->name, names[i]) == 0)
            return (enum leased)i;
    return LEASED_N;
}

/* --- windows --- */

static void note_highest(struct minter *m, enum leased i)
{
    if (!m->open[i])
        return;
    uint64_t tick = lease_ticks_stamped(&m->plan->layout[i], &m->plan->lease,
                                        m->generator[i].tick_);
    if (tick <= m->highest)
        return;
    firn_assert(m->generator[i].tick_ < m->generator[i].until_, "tick=%" PRIu64 " until=%" PRIu64,
                m->generator[i].tick_, m->generator[i].until_);
    m->highest = tick;
}

/* The grant that generator i stood on is over. */
static void retire(struct minter *m, enum leased i)
{
    if (!m->open[i])
        return;
    note_highest(m, i);
    firn_assert(m->generator[i].tick_ >= m->stamped[i], "tick=%" PRIu64 " after %" PRIu64,
                m->generator[i].tick_, m->stamped[i]);
    m->stamped[i] = m->generator[i].tick_;
    m->open[i] = false;
}

/* How far ahead of the clock stamps may be. Just after a FENCE, or in a new store, slots begin
 * ahead of the clock: then as far as the floor of a new store reaches, less one (see slot_floor()).
 */
static uint32_t drift_ms(const struct lease_view *v)
{
    return (uint32_t)(v->floor_tick ? v->window + v->max_drift - 1 : v->max_drift);
}

/* Where generator i's window ends now. The drift above grows with the clock, but the floor does
 * not: a fence covers stamps only as far as the limit that both give (lease.h). */
static uint64_t end_of(const struct minter *m, enum leased i, const struct lease_view *v)
{
    uint64_t until = v->grant.until;
    if (v->stamp_end && v->stamp_end < until)
        until = v->stamp_end;
    return lease_ticks_until(&m->plan->layout[i], &m->plan->lease, until);
}

/* Start generator i on a grant, above everything that it stamped before. */
static void start(struct minter *m, enum leased i, const struct lease_view *v)
{
    const struct slot_grant *g = &v->grant;
    const struct firn_layout *l = &m->plan->layout[i];
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    uint64_t from = lease_ticks_from(l, &m->plan->lease, g->from);
    o.slot = g->slot;
    o.lane = m->lane;
    o.lanes = m->plan->lanes;
    o.policy = FIRN_POLICY_BORROW;
    o.max_drift_ms = drift_ms(v);
    o.clock = &m->clock.base;
    o.from = from > m->stamped[i] ? from : m->stamped[i] + 1;
    o.from = o.from ? o.from : 1;
    o.until = end_of(m, i, v);
    if (o.until <= o.from || g->slot >= firn_layout_slots(l))
        return; /* not one whole tick yet: the next extension brings it */
    firn_assert(o.from > m->stamped[i] && o.lane < o.lanes, "from=%" PRIu64 " stamped=%" PRIu64,
                o.from, m->stamped[i]);
    firn_assert(o.from >= from && o.until <= lease_ticks_until(l, &m->plan->lease, g->until),
                "window=[%" PRIu64 ", %" PRIu64 ")", o.from, o.until);
    m->open[i] = firn_gen_init(&m->generator[i], l, &o) == 0;
}

/* Read the grant that the coordinator published last. */
static void refresh(struct minter *m)
{
    struct lease_view v;
    m->version = atomic_load_explicit(&m->board->version, memory_order_acquire);
    board_copy(m->board, &v);
    bool over = v.grant.closed || v.grant.gen == 0, moved = over || v.grant.gen != m->gen;
    firn_assert(over || v.grant.from <= v.grant.until, "from=%" PRIu64 " until=%" PRIu64,
                v.grant.from, v.grant.until);
    m->gen = over ? 0 : v.grant.gen;
    for (int i = 0; i < LEASED_N; i++) {
        const struct firn_layout *l = &m->plan->layout[i];
        if (m->plan->share[i] != (enum leased)i)
            continue;
        if (moved)
            retire(m, (enum leased)i);
        if (over)
            continue;
        if (m->open[i]) {
            m->generator[i].drift_ = drift_ms(&v) * UINT64_C(1000) / l->tick_us;
            firn_gen_extend(&m->generator[i], end_of(m, (enum leased)i, &v));
        } else {
            start(m, (enum leased)i, &v);
        }
    }
}

static inline struct firn_gen *generator(struct minter *m, enum leased which)
{
    if (atomic_load_explicit(&m->board->version, memory_order_acquire) != m->version)
        refresh(m);
    which = m->plan->share[which];
    return m->open[which] && !m->closed ? &m->generator[which] : NULL;
}

/* The numbers of this tick are used up: new ones come with the next tick. Waiting here delays this
 * loop's other requests, but those for numbers would find none either. True: try again. */
static bool await_tick(uint64_t *waited_us)
{
    enum { NAP_US = 200, WAIT_MAX_US = 100000 };
    if (*waited_us >= WAIT_MAX_US)
        return false;
    nanosleep(&(struct timespec){ 0, NAP_US * 1000 }, NULL);
    *waited_us += NAP_US;
    return true;
}

int minter_number(struct minter *m, enum leased which, uint64_t *out)
{
    uint64_t waited_us = 0;
    int r;
    do {
        struct firn_gen *g = generator(m, which);
        r = g ? firn_gen_next(g, out) : FIRN_EWINDOW;
    } while (r == FIRN_EAGAIN && await_tick(&waited_us));
    return r;
}

int minter_numbers(struct minter *m, enum leased which, uint64_t shard, uint64_t *ids, size_t n,
                   size_t *out_n)
{
    struct firn_gen *g = generator(m, which);
    if (!g)
        return FIRN_EWINDOW;
    if (shard > g->shard_max_)
        return FIRN_ERANGE;
    uint64_t waited_us = 0;
    int r;
    while ((r = firn_gen_fill(g, ids, n, out_n)) == FIRN_EAGAIN && await_tick(&waited_us)) {
        g = generator(m, which); /* a new grant may have come meanwhile */
        if (!g)
            return FIRN_EWINDOW;
    }
    firn_assert(r != 0 || (*out_n > 0 && *out_n <= n), "%zu of %zu", *out_n, n);
    if (r == 0 && shard)
        for (size_t i = 0; i < *out_n; i++)
            ids[i] |= shard << g->shard_shift_;
    return r;
}

void minter_turn(struct minter *m)
{
    for (int i = 0; i < LEASED_N; i++)
        note_highest(m, (enum leased)i);
    atomic_store_explicit(&m->last, m->highest, memory_order_relaxed);
}

_Atomic uint64_t *minter_last(struct minter *m)
{
    return &m->last;
}

uint64_t minter_close(struct minter *m)
{
    firn_assert(!m->closed);
    for (int i = 0; i < LEASED_N; i++)
        if (m->open[i])
            firn_gen_close(&m->generator[i], NULL);
    m->closed = true;
    minter_turn(m);
    return m->highest;
}

/* --- texts and counts --- */

static size_t kind_index(const struct firn_kind *kind)
{
    size_t n;
    return (size_t)(kind - firn_kinds(&n));
}

struct firn_mint *minter_mint(struct minter *m, const struct firn_kind *kind)
{
    size_t i = kind_index(kind);
    if (!m->mint[i]) {
        struct firn_mint_opts o = FIRN_MINT_OPTS_INIT;
        if (firn_mint_new(kind, &o, &m->mint[i], NULL) != 0)
            m->mint[i] = NULL;
    }
    return m->mint[i];
}

void minter_count(struct minter *m, const struct firn_kind *kind, uint64_t n)
{
    /* One writer: a load and a store are enough, and cost nothing on the hot path. */
    _Atomic uint64_t *c = &m->counted[kind_index(kind)];
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

uint64_t minter_counted(const struct minter *m, size_t index)
{
    return atomic_load_explicit(&m->counted[index], memory_order_relaxed);
}

int minter_new(const struct minter_plan *plan, struct board *board, uint32_t lane,
               struct minter **out)
{
    size_t kinds;
    firn_kinds(&kinds);
    if (kinds > KINDS_MAX)
        return FIRN_EINVAL;
    struct minter *m = calloc(1, sizeof *m);
    if (!m)
        return FIRN_ENOMEM;
    m->plan = plan;
    m->board = board;
    m->lane = lane;
    board_clock_init(&m->clock, board);
    *out = m;
    return 0;
}

void minter_free(struct minter *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < KINDS_MAX; i++)
        firn_mint_free(m->mint[i]);
    free(m);
}
