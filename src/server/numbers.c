/*
 * The process's number source: follows the board, one grant after another.
 *
 * The first loop that sees a new grant closes the old generators and opens new ones above all that
 * they stamped. A loop that still holds the old ones draws FIRN_ECLOSED from them and follows. Each
 * loop holds one set at a time, so one more than there are loops always has a free one.
 * Tested in tests/unit/server/minter.c.
 */
#include "server/numbers.h"
#include "coord/lease_ticks.h"
#include "id/minmax.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdlib.h>

struct held { /* the generators of one grant */
    struct stamps stamps;
    uint32_t users;
};

struct numbers {
    const struct stamp_plan *plan;
    struct board *board;
    struct board_clock clock;
    pthread_mutex_t mutex; /* guards everything below but `last` */
    struct held *now;      /* of the grant that the board showed last; NULL: none */
    struct stamps_above above;
    bool closed;
    _Atomic uint64_t last;
    _Atomic uint64_t *note; /* or NULL; constant once loops run */
    uint32_t held_n;
    struct held held[];
};

int numbers_new(const struct stamp_plan *plan, struct board *board, uint32_t users,
                struct numbers **out)
{
    struct numbers *n = calloc(1, sizeof *n + (users + 1) * sizeof n->held[0]);
    if (!n)
        return FIRN_ENOMEM;
    n->plan = plan;
    n->board = board;
    n->held_n = users + 1;
    board_clock_init(&n->clock, board);
    pthread_mutex_init(&n->mutex, NULL);
    *out = n;
    return 0;
}

void numbers_free(struct numbers *n)
{
    if (!n)
        return;
    pthread_mutex_destroy(&n->mutex);
    free(n);
}

static void raise(_Atomic uint64_t *word, uint64_t tick)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    while (tick > old && !atomic_compare_exchange_weak_explicit(
                             word, &old, tick, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void end_grant(struct numbers *n)
{
    if (n->now)
        stamps_end(&n->now->stamps, n->plan, &n->above);
    n->now = NULL;
    raise(&n->last, stamps_above_highest(&n->above, n->plan));
}

static struct held *unused(struct numbers *n)
{
    uint32_t i = 0;
    while (i < n->held_n && n->held[i].users > 0)
        i++;
    firn_assert(i < n->held_n, "more than %u users", n->held_n - 1);
    return &n->held[i];
}

struct stamps *numbers_follow(struct numbers *n, struct stamps *old, uint64_t *version)
{
    struct lease_view v;
    pthread_mutex_lock(&n->mutex);
    if (old)
        ((struct held *)(void *)old)->users--; /* its first member */
    /* The version before the view: a publication in between is looked at again. */
    *version = atomic_load_explicit(&n->board->version, memory_order_acquire);
    board_copy(n->board, &v);
    bool over = n->closed || v.grant.closed || v.grant.gen == 0;
    if (n->now && (over || v.grant.gen != n->now->stamps.gen))
        end_grant(n);
    if (!over && n->now) {
        stamps_follow(&n->now->stamps, n->plan, &v, &n->above, &n->clock.base);
    } else if (!over) {
        n->now = unused(n);
        stamps_begin(&n->now->stamps, n->plan, &v, &n->above, &n->clock.base);
    }
    struct stamps *s = n->now ? &n->now->stamps : NULL;
    if (n->now)
        n->now->users++;
    pthread_mutex_unlock(&n->mutex);
    return s;
}

void numbers_set_note(struct numbers *n, _Atomic uint64_t *note)
{
    n->note = note;
}

void numbers_cover(struct numbers *n, enum leased which, uint64_t tick)
{
    if (n->note)
        raise(n->note, lease_ticks_stamped(&n->plan->layout[which], &n->plan->lease, tick));
}

const struct firn_clock *numbers_clock(const struct numbers *n)
{
    return &n->clock.base;
}

_Atomic uint64_t *numbers_last(struct numbers *n)
{
    return &n->last;
}

void numbers_note(struct numbers *n, const struct stamps *s)
{
    raise(&n->last, stamps_highest(s, n->plan));
}

uint64_t numbers_close(struct numbers *n)
{
    pthread_mutex_lock(&n->mutex);
    n->closed = true;
    end_grant(n);
    pthread_mutex_unlock(&n->mutex);
    return atomic_load_explicit(&n->last, memory_order_relaxed);
}
