/*
 * /status: one JSON object with the state of the gateway. The members under "links" are written by
 * the links themselves (struct link, status()). Tested in tests/integration/gateway.py.
 */
#include "daemon/about.h"
#include "platform/mono.h"
#include "proxy/admin.h"
#include "proxy/call.h"
#include "wire/json_write.h"

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
        for (size_t k = 0; k < 6; k++)
            s->status[k] += __atomic_load_n(&w->status[k], __ATOMIC_RELAXED);
        s->calls += __atomic_load_n(&w->calls, __ATOMIC_RELAXED);
        latency_merge(&s->latency, &w->latency);
        latency_merge(&s->first_byte, &w->first_byte);
    }
}

static void write_server(struct buf *b, const struct backend *k, size_t i, uint64_t now)
{
    const struct balance_server *s = &k->balance[i];
    json_begin(b, NULL, '{');
    json_text(b, "address", k->server[i].address);
    json_text(b, "state", s->down ? "down" : s->ejected_until_ms > now ? "ejected" : "up");
    json_count(b, "weight", s->turn.weight);
    json_count(b, "in_flight", s->in_flight);
    json_count(b, "requests", atomic_load(&k->server[i].requests));
    json_count(b, "errors", atomic_load(&k->server[i].errors));
    json_count(b, "ejections", s->ejections);
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

void status_write(struct app *a, struct buf *b)
{
    struct plan *p = app_plan(a);
    struct sums s;
    uint64_t now = mono_ms();
    sums_read(a, &s);
    json_begin(b, NULL, '{');
    json_text(b, "program", "firn-proxy");
    json_text(b, "version", FIRN_VERSION);
    json_time(b, "started", (int64_t)a->started_ms * 1000);
    json_bool(b, "draining", atomic_load(&a->draining));
    json_count(b, "plan", p->number);
    pthread_mutex_lock(&a->plan_lock);
    json_text(b, "reload_error", a->reload_error[0] ? a->reload_error : NULL);
    pthread_mutex_unlock(&a->plan_lock);
    json_count(b, "connections", s.edge.conns);
    json_count(b, "requests_in_hand", s.calls);
    json_count(b, "requests", s.edge.requests);
    json_begin(b, "services", '[');
    for (size_t i = 0; i < p->config.services.n; i++) {
        struct backend *k = &p->backends[i];
        json_begin(b, NULL, '{');
        json_text(b, "name", k->conf->name);
        json_count(b, "requests", atomic_load(&k->requests));
        json_count(b, "retries", atomic_load(&k->retries));
        json_count(b, "refused", atomic_load(&k->refused));
        json_count(b, "crowded", atomic_load(&k->crowded));
        pthread_mutex_lock(&k->lock);
        json_text(b, "breaker", breaker_state_name(k->breaker.state));
        json_begin(b, "servers", '[');
        for (size_t m = 0; m < k->n; m++)
            write_server(b, k, m, now);
        pthread_mutex_unlock(&k->lock);
        json_end(b, ']');
        json_end(b, '}');
    }
    json_end(b, ']');
    json_begin(b, "routes", '[');
    for (size_t i = 0; i < p->config.routes.n; i++) {
        const struct config_route *r = p->routes[i];
        json_begin(b, NULL, '{');
        json_text(b, "name", r->name);
        json_text(b, "path", r->path);
        json_text(b, "service", r->service);
        if (r->compose)
            json_text(b, "compose", r->compose);
        json_end(b, '}');
    }
    json_end(b, ']');
    worker_redis_status(a, p, b);
    write_links(a, p, b);
    json_end(b, '}');
    buf_add(b, "\n", 1);
    plan_unref(p);
}
