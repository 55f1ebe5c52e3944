/*
 * fsm.h - what a Raft cluster agrees on: the register map, and which incarnation of the cluster this is.
 * Entries of the log and snapshots are bytes made and read here; no I/O. Belongs to one thread.
 *
 * A member whose leader was lost does not know whether a write was done, and asks again. So the last
 * DEDUP_MAX requests are remembered with their nonces and results: again is answered, not done, whichever of the two
 * comes first. What may have been forgotten since the request was first sent is answered with "unknown".
 *
 * An entry is one of
 *   "FW2\0" u32 requests, u64 index, { body of a CAS of raft_frame.h, without `seen` }    writes that waited together
 *   "FI2\0" u32 0, u64 index, u64 old, u64 new                                 the incarnation: old becomes new
 *   "FC2\0" u32 0, u64 index, u64 term, u64 requests, u64 sum     what the leader has here; changes nothing
 * filled up with zeros to a multiple of 8, as libraft keeps its entries. A snapshot is
 *   "FS1\0" u32 0, u64 incarnation, u64 count, { text key, text value },
 *   u64 requests, u32 kept, { u64 nonce, u64 nonce, text result }, SHA-256 of all before it
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
    FSM_OTHER,
    FSM_UNKNOWN
}; /* for another incarnation; may have been forgotten */

struct fsm_check { /* what a leader said that it had, and what was here */
    uint64_t term; /* its own; 0: none did */
    bool same;
    uint64_t sum, leaders_sum;
};

struct fsm { /* all zero is an empty one */
    struct map map;
    uint64_t incarnation; /* 0: none yet */
    uint64_t requests;    /* applied, ever */
    struct dedup dedup;   /* their results, as below */
    /* Of the entry applied last, for the member that proposed it: per request u8 fsm_outcome, then for
     * each of its writes u8 1 for a conflict. */
    uint8_t *result;
    size_t result_len, result_room;
    struct fsm_check check; /* the last one; whoever reads it makes it zero */
};

void fsm_done(struct fsm *f);

/* The same on members that have applied the same entries, else one of them has gone wrong. */
uint64_t fsm_sum(const struct fsm *f);

/* ---- entries ---- */

struct fsm_entry { /* being put together */
    struct frame_out out;
    uint32_t requests;
};

void fsm_entry_begin(struct fsm_entry *e, char *room, size_t cap);

/* Add a request: the body of a CAS frame behind `seen`. False: it does not fit, the entry is as before. */
bool fsm_entry_add(struct fsm_entry *e, const char *body, size_t len);

/* How long the entry is, filled up. */
size_t fsm_entry_end(struct fsm_entry *e);

/* FSM_CHECK_BYTES: that this is what the leader of `term` has, with nothing else on its way before it. */
void fsm_entry_check(char *room, uint64_t term, const struct fsm *f);

size_t fsm_entry_incarnation(char *room, size_t cap, uint64_t old, uint64_t new);

/* An entry knows its place in the log, for libraft's files do not. */
void fsm_entry_place(char *entry, uint64_t index);
bool fsm_entry_at(const char *p, size_t len, uint64_t index);

/* FIRN_EFORMAT: no entry of ours; FIRN_ENOMEM. Then nothing changed, and the member cannot go on. */
FIRN_MUSTUSE int fsm_apply(struct fsm *f, const char *p, size_t len);

/* ---- snapshots ---- */

size_t fsm_snapshot_size(const struct fsm *f);
FIRN_MUSTUSE int fsm_snapshot(const struct fsm *f, char *to, size_t size);

/* Replaces everything. FIRN_EFORMAT: not whole, or not what was written; then nothing changed. */
FIRN_MUSTUSE int fsm_restore(struct fsm *f, const char *p, size_t len);

#endif
