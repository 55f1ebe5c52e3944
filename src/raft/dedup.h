/*
 * dedup.h - the last DEDUP_MAX requests that were applied, with their nonces and results: who asks again is answered from
 * here. All members have the same. Belongs to one thread.
 */
#ifndef FIRN_RAFT_DEDUP_H
#define FIRN_RAFT_DEDUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEDUP_MAX = 4096 };

struct dedup_row {
    uint64_t nonce[2];
    uint8_t *result; /* NULL: nothing is here yet */
    uint16_t len;
    uint16_t next; /* of the same bucket, plus 1; 0: the last */
};

struct dedup {             /* all zero is an empty one */
    struct dedup_row *row; /* request number i is at i % DEDUP_MAX; NULL: none yet */
    uint16_t *bucket;      /* by nonce: a row, plus 1 */
};

void dedup_done(struct dedup *k);

/* In place of the one DEDUP_MAX before it. False: no memory, and nothing changed. */
bool dedup_add(struct dedup *k, uint64_t number, const uint64_t nonce[2], const uint8_t *result,
               size_t len);

/* NULL: not among the last. */
const struct dedup_row *dedup_find(const struct dedup *k, const uint64_t nonce[2]);

#endif
