/*
 * dedup.h - the last KEPT_MAX requests that were applied, with their nonces and results: who asks again is answered from
 * here. All members have the same. Belongs to one thread.
 */
#ifndef FIRN_RAFT_KEPT_H
#define FIRN_RAFT_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEPT_MAX = 4096 };

struct kept_row {
    uint64_t nonce[2];
    uint8_t *result; /* NULL: nothing is here yet */
    uint16_t len;
    uint16_t next; /* of the same bucket, plus 1; 0: the last */
};

struct kept {             /* all zero is an empty one */
    struct kept_row *row; /* request number i is at i % KEPT_MAX; NULL: none yet */
    uint16_t *bucket;     /* by nonce: a row, plus 1 */
};

void kept_done(struct kept *k);

/* In place of the one KEPT_MAX before it. False: no memory, and nothing changed. */
bool kept_add(struct kept *k, uint64_t number, const uint64_t nonce[2], const uint8_t *result,
              size_t len);

/* NULL: not among the last. */
const struct kept_row *kept_find(const struct kept *k, const uint64_t nonce[2]);

#endif
