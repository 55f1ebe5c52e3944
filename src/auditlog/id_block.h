/*
 * id_block.h - IDs of one logical shard that were fetched ahead. They leave it in rising order,
 * also over a change of the generator: an ID that is not above all that left before is dropped, and
 * so are those that are too old. Pure: time is an argument. One thread.
 */
#ifndef FIRN_AUDITLOG_ID_BLOCK_H
#define FIRN_AUDITLOG_ID_BLOCK_H

#include "firn/error.h"

#include <stddef.h>
#include <stdint.h>

struct id_block {  /* zeroed is empty */
    uint64_t *ids; /* owned */
    size_t at, n;
    uint64_t stale_ms; /* from this time on they are too old */
    uint64_t last;     /* the highest that left */
    size_t size;       /* of the next block to fetch; 0: nothing is known about demand */
};

/* Up to `n` IDs, their number. `*dropped` grows by those that were too old or not in order. */
size_t id_block_take(struct id_block *b, uint64_t *out, size_t n, uint64_t now_ms,
                     uint64_t *dropped);

/* How many to fetch when at least `need` are: more when the last block was used up in time, fewer
 * when much of it became too old. */
size_t id_block_want(struct id_block *b, size_t need, size_t max);

/* Takes the IDs in (`ids` is transferred), in the place of those that are left. */
void id_block_fill(struct id_block *b, uint64_t *ids, size_t n, uint64_t stale_ms);

void id_block_done(struct id_block *b);

#endif
