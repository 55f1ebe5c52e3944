/*
 * head.h - the head of a batch: what a writer says of the rows that it committed together. A head
 * names the one before it, so the heads of a writer and shard are a chain: whoever has one of them
 * can tell whether an earlier one, or a row, is another than it was.
 *
 * Two forms. Binary, which is what is digested and signed; numbers high byte first:
 *     version 1 (1 byte), shard (4), length of the writer's name (1), name, sequence number (8),
 *     first ID (8), last ID (8), rows (4), root (32), index (32), previous (32), time (8)
 * Text, a line for tables, registers and files, in hexadecimal and decimal digits:
 *     firn-audit-head-1 shard=3 writer=app-1 seq=17 first=7 last=9 rows=2 root=… index=…
 *     previous=… time_us=… [key=… sig=…]
 * Each value has one form of each kind; anything else is refused. Pure.
 */
#ifndef FIRN_AUDITLOG_HEAD_H
#define FIRN_AUDITLOG_HEAD_H

#include "auditlog/merkle.h"
#include "wire/buf.h"

enum {
    HEAD_WRITER_MAX = 63, /* A-Z a-z 0-9 . _ : - */
    HEAD_ROWS_MAX = 1 << 20,
    HEAD_KEY_BYTES = 8, /* of the SHA-256 of the public key */
    HEAD_SIG_BYTES = 64,
    HEAD_BYTES_MAX = 1 + 4 + 1 + HEAD_WRITER_MAX + 3 * 8 + 4 + 3 * SHA256_BYTES + 8,
    HEAD_TEXT_BUF = 768,
};

struct head {
    uint32_t shard;
    char writer[HEAD_WRITER_MAX + 1];
    uint64_t seq;         /* 1, 2, 3 ... */
    uint64_t first, last; /* the lowest and the highest ID */
    uint32_t rows;
    digest_t root;     /* of the Merkle tree over the rows, by ID */
    digest_t index;    /* of the batch's index (chain.h) */
    digest_t previous; /* of the head before it; all zero for the first */
    int64_t time_us;   /* Unix, of the writer's clock */
};

struct head_sig {
    bool there;
    uint8_t key[HEAD_KEY_BYTES];
    uint8_t bytes[HEAD_SIG_BYTES];
};

/* Whether a name can be a writer's. */
bool head_writer_ok(const char *name, size_t len);

/* The binary form; returns its length. The head must be one that head_decode() takes. */
size_t head_encode(const struct head *h, uint8_t out[HEAD_BYTES_MAX]);
FIRN_MUSTUSE int head_decode(const void *p, size_t len, struct head *out); /* FIRN_EFORMAT */

/* The digest of the binary form: the next head's `previous`. */
void head_digest(struct sha256 *sha, const struct head *h, digest_t out);

/* The text with a NUL; returns its length. `sig` may be NULL, or not there. */
size_t head_write(const struct head *h, const struct head_sig *sig, char out[HEAD_TEXT_BUF]);

/* FIRN_EFORMAT: diag says which field. `sig` NULL: a signature is read and dropped. */
FIRN_MUSTUSE int head_read(struct slice text, struct head *out, struct head_sig *sig,
                           struct firn_diag *diag);

#endif
