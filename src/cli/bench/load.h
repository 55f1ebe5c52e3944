/*
 * load.h - the load generator: many connections, requests formatted once, no allocation per
 * request.
 * Closed loop: each connection keeps `depth` requests in flight, and a request's latency counts
 * from when it was handed to the socket. Open loop (a rate): request number i is due at start + i /
 * rate whether or not the server keeps up, and its latency counts from then, so that a stall adds
 * to the latency of every request that was due meanwhile (no coordinated omission). One call at a
 * time.
 */
#ifndef FIRN_CLI_BENCH_LOAD_H
#define FIRN_CLI_BENCH_LOAD_H

#include "wire/histogram.h"
#include "cli/id_body.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
    LOAD_CONNECTIONS_MAX = 10000,
    LOAD_IDLE_MAX = 25000, /* a client address has 28,000 ports to connect from */
    LOAD_DEPTH_MAX = 10000,
    LOAD_THREADS_MAX = 64,
    LOAD_SECONDS_MAX = 3600,
    LOAD_IDS_MAX = 50 * 1000 * 1000, /* remembered by default: 400 MB, allocated as they come */
    LOAD_TARGETS_MAX = 16,
};

/* A server, and the request that it gets. */
struct load_target {
    struct sockaddr_storage address;
    socklen_t address_len;
    bool resp;           /* the Redis protocol; otherwise HTTP/1.1 */
    const char *request; /* borrowed: the bytes of one */
    size_t request_len;
    enum id_body_form form; /* how HTTP bodies carry IDs */
};

/* Progress, about twice a second, from the thread that called load_run(). */
struct load_live {
    uint64_t elapsed_ns; /* since measuring began; 0 while warming up */
    uint64_t requests, errors, lost, retried;
    uint64_t sent, unsent; /* requests that were asked; that were due, but no connection was free */
    uint64_t per_second, p50_ns, p99_ns; /* of the time since the call before */
};
typedef void load_live_fn(const struct load_live *now, void *user);

struct load_plan {
    const struct load_target *target; /* borrowed; connection i talks to target i mod targets */
    uint32_t targets;
    uint32_t connections, depth, threads;
    uint32_t idle; /* further connections that stay idle */
    int cpu;       /* thread i runs on core cpu + i; -1: anywhere */
    uint64_t warmup_ns, run_ns;
    uint64_t requests_max; /* stop after this many; 0: at the end of the time */
    uint64_t rate;         /* per second over all connections; 0: closed loop */
    uint32_t attempts; /* open loop: a request that fails is asked again on a new connection, up to
                            so many times in all, and any free connection takes the next request;
                            0: it is lost, and each connection has requests of its own */
    uint64_t attempt_ns; /* for the answer to an attempt; 0: no limit */
    FILE *log;           /* check: IDs are written here, a line each, and not remembered; or NULL */
    bool check;          /* read the IDs and check them */
    uint64_t ids_max;    /* that check remembers; 0: LOAD_IDS_MAX */
    load_live_fn *live;  /* or NULL */
    void *live_user;
    uint32_t pid;                      /* the server's, for its CPU time; 0: unknown */
    const volatile sig_atomic_t *stop; /* not 0: end now; may be NULL */
};

struct load_share { /* of one target */
    uint64_t requests, errors, lost;
};

struct load_result {
    uint64_t elapsed_ns; /* time of the counts below, without the warm-up */
    uint64_t requests;   /* answered successfully within that time */
    uint64_t errors;     /* answered with an error */
    uint64_t lost;    /* in flight when a connection broke; with attempts: failed in all of them */
    uint64_t retried; /* attempts after the first */
    uint64_t sent, unsent; /* as in struct load_live, from the start on */
    uint64_t unanswered;   /* in flight, or due and not sent, a second after the end */
    uint64_t reconnects;
    uint64_t bytes_in, bytes_out;
    struct histogram latency; /* ns */

    bool has_cpu;
    uint64_t cpu_ns;    /* that the server used in elapsed_ns */
    uint64_t rss_bytes; /* that it occupied at the end */

    struct load_share share[LOAD_TARGETS_MAX];

    uint64_t ids, distinct; /* check: of those that were remembered */
    uint64_t hashed;        /* of these, texts; remembered by a 64-bit hash: if all are distinct, so
                               are the texts, but two texts might have one hash */
    uint64_t unchecked;     /* IDs that did not fit into the memory */
    uint64_t falls;         /* IDs not above the one before on their connection */
    uint64_t unreadable;    /* answers in which no IDs were found */
    uint64_t repeated;      /* an ID that came twice, if distinct < ids */
    char sample[240];       /* one of the errors, or its beginning; not necessarily text */
    size_t sample_len;
    char why[240];          /* on error, as text */
    uint32_t failed_target; /* FIRN_EIO: which */
};

/* FIRN_EIO: could not connect at the start. FIRN_ENOMEM. See `out->why`. A connection that is
 * lost later is opened again until the time is over. */
FIRN_MUSTUSE int load_run(const struct load_plan *plan, struct load_result *out);

/* Compare lists of IDs with each other: sets ids, distinct and repeated. FIRN_EIO and the like:
 * `why`. */
FIRN_MUSTUSE int load_check(const uint64_t *const *ids, const uint64_t *n, uint32_t lists,
                            struct load_result *out);

#endif
