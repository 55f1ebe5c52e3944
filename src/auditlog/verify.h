/*
 * verify.h - compares rows with the heads of their batches, and says which row or head is another
 * than it was. Two passes over one shard:
 *
 * 1. For each writer, its heads by sequence number: links, signatures, and that none is missing
 *    between two (struct verify_heads). An end that was cut off is seen only against a checkpoint,
 *    a later head that was kept elsewhere.
 * 2. All heads of the shard by first ID, and all rows by ID, side by side (struct verify_rows):
 *    which rows are missing, were added or changed. A head's index says which rows there must be.
 *
 * What is found goes to a callback, the first first; it returns false to end. Nothing is read or
 * written here. One thread. Tests: tests/unit/auditlog/verify.c.
 */
#ifndef FIRN_AUDITLOG_VERIFY_H
#define FIRN_AUDITLOG_VERIFY_H

#include "auditlog/chain.h"
#include "auditlog/head_key.h"

#define FINDINGS(X)                                                                   \
    X(ROW_CHANGED, "row changed", "the row is not what its batch had")                \
    X(ROW_MISSING, "row missing", "its batch had the row, the table has not")         \
    X(ROW_ADDED, "row added", "no batch had the row")                                 \
    X(ROW_TWICE, "row in two batches", "two heads claim the row")                     \
    X(BATCH_CHANGED, "batch changed", "rows of the batch are not what they were")     \
    X(INDEX_CHANGED, "index changed", "the index is not the one that the head names") \
    X(HEAD_MISSING, "head missing", "between this head and the one before")           \
    X(HEAD_CHANGED, "head changed", "the next one, or a checkpoint, names another")   \
    X(HEAD_UNSIGNED, "head unsigned", "no signature of a known key covers it")        \
    X(SIGNATURE_WRONG, "signature wrong", "the signature is not of this head")        \
    X(KEY_UNKNOWN, "key unknown", "none of the public keys made the signature")       \
    X(CHAIN_SHORT, "chain short", "heads up to the checkpoint are missing at its end")

enum finding_kind {
#define FINDING(name, title, text) FINDING_##name,
    FINDINGS(FINDING)
#undef FINDING
        FINDING_KINDS
};

struct finding {
    enum finding_kind kind;
    uint64_t id; /* of the row; 0: it is about a head */
    uint32_t shard;
    const char *writer; /* of the batch; "" of rows that no batch had. Borrowed */
    uint64_t seq;       /* of the head, likewise 0 */
};

/* "row changed"; "the row is not what its batch had". */
const char *finding_title(enum finding_kind kind);
const char *finding_text(enum finding_kind kind);

/* False: enough. */
typedef bool finding_fn(void *user, const struct finding *f);

/* --- heads --- */

struct verify_heads { /* private; no done() is needed */
    struct sha256 *sha;
    const struct head_keys *keys;
    finding_fn *found;
    void *user;
    struct chain chain;
    uint64_t unsigned_from; /* the first head that no signature covers yet; 0: none */
    uint64_t checked;
    bool begun, ended;
};

/* `keys` NULL: signatures are not checked. `trusted`: the head that is known to be right, after
 * which the first one given comes; NULL: the chain is given from its first head on. Borrowed: sha,
 * keys. */
void verify_heads_start(struct verify_heads *v, struct sha256 *sha, const struct head_keys *keys,
                        const struct head *trusted, finding_fn *found, void *user);

/* The next head of the writer and shard. A signature covers the head and all before it. False: the
 * callback has had enough. */
bool verify_heads_next(struct verify_heads *v, const struct head *h, const struct head_sig *sig);

/* The end. `checkpoint`: a head of this chain that was kept elsewhere, the newest, or NULL. */
bool verify_heads_end(struct verify_heads *v, const struct head *checkpoint);

/* --- rows --- */

enum { VERIFY_OPEN_MAX = 65536 }; /* batches whose rows overlap; writers hold IDs for a second */

struct verify_rows; /* opaque */

/* Rows with from <= ID <= to are compared; of batches that reach beyond, only those rows.
 * FIRN_ENOMEM. */
FIRN_MUSTUSE int verify_rows_new(uint32_t shard, uint64_t from, uint64_t to, finding_fn *found,
                                 void *user, struct verify_rows **out);
void verify_rows_free(struct verify_rows *v);

/* A head of the shard, by first ID, before the row with that ID; all that reach into the range, and
 * only heads that the first pass found right. `index` is as it is stored. Where it is not the one
 * that the head names, or where a head is missing, the rows of the batch count as added. 0;
 * FIRN_ECLOSED: the callback has had enough; FIRN_EINVAL: not in order, or of another shard;
 * FIRN_ENOMEM; FIRN_ERANGE: VERIFY_OPEN_MAX. */
FIRN_MUSTUSE int verify_rows_head(struct verify_rows *v, const struct head *h, struct slice index);

/* A row, by ID. As verify_rows_head(). */
FIRN_MUSTUSE int verify_rows_row(struct verify_rows *v, const struct chain_row *row);

/* After the last: rows that are still expected are missing. */
FIRN_MUSTUSE int verify_rows_end(struct verify_rows *v);

uint64_t verify_rows_compared(const struct verify_rows *v); /* rows that were right */

#endif
