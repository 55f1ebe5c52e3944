/*
 * Publishes a lease's view to the generators, and shows clock F to them as a struct firn_clock.
 * Tests: tests/unit/server/minter.c, tests/unit/node/node.c.
 */
#include "drive/board.h"
#include "drive/real.h"
#include "platform/assert.h"

#include <inttypes.h>

void board_init(struct board *b)
{
    *b = (struct board){ .view = { .state = SLOT_START, .clock = CLOCK_WAIT } };
    pthread_mutex_init(&b->mutex, NULL);
}

void board_done(struct board *b)
{
    pthread_mutex_destroy(&b->mutex);
}

void board_publish(struct board *b, const struct lease_view *view)
{
    int64_t floor = atomic_load_explicit(&b->floor_ns, memory_order_relaxed);
    firn_assert(view->floor_ns >= floor, "F's floor %" PRId64 " to %" PRId64, floor,
                view->floor_ns);
    /* The clock first: a loop that sees the new grant must not stamp it with the old time. */
    atomic_store_explicit(&b->floor_ns, view->floor_ns, memory_order_relaxed);
    atomic_store_explicit(&b->off_ns, view->off_ns, memory_order_relaxed);
    pthread_mutex_lock(&b->mutex);
    firn_assert(view->grant.gen >= b->view.grant.gen, "grant %" PRIu64 " to %" PRIu64,
                b->view.grant.gen, view->grant.gen);
    b->view = *view;
    pthread_mutex_unlock(&b->mutex);
    atomic_fetch_add_explicit(&b->version, 1, memory_order_release);
}

void board_copy(struct board *b, struct lease_view *out)
{
    pthread_mutex_lock(&b->mutex);
    *out = b->view;
    pthread_mutex_unlock(&b->mutex);
}

static uint64_t read_f(const struct firn_clock *clock, clockid_t id)
{
    const struct board *b = ((const struct board_clock *)(const void *)clock)->board;
    int64_t f = real_clock_ns(id) + atomic_load_explicit(&b->off_ns, memory_order_relaxed);
    int64_t floor = atomic_load_explicit(&b->floor_ns, memory_order_relaxed);
    return (uint64_t)(f > floor ? f : floor);
}

static uint64_t f_coarse(const struct firn_clock *c)
{
    return read_f(c, CLOCK_MONOTONIC_COARSE);
}

static uint64_t f_precise(const struct firn_clock *c)
{
    return read_f(c, CLOCK_MONOTONIC);
}

/* Loops never sleep: their generators borrow, and return FIRN_EAGAIN when that ends. */
static void no_sleep(const struct firn_clock *c, uint64_t ns)
{
    (void)c;
    (void)ns;
}

void board_clock_init(struct board_clock *c, const struct board *b)
{
    *c = (struct board_clock){ { f_coarse, f_precise, no_sleep }, b };
}
