/*
 * core.h - the state of one process behind a handle.
 * Servers with their health and idle connections, the retry budget, and what the mode needs. A
 * child of fork() gets its own core and leaves the parent's alone: that one's locks may be held by
 * threads that do not exist in the child.
 *
 * Two locks: `mutex` for blocks, leases and asynchronous calls; `server_mutex` for servers and
 * budget, taken inside the first or alone, and never held while a thread waits.
 */
#ifndef FIRN_CLIENT_CORE_H
#define FIRN_CLIENT_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/balance.h"
#include "client/budget.h"
#include "client/channel.h"
#include "client/shelf.h"
#include "client/trip.h"

struct server {
    struct server_name name;
    struct channel
        *idle[2]; /* by protocol, which a connection's first byte sets; last used first */
    uint32_t idle_n;
};

struct core_stats {
    _Atomic uint64_t requests, retries, failures;
    _Atomic uint64_t blocks, block_ids, stale_ids, leases, extensions, clashes;
};

struct lending; /* lending.c */
struct async;   /* async.c */

/* Whether a number of the client's sequence may be lost unnoticed. */
enum sequence { SEQUENCE_UNKNOWN, SEQUENCE_RANGE, SEQUENCE_GAPLESS };

struct core {
    const struct client_opts *opts;
    const struct firn_client_opts *hooks; /* those of the caller, see trip.c */
    uint64_t era;                         /* fork_era() of the process that it belongs to */
    struct tls_context *tls;              /* NULL: plain */

    pthread_mutex_t server_mutex;
    struct server server[SERVERS_MAX];
    struct health health[SERVERS_MAX];
    uint32_t servers;
    struct budget budget;
    uint64_t random;
    struct core_stats stats;

    pthread_mutex_t mutex;
    pthread_cond_t news;    /* a block came, a window was extended, or neither will */
    struct shelf shelf;     /* prefetch: of shard 0 */
    struct shelves shelves; /* and of the others */
    struct lending *lending;
    struct async *async;
    struct trip *discovery;
    struct trip *watching; /* the server that is asked which slot it uses, or NULL */
    struct watch *watch;   /* NULL: not begun */
    uint64_t discover_due_ms;
    _Atomic int sequence; /* enum sequence */

    pthread_t thread; /* background=1 */
    atomic_bool stop;
    bool has_thread;
};

FIRN_MUSTUSE int core_new(const struct client_opts *o, const struct firn_client_opts *hooks,
                          struct core **out, struct firn_diag *d);
void core_free(struct core *c);

/* The era of this process: a random number, another one in each child of fork(). It is on a page
 * that fork() wipes, so it is 0 in a child that has not called fork_era() yet. */
extern _Atomic uint64_t *firn__era_page __attribute__((visibility("hidden")));

static inline uint64_t fork_era_seen(void)
{
    return atomic_load_explicit(firn__era_page, memory_order_relaxed);
}

/* The same, never 0: a child's first call draws one. */
uint64_t fork_era(void);

/* --- for trips --- */

/* A server for an attempt, and an idle connection to it or NULL. Each success is followed by
 * core_done(). False: all servers are among `tried`. */
bool core_pick(struct core *c, uint64_t tried, size_t pin, bool resp, size_t *out_server,
               struct server_name *out_name, struct channel **out);
/* The attempt is over; `ch` (may be NULL) goes back to the pool if it can be used again. */
void core_done(struct core *c, size_t server, enum verdict v, uint64_t took_us, struct channel *ch);
/* Whether there is a healthy server that was not tried. */
bool core_has_other(struct core *c, uint64_t tried);
bool core_may_retry(struct core *c);
void core_earn(struct core *c);

#endif
