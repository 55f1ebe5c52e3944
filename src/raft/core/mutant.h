/*
 * mutant.h - rules of the Raft core and of the state machine that the simulator switches off, one
 * at a time, as a test. In every other build CORE_MUTANT() is 0 and nothing of this exists. A
 * mutant may break an assertion before an oracle sees it: that counts as noticed.
 */
#ifndef FIRN_RAFT_CORE_MUTANT_H
#define FIRN_RAFT_CORE_MUTANT_H

#ifdef FIRN_MUTANTS

#define CORE_MUTANT_LIST(X)                                                                 \
    X(rc_vote_twice, "votes for a second candidate in one term")                            \
    X(rc_vote_behind, "votes for a candidate whose log is behind")                          \
    X(rc_unsaved_vote, "gives a vote out before it is on the disk")                         \
    X(rc_unsaved_own_vote, "counts the own vote before it is on the disk")                  \
    X(rc_old_leader, "follows a leader of an earlier term")                                 \
    X(rc_count_old_term, "commits entries of earlier terms by counting (figure 8)")         \
    X(rc_own_unsaved_counts, "a leader counts its entries before they are on its disk")     \
    X(rc_overtaken_save_counts, "a save of entries truncated since counts as the new ones") \
    X(rc_ack_unproved, "acknowledges its last entry, whether the leader has it or not")     \
    X(rc_ack_unsaved, "acknowledges entries before they are on the disk")                   \
    X(rc_commit_beyond_proved, "commits as far as the leader, proved equal or not")         \
    X(rc_conflict_kept, "keeps entries that differ from the leader's")                      \
    X(rc_config_not_rolled_back, "a configuration stays in force without its entry")        \
    X(rc_config_at_commit, "a configuration is in force only when it is committed")         \
    X(rc_change_before_own_term, "changes members before a commit of the own term")         \
    X(rc_two_changes, "begins a change before the last one is committed")                   \
    X(rc_removed_counts, "a removed leader counts itself")                                  \
    X(rc_snapshot_newest_config, "a snapshot contains the newest configuration")            \
    X(rc_snapshot_unsaved, "acknowledges a snapshot before it is on the disk")              \
    X(rc_snapshot_keeps_log, "keeps a log that does not match the snapshot")                \
    X(rc_read_without_round, "shows its lead without asking")                               \
    X(rc_read_unsettled, "shows its lead before a commit of its own term")                  \
    X(rc_no_dedup, "applies a request that is sent again a second time")                    \
    X(rc_dedup_not_kept, "a snapshot does not contain the recent requests")                 \
    X(rc_too_old_applied, "applies a request that may be applied and forgotten")

enum core_mutant {
    CORE_MUTANT_none,
#define X(name, text) CORE_MUTANT_##name,
    CORE_MUTANT_LIST(X)
#undef X
        CORE_MUTANTS
};

extern enum core_mutant core_mutant;
#define CORE_MUTANT(name) (core_mutant == CORE_MUTANT_##name)

#else
#define CORE_MUTANT(name) 0
#endif

#endif
