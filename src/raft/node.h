/*
 * node.h - a member of a Raft cluster of firnd processes: libraft on a loop and a thread of its own. It keeps
 * the log and the snapshots in its folder, speaks with the other members on the peer port, answers their
 * clients there, and the store of its own process through a channel.
 */
#ifndef FIRN_RAFT_NODE_H
#define FIRN_RAFT_NODE_H

#include "store/raft.h"

struct node;

enum node_level { NODE_ERROR, NODE_WARN, NODE_INFO };

struct node_opts {           /* texts are copied, or used during node_start() alone */
    const char *dir;         /* its folder; made if it is not there */
    const char *listen;      /* "host:port" of the peer port */
    const char *address;     /* under which the others reach it; NULL: as listen */
    bool init;               /* make a new cluster of this one member, if there are no data yet */
    bool restore;            /* go on alone, with the data that are there, as another incarnation */
    const char *const *join; /* members to ask to be let in, if there are no data yet */
    size_t join_n;
    bool standby; /* when it joins: without a vote, until it is promoted */
    uint32_t
        election_ms; /* the shortest time without a leader before an election; at most twice that */
    uint32_t snapshot_every;     /* entries; 0: the default */
    uint32_t snapshot_keep;      /* entries that stay behind a snapshot; 0: the default */
    const char *cert, *key, *ca; /* PEM files for TLS on the peer port, or all NULL */
    bool plain;                  /* without TLS also to and from other machines */
    /* What an operator should know; from any thread of the node. */
    void (*say)(void *user, enum node_level level, const char *event, const char *text);
    void *user;
};

/* Whether these settings go together; `join` itself is not looked at, only `join_n`. FIRN_EINVAL: they do not, and
 * `d` says why. */
FIRN_MUSTUSE int node_check(const struct node_opts *o, struct firn_diag *d);

/* FIRN_EINVAL: as node_check(); FIRN_EIO: the folder or the port cannot be used;
 * FIRN_EFORMAT: the log or the snapshot is damaged, and was left as it is. `d` says what, and the cure. */
FIRN_MUSTUSE int node_start(const struct node_opts *o, struct node **out, struct firn_diag *d);

/* Read the PEM files again, from any thread: new connections use them, those that stand go on. FIRN_EINVAL: the
 * member began without TLS, or one of them is missing; FIRN_EIO: `d` names the one that cannot be used. Then
 * everything is as before. */
FIRN_MUSTUSE int node_renew_tls(struct node *n, const char *cert, const char *key, const char *ca,
                                struct firn_diag *d);

/* Ends the thread, after every channel was closed. */
void node_stop(struct node *n);

/* The way of this process to the cluster; any number, each for one thread at a time. NULL: no memory. */
struct raft_channel *node_channel(struct node *n);

/* A request whose answer is waited for without blocking: `done` is called once, on the node's thread, with
 * the reply or, when the node ends before, with NULL. `frame` is copied. */
void node_submit(struct node *n, const char *frame, size_t len,
                 void (*done)(void *user, const char *reply, size_t len), void *user);

uint64_t node_id(const struct node *n);

/* ---- for those who watch ---- */

enum node_state { NODE_UNAVAILABLE, NODE_FOLLOWER, NODE_CANDIDATE, NODE_LEADER };
enum node_role { NODE_VOTER, NODE_STANDBY, NODE_SPARE, NODE_ROLES };
enum { NODE_PEERS_MAX = 16 };

struct node_peer {
    uint64_t id, lag; /* lag: entries that it lacks */
    bool seen;        /* of late */
};

struct node_view {
    enum node_state state;
    bool has_leader;
    bool stalled; /* the log cannot be written */
    bool silent;  /* it follows, and has heard nothing for seconds */
    bool differs; /* its registers are not the leader's */
    bool removed; /* the others have no such member any more */
    uint64_t term, last_index, commit_index, applied_index, snapshot_index, registers;
    unsigned count[NODE_ROLES]; /* members, by role */
    /* Since the start. Entries and writes are what it proposed itself; forwarded: [1] writes, [0] the rest. */
    uint64_t leader_changes, snapshots, entries, writes, forwarded[2];
    unsigned peers; /* the others; only where it leads */
    struct node_peer peer[NODE_PEERS_MAX];
};

/* As of the last tick; from any thread. */
void node_view(struct node *n, struct node_view *out);

#endif
