/*
 * mutant.h - rules of a member that the simulator switches off, one at a time, as a test (see
 * core/mutant.h). In every other build MEMBER_MUTANT() is 0 and nothing of this exists.
 */
#ifndef FIRN_RAFT_MUTANT_H
#define FIRN_RAFT_MUTANT_H

#ifdef FIRN_MUTANTS

#define MEMBER_MUTANT_LIST(X)                                                        \
    X(rm_unknown_is_no, "says that nothing was done where it is not known")          \
    X(rm_again_as_new, "asks the next leader as if it was the first time")           \
    X(rm_new_nonce, "a member to which a write is forwarded gives it another nonce") \
    X(rm_lost_forgotten, "forgets that a leader that was lost may have written")     \
    X(rm_proposed_forgotten, "forgets that it may have written when it led")         \
    X(rm_read_local, "answers a current read from its own registers")                \
    X(rm_seen_ignored, "answers a read with less than the client has seen")          \
    X(rm_change_at_once, "answers a change of the members before it is committed")   \
    X(rm_joined_early, "takes an admission that may be undone for one that is not")  \
    X(rm_last_is_gone, "says of the last voter, which cannot go, that it is gone")   \
    X(rm_found_anyway, "begins a cluster although another one is known")             \
    X(rm_not_forwarded, "a member that does not lead forwards nothing")              \
    X(rm_transfer_unended, "a handover that is over blocks all later changes")       \
    X(rm_join_once, "a process that was not admitted does not ask again")            \
    X(rm_foreign_let_in, "lets members of another cluster in")                       \
    X(rm_restored_old_name, "has its old name until it is restored")                 \
    X(rm_restored_snapshot, "makes a snapshot before it has its new name")           \
    X(rm_restored_unnamed, "goes on alone as the same cluster")                      \
    X(rm_unproved, "reads and changes members before they agree with its registers") \
    X(rm_differs_answers, "a member with other registers answers its leader")        \
    X(rm_full_leads, "keeps the lead with a full disk")                              \
    X(rm_promoted_early, "makes a member a voter that has not caught up")            \
    X(rm_gone_not_loaded, "does not read from its log whom the cluster removed")

enum member_mutant {
    MEMBER_MUTANT_none,
#define X(name, text) MEMBER_MUTANT_##name,
    MEMBER_MUTANT_LIST(X)
#undef X
};

extern enum member_mutant member_mutant;
#define MEMBER_MUTANT(name) (member_mutant == MEMBER_MUTANT_##name)

#else
#define MEMBER_MUTANT(name) 0
#endif

#endif
