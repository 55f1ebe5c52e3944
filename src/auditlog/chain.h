/*
 * chain.h - the chain of a writer's batches in one shard. The rows that are committed together are
 * the leaves of a Merkle tree; its root and the digest of the head before make the batch's head
 * (head.h). Change a row, and the head is another; change a head, and every later one is.
 *
 * The bytes of a row, for its digest: 00, version 1, then id (8), map version (8), time in
 * microseconds (8), high byte first, and tenant, user, actor, action and detail, each behind its
 * length (4 bytes); detail in the form of canon.h, so that a row read back from a jsonb column has
 * the digest that it had before it was written.
 *
 * A batch's index is kept beside its head: for each row, by ID, the ID (8 bytes) and the first 8
 * bytes of the digest. The head has the index's digest. With it a checker (verify.h) knows which
 * rows there must be, and names the one that was changed; without it, only the batch.
 *
 * A writer, for each commit:
 *     chain_batch_clear(b); for each row: chain_batch_add(b, &row); chain_batch_end(b);
 *     chain_head(&c, b, now, &head); in one transaction: the rows, the head and the index
 *     chain_advance(&c, &b->hasher.sha, &head); when it is committed, not when it is rolled back
 *
 * One thread. Tests: tests/unit/auditlog/chain.c.
 */
#ifndef FIRN_AUDITLOG_CHAIN_H
#define FIRN_AUDITLOG_CHAIN_H

#include "auditlog/canon.h"
#include "auditlog/head.h"

enum {
    CHAIN_ROW_BYTES_MAX = 8 * 1024 * 1024, /* as digested */
    CHAIN_TAG_BYTES = 8,
    CHAIN_INDEX_BYTES = 8 + CHAIN_TAG_BYTES, /* of a row */
};

struct chain_row { /* as the table has it; texts are borrowed */
    uint64_t id, map_version;
    int64_t at_us; /* Unix */
    struct slice tenant, user, actor, action;
    struct slice detail; /* JSON */
};

/* Digests rows. */
struct chain_hasher { /* zeroed: closed */
    struct sha256 sha;
    struct canon canon;
    struct buf bytes;
};

FIRN_MUSTUSE int chain_hasher_open(struct chain_hasher *h); /* FIRN_ENOMEM */
void chain_hasher_close(struct chain_hasher *h);

/* FIRN_EFORMAT: the detail is no JSON. FIRN_ENOMEM: no memory, or the row is too long. */
FIRN_MUSTUSE int chain_row_digest(struct chain_hasher *h, const struct chain_row *row,
                                  digest_t out);

struct chain_leaf {
    uint64_t id;
    digest_t digest;
};

struct chain_batch { /* zeroed: closed */
    struct chain_hasher hasher;
    struct buf leaves;  /* struct chain_leaf: by ID after chain_batch_end() */
    struct buf scratch; /* digests, to build the tree in */
    struct buf index;
    digest_t root, index_digest;
};

FIRN_MUSTUSE int chain_batch_open(struct chain_batch *b); /* FIRN_ENOMEM */
void chain_batch_close(struct chain_batch *b);
void chain_batch_clear(struct chain_batch *b);

/* In any order. As chain_row_digest(); FIRN_ERANGE: HEAD_ROWS_MAX are there. */
FIRN_MUSTUSE int chain_batch_add(struct chain_batch *b, const struct chain_row *row);
FIRN_MUSTUSE int chain_batch_add_leaf(struct chain_batch *b, const struct chain_leaf *leaf);

/* Builds the tree and the index. FIRN_EINVAL: no row, or two with one ID. FIRN_ENOMEM. */
FIRN_MUSTUSE int chain_batch_end(struct chain_batch *b);

size_t chain_batch_rows(const struct chain_batch *b);
const struct chain_leaf *chain_batch_leaves(const struct chain_batch *b);

/* The way from a row to the root, for a proof; after chain_batch_end(). FIRN_ENOENT: no such ID. */
FIRN_MUSTUSE int chain_batch_path(struct chain_batch *b, uint64_t id, uint64_t *out_at,
                                  digest_t path[MERKLE_PATH_MAX], size_t *out_n);

struct chain {
    uint32_t shard;
    char writer[HEAD_WRITER_MAX + 1];
    uint64_t seq; /* of the last head; 0: none yet */
    digest_t last;
};

/* FIRN_EINVAL: the name (head_writer_ok). */
FIRN_MUSTUSE int chain_start(struct chain *c, uint32_t shard, const char *writer);

/* Goes on behind the last head that was committed. */
void chain_resume(struct chain *c, struct sha256 *sha, const struct head *last);

/* The head of a batch after chain_batch_end(). The chain stays as it is. FIRN_EOVERFLOW. */
FIRN_MUSTUSE int chain_head(const struct chain *c, const struct chain_batch *b, int64_t time_us,
                            struct head *out);

/* Whether `h` is the next head: of the same chain, with the next number, naming the last one. */
bool chain_follows(const struct chain *c, const struct head *h);

/* It was committed. */
void chain_advance(struct chain *c, struct sha256 *sha, const struct head *h);

/* An index as it is stored: row `i`. */
uint64_t chain_index_id(const void *index, size_t i);
const uint8_t *chain_index_tag(const void *index, size_t i);

#endif
