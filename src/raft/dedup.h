/*
 * dedup.h - results of the last DEDUP_MAX applied requests, by nonce.
 * A request that is sent again after its leader was lost is answered from this table instead of
 * being applied twice. All members have the same table. Belongs to one thread.
 */
#ifndef FIRN_RAFT_DEDUP_H
#define FIRN_RAFT_DEDUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef DEDUP_MAX /* the simulator forgets sooner */
#define DEDUP_MAX 4096
#endif

struct dedup_row {
    uint64_t nonce[2];
    uint8_t *result; /* NULL: the row is empty */
    uint16_t len;
    uint16_t next; /* row of the same bucket, plus 1; 0: the last */
};

struct dedup {             /* all zero is an empty table */
    struct dedup_row *row; /* request number i is in row i % DEDUP_MAX; NULL: no request yet */
    uint16_t *bucket;      /* by nonce: a row, plus 1 */
};

void dedup_done(struct dedup *k);

/* Replaces the request DEDUP_MAX before this one. False: no memory, nothing changed. */
bool dedup_add(struct dedup *k, uint64_t number, const uint64_t nonce[2], const uint8_t *result,
               size_t len);

/* NULL: not among the last DEDUP_MAX. */
const struct dedup_row *dedup_find(const struct dedup *k, const uint64_t nonce[2]);

#endif
