/*
 * node_in.h - struct node and what its files call of each other: the thread and the loop that run
 * this process's member. Everything but struct node_inbox and struct node_published belongs to the
 * loop's thread.
 */
#ifndef FIRN_RAFT_NODE_IN_H
#define FIRN_RAFT_NODE_IN_H

#include <pthread.h>

#include "raft/member.h"
#include "raft/node.h"
#include "raft/wire_host.h"

struct hand_in { /* a request from another thread */
    struct hand_in *next;
    void (*done)(void *user, const char *reply, size_t len);
    void *user;
    size_t len;
    char bytes[];
};

struct node_identity { /* identity.c: what the folder says */
    uint64_t id;
    uint64_t cluster; /* its name; 0: not known yet */
    char *address;    /* under which the other members reach it */
    char *dir;
    int lock_fd;
    bool newcomer;  /* it was not yet told that it is a member */
    bool log_begun; /* the log has something: it must be there at the next start */
    bool restored;  /* and that could not be noted yet */
};

struct node_published { /* for other threads */
    pthread_mutex_t mutex;
    struct node_view view; /* guarded by mutex */
};

struct node_inbox { /* from other threads; everything is guarded by mutex */
    pthread_mutex_t mutex;
    struct hand_in *first, **last;
    bool stop;
};

struct node_force {      /* force.c */
    struct hand_in *ask; /* under way; NULL: none */
    bool begun;          /* the member was started again, and names its cluster; */
    bool named;          /* that is done */
};

struct node {
    struct node_opts opts;
    struct node_identity self;
    struct member *member; /* NULL: not opened, or closed */
    struct disk *disk;
    bool settles; /* something reached the member since its last member_settle() */
    uv_loop_t loop;
    pthread_t thread;
    uv_async_t wake;
    uv_timer_t tick;
    uv_prepare_t before; /* the loop waits: after timers; */
    uv_check_t after;    /* after it has waited, and connections were served */
    uv_tcp_t listener;   /* its `data` is NULL: not made */
    bool unaccepted;     /* a connection waits for memory */
    struct wire_host wires;
    struct node_published published;
    struct node_inbox inbox;
    struct node_force force;
};

/* ---- listen.c ---- */

FIRN_MUSTUSE int node_listen(struct node *n, const char *address, struct firn_diag *d);
void listen_tick(struct node *n);

/* ---- identity.c ---- */

/* Uses and clears opts.restore where it was applied before. */
FIRN_MUSTUSE int identity_open(struct node *n, struct firn_diag *d);
/* The folder has no log: may it lack one? FIRN_EFORMAT: it was lost. */
FIRN_MUSTUSE int identity_check_log(const struct node *n, struct firn_diag *d);
void identity_note_cluster(struct node *n, uint64_t name);
void identity_note_log(struct node *n);     /* the log is begun */
void identity_note_restore(struct node *n); /* cluster.restore is done, and not to be done again */

/* ---- force.c ---- */

bool force_take(struct node *n, struct hand_in *h); /* false: it is another request */
void force_tick(struct node *n);
void force_end(struct node *n);

/* ---- node.c ---- */

/* `n->self` and `n->opts` say how. */
FIRN_MUSTUSE int node_open_member(struct node *n, struct firn_diag *d);

void node_say(const struct node *n, enum node_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
FIRN_MUSTUSE int node_random(uint64_t *out, struct firn_diag *d);

#endif
