/*
 * proof.h - the proof that a row is in the log as it was written: the row, the way from it to its
 * batch's root, and the heads from that batch to the next one that is signed. Who has the public
 * keys can check it without the log, or anybody's word. A JSON text:
 *
 *     {"proof":"firn-audit-proof-1",
 *      "row":{"id":"…","tenant":"…","user":"…","actor":"…","action":"…","at_us":"…",
 *             "map_version":"…","detail":"…"},       detail: JSON, as a text
 *      "place":"5",                                  among the batch's rows by ID, from 0
 *      "path":["…64 hex digits…", …],                from the leaf up
 *      "heads":["firn-audit-head-1 …", …]}           head.h; the last one is signed
 *
 * Members in any order, each once, no others. Pure functions. Tests: tests/unit/auditlog/proof.c.
 */
#ifndef FIRN_AUDITLOG_PROOF_H
#define FIRN_AUDITLOG_PROOF_H

#include "auditlog/chain.h"
#include "auditlog/head_key.h"

enum { PROOF_HEADS_MAX = 4096 };

struct proof_head {
    struct head head;
    struct head_sig sig;
};

struct proof {
    struct chain_row row; /* borrows from `text` when it was read */
    uint64_t place;
    digest_t path[MERKLE_PATH_MAX];
    size_t path_n;
    struct proof_head *heads; /* of the row's batch, and those behind it */
    size_t heads_n;
    char *text; /* owned by a proof that was read */
};

/* Appends the proof as JSON, without a check. Texts that are not UTF-8 do not come back. */
void proof_write(const struct proof *p, struct buf *out);

/* Reads one; proof_done() frees it. FIRN_EFORMAT: diag says where. FIRN_ERANGE: too many heads.
 * FIRN_ENOMEM. Nothing is checked yet. */
FIRN_MUSTUSE int proof_read(struct slice json, struct proof *out, struct firn_diag *diag);
void proof_done(struct proof *p);

/* 0: one of the keys has signed that the row was written as it is. FIRN_EAUTH: it proves nothing,
 * diag says where it breaks. FIRN_ENOENT: signed by none of the keys. FIRN_ENOMEM. */
FIRN_MUSTUSE int proof_check(const struct proof *p, const struct head_keys *keys,
                             struct firn_diag *diag);

#endif
