/*
 * arena.h - memory for what one request needs and gives back as a whole, up to a bound. Beyond the
 * bound, or without memory, arena_get() gives NULL and `failed` stays set. One thread.
 */
#ifndef FIRN_PROXY_ARENA_H
#define FIRN_PROXY_ARENA_H

#include "wire/buf.h"

struct arena_block;

struct arena { /* zeroed but for max: empty */
    struct arena_block *blocks;
    size_t used, max; /* bytes that were taken, and may be */
    bool failed;
};

/* Zeroed and aligned for everything. */
void *arena_get(struct arena *a, size_t n);

/* A copy with a NUL behind it; absent without memory. */
struct slice arena_copy(struct arena *a, struct slice text);

void arena_done(struct arena *a);

#endif
