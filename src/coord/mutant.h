/*
 * mutant.h - rules of the protocol that the simulator switches off, one at a time, as a test.
 * sim_mutants shows that it would notice. In every other build FIRN_MUTANT() is 0 and nothing of
 * this exists. Names that begin with px_ belong to worlds of a quorum, rc_ ones to worlds of a
 * cluster. Rules that are implemented outside src/coord are listed, too: the list is the gate.
 */
#ifndef FIRN_COORD_MUTANT_H
#define FIRN_COORD_MUTANT_H

#ifdef FIRN_MUTANTS

#define FIRN_MUTANT_LIST(X)                                                          \
    X(adopt_by_owner, "takes a grant because the owner is me, not by its nonce")     \
    X(publish_before_ok, "stamps in a window before the store confirmed it")         \
    X(close_by_until, "lowers until, then reads last: an emitter slips through")     \
    X(emit_after_release, "goes on stamping after the slot was given back")          \
    X(restartable_version, "the store compares a counter that can restart")          \
    X(absent_slot_is_free, "takes a slot whose record is missing for a free one")    \
    X(no_fence, "a fence that does not raise the slots")                             \
    X(batch_over_fork, "a child hands out what its parent drew")                     \
    X(same_tick_slot_change, "a new slot begins in the tick that the old one used")  \
    X(follows_bad_clock, "follows a clock that nothing confirms")                    \
    X(st_old_left_open, "a new grant leaves the old generators open")                \
    X(st_last_forgotten, "the next grant knows nothing of the last tick")            \
    X(st_past_floor, "stamps above what a fence covers")                             \
    X(st_past_grant, "stamps the tick at which the grant ends")                      \
    X(st_drift_kept, "runs as far ahead as below the floor when that is passed")     \
    X(st_equal_apart, "equal layouts have a generator each")                         \
    X(tk_key_not_kept, "answers a key before its numbers are kept")                  \
    X(tk_unpinned, "a sequence of the commit may be replaced in the table")          \
    X(tk_old_block_kept, "keeps an old block below numbers that were given")         \
    X(tk_no_gate, "a halted node serves tickets")                                    \
    X(tk_back_given, "gives numbers back that clients have")                         \
    X(tk_mine_forgotten, "forgets a write whose outcome is unknown")                 \
    X(tk_rest_dropped, "drops the rest of a grant")                                  \
    X(tk_left_dropped, "drops numbers that no request waited for")                   \
    X(tk_left_after_write, "keeps them after a write that took them")                \
    X(tk_late_to_any, "gives numbers of a late write to later requests")             \
    X(tk_period_back, "a dated sequence goes back with the clock")                   \
    X(tk_key_not_read, "takes numbers for a key that has some")                      \
    X(tk_list_dropped, "replaces a list of keys that have no registers yet")         \
    X(tk_list_not_seen, "does not look for a key in the list of the record")         \
    X(tk_dated_not_kept, "answers a dated key before its register is there")         \
    X(tk_back_over_others, "gives numbers back below others that were given")        \
    X(tk_writers_dropped, "does not find its write behind another node's")           \
    X(tk_told_early, "answers before the rest of the grant is settled")              \
    X(tk_blocks_kept, "gives numbers in hand although the store may be another")     \
    X(tk_swept_early, "removes keys before their retention is over")                 \
    X(tk_created_anywhere, "begins a sequence in a store whose records are gone")    \
    X(px_promise_ignored, "an acceptor accepts every message")                       \
    X(px_ballot_reused, "proposers' ballots are not told apart")                     \
    X(px_minority_told, "a value that only some acceptors have is told")             \
    X(px_first_taken, "takes the first promise's value, not the highest ballot's")   \
    X(px_half, "half of the acceptors are enough")                                   \
    X(px_doubt_forgotten, "tells a conflict although the change may be done")        \
    X(px_amnesia, "an acceptor that lost its memory goes on")                        \
    X(px_admitted_empty, "an acceptor is admitted again without the others' values") \
    X(rc_sync_skipped, "a disk that reports a save before it is synced")             \
    X(rc_sync_forgotten, "a sync of a file that does nothing")                       \
    X(rc_amnesia, "a member whose disk was lost goes on under its id")

enum firn_mutant {
    MUTANT_none,
#define X(name, text) MUTANT_##name,
    FIRN_MUTANT_LIST(X)
#undef X
        MUTANTS
};

extern enum firn_mutant firn_mutant;
#define FIRN_MUTANT(name) (firn_mutant == MUTANT_##name)

#else
#define FIRN_MUTANT(name) 0
#endif

#endif
