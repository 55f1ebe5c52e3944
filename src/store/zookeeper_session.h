/*
 * zookeeper_session.h - a connection to a ZooKeeper ensemble that is looked at before it is used,
 * and requests on it that end in time. For zookeeper.c; one thread at a time.
 *
 * Each request is asynchronous and has a context on the heap (struct zk_op), which belongs to the
 * completion as soon as the caller has given up. The library may drop completions when a handle
 * is closed, so all contexts are in a list. Sessions mean nothing here (there are no ephemeral
 * znodes): an expired one is replaced in the next call, as is one that found no server for a
 * while.
 *
 * The ensemble may lose its memory (a restored backup, a wiped disk). Every new connection
 * therefore looks whether the root is still the same znode, and whether the newest change seen so
 * far, the highest mzxid, is still there: its znode is not older, or was removed since, which its
 * guard tells. The transaction numbers alone do not: the election after a restore lifts them above
 * all that was seen. The handle that notices it marks the root by a write. That makes the store's
 * identity another one, for handles that are opened later and could not know, and for all others:
 * every write checks the root's version.
 */
#ifndef FIRN_STORE_ZOOKEEPER_SESSION_H
#define FIRN_STORE_ZOOKEEPER_SESSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <zookeeper/zookeeper.h>

#include "store/zookeeper_name.h"

struct zk;

struct zk_op { /* one request */
    struct zk_op *next, **at;
    struct zk *s;
    bool done;
    bool given_up; /* the caller waits no longer: the completion frees it */
    bool unsent;   /* the library did not take it */
    int rc;
    struct Stat stat;
    struct String_vector names;
    zoo_op_result_t *result; /* of a transaction's parts */
    struct Stat *stats;
    size_t len; /* may be more than fits */
    char value[STORE_VALUE_MAX];
};

struct zk_lineage {   /* what tells this store from another, or from its own past */
    struct Stat root; /* its mzxid is the last mark; czxid 0: take what is there */
    int64_t zxid;     /* the highest mzxid seen */
    char witness[ZK_PATH_BUF], guard[ZK_PATH_BUF]; /* its znode and the guard of that */
};

struct zk { /* start from zero, with zk_init() */
    struct firn_store base;
    uint32_t timeout_ms;
    bool existing;                         /* the root is not created */
    char root[ZK_ROOT_BUF], *hosts, *auth; /* auth NULL: any client may do everything */
    zhandle_t *zh;
    int64_t tried_at;      /* when it last was connected, or new; zk_boot_ms() */
    struct timespec end;   /* of the call under way, CLOCK_MONOTONIC */
    struct timespec until; /* what is read is waited for till then: half of the time, first */
    struct zk_lineage line;
    char changed[160];          /* what is wrong with the store; empty: nothing */
    bool marked;                /* and a znode tells the other processes */
    unsigned inspected;         /* the connection that was looked at */
    int64_t wrote_ms, wrote_at; /* an own write: the leader's clock, zk_boot_ms() */

    pthread_mutex_t lock; /* for what follows, shared with the library's thread */
    pthread_cond_t cond;
    bool connected, dead; /* dead: this handle will never work again */
    unsigned connections, events;
    struct zk_op *ops;
};

int64_t zk_boot_ms(void); /* also counts while the machine sleeps */
struct timespec zk_after_ms(uint32_t ms);
bool zk_over(const struct timespec *end);

/* ---- a call ---- */

/* root, hosts, auth and timeout_ms are set by the caller, before the first call and after
 * zk_init(). */
void zk_init(struct zk *s);
void zk_done(struct zk *s); /* frees hosts and auth too */

/* The time runs from here. */
void zk_begin(struct zk *s);

/* A connection that was looked at, by the call's end; *out_connection counts them. What is wrong
 * with the store is in `changed`. FIRN_EIO: there is none. */
int zk_connected(struct zk *s, unsigned *out_connection, struct firn_diag *d);

/* FIRN_ESTORE with the reason. The first time it marks the root, unless another handle has. */
int zk_not_the_same(struct zk *s, struct firn_diag *d);

/* Note in `changed` that it is not the same store. `marked`: every handle that looks at the root
 * sees it. Returns FIRN_ESTORE. */
int zk_change(struct zk *s, bool marked, const char *why, const char *path);

/* Remember the newest change. */
void zk_note(struct zk *s, const char *path, unsigned guard, const struct Stat *stat);

/* Create a znode and those above it, all persistent and empty, where they are not there. The first
 * `there` bytes of the path are: what is below the root never brings the root back. */
int zk_ensure(struct zk *s, const char *path, size_t there);

/* The access control list of new znodes. */
const struct ACL_vector *zk_acl(const struct zk *s);

/* ---- requests: send, settle, drop ---- */

/* NULL: no memory. `results` is the number of a transaction's parts. */
struct zk_op *zk_op_new(struct zk *s, size_t results);

/* Around the library's function: did it take the request? Where memory ran out it may have taken
 * half, and still call the completion: such a request is waited for like any other. */
struct zk_op *zk_sent(struct zk_op *o, int rc);

/* Completions. */
void zk_finish(int rc, const void *data);
void zk_got_stat(int rc, const struct Stat *stat, const void *data);

struct zk_op *zk_send_get(struct zk *s, const char *path);
struct zk_op *zk_send_list(struct zk *s, const char *path);

/* Behind it, reads on this connection show every write that was acknowledged before it was sent.
 * ZNONODE: there is no root. */
struct zk_op *zk_send_barrier(struct zk *s);

/* Wait for the answer, at most until the call's end. NULL is a request that found no memory. */
int zk_settle(struct zk_op *o);
int zk_settle_write(struct zk_op *o); /* the same to the end of the call: it cannot be sent again */
void zk_drop(struct zk_op *o);
int zk_settle_and_drop(struct zk_op *o);

/* The connection went away, and with it the answer: zk_connected() finds another one, or the time
 * is over. */
bool zk_lost(int rc);

/* The watcher that makes `events` count. */
void zk_watch(zhandle_t *zh, int type, int state, const char *path, void *user);

int zk_explain(const struct zk *s, int error, int rc, struct firn_diag *d);

#endif
