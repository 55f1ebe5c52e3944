/*
 * shelf.h - prefetch mode: the blocks in hand of one shard, and the request for the next one.
 * Shard 0 (which is also "no shard") has its shelf in the core; others get one when they are first
 * asked for. The caller holds core->mutex.
 */
#ifndef FIRN_CLIENT_SHELF_H
#define FIRN_CLIENT_SHELF_H

#include "client/block.h"
#include "client/trip.h"

enum {
    SHELVES_MAX = 1024, /* beyond that the one unused for longest gives way, with its numbers */
    SHELF_BUCKETS = 64,
};

struct failure {
    uint64_t count; /* rises with each failure */
    int error;
    char why[WHY_TEXT_BUF];
};

struct shelf {
    uint32_t shard;
    uint32_t users; /* calls that wait for a block of it: it stays as long */
    bool refused;   /* the servers have no such shard: only a call asks again */
    struct block_pool pool;
    struct trip *fetch;     /* the block under way, or NULL */
    struct failure fetched; /* the last failure, for the calls that wait */
    uint64_t used_ms;
    struct shelf *next; /* in its bucket */
};

struct shelves { /* those of shards above 0 */
    struct shelf *bucket[SHELF_BUCKETS];
    uint32_t n;
};

struct client_opts;

void shelf_init(struct shelf *s, const struct client_opts *o, uint32_t shard, uint64_t now_ms);
void shelf_done(struct shelf *s);

/* The shelf of a shard above 0. FIRN_ENOMEM. FIRN_EAGAIN: all are in use. *out_lost: numbers of a
 * shelf that gave way. */
FIRN_MUSTUSE int shelf_of(struct shelves *all, const struct client_opts *o, uint32_t shard,
                          uint64_t now_ms, struct shelf **out, uint64_t *out_lost);
void shelves_done(struct shelves *all);

/* The shelf after `s`, in no particular order; NULL: from the first on, and after the last. */
struct shelf *shelves_next(const struct shelves *all, const struct shelf *s);

#endif
