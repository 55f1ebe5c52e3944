/*
 * load_worker.h - one thread of the load generator (load.c): its connections and counters.
 */
#ifndef FIRN_CLI_BENCH_LOAD_WORKER_H
#define FIRN_CLI_BENCH_LOAD_WORKER_H

#include "cli/bench/load.h"

#include <pthread.h>
#include <stdatomic.h>

#define SECOND_NS UINT64_C(1000000000)
#define LIVE_NS   (SECOND_NS / 2) /* between two glimpses */
enum { SHAPE_BYTES = 1024 };

struct conn; /* load_worker.c's */

/* Progress of a worker, read by the waiting thread. */
struct glimpse {
    _Atomic uint64_t requests, errors, lost, retried, sent, unsent, p50_ns, p99_ns;
    _Atomic bool over;
};

struct shape { /* the head of the last plain answer */
    size_t len, body_len;
    char head[SHAPE_BYTES];
};

enum phase { WARMING, MEASURING, DRAINING };

struct worker {
    const struct load_plan *plan;
    pthread_t thread;
    uint32_t number;
    int epoll;
    struct conn *conn;
    uint32_t conns, down; /* their number; how many of them are broken */
    struct conn **dirty;
    char *batch[LOAD_TARGETS_MAX]; /* depth + 1 requests, one after the other */
    char *buf;
    size_t buf_room;
    struct shape shape[LOAD_TARGETS_MAX];
    bool texts[LOAD_TARGETS_MAX]; /* its IDs are no 64-bit numbers */
    enum phase phase;
    uint64_t start_ns, measure_ns, end_ns; /* the plan's times */
    uint64_t budget;                       /* requests that may still be sent */
    double interval_ns;                    /* open loop: between two requests of this thread */
    uint64_t due;                          /* open loop: requests released so far */
    uint64_t taken;                        /* with attempts: of those, given to a connection */
    uint32_t turn;                         /* with attempts: the connection to look at first */
    uint64_t retry_ns, expire_ns;          /* when to connect again, to look for late answers */
    uint64_t *ids, ids_n, ids_room;
    uint64_t stopped_ns; /* when measuring ended */
    uint64_t glimpse_ns; /* when the next is due; UINT64_MAX: never */
    struct histogram recent;
    struct glimpse glimpse;
    struct load_result r;
};

/* FIRN_ENOMEM; FIRN_EIO: a connection could not be made, see errno and w->r.failed_target. In
 * any case call load_worker_done(). */
int load_worker_init(struct worker *w, const struct load_plan *plan, uint32_t number);
void load_worker_done(struct worker *w);

/* The thread, from w->start_ns on; returns NULL. */
void *load_worker_run(void *worker);

/* A connection, not blocking; -1 with errno. */
int load_dial(const struct load_target *to);

#endif
