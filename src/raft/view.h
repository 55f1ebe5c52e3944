/*
 * view.h - what a cluster member shows of itself: log events, and its state for metrics and health.
 */
#ifndef FIRN_RAFT_VIEW_H
#define FIRN_RAFT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

enum node_level { NODE_ERROR, NODE_WARN, NODE_INFO };
enum node_state { NODE_UNAVAILABLE, NODE_FOLLOWER, NODE_CANDIDATE, NODE_LEADER };
enum node_role { NODE_VOTER, NODE_STANDBY, NODE_ROLES };
enum { NODE_PEERS_MAX = 16 };

struct node_peer {
    uint64_t id, lag; /* lag: entries that it lacks */
    bool seen;        /* heard from within the last second */
};

struct node_view {
    enum node_state state;
    bool has_leader;
    bool stalled; /* the log cannot be written */
    bool silent;  /* a follower that has heard nothing from its leader for seconds */
    bool differs; /* its register digest differs from the leader's */
    bool removed; /* the cluster has removed this member */
    uint64_t term, last_index, commit_index, applied_index, snapshot_index, registers;
    unsigned count[NODE_ROLES]; /* members, by role */
    /* Since the start. Entries and writes: proposed by this member; forwarded: [1] writes, [0]
     * other requests. */
    uint64_t lead_lost;   /* times that it led and lost the lead */
    unsigned election_ms; /* the time-out in use */
    uint64_t leader_changes, snapshots, entries, writes, forwarded[2];
    unsigned peers; /* the other members; on the leader only */
    struct node_peer peer[NODE_PEERS_MAX];
};

#endif
