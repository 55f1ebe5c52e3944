/*
 * The process's number source: coord/stamp_source.h under a lock, with the views of the board.
 * Tested in tests/unit/server/minter.c.
 */
#include "server/numbers.h"
#include "coord/lease_ticks.h"
#include "coord/stamp_source.h"

#include <stdlib.h>

struct numbers {
    struct board *board;
    struct board_clock clock;
    pthread_mutex_t mutex; /* guards `source` and `set` */
    _Atomic uint64_t last;
    _Atomic uint64_t *note; /* or NULL; constant once loops run */
    struct stamp_source source;
    struct stamp_set set[];
};

int numbers_new(const struct stamp_plan *plan, struct board *board, uint32_t users,
                struct numbers **out)
{
    struct numbers *n = calloc(1, sizeof *n + (users + 1) * sizeof n->set[0]);
    if (!n)
        return FIRN_ENOMEM;
    n->board = board;
    board_clock_init(&n->clock, board);
    stamp_source_init(&n->source, plan, &n->clock.base, n->set, users + 1);
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

struct stamps *numbers_follow(struct numbers *n, struct stamps *old, uint64_t *version)
{
    struct lease_view v;
    pthread_mutex_lock(&n->mutex);
    /* The version before the view: a publication in between is looked at again. */
    *version = atomic_load_explicit(&n->board->version, memory_order_acquire);
    board_copy(n->board, &v);
    struct stamps *s = stamp_source_follow(&n->source, old, &v);
    raise(&n->last, stamp_source_highest(&n->source));
    pthread_mutex_unlock(&n->mutex);
    return s;
}

void numbers_set_note(struct numbers *n, _Atomic uint64_t *note)
{
    n->note = note;
}

void numbers_cover(struct numbers *n, enum leased which, uint64_t tick)
{
    const struct stamp_plan *plan = n->source.plan;
    if (n->note)
        raise(n->note, lease_ticks_stamped(&plan->layout[which], &plan->lease, tick));
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
    raise(&n->last, stamps_highest(s, n->source.plan));
}

uint64_t numbers_close(struct numbers *n)
{
    pthread_mutex_lock(&n->mutex);
    stamp_source_close(&n->source);
    raise(&n->last, stamp_source_highest(&n->source));
    pthread_mutex_unlock(&n->mutex);
    return atomic_load_explicit(&n->last, memory_order_relaxed);
}
