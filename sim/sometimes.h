/*
 * sometimes.h - events that must occur somewhere in a run of all seeds: each row of the failure
 * matrix (docs/protocol.md section 7), each case of the outcome rule, and other cases that would
 * prove nothing by never failing if they never occurred.
 */
#ifndef SIM_SOMETIMES_H
#define SIM_SOMETIMES_H

#include <stdint.h>

#define SOMETIMES(X)                                                                   \
    X(outcome_1, "outcome rule 1: a write with a lost answer was found by its nonce")  \
    X(outcome_2, "outcome rule 2: TWIN")                                               \
    X(outcome_3, "outcome rule 3: FENCED by another owner")                            \
    X(outcome_4, "outcome rule 4: unchanged, tried again")                             \
    X(held, "row 1: clock stepped back or stood, F is held, IDs go on")                \
    X(limit, "row 2: the clock is back and the rate is high: EAGAIN at the limit")     \
    X(suspect, "row 3: wrong step forward is not followed, still serving")             \
    X(refused, "row 4: wrong clock at the start is refused")                           \
    X(paused, "row 5: paused beyond the window, then extended")                        \
    X(paused_fenced, "row 5: paused beyond the window, then fenced")                   \
    X(zombie, "row 6: stamps its own ticks after the slot was reclaimed")              \
    X(reuse, "row 7: a slot is used again after a crash")                              \
    X(wait_clock, "row 8: started at 1970, waits for the clock")                       \
    X(dry, "row 9: store away until the window's end: DRY")                            \
    X(lost_reply, "row 10: answer lost")                                               \
    X(late, "row 10: a write landed after its sender gave up")                         \
    X(repeated, "row 10: a write came twice, the second was refused")                  \
    X(no_slot, "row 11: more nodes than slots: NO_SLOT")                               \
    X(forked, "row 12: a child found its page wiped and leased its own slot")          \
    X(cloned, "row 13: a memory ran twice")                                            \
    X(twin_dup, "row 13: and repeated an ID, as A2 is broken (excused)")               \
    X(cloned_call, "row 13: with a call under way at the snapshot")                    \
    X(regressed, "row 14: REGRESSED, then FENCE")                                      \
    X(changed, "row 14: the store is another one, then FENCE")                         \
    X(fence_two, "row 14: two nodes fence at once")                                    \
    X(forgotten_dup,                                                                   \
      "row 14: an ID repeated before the loss was noticed, as A1 is broken (excused)") \
    X(wiped, "row 15: store wiped: HALTED")                                            \
    X(slot_gone, "row 15: slot record deleted: HALTED")                                \
    X(same_name, "row 16: two nodes of one name, two slots")                           \
    X(no_volume, "row 17: embedded store lost, made again above its past")             \
    X(other_layout, "row 18: another layout is refused")                               \
    X(exhausted, "row 19: the layout's time ends")                                     \
    X(poisoned, "a slot far in the future is passed over")                             \
    X(sticky, "the slot last held under a name is taken again")                        \
    X(given_back, "a RELEASE lowered until")                                           \
    X(release_late, "a RELEASE landed after its sender had gone")                      \
    X(stale_read, "a read from the past")                                              \
    X(conflict, "a write was refused, another came first")                             \
    X(lanes, "two lanes of one slot")                                                  \
    X(loops, "several loops of a firnd")                                               \
    X(other_layouts, "a firnd's Sonyflakes and TSIDs")                                 \
    X(source_closed, "a loop drew from generators that another had closed")            \
    X(order_restart, "a restarted firnd went on above its earlier IDs")                \
    X(batch_dropped, "a batch drawn before a fork was dropped")                        \
    X(operator_fence, "an operator fenced")                                            \
    X(ticket_adopted, "tickets: a commit with a lost answer was found by its nonce")   \
    X(ticket_late, "tickets: and that after another node had written")                 \
    X(ticket_conflict, "tickets: another node came first")                             \
    X(ticket_range, "tickets: numbers from a range sequence")                          \
    X(ticket_gapless, "tickets: numbers from a gapless sequence")                      \
    X(ticket_lost_crash, "tickets: numbers lost with a crash")                         \
    X(ticket_dated, "tickets: numbers of a dated sequence")                            \
    X(ticket_replayed, "tickets: a key's numbers again")                               \
    X(ticket_ended, "tickets: a sequence has reached its last number")                 \
    X(ticket_refused, "tickets: refused, the store is halted")                         \
    X(ticket_given_back, "tickets: a clean end gave numbers back")                     \
    X(ticket_store_lost, "tickets: the store forgot")                                  \
    X(ticket_forgotten, "tickets: and gave a number again (excused)")                  \
    X(died_in_call, "tickets: a process died at a call of the store")                  \
    X(healed_active, "every node active again after healing")

/* The same for worlds of a quorum. */
#define SOMETIMES_QUORUM(X)                                                           \
    X(px_ok, "a change was made")                                                     \
    X(px_conflict, "a change was refused, the register holds another value")          \
    X(px_unknown, "a change ended with UNKNOWN")                                      \
    X(px_eio, "a call ended with nothing done")                                       \
    X(px_read, "a read")                                                              \
    X(px_removed, "the register was removed")                                         \
    X(px_five, "five acceptors")                                                      \
    X(px_fast, "a change in one round trip")                                          \
    X(px_fast_lost, "one that was tried in one round trip, and another came first")   \
    X(px_duel, "a proposer backed off before another")                                \
    X(px_adopted, "a change was found to be done, by another proposer")               \
    X(px_doubt_cleared, "a conflict was told although the change had been under way") \
    X(px_lost, "a message was lost")                                                  \
    X(px_late, "a message was late")                                                  \
    X(px_repeated, "a message came twice")                                            \
    X(px_crashed, "a proposer crashed")                                               \
    X(px_wiped, "an acceptor lost its memory and was refused")                        \
    X(px_admitted, "one was let in again")                                            \
    X(px_admit_failed, "an admission was given up")                                   \
    X(px_below_floor, "a ballot below the floor was refused")                         \
    X(px_floor_created, "a vote did not count: the floor had risen since the proposer read it")

/* The same for worlds of a cluster. */
#define SOMETIMES_CLUSTER(X)                                                       \
    X(rc_ok, "a ticket was given")                                                 \
    X(rc_conflict, "a change was refused, another came first")                     \
    X(rc_unknown, "a change ended with its outcome unknown")                       \
    X(rc_repeat_answered, "a ticket was given to a request that was sent again")   \
    X(rc_too_old, "a request was sent again, its result was no longer remembered") \
    X(rc_read, "a read")                                                           \
    X(rc_five, "five members")                                                     \
    X(rc_elected, "a member was elected")                                          \
    X(rc_two_leaders, "an old leader did not know yet")                            \
    X(rc_stepped_down, "a leader that heard no majority stepped down")             \
    X(rc_truncated, "a saved entry was truncated")                                 \
    X(rc_figure_8, "one that a majority had on its disks (figure 8)")              \
    X(rc_config_undone, "a change of the members was rolled back")                 \
    X(rc_snapshot, "a snapshot was made")                                          \
    X(rc_installed, "a snapshot was installed")                                    \
    X(rc_checked, "a leader's digest was compared")                                \
    X(rc_change, "a change of the members began")                                  \
    X(rc_change_second, "one was refused, another was not committed")              \
    X(rc_change_unheard, "one was refused, its majority was not heard")            \
    X(rc_leader_removed, "a leader was removed")                                   \
    X(rc_transfer, "the lead was handed over")                                     \
    X(rc_wiped, "a disk was lost, and another member replaced it")                 \
    X(rc_lost, "a message was lost")                                               \
    X(rc_late, "a message was late")                                               \
    X(rc_repeated, "a message came twice")                                         \
    X(rc_cut_off, "a message met a partition")                                     \
    X(rc_disk_full, "a disk was full")                                             \
    X(rc_crashed_writing, "a member died while it wrote")                          \
    X(rc_crashed_syncing, "a member died between write and sync")                  \
    X(rc_crashed_synced, "a member died between sync and report")                  \
    X(rc_write_lost, "a write that was not synced was lost")                       \
    X(rc_torn, "a file had some sectors of a write, and not others")               \
    X(rc_died_io, "a member died at a step of its I/O")

/* The same for worlds of whole members, with those of a cluster that are counted there, too. */
#define SOMETIMES_MEMBER(X)                                            \
    X(rc_ok, "a ticket was given")                                     \
    X(rc_conflict, "a change was refused, another came first")         \
    X(rc_unknown, "a change ended with its outcome unknown")           \
    X(rc_read, "a read")                                               \
    X(rc_five, "five members")                                         \
    X(rc_elected, "a member was elected")                              \
    X(rc_two_leaders, "an old leader did not know yet")                \
    X(rc_stepped_down, "a leader that heard no majority stepped down") \
    X(rc_truncated, "a saved entry was truncated")                     \
    X(rc_config_undone, "a change of the members was rolled back")     \
    X(rc_snapshot, "a snapshot was made")                              \
    X(rc_installed, "a snapshot was installed")                        \
    X(rc_wiped, "a disk was lost, and another member replaced it")     \
    X(rc_disk_full, "a disk was full")                                 \
    X(rc_write_lost, "a write that was not synced was lost")           \
    X(rc_died_io, "a member died at a step of its I/O")                \
    SOMETIMES_MEMBER_ONLY(X)

#define SOMETIMES_MEMBER_ONLY(X)                                                \
    X(rm_forwarded, "a request was forwarded to the leader")                    \
    X(rm_local, "a request of the member's own process")                        \
    X(rm_nothing, "a change ended with nothing done")                           \
    X(rm_stale, "a read that may be stale")                                     \
    X(rm_joined, "a process joined")                                            \
    X(rm_replaced, "a member that is not heard was replaced by one that joins") \
    X(rm_change_done, "the operator's change was done")                         \
    X(rm_change_again, "it was asked for again, its outcome was unknown")       \
    X(rm_change_refused, "it was refused")                                      \
    X(rm_stalled, "a member stalled: its disk was full")                        \
    X(rm_tickets, "a ticket of a firnd's sequence")                             \
    X(rm_stamped, "a tick of a firnd's slot was stamped")                       \
    X(rm_broken, "a connection broke, and not by a crash")                      \
    X(rm_told_removed, "a member found out that it was removed")                \
    X(rm_mistaken, "a member of another cluster was to be added")               \
    X(rm_met, "and was refused, or refused itself")                             \
    X(rm_disaster, "a majority was lost for good")                              \
    X(rm_alone, "one member went on alone")                                     \
    X(rm_foreign, "a client of the old cluster was refused")                    \
    X(rm_fenced, "a firnd fenced")                                              \
    X(rm_corrupted, "a register changed in memory")                             \
    X(rm_replayed, "a key was used again, and had the same numbers")            \
    X(rm_removed_again, "a removal that was done was asked for again")          \
    X(rm_full_leads, "a leader's disk stayed full")                             \
    X(rm_differs, "a member found out that registers differ")

struct counters {
#define X(name, text) uint64_t name;
    SOMETIMES(X)
    SOMETIMES_QUORUM(X)
    SOMETIMES_CLUSTER(X)
    SOMETIMES_MEMBER_ONLY(X)
#undef X
    uint64_t rc_calls, rc_majority_lost;
    uint64_t px_too_short; /* a change was UNKNOWN: the chain did not reach back; rare as shipped */
    uint64_t px_calls;
    uint64_t ticket_numbers;
    uint64_t swept, deaths; /* worlds with a death at each call, and such runs */
    uint64_t seeds, ids, excused_clone, excused_loss;
    uint64_t node_ms;
    uint64_t fault[96];
};

extern struct counters sometimes;

#endif
