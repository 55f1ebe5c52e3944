/*
 * /status: one JSON object with the state of the gateway. The members under "links" are written by
 * the links themselves (struct link, status()). Tested in tests/integration/gateway_watch.py.
 */
#include "daemon/about.h"
#include "platform/mono.h"
#include "proxy/admin.h"
#include "proxy/call.h"
#include "wire/json_write.h"

#include <stdio.h>

void sums_read(struct app *a, struct sums *s)
{
    *s = (struct sums){ .calls = 0 };
    for (size_t i = 0; i < a->workers_n; i++) {
        const struct service_ctx *w = &a->workers[i];
        struct edge_stats e;
        edge_stats(w->edge, &e);
        s->edge.conns += e.conns;
        s->edge.accepted += e.accepted;
        s->edge.refused += e.refused;
        s->edge.requests += e.requests;
        s->edge.errors += e.errors;
        s->edge.timeouts += e.timeouts;
        s->edge.aborted += e.aborted;
        s->edge.unproxied += e.unproxied;
        s->edge.tls_errors += e.tls_errors;
        for (size_t k = 0; k < 6; k++)
            s->status[k] += __atomic_load_n(&w->status[k], __ATOMIC_RELAXED);
        s->calls += __atomic_load_n(&w->calls, __ATOMIC_RELAXED);
        latency_merge(&s->latency, &w->latency);
        latency_merge(&s->first_byte, &w->first_byte);
    }
}

/* Answers by class. */
static void write_answers(struct buf *b, const uint64_t status[STATS_CLASSES])
{
    json_begin(b, "answers", '{');
    for (size_t i = 0; i < STATS_CLASSES; i++)
        json_count(b, stats_class[i], status[i]);
    json_end(b, '}');
}

/* How many took up to so many microseconds; empty buckets are left out. */
static void write_took(struct buf *b, const char *key, const struct latency *l)
{
    char end[24];
    json_begin(b, key, '{');
    for (size_t i = 0; i <= LATENCY_BOUNDS; i++) {
        snprintf(end, sizeof end, "%llu", (unsigned long long)latency_bound_us(i));
        if (l->bucket[i])
            json_count(b, i < LATENCY_BOUNDS ? end : "inf", l->bucket[i]);
    }
    json_end(b, '}');
}

void stats_read(struct app *a, enum stats_kind kind, const char *name, struct stats *out)
{
    *out = (struct stats){ .kind = kind };
    for (size_t i = 0; i < a->workers_n; i++)
        stats_sum(&a->workers[i].stats, kind, name, out);
}

static void write_stats(struct app *a, struct buf *b, enum stats_kind kind, const char *name)
{
    struct stats s;
    stats_read(a, kind, name, &s);
    write_answers(b, s.status);
    json_count(b, "bytes_in", s.bytes_in);
    json_count(b, "bytes_out", s.bytes_out);
    write_took(b, "took", &s.latency);
}

void pools_read(struct app *a, const char *address, struct upstream_stats *out)
{
    *out = (struct upstream_stats){ .conns = 0 };
    for (size_t i = 0; i < a->workers_n; i++)
        worker_pool_stats(&a->workers[i], address, out);
}

static void write_server(struct app *a, struct buf *b, const struct backend *k, size_t i,
                         const struct balance_server *s, uint64_t now)
{
    struct upstream_stats u;
    pools_read(a, k->server[i].address, &u);
    json_begin(b, NULL, '{');
    json_text(b, "address", k->server[i].address);
    json_text(b, "state",
              s->drained                  ? "drained"
              : s->down                   ? "down"
              : s->ejected_until_ms > now ? "ejected"
                                          : "up");
    json_count(b, "weight", s->turn.weight);
    json_count(b, "in_flight", s->in_flight);
    json_count(b, "requests", atomic_load(&k->server[i].requests));
    json_count(b, "errors", atomic_load(&k->server[i].errors));
    json_count(b, "ejections", s->ejections);
    json_count(b, "connections", u.conns);
    json_count(b, "waiting", u.waiting);
    json_count(b, "connect_errors", u.connect_errors);
    json_count(b, "timeouts", u.timeouts);
    json_end(b, '}');
}

static void write_service(struct app *a, struct buf *b, struct backend *k)
{
    const uint64_t now = mono_ms();
    struct balance_server servers[BALANCE_SERVERS_MAX];
    json_begin(b, NULL, '{');
    json_text(b, "name", k->conf->name);
    json_count(b, "requests", atomic_load(&k->requests));
    json_count(b, "retries", atomic_load(&k->retries));
    json_count(b, "refused", atomic_load(&k->refused));
    json_count(b, "crowded", atomic_load(&k->crowded));
    pthread_mutex_lock(&k->lock);
    const enum breaker_state state = k->breaker.state;
    const uint64_t opened = k->breaker.opened, wait = breaker_retry_ms(&k->breaker, now);
    memcpy(servers, k->balance, k->n * sizeof *servers);
    pthread_mutex_unlock(&k->lock);
    json_text(b, "breaker", breaker_state_name(state));
    json_count(b, "breaker_opened", opened);
    json_count(b, "breaker_retry_ms", state == BREAKER_OPEN ? wait : 0);
    write_stats(a, b, STATS_SERVICE, k->conf->name);
    json_begin(b, "servers", '[');
    for (size_t i = 0; i < k->n; i++)
        write_server(a, b, k, i, &servers[i], now);
    json_end(b, ']');
    json_end(b, '}');
}

static void write_route(struct app *a, struct buf *b, const struct config_route *r)
{
    json_begin(b, NULL, '{');
    json_text(b, "name", r->name);
    json_text(b, "path", r->path);
    json_begin(b, "hosts", '[');
    for (size_t i = 0; i < r->hosts.n; i++)
        json_text(b, NULL, r->hosts.v[i]);
    json_end(b, ']');
    json_begin(b, "methods", '[');
    for (size_t i = 0; i < r->methods.n; i++)
        json_text(b, NULL, r->methods.v[i]);
    json_end(b, ']');
    json_text(b, "service", r->service);
    if (r->split.n > 0) {
        json_begin(b, "split", '[');
        for (size_t i = 0; i < r->split.n; i++)
            json_text(b, NULL, r->split.v[i].service);
        json_end(b, ']');
    }
    if (r->compose)
        json_text(b, "compose", r->compose);
    if (r->graphql)
        json_bool(b, "graphql", true);
    write_stats(a, b, STATS_ROUTE, r->name);
    json_end(b, '}');
}

static void write_links(struct app *a, const struct plan *p, struct buf *b)
{
    json_begin(b, "links", '{');
    for (size_t i = 0; i < chain_n; i++)
        if (chain[i].status) {
            json_begin(b, chain[i].name, '{');
            chain[i].status(a, p, b);
            json_end(b, '}');
        }
    json_end(b, '}');
}

static void write_process(struct app *a, const struct plan *p, struct buf *b)
{
    struct sums s;
    sums_read(a, &s);
    json_text(b, "program", "firn-proxy");
    json_text(b, "version", FIRN_VERSION);
    json_time(b, "started", (int64_t)a->started_ms * 1000);
    json_count(b, "loops", a->workers_n);
    json_bool(b, "draining", atomic_load(&a->draining));
    json_count(b, "plan", p->number);
    json_count(b, "reloads", atomic_load(&a->reloads));
    json_count(b, "reload_errors", atomic_load(&a->reload_errors));
    pthread_mutex_lock(&a->plan_lock);
    json_text(b, "reload_error", a->reload_error[0] ? a->reload_error : NULL);
    pthread_mutex_unlock(&a->plan_lock);
    json_bool(b, "token_needed", p->admin_token != NULL);
    json_count(b, "connections", s.edge.conns);
    json_count(b, "connections_max", p->config.limits.connections);
    json_count(b, "requests_in_hand", s.calls);
    json_count(b, "requests", s.edge.requests);
    json_count(b, "malformed", s.edge.errors);
    write_answers(b, s.status);
    write_took(b, "took", &s.latency);
    write_took(b, "first_byte", &s.first_byte);
}

void status_write(struct app *a, struct buf *b)
{
    struct plan *p = app_plan(a);
    json_begin(b, NULL, '{');
    write_process(a, p, b);
    json_begin(b, "services", '[');
    for (size_t i = 0; i < p->config.services.n; i++)
        write_service(a, b, &p->backends[i]);
    json_end(b, ']');
    json_begin(b, "routes", '[');
    for (size_t i = 0; i < p->config.routes.n; i++)
        write_route(a, b, p->routes[i]);
    json_end(b, ']');
    worker_redis_status(a, p, b);
    write_links(a, p, b);
    error_ring_write(&a->errors, b);
    json_end(b, '}');
    buf_add(b, "\n", 1);
    plan_unref(p);
}
