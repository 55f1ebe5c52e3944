/*
 * lab.h - plays consensus and records it: Raft on three real libraft nodes, Paxos and Multi-Paxos
 * with the proposer and the acceptors of coord/paxos.h, ZooKeeper's election recipe on a model of
 * its znodes, firn's own election with the candidates of coord/queue.h. Time, network and disk are
 * simulated, so a seed determines a run. One thread.
 */
#ifndef FIRN_CLI_LAB_LAB_H
#define FIRN_CLI_LAB_LAB_H

#include "firn/error.h"
#include "cli/lab/trace.h"

enum lab_fault {                           /* bits, in the order in which a page shows them */
                 LAB_KILL_LEADER = 1 << 0, /* raft: right after it answered the client */
                 LAB_NO_PRE_VOTE =
                     1 << 1,        /* raft: candidates do not ask before they raise the term */
                 LAB_DUEL = 1 << 2, /* paxos, multi-paxos: a second proposer, at the same time */
                 LAB_KILL_PROPOSER = 1 << 3, /* paxos: when one acceptor has accepted */
                 LAB_LOSE =
                     1 << 4, /* raft: the first AppendEntries; paxos: the answers to the first
                                 * Accept; multi-paxos: the first Accept of slot 3 */
                 LAB_PLAIN = 1 << 5, /* multi-paxos: each slot has a Prepare of its own */
                 LAB_HERD = 1 << 6,  /* election: all candidates watch the leader */
                 LAB_FAULT_LAST = LAB_HERD,
};

struct lab_opts {
    uint64_t seed;
    unsigned faults;
    int cut; /* number of a link as lab_links() lists them; -1: none */
};
#define LAB_OPTS_INIT \
    {                 \
        1, 0, -1      \
    }

/* The links that can be cut, such as "A-B"; ends with NULL. */
extern const char *const lab_raft_links[], *const lab_paxos_links[];

/* NULL, or an error text: the library that this build lacks, and the package that has it. */
const char *lab_raft_missing(void);

/* Play, and fill `out`, which the caller gives to lab_trace_done(), also after an error.
 * FIRN_ENOTSUP: see lab_raft_missing(). FIRN_EIO: the run did not end, which is a bug; d has
 * details. */
typedef int lab_player(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d);
FIRN_MUSTUSE int lab_raft(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d);
FIRN_MUSTUSE int lab_paxos(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d);
FIRN_MUSTUSE int lab_multi_paxos(const struct lab_opts *o, struct lab_trace *out,
                                 struct firn_diag *d);
FIRN_MUSTUSE int lab_election(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d);
FIRN_MUSTUSE int lab_queue(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d);

struct lab {
    const char *name;
    lab_player *play;
    unsigned faults;              /* those that it has */
    const char *const *links;     /* ends with NULL */
    const char *(*missing)(void); /* NULL, or why it cannot be played */
};

/* All of them, in the order in which a page offers them; NULL: there is none of that name. */
const struct lab *lab_all(size_t *out_n);
const struct lab *lab_find(const char *name);

#endif
