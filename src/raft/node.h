/*
 * node.h - this process's member of a Raft cluster of firnd processes.
 * A node runs a member (member.h) on a loop and a thread of its own. It keeps the log and the
 * snapshots in its folder, talks to the other members and answers clients on the peer port, and
 * serves the store of its own process through a channel.
 */
#ifndef FIRN_RAFT_NODE_H
#define FIRN_RAFT_NODE_H

#include "raft/view.h"
#include "store/raft.h"

struct node;

struct node_opts {       /* texts are copied, or used during node_start() alone */
    const char *dir;     /* its folder; made if it does not exist */
    const char *listen;  /* "host:port" of the peer port */
    const char *address; /* under which the other members reach it; NULL: as listen */
    bool init;           /* make a new cluster of this one member, if the folder has no data
                                and none of `join` knows a cluster */
    bool fresh;          /* with init: no cluster was here lately, so wait less for its members */
    bool restore;        /* recover as a single-member cluster, as a new incarnation */
    const char *const *join; /* members to ask for admission, if the folder has no data */
    size_t join_n;
    bool standby;            /* join without a vote, until it is promoted */
    uint32_t election_ms;    /* election timeout: at least this, at most twice this */
    uint32_t snapshot_every; /* entries; 0: the default */
    uint32_t snapshot_keep;  /* entries that stay in the log behind a snapshot; 0: the default */
    const char *cert, *key, *ca; /* PEM files for TLS on the peer port, or all NULL */
    bool plain;                  /* allow connections to and from other machines without TLS */
    /* Log events for an operator; called from any thread of the node. */
    void (*say)(void *user, enum node_level level, const char *event, const char *text);
    void *user;
};

/* Check that these settings are consistent; of `join` only `join_n` is used. FIRN_EINVAL: they are
 * not, `d` says why. */
FIRN_MUSTUSE int node_check(const struct node_opts *o, struct firn_diag *d);

/* FIRN_EINVAL: as node_check(); FIRN_EIO: the folder or the port cannot be used; FIRN_EFORMAT: the
 * log or the snapshot is damaged, and is left as it is. `d` says what is wrong, and the cure. */
FIRN_MUSTUSE int node_start(const struct node_opts *o, struct node **out, struct firn_diag *d);

/* Read the PEM files again, from any thread: new connections use them, existing ones stay as they
 * are. FIRN_EINVAL: the node was started without TLS, or a file is not named; FIRN_EIO: `d` names
 * the file that cannot be used. On error nothing changes. */
FIRN_MUSTUSE int node_renew_tls(struct node *n, const char *cert, const char *key, const char *ca,
                                struct firn_diag *d);

/* Ends the thread. Close every channel first. */
void node_stop(struct node *n);

/* A channel from this process to the cluster; any number, each for one thread at a time. NULL: no
 * memory. */
struct raft_channel *node_channel(struct node *n);

/* Send a request without blocking: `done` is called once, on the node's thread, with the reply, or
 * with NULL when the node stops before that. `frame` is copied. */
void node_submit(struct node *n, const char *frame, size_t len,
                 void (*done)(void *user, const char *reply, size_t len), void *user);

uint64_t node_id(const struct node *n);

/* The state as of the last tick; from any thread. */
void node_view(struct node *n, struct node_view *out);

#endif
