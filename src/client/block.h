/*
 * block.h - blocks of numbers fetched ahead: one in use and one behind it.
 * A block that is too old is discarded; the size of the next one follows demand. Pure: time is an
 * argument; the caller holds the lock.
 */
#ifndef FIRN_CLIENT_BLOCK_H
#define FIRN_CLIENT_BLOCK_H

#include <stdbool.h>

#include "client/runs.h"

#define NEVER_MS UINT64_MAX

enum {
    BLOCK_FIRST = 64,      /* before anything is known about demand */
    BLOCK_LASTS_MS = 1000, /* how long one should last; with a bound on age, at most half of that */
    SLICE_MAX = 4096, /* numbers that a thread takes at once; those left when it ends are lost */
};

struct block {
    struct runs runs;
    size_t at;         /* the run in use */
    uint64_t left;     /* numbers */
    uint64_t stale_ms; /* from this time on they are too old */
};

struct block_pool {
    struct block now, next;
    uint64_t size, size_max; /* of the next block to fetch */
    uint64_t lasts_ms;
    uint64_t came_ms, used; /* when the last block arrived, and how many were taken since */
};

void block_pool_init(struct block_pool *p, uint64_t size_max, uint64_t fresh_ms);
void block_pool_done(struct block_pool *p);

/* Adds a block that arrived, where block_pool_wants() was true. `runs` is transferred and empty
 * then. */
void block_pool_add(struct block_pool *p, struct runs *runs, uint64_t stale_ms, uint64_t now_ms);

/* Whether to fetch the next block: the one in use is half empty, and none is behind it. */
bool block_pool_wants(const struct block_pool *p);

/* Up to `most` numbers in one run, usable until *out_stale_ms; count 0: there are none. Returns how
 * many were too old and discarded. */
uint64_t block_pool_take(struct block_pool *p, uint64_t most, uint64_t now_ms, struct run *out,
                         uint64_t *out_stale_ms);

/* How many numbers a thread takes at once: few enough for all threads, enough to lock rarely. */
uint64_t block_pool_slice(const struct block_pool *p);

/* The size of the block after one of `size`, of which `used` were taken within `took_ms`. */
uint64_t block_size_next(uint64_t size, uint64_t used, uint64_t took_ms, uint64_t lasts_ms,
                         uint64_t size_max);

#endif
