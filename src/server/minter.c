/*
 * What one loop mints with. Before each number the board's version is compared: one load when
 * nothing changed. The generators are the process's (numbers.h).
 */
#include "server/minter.h"
#include "platform/assert.h"

#include <stdlib.h>
#include <string.h>

#define KINDS_MAX 32

struct minter {
    const struct stamp_plan *plan;
    struct board *board;
    struct numbers *numbers;
    struct stamps *stamps; /* of the grant that this loop stands on; NULL: none */
    uint64_t version;      /* of the board when it was last looked at */
    bool tight[LEASED_N];
    uint64_t noted;             /* stamps_ticks() when the highest tick was last told */
    uint32_t drawn;             /* numbers since the room was looked at */
    uint64_t covered[LEASED_N]; /* the highest tick of the layout that was noted */
    _Atomic uint64_t counted[KINDS_MAX];
    struct firn_mint *mint[KINDS_MAX];
};

enum leased minter_leased(const struct firn_kind *kind)
{
    static const char *const names[LEASED_N] = { "snowflake", "sonyflake", "tsid" };
    for (int i = 0; i < LEASED_N; i++)
        if (strcmp(kind->name, names[i]) == 0)
            return (enum leased)i;
    return LEASED_N;
}

/* --- numbers --- */

static __attribute__((noinline)) void follow(struct minter *m)
{
    m->stamps = numbers_follow(m->numbers, m->stamps, &m->version);
}

static inline struct firn_shared *generator(struct minter *m, enum leased which)
{
    if (atomic_load_explicit(&m->board->version, memory_order_acquire) != m->version)
        follow(m);
    return m->stamps ? stamps_generator(m->stamps, m->plan, which) : NULL;
}

void minter_room(struct minter *m, enum leased which, struct stamps_room *out)
{
    *out = (struct stamps_room){ 0, 0 };
    if (generator(m, which))
        stamps_room(m->stamps, m->plan, which, out);
    m->tight[m->plan->share[which]] = stamps_share(out, 1) != 0;
}

bool minter_tight(const struct minter *m, enum leased which)
{
    return m->tight[m->plan->share[which]];
}

/* How much is left is looked at after every so many numbers. */
static inline void drawn(struct minter *m, enum leased which, size_t n)
{
    enum { LOOK_EVERY = 256 };
    struct stamps_room room;
    if ((m->drawn += (uint32_t)n) < LOOK_EVERY)
        return;
    m->drawn = 0;
    minter_room(m, which, &room);
}

/* Before an ID is handed out: the note of what was stamped is not below it. */
static inline void cover(struct minter *m, enum leased which, uint64_t id)
{
    struct firn_bits time = m->plan->layout[which].field[FIRN_FIELD_TIME];
    uint64_t tick = id >> time.shift & ((UINT64_C(1) << time.width) - 1);
    if (__builtin_expect(tick > m->covered[which], 0)) {
        m->covered[which] = tick;
        numbers_cover(m->numbers, which, tick);
    }
}

int minter_number(struct minter *m, enum leased which, uint64_t *out)
{
    for (;;) {
        struct firn_shared *g = generator(m, which);
        int r = g ? firn_shared_next(g, out) : FIRN_EWINDOW;
        if (r == FIRN_ECLOSED) {
            follow(m); /* another loop has seen a newer grant, or the end */
            continue;
        }
        if (r == 0)
            cover(m, which, *out);
        drawn(m, which, 1);
        return r;
    }
}

int minter_numbers(struct minter *m, enum leased which, uint64_t shard, uint64_t *ids, size_t n,
                   size_t *out_n)
{
    const struct firn_layout *l = &m->plan->layout[which];
    if (shard > m->plan->shard_max[which])
        return FIRN_ERANGE;
    int r;
    if (n == 1 && shard == 0) {
        *out_n = 1;
        return minter_number(m, which, ids);
    }
    for (;;) {
        struct firn_shared *g = generator(m, which);
        r = g ? firn_shared_fill(g, ids, n, out_n) : FIRN_EWINDOW;
        if (r != FIRN_ECLOSED)
            break;
        follow(m);
    }
    firn_assert(r != 0 || (*out_n > 0 && *out_n <= n), "%zu of %zu", *out_n, n);
    if (r == 0)
        cover(m, which, ids[*out_n - 1]); /* they rise */
    drawn(m, which, r ? 1 : *out_n);
    if (r == 0 && shard)
        for (size_t i = 0; i < *out_n; i++)
            ids[i] |= shard << l->field[FIRN_FIELD_SHARD].shift;
    return r;
}

void minter_turn(struct minter *m)
{
    uint64_t ticks = m->stamps ? stamps_ticks(m->stamps) : 0;
    if (ticks == m->noted)
        return;
    m->noted = ticks;
    if (m->stamps)
        numbers_note(m->numbers, m->stamps);
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

int minter_new(const struct stamp_plan *plan, struct board *board, struct numbers *numbers,
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
    m->numbers = numbers;
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
