/*
 * fsm.h - what a Raft cluster agrees on: the register map, and which incarnation of the cluster this is.
 * Entries of the log and snapshots are bytes made and read here; no I/O. Belongs to one thread.
 *
 * An entry is one of
 *   "FW1\0" u32 requests, { u64 incarnation, CAS body of raft_frame.h }   writes that were waiting together
 *   "FI1\0" u32 0, u64 old, u64 new                                        the incarnation: old becomes new
 * filled up with zeros to a multiple of 8, as libraft keeps its entries. A snapshot is
 *   "FS1\0" u32 0, u64 incarnation, u64 count, { text key, text value }, SHA-256 of all before it
 */
#ifndef FIRN_RAFT_FSM_H
#define FIRN_RAFT_FSM_H

#include "store/raft_frame.h"

enum { FSM_ENTRY_MAX = FRAME_MAX, FSM_REQUESTS_MAX = 256 };

struct fsm { /* all zero is an empty one */
    struct map map;
    uint64_t incarnation; /* 0: none yet */
    /* Of the entry applied last, for the member that proposed it: per request u8 1 if it was for
     * another incarnation, then for each of its writes u8 1 for a conflict. */
    uint8_t *result;
    size_t result_len, result_room;
};

void fsm_done(struct fsm *f);

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

size_t fsm_entry_incarnation(char *room, size_t cap, uint64_t old, uint64_t new);

/* FIRN_EFORMAT: no entry of ours; FIRN_ENOMEM. Then nothing changed, and the member cannot go on. */
FIRN_MUSTUSE int fsm_apply(struct fsm *f, const char *p, size_t len);

/* ---- snapshots ---- */

size_t fsm_snapshot_size(const struct fsm *f);
FIRN_MUSTUSE int fsm_snapshot(const struct fsm *f, char *to, size_t size);

/* Replaces everything. FIRN_EFORMAT: not whole, or not what was written; then nothing changed. */
FIRN_MUSTUSE int fsm_restore(struct fsm *f, const char *p, size_t len);

#endif
