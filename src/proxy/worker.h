/*
 * worker.h - one loop of the gateway with its edge, the pools of connections to servers, and its
 * counters. Everything but the counters belongs to the loop's thread.
 */
#ifndef FIRN_PROXY_WORKER_H
#define FIRN_PROXY_WORKER_H

#include "firn/ulid.h"
#include "proxy/call.h"
#include "proxy/error_ring.h"
#include "proxy/redis.h"
#include "proxy/stats.h"

struct pool; /* of connections to one server; shared by the views that have it */

/* A plan as one loop has it. Lives while it is in force or calls have it. */
struct view {
    struct plan *plan;
    uint32_t refs;
    struct pool ***pools;                        /* [backend][server]; made when they are needed */
    struct stats **route_stats, **service_stats; /* by their place in the plan; NULL: no memory */
    struct view_token *tokens;                   /* [token]; the same */
};

struct app;

enum query_result { QUERY_OK, QUERY_PARTIAL, QUERY_REFUSED };

struct service_ctx {
    struct app *app;
    struct loop *loop;
    struct edge *edge;
    size_t index;
    struct view *view;  /* in force */
    struct pool *pools; /* changed under pools_lock, so that others may look at it */
    pthread_mutex_t pools_lock;
    struct call *spare;
    uint32_t spares;
    struct firn_ulid_gen ulid;
    struct buf log; /* lines of the access log that are not written yet */
    bool log_blocked;
    struct alarm log_alarm;
    uint64_t unsampled;    /* requests before the next one that begins a trace */
    struct health *health; /* checks; on the first loop */
    struct cache *cache;   /* proxy/cache_link.h; made for the first request that wants it */
    struct redis *redis;   /* NULL: none is configured */
    char redis_why[160];   /* why it is away, or ""; under app->plan_lock */
    struct {               /* between worker_prepare() and what follows it */
        struct view *view;
        struct health *health;
        struct redis *redis; /* the one in use, or another */
    } next;

    /* Counters: written by this loop, read by any thread. */
    uint64_t status[STATS_CLASSES]; /* answers by hundreds; [0]: the client went away */
    uint64_t calls;                 /* now */
    uint64_t log_lost;              /* lines of the access log */
    uint64_t pipelined;             /* requests behind another one on its connection */
    uint64_t composed, parts[2];    /* answers from parts; parts that worked and that failed */
    uint64_t queries[3];            /* GraphQL, by enum query_result */
    uint64_t held, held_refused;    /* proxy/held.h: bytes now; bodies */
    struct latency latency, first_byte;
    struct stats *stats;        /* of routes and services */
    uint64_t gzip_in, gzip_out; /* bytes */
    struct cache_counts {
        uint64_t coalesced, unshared;
    } cached;
    struct redis_stats redis_stats;
    struct jwt_stats jwt_stats;
    bool redis_up;
};

struct app { /* the process */
    struct service_ctx *workers;
    size_t workers_n;
    struct plan *plan; /* in force; only main() changes it */
    struct {
        pthread_mutex_t lock;
        struct cache_memory *memory; /* NULL: cache.memory_mb is 0 */
    } cache;
    pthread_mutex_t plan_lock; /* to take a reference from another thread */
    struct places places;
    struct tls_context *tls;
    struct span_export *spans; /* to the collector; NULL: no tracing */
    char service[CONFIG_SERVICE_MAX + 1], instance[FIRN_ULID_TEXT_BUF]; /* in its spans */
    struct limit_table *limits; /* what this process counts */
    uint64_t started_ms;        /* Unix ms */
    _Atomic bool draining;
    _Atomic uint64_t reloads, reload_errors;
    _Atomic uint64_t lookups, lookup_errors; /* of names of servers, while it runs */
    struct error_ring errors;
    char reload_error[192]; /* the last one, "" when the last reload worked; under plan_lock */
};

/* A reference to the plan in force. */
struct plan *app_plan(struct app *a);

/* worker.c */
void worker_init(struct service_ctx *w, struct app *app, size_t index);
void worker_done(struct service_ctx *w);
/* On the loop's thread, in two steps, so that all loops take a plan or none does: what may fail,
 * and then either that the plan is in force for calls that begin from now on, or that it is
 * forgotten. A step that failed leaves nothing behind. */
FIRN_MUSTUSE int worker_prepare(struct service_ctx *w, struct plan *p);
void worker_commit(struct service_ctx *w);
void worker_drop(struct service_ctx *w);
/* The pool of a server; NULL: no memory. */
struct upstream *worker_pool(struct service_ctx *w, struct view *v, size_t backend, size_t server);
void view_unref(struct service_ctx *w, struct view *v);
extern const struct edge_calls worker_calls;
/* Any thread: adds what the loop's connections to an address have counted. */
void worker_pool_stats(struct service_ctx *w, const char *address, struct upstream_stats *sum);

/* count.c: the call ends. */
void call_count(const struct call *c);

/* What the route of a call asks for, from the link `route` on. */
static inline const struct route_guard *call_guard(const struct call *c)
{
    const struct plan *p = c->view->plan;
    return &p->guards->route[c->route - p->config.routes.v];
}

/* link_jwt.c */
void view_tokens_free(struct view *v);

/* worker_redis.c */
/* The connection that the plan wants, in the same two steps: w->next.redis, then w->redis. */
FIRN_MUSTUSE int worker_redis_prepare(struct service_ctx *w, const struct plan *p);
void worker_redis_commit(struct service_ctx *w);
void worker_redis_drop(struct service_ctx *w);
void worker_redis_metrics(struct app *a, const struct plan *p, struct metrics *m);
void worker_redis_status(struct app *a, const struct plan *p, struct buf *b);

/* access_log.c */
void access_log(struct call *c);
/* Of what never became a request; `peer`: its address with the port. Without a status: 0. */
void access_log_refused(struct service_ctx *w, const char *peer, unsigned status, const char *why);
void access_log_end(struct service_ctx *w); /* writes what is left */

/* health.c: the checks of a plan, from now on. None: NULL. */
FIRN_MUSTUSE int health_new(struct service_ctx *w, struct view *v, struct health **out);
void health_free(struct health *h); /* NULL is fine */

#endif
