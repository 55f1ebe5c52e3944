/*
 * fsm.h - the replicated state machine: registers, the cluster's incarnation, recent requests.
 * Makes and reads the bytes of log entries and snapshots; no I/O. Belongs to one thread.
 *
 * A member whose leader was lost does not know whether a write was applied, and sends it again. So
 * the last DEDUP_MAX requests are remembered with their nonces and results: of two copies of a
 * request the first is applied, the second is answered with the same result. If the table may have
 * dropped the request since it was first sent, the answer is "unknown".
 *
 * An entry is one of
 *   "FW2\0" u32 requests, u64 index, { body of a CAS of raft_frame.h, without `seen` }
 *                                              a group of writes
 *   "FI2\0" u32 0, u64 index, u64 old, u64 new   the incarnation: old becomes new
 *   "FC2\0" u32 0, u64 index, u64 term, u64 requests, u64 sum
 *                                              the leader's digest; changes nothing
 * padded with zeros to a multiple of 8. A snapshot is
 *   "FS1\0" u32 0, u64 incarnation, u64 count, { text key, text value },
 *   u64 requests, u32 rows, { u64 nonce, u64 nonce, text result }, SHA-256 of all before it
 */
#ifndef FIRN_RAFT_FSM_H
#define FIRN_RAFT_FSM_H

#include "raft/dedup.h"
#include "store/raft_frame.h"

enum {
    FSM_ENTRY_MAX = FRAME_MAX,
    FSM_REQUESTS_MAX = 256,
    FSM_CHECK_BYTES = 40,
    FSM_NAME_BYTES = 32
};

enum fsm_outcome {
    FSM_DONE,
    FSM_OTHER,  /* the request is for another incarnation */
    FSM_UNKNOWN /* the request may have been applied, and its result dropped since */
};

struct fsm_check { /* a leader's digest, compared with this member's at the same index */
    uint64_t term; /* of the leader; 0: there is none */
    bool same;
    uint64_t sum, leaders_sum;
};

struct fsm { /* all zero is an empty one */
    struct map map;
    uint64_t incarnation; /* 0: none yet */
    uint64_t requests;    /* applied, ever */
    struct dedup dedup;
    /* Of the entry applied last, for the member that proposed it: per request u8 fsm_outcome, then
     * for each of its writes u8 1 for a conflict. */
    uint8_t *result;
    size_t result_len, result_cap;
    struct fsm_check check; /* the last one; the reader sets it to zero */
};

void fsm_done(struct fsm *f);

/* Digest of the state: equal on all members that have applied the same entries. */
uint64_t fsm_sum(const struct fsm *f);

/* ---- entries ---- */

struct fsm_entry { /* being filled */
    struct frame_out out;
    uint32_t requests;
};

void fsm_entry_begin(struct fsm_entry *e, char *room, size_t cap);

/* Add a request: the body of a CAS frame behind `seen`. False: it does not fit, the entry is as
 * before. */
bool fsm_entry_add(struct fsm_entry *e, const char *body, size_t len);

/* Finishes the entry; returns its length with the padding. */
size_t fsm_entry_end(struct fsm_entry *e);

/* FSM_CHECK_BYTES: the digest of `f`, said by the leader of `term`. Every earlier entry must be
 * applied. */
void fsm_entry_check(char *room, uint64_t term, const struct fsm *f);

size_t fsm_entry_incarnation(char *room, size_t cap, uint64_t old, uint64_t new);

/* An entry contains its index: one that a disk or a bug has moved is noticed. */
void fsm_entry_place(char *entry, uint64_t index);
bool fsm_entry_at(const char *p, size_t len, uint64_t index);

/* FIRN_EFORMAT: no entry of ours; FIRN_ENOMEM. Then this member cannot continue. */
FIRN_MUSTUSE int fsm_apply(struct fsm *f, const char *p, size_t len);

/* ---- snapshots ---- */

size_t fsm_snapshot_size(const struct fsm *f);

/* FIRN_ENOSPC: `size` is not fsm_snapshot_size(). */
FIRN_MUSTUSE int fsm_snapshot(const struct fsm *f, char *to, size_t size);

/* Replaces the whole state. FIRN_EFORMAT: damaged; FIRN_ENOMEM. On error nothing changed. */
FIRN_MUSTUSE int fsm_restore(struct fsm *f, const char *p, size_t len);

#endif
