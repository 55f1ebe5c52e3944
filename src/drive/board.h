/*
 * board.h - state published by the lease thread to the generators: the grant, the clock, the store.
 * It is written after each step of the lease. A generator compares `version` before it stamps and
 * takes a copy when that moved. The clock's two numbers are read for every ID and are therefore
 * atomics of their own.
 */
#ifndef FIRN_DRIVE_BOARD_H
#define FIRN_DRIVE_BOARD_H

#include "drive/lease.h"
#include "firn/clock.h"

#include <pthread.h>
#include <stdatomic.h>

struct board {
    _Atomic uint64_t version;         /* rises with each publication; 0: none yet */
    _Atomic int64_t off_ns, floor_ns; /* F = max(floor_ns, CLOCK_MONOTONIC + off_ns) */
    pthread_mutex_t mutex;            /* guards `view` */
    struct lease_view view;
};

void board_init(struct board *b);
void board_done(struct board *b);

/* By the thread that steps the lease. */
void board_publish(struct board *b, const struct lease_view *view);

/* By any thread: a consistent copy. */
void board_copy(struct board *b, struct lease_view *out);

/* Clock F as generators read it: the coarse monotonic clock in front, the precise one behind. */
struct board_clock {
    struct firn_clock base;
    const struct board *board;
};

void board_clock_init(struct board_clock *c, const struct board *b);

#endif
