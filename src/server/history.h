/*
 * history.h - the last hour of the server in fixed memory: a ring of rows, one per second, for the
 * dashboard. A row holds what happened in its second (counters) and how the server was at its end
 * (gauges). One thread adds rows; any thread reads them.
 */
#ifndef FIRN_SERVER_HISTORY_H
#define FIRN_SERVER_HISTORY_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HISTORY_ROWS = 3600,  /* an hour, at one row per second */
    HISTORY_COLUMNS = 88, /* about 1.3 MB in all */
    HISTORY_PAGE = 64,    /* rows that a reader copies under the lock */
    HISTORY_EVERY_MS = 1000,
};

struct history_row {
    uint64_t number;  /* 1, 2, ... */
    uint64_t unix_ms; /* the end of its second */
    int32_t value[HISTORY_COLUMNS];
};

struct history {
    pthread_mutex_t mutex; /* guards all below */
    uint64_t rows;         /* added so far; the number of the last one */
    uint64_t before[HISTORY_COLUMNS];
    struct history_row ring[HISTORY_ROWS];
};

void history_init(struct history *h);
void history_done(struct history *h);

/* Adds a row: of the first `counters` values what they rose by since the last row, or
 * from 0, of the others the value, which is signed. What does not fit into 32 bits saturates. */
void history_add(struct history *h, uint64_t unix_ms, const uint64_t *value, size_t n,
                 size_t counters);

/* Copies rows behind number `after`, or from the oldest one that is kept, in their order. Returns
 * how many; 0: there is none yet. */
size_t history_read(struct history *h, uint64_t after, struct history_row out[HISTORY_PAGE]);

#endif
