/*
 * member.h - a member of the cluster, without thread, clock, disk, network or random source of its
 * own: Raft's steps (core/core.h), the registers (fsm.h), requests, membership. firnd runs it on a
 * loop (node.h); the simulator runs the same files, linked with its own twins of the functions of
 * wire.h and disk.h. Belongs to one thread.
 *
 * Who runs a member
 *   - opens its disk (disk_open()) and gives disk and what it had to member_start();
 *   - calls member_time() before every other call and before every event of a wire, with a clock
 *     that never goes back. A gap of much more than MEMBER_TICK_MS between two calls counts as time
 *     in which the process did not run;
 *   - calls member_tick() every MEMBER_TICK_MS;
 *   - gives connections that come in the events member_events, with the member as their user;
 *   - calls member_settle() after each of these, or after several that come together, and whenever
 *     the disk's `moved` was called: it saves, sends, applies and answers. Nothing else does.
 * wire_connect() is called with opts.wires. A member's own connections are closed by
 * member_end(); those that came in belong to who accepted them, and must be closed before it.
 */
#ifndef FIRN_RAFT_MEMBER_H
#define FIRN_RAFT_MEMBER_H

#include "raft/disk.h"
#include "raft/view.h"
#include "raft/wire.h"

struct member;
struct fsm;

enum { MEMBER_TICK_MS = 10 };

struct member_opts {  /* texts are copied */
    uint64_t id;      /* never 0 */
    uint64_t random;  /* new with each start, and different on each member */
    uint64_t cluster; /* member_cluster() of its last life; 0: not known */
    const char *address;
    bool newcomer; /* it was never told that it is a member: a log that arrives may be for another
                      process, or make it one by an entry that is undone */
    bool init;     /* make a new cluster of this one member, if the disk has no log. With members
                      to join: only if none of them knows a cluster */
    bool fresh;    /* with init: no cluster was here lately, so wait less for its members */
    bool restore;  /* recover as a single-member cluster, as a new incarnation */
    const char *const *join; /* members to ask for admission, if the disk has no log */
    size_t join_n;
    bool standby;         /* join without a vote, until it is promoted */
    bool plain;           /* addresses on other machines are allowed: TLS, or a trusted network */
    uint32_t election_ms; /* 0: the default */
    uint32_t snapshot_every; /* entries; 0: the default */
    uint32_t snapshot_keep;  /* entries that stay in the log behind a snapshot; 0: the default */
    struct wire_host *wires;
    struct disk *disk;                /* stays the caller's, to be closed after member_end() */
    const struct disk_loaded *loaded; /* used during member_start() alone */
    /* Log events for an operator. */
    void (*say)(void *user, enum node_level level, const char *event, const char *text);
    void (*restored)(void *user); /* `restore` is done, and not to be done again; or NULL */
    void *user;
};

/* FIRN_EFORMAT: the log or the snapshot cannot be used; FIRN_ENOMEM. `d` says why, and the cure. */
FIRN_MUSTUSE int member_start(const struct member_opts *o, uint64_t now_ms, uint64_t wall_ms,
                              struct member **out, struct firn_diag *d);

/* Every request ends with NULL. */
void member_end(struct member *m);

void member_time(struct member *m, uint64_t now_ms, uint64_t wall_ms);
void member_tick(struct member *m);
void member_settle(struct member *m);

extern const struct wire_events member_events;

/* A request of this process: a whole frame, copied. `done` is called once, with the reply, or with
 * NULL when the member is closed before that. */
void member_take(struct member *m, const char *frame, size_t len,
                 void (*done)(void *user, const char *reply, size_t len), void *user);

/* May this member go on alone, as a new incarnation of the cluster, since the majority is lost? The
 * caller then ends it and starts it again with `restore`. `lost`: the ids of all other members,
 * with commas between them. FIRN_EAGAIN: not yet; FIRN_EINVAL, FIRN_ECONFLICT; `d` says why. */
FIRN_MUSTUSE int member_may_force(const struct member *m, const char *lost, struct firn_diag *d);

bool address_loopback(const char *address); /* "host:port" of this machine alone */

/* The name of its cluster, once it is a member of it; 0: not known. Keep it for the next life. */
uint64_t member_cluster(const struct member *m);
const struct node_view *member_view(const struct member *m); /* as of the last tick */
const struct core *member_core(const struct member *m);
const struct fsm *member_fsm(const struct member *m);

#endif
