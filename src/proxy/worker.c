/*
 * Loops of the gateway: plans as they have them, and pools of connections to servers. Tested in
 * tests/integration/gateway.py.
 */
#include "proxy/worker.h"
#include "daemon/span_sample.h"
#include "proxy/cache_link.h"

#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES_MAX = 1024 * 1024 };

struct pool {
    struct upstream *up;
    uint32_t refs; /* views */
    const struct tls_context *tls;
    struct upstream_opts opts;
    char address[HOST_PORT_BUF];
    struct pool *next;
};

struct plan *app_plan(struct app *a)
{
    pthread_mutex_lock(&a->plan_lock);
    struct plan *p = plan_ref(a->plan);
    pthread_mutex_unlock(&a->plan_lock);
    return p;
}

static void pool_unref(struct service_ctx *w, struct pool *p)
{
    if (!p || --p->refs > 0)
        return;
    struct pool **at = &w->pools;
    while (*at != p)
        at = &(*at)->next;
    pthread_mutex_lock(&w->pools_lock);
    *at = p->next;
    pthread_mutex_unlock(&w->pools_lock);
    upstream_free(p->up);
    free(p);
}

static void view_free(struct service_ctx *w, struct view *v)
{
    for (size_t i = 0; v->pools && i < v->plan->config.services.n; i++) {
        for (size_t k = 0; v->pools[i] && k < v->plan->backends[i].n; k++)
            pool_unref(w, v->pools[i][k]);
        free(v->pools[i]);
    }
    free(v->pools);
    free(v->route_stats);
    free(v->service_stats);
    view_tokens_free(v);
    plan_unref(v->plan);
    free(v);
}

void view_unref(struct service_ctx *w, struct view *v)
{
    if (v && --v->refs == 0)
        view_free(w, v);
}

static struct upstream_opts opts_of(const struct backend *b)
{
    const struct config_service *s = b->conf;
    return (struct upstream_opts){ .conns_max = s->connections,
                                   .connect_ms = s->connect_ms,
                                   .head_ms = s->first_byte_ms,
                                   .body_ms = s->body_ms,
                                   .idle_ms = s->idle_ms,
                                   .pipeline = s->pipeline,
                                   .wait_ms = s->wait_ms,
                                   .tunnel_ms = s->tunnel_ms,
                                   .tunnel_end_ms = s->tunnel_end_ms,
                                   .tls = b->tls,
                                   .server_name = s->server_name };
}

static bool same_opts(const struct upstream_opts *a, const struct upstream_opts *b)
{
    return a->conns_max == b->conns_max && a->connect_ms == b->connect_ms &&
           a->head_ms == b->head_ms && a->body_ms == b->body_ms && a->idle_ms == b->idle_ms &&
           a->wait_ms == b->wait_ms && a->tunnel_ms == b->tunnel_ms &&
           a->tunnel_end_ms == b->tunnel_end_ms && a->pipeline == b->pipeline && !a->tls && !b->tls;
}

/* Connections to a server outlive a reload that does not concern them; with TLS they are made anew,
 * because certificates may be other ones. */
static struct pool *pool_get(struct service_ctx *w, const struct backend *b, size_t server)
{
    struct upstream_opts o = opts_of(b);
    const char *address = b->server[server].address;
    for (struct pool *p = w->pools; p; p = p->next)
        if (same_opts(&p->opts, &o) && strcmp(p->address, address) == 0) {
            p->refs++;
            return p;
        }
    struct pool *p = calloc(1, sizeof *p);
    if (!p || upstream_new(w->loop, address, &o, &p->up) != 0) {
        free(p);
        return NULL;
    }
    p->opts = o;
    p->refs = 1;
    memcpy(p->address, address, sizeof p->address);
    p->next = w->pools;
    pthread_mutex_lock(&w->pools_lock);
    w->pools = p;
    pthread_mutex_unlock(&w->pools_lock);
    return p;
}

struct upstream *worker_pool(struct service_ctx *w, struct view *v, size_t backend, size_t server)
{
    const struct backend *b = &v->plan->backends[backend];
    if (!v->pools[backend])
        v->pools[backend] = calloc(b->n, sizeof **v->pools);
    if (!v->pools[backend])
        return NULL;
    struct pool **p = &v->pools[backend][server];
    if (!*p)
        *p = pool_get(w, b, server);
    return *p ? (*p)->up : NULL;
}

void worker_pool_stats(struct service_ctx *w, const char *address, struct upstream_stats *sum)
{
    pthread_mutex_lock(&w->pools_lock);
    for (const struct pool *p = w->pools; p; p = p->next) {
        struct upstream_stats s;
        if (strcmp(p->address, address) != 0)
            continue;
        upstream_stats(p->up, &s);
        sum->conns += s.conns;
        sum->in_flight += s.in_flight;
        sum->waiting += s.waiting;
        sum->connects += s.connects;
        sum->connect_errors += s.connect_errors;
        sum->requests += s.requests;
        sum->reused += s.reused;
        sum->bad_answers += s.bad_answers;
        sum->timeouts += s.timeouts;
        sum->pipelined += s.pipelined;
    }
    pthread_mutex_unlock(&w->pools_lock);
}

/* Pools that the view before has, so that its end does not close them. */
static void adopt(struct service_ctx *w, struct view *v, const struct view *old)
{
    for (size_t i = 0; old && i < v->plan->config.services.n; i++)
        for (size_t k = 0; k < v->plan->backends[i].n; k++) {
            struct upstream_opts o = opts_of(&v->plan->backends[i]);
            for (const struct pool *p = w->pools; p; p = p->next)
                if (same_opts(&p->opts, &o) &&
                    strcmp(p->address, v->plan->backends[i].server[k].address) == 0) {
                    (void)worker_pool(w, v, i, k);
                    break;
                }
        }
}

static struct view *make_view(struct service_ctx *w, struct plan *p)
{
    struct view *v = calloc(1, sizeof *v);
    if (!v)
        return NULL;
    v->plan = plan_ref(p);
    v->refs = 1;
    v->pools = calloc(p->config.services.n + 1, sizeof *v->pools);
    v->service_stats = calloc(p->config.services.n + 1, sizeof *v->service_stats);
    v->route_stats = calloc(p->config.routes.n + 1, sizeof *v->route_stats);
    if (!v->pools || !v->service_stats || !v->route_stats) {
        view_free(w, v);
        return NULL;
    }
    for (size_t i = 0; i < p->config.services.n; i++)
        v->service_stats[i] = stats_row(&w->stats, STATS_SERVICE, p->config.services.v[i].name);
    for (size_t i = 0; i < p->config.routes.n; i++)
        v->route_stats[i] = stats_row(&w->stats, STATS_ROUTE, p->config.routes.v[i].name);
    return v;
}

int worker_prepare(struct service_ctx *w, struct plan *p)
{
    w->next.view = make_view(w, p);
    if (!w->next.view)
        return FIRN_ENOMEM;
    int r = worker_redis_prepare(w, p);
    if (r == 0 && w->index == 0 && (r = health_new(w, w->next.view, &w->next.health)) != 0)
        worker_redis_drop(w);
    if (r) {
        view_unref(w, w->next.view);
        w->next.view = NULL;
    }
    return r;
}

void worker_commit(struct service_ctx *w)
{
    struct view *v = w->next.view, *old = w->view;
    worker_redis_commit(w);
    adopt(w, v, old);
    w->unsampled = span_sample_next(w->app->spans ? span_sample_read(v->plan->config.tracing.sample)
                                                  : 0);
    w->view = v;
    w->next.view = NULL;
    health_free(w->health);
    w->health = w->next.health;
    w->next.health = NULL;
    view_unref(w, old);
}

void worker_drop(struct service_ctx *w)
{
    if (!w->next.view)
        return;
    health_free(w->next.health);
    w->next.health = NULL;
    worker_redis_drop(w);
    view_unref(w, w->next.view);
    w->next.view = NULL;
}

void worker_init(struct service_ctx *w, struct app *app, size_t index)
{
    w->app = app;
    w->index = index;
    pthread_mutex_init(&w->pools_lock, NULL);
    buf_init(&w->log, LOG_BYTES_MAX);
}

void worker_done(struct service_ctx *w)
{
    health_free(w->health);
    w->health = NULL;
    edge_free(w->edge);
    redis_close(w->redis); /* no call waits for it any more */
    cache_free(w->cache);
    view_unref(w, w->view);
    firn_assert(!w->pools, "a pool is left");
    alarm_clear(&w->log_alarm);
    access_log_end(w);
    buf_done(&w->log);
    stats_free(&w->stats);
    pthread_mutex_destroy(&w->pools_lock);
    for (struct call *c = w->spare, *next; c; c = next) {
        next = c->next;
        free(c);
    }
}
