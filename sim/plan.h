/*
 * plan.h - the plan of a run, made from a seed: a configuration and a list of faults, all decided
 * before the run. A fault is a line of text, so a failing list can be shortened (shrink.c), kept
 * and replayed.
 */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "firn/layout.h"

#define MS     INT64_C(1000000) /* ns */
#define SECOND INT64_C(1000000000)

enum { FAULTS_MAX = 256, NODES_MAX = 12 };

/* Name, effect. `node` is the node it happens to, `arg` how much. */
#define FAULTS(X)                                                               \
    X(lose_request, "the next write is lost on its way; arg: nothing")          \
    X(lose_reply, "the next write lands, its answer is lost")                   \
    X(late, "the next write lands arg ms after its sender gave up")             \
    X(repeat, "the next write lands again arg ms later")                        \
    X(refuse, "the next call fails: nothing was written")                       \
    X(slow, "the next call takes arg ms")                                       \
    X(stale, "the next read that may be stale is arg ms old")                   \
    X(cut, "the node is partitioned from the store for arg ms")                 \
    X(store_down, "no node reaches the store for arg ms")                       \
    X(restore, "the store goes back by arg ms and keeps its identity")          \
    X(failover, "the store goes back by arg ms and is another one")             \
    X(replace, "the store is another one, nothing is lost")                     \
    X(wipe, "the store is empty")                                               \
    X(delete_slot, "the record of slot arg is gone")                            \
    X(delete_meta, "the meta record is gone")                                   \
    X(clock_step, "the wall clock jumps by arg ms")                             \
    X(clock_1970, "the wall clock is at 1970")                                  \
    X(clock_set, "the wall clock is right again")                               \
    X(clock_freeze, "the wall clock stands for arg ms")                         \
    X(clock_drift, "the wall clock runs arg per mille too fast")                \
    X(suspend, "the machine sleeps for arg ms: CLOCK_MONOTONIC stands")         \
    X(crash, "the process dies and starts again after arg ms")                  \
    X(pause, "the process is stopped for arg ms")                               \
    X(leave, "the process gives its slot back and starts again after arg ms")   \
    X(fork_child, "the process forks")                                          \
    X(clone, "the memory of the process is resumed a second time")              \
    X(burst, "arg IDs are asked for at once")                                   \
    X(lock_lost, "the next lock byte is free although it is held")              \
    X(wrong_layout, "the process restarts with another layout")                 \
    X(fence, "an operator fences the store from this node")                     \
    X(px_lose, "quorum: the next arg messages to the acceptor are lost")        \
    X(px_lose_answer, "quorum: its next arg answers are lost")                  \
    X(px_late, "quorum: the next message to or from it takes arg ms more")      \
    X(px_repeat, "quorum: the next one comes again arg ms later")               \
    X(px_down, "quorum: the acceptor stands still for arg ms")                  \
    X(px_wipe, "quorum: the acceptor loses its memory, and is refused")         \
    X(px_admit, "quorum: one that is refused is let in again")                  \
    X(px_crash, "quorum: the proposer dies, another takes its place")           \
    X(tk_crash_call, "tickets: dies at a call of the store, before or after")   \
    X(tk_lost_wal, "tickets: all processes die, the store goes back by arg ms") \
    X(rc_lose, "cluster: the next arg messages of the member are lost")         \
    X(rc_late, "cluster: its next message takes arg ms more")                   \
    X(rc_repeat, "cluster: its next message comes again arg ms later")          \
    X(rc_cut, "cluster: the machine is partitioned for arg ms")                 \
    X(rc_cut_in, "cluster: nothing reaches it for arg ms")                      \
    X(rc_cut_out, "cluster: nothing of it arrives for arg ms")                  \
    X(rc_split, "cluster: two parts (low 8 bits) for arg / 256 ms")             \
    X(rc_pause, "cluster: the process is stopped for arg ms")                   \
    X(rc_clock, "cluster: its clock has arg per mille of its speed")            \
    X(rc_kill, "cluster: the process is killed, starts after arg ms")           \
    X(rc_power, "cluster: the machine loses power, starts after arg ms")        \
    X(rc_all_power, "cluster: all machines lose power")                         \
    X(rc_die_io, "cluster: loses power at its arg'th step of I/O")              \
    X(rc_full, "cluster: its disk is full for arg ms")                          \
    X(rc_slow, "cluster: each sync takes arg ms more for two seconds")          \
    X(rc_add, "cluster: a member is added (arg: and promoted)")                 \
    X(rc_promote, "cluster: it becomes a voter")                                \
    X(rc_demote, "cluster: it becomes a standby")                               \
    X(rc_remove, "cluster: it is removed")                                      \
    X(rc_remove_lead, "cluster: the leader is removed")                         \
    X(rc_transfer, "cluster: the lead goes to it (arg 0: to any)")              \
    X(rc_wipe, "cluster: its disk is lost, another member replaces it")         \
    X(rc_mistake, "cluster: it is added to the other cluster of the world")     \
    X(rc_disaster, "cluster: a majority is lost for good, one goes on")         \
    X(rc_corrupt, "cluster: a register changes in a follower's memory")

enum fault_kind {
#define X(name, text) FAULT_##name,
    FAULTS(X)
#undef X
        FAULT_KINDS
};

extern const char *const fault_name[FAULT_KINDS];

struct fault {
    uint32_t at_ms; /* after the start */
    uint16_t kind, node;
    int64_t arg;
};

struct config {
    uint64_t seed;
    bool embedded;    /* one machine, a file: lock bytes, give_back, the first process makes it */
    bool store_time;  /* the store tells its clock */
    bool lossy;       /* A1 is broken: restore, failover, wipe, deleted keys */
    bool clones;      /* A2 is broken */
    bool wild_clocks; /* clocks may be wrong by more than skew_max */
    bool tickets;     /* sequences instead of slots */
    bool quorum;      /* proposers and acceptors instead of both (quorum.c) */
    bool cluster;     /* members of a cluster (cluster.c) */
    bool member;      /* whole ones (member_in.h) */
    bool one_by_one;  /* the store has no transactions */
    bool same_names;  /* two nodes have one name */
    bool ends;        /* the layout's time ends during the run */
    bool firnd;       /* firnd's minter, for some loops; else a program with libfirn's generators */
    bool noted;   /* what was stamped is noted in memory that outlives processes (store/note.h) */
    bool as_tsid; /* its layout makes the same numbers as TSIDs */
    bool batch;   /* such a program draws IDs ahead, eight at a time */
    bool give_back;
    bool sweep;        /* a short world, in which a process dies at one call of the store */
    uint64_t die_call; /* which of all calls; 0: none */
    bool die_after;    /* after the write, before its answer */
    uint32_t slots, nodes, lanes; /* of a quorum: slots are the acceptors */
    uint64_t tick_ms, window_ms, renew_ms, max_drift_ms, skew_max_ms, max_idle_ms, quarantine_ms;
    uint64_t op_timeout_ms;
    uint32_t emit_ms;   /* a process is asked for IDs about that often */
    uint32_t burst_max; /* and for up to that many */
    struct firn_layout layout;
    char layout_text[FIRN_LAYOUT_TEXT_BUF];
    int64_t start_ns, duration_ns; /* Unix time of the start */
};

struct plan {
    struct config config;
    size_t count;
    struct fault fault[FAULTS_MAX]; /* by time */
};

void plan_of_seed(struct plan *p, uint64_t seed);
void plan_of_quorum(struct plan *p, uint64_t seed);
void plan_of_sweep(struct plan *p, uint64_t seed); /* odd seeds: tickets */
void plan_of_cluster(struct plan *p, uint64_t seed, bool member);
void plan_configure_cluster(struct config *c, uint64_t seed, bool member);

void plan_write(const struct plan *p, const char *mutant, FILE *out);
/* false, with a message on stderr. `mutant` gets a name or "". */
bool plan_read(struct plan *p, char mutant[32], FILE *in);

#endif
