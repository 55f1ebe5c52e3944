#include "drive/board.h"

#include <time.h>

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
    /* The clock first: a loop that sees the new grant must not stamp it with the old time. */
    atomic_store_explicit(&b->floor_ns, view->floor_ns, memory_order_relaxed);
    atomic_store_explicit(&b->off_ns, view->off_ns, memory_order_relaxed);
    pthread_mutex_lock(&b->mutex);
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
    struct timespec t;
    clock_gettime(id, &t);
    int64_t f = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec +
                atomic_load_explicit(&b->off_ns, memory_order_relaxed);
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

/* Loops never sleep: their generators borrow, and say FIRN_EAGAIN when that ends. */
static void no_sleep(const struct firn_clock *c, uint64_t ns)
{
    (void)c;
    (void)ns;
}

void board_clock_init(struct board_clock *c, const struct board *b)
{
    *c = (struct board_clock){ { f_coarse, f_precise, no_sleep }, b };
}
