/*
 * /metrics: what Prometheus reads. The families of a link are written by the link itself (struct
 * link, metrics()). Tested in tests/integration/gateway_watch.py.
 */
#include "daemon/about.h"
#include "platform/mono.h"
#include "proxy/admin.h"
#include "proxy/call.h"

#include <stdio.h>

enum { LABELS_BUF = 512 };

/* --- the process --- */

static void write_process(struct app *a, const struct plan *p, struct metrics *m)
{
    char labels[LABELS_BUF];
    struct sums s;
    sums_read(a, &s);
    metric_head(m, "firn_proxy_info", "What runs here; always 1.");
    snprintf(labels, sizeof labels, "version=\"%s\"", FIRN_VERSION);
    metric_sample(m, "firn_proxy_info", labels, 1);
    metric_head(m, "firn_proxy_requests_total", "Requests, by the class of their answer.");
    for (size_t i = 0; i < STATS_CLASSES; i++)
        metric_value(m, "firn_proxy_requests_total", "status", stats_class[i], s.status[i]);
    metric(m, "firn_proxy_requests_in_hand", "Requests that are not answered yet.",
           (double)s.calls);
    metric(m, "firn_proxy_connections", "Connections of clients.", (double)s.edge.conns);
    metric(m, "firn_proxy_connections_limit", "The setting limits.connections.",
           (double)p->config.limits.connections);
    metric(m, "firn_proxy_accepted_total", "Connections of clients so far.",
           (double)s.edge.accepted);
    metric(m, "firn_proxy_connections_refused_total", "Connections beyond limits.connections.",
           (double)s.edge.refused);
    metric(m, "firn_proxy_malformed_total", "Requests that were refused by the parser.",
           (double)s.edge.errors);
    metric(m, "firn_proxy_tls_errors_total",
           "Connections of clients with a TLS error, or with plaintext on a port for TLS.",
           (double)s.edge.tls_errors);
    metric(m, "firn_proxy_client_timeouts_total", "Clients that were too slow.",
           (double)s.edge.timeouts);
    metric(m, "firn_proxy_aborted_total", "Requests whose client or answer broke off.",
           (double)s.edge.aborted);
    metric(m, "firn_proxy_unproxied_total",
           "Connections without a PROXY header, or from a peer that is not trusted.",
           (double)s.edge.unproxied);
    metric_histogram_head(m, "firn_proxy_request_seconds", "Time from head to end of an answer.");
    metric_histogram(m, "firn_proxy_request_seconds", NULL, NULL, &s.latency);
    metric_histogram_head(m, "firn_proxy_first_byte_seconds",
                          "Time from the head of a request to that of its answer.");
    metric_histogram(m, "firn_proxy_first_byte_seconds", NULL, NULL, &s.first_byte);
    metric(m, "firn_proxy_reloads_total", "Configurations that were put in force.",
           (double)atomic_load(&a->reloads));
    metric(m, "firn_proxy_reload_errors_total", "Configurations that were refused.",
           (double)atomic_load(&a->reload_errors));
    pthread_mutex_lock(&a->plan_lock);
    const bool failed = a->reload_error[0] != '\0';
    pthread_mutex_unlock(&a->plan_lock);
    metric(m, "firn_proxy_reload_failed",
           "1: the configuration file has an error, an older one is in force.", failed);
    metric(m, "firn_proxy_lookups_total", "Names of servers that were looked up again.",
           (double)atomic_load(&a->lookups));
    metric(m, "firn_proxy_lookup_errors_total", "Those that failed; their addresses stay.",
           (double)atomic_load(&a->lookup_errors));
    metric(m, "firn_proxy_draining", "1: it is going to end.", atomic_load(&a->draining));
}

/* --- routes and services, by their rows of struct stats --- */

static const char *name_of(const struct plan *p, enum stats_kind kind, size_t i)
{
    return kind == STATS_ROUTE        ? i < p->config.routes.n ? p->config.routes.v[i].name : NULL
           : i < p->config.services.n ? p->config.services.v[i].name
                                      : NULL;
}

static void write_rows(struct app *a, const struct plan *p, struct metrics *m, enum stats_kind kind)
{
    static const struct {
        const char *label, *answers, *answers_help, *bytes, *bytes_help, *took, *took_help;
    } names[] = {
        [STATS_ROUTE] = { "route", "firn_proxy_route_requests_total",
                          "Requests of a route, by the class of their answer.",
                          "firn_proxy_route_bytes_total", "Bytes of bodies, by direction.",
                          "firn_proxy_route_seconds", "Time of a route's requests." },
        [STATS_SERVICE] = { "service", "firn_proxy_service_answers_total",
                            "Requests that a service's breaker let through, by the class of their "
                            "answer.",
                            "firn_proxy_service_bytes_total", "Bytes of bodies, by direction.",
                            "firn_proxy_service_seconds", "Time of a service's requests." },
    };
    const char *label = names[kind].label, *name;
    char labels[LABELS_BUF];
    struct stats s;
    metric_head(m, names[kind].answers, names[kind].answers_help);
    for (size_t i = 0; (name = name_of(p, kind, i)); i++) {
        stats_read(a, kind, name, &s);
        for (size_t k = 0; k < STATS_CLASSES; k++) {
            snprintf(labels, sizeof labels, "%s=\"%s\",status=\"%s\"", label, name, stats_class[k]);
            metric_sample(m, names[kind].answers, labels, (double)s.status[k]);
        }
    }
    metric_head(m, names[kind].bytes, names[kind].bytes_help);
    for (size_t i = 0; (name = name_of(p, kind, i)); i++) {
        stats_read(a, kind, name, &s);
        for (int in = 0; in < 2; in++) {
            snprintf(labels, sizeof labels, "%s=\"%s\",direction=\"%s\"", label, name,
                     in ? "in" : "out");
            metric_sample(m, names[kind].bytes, labels, (double)(in ? s.bytes_in : s.bytes_out));
        }
    }
    metric_histogram_head(m, names[kind].took, names[kind].took_help);
    for (size_t i = 0; (name = name_of(p, kind, i)); i++) {
        stats_read(a, kind, name, &s);
        metric_histogram(m, names[kind].took, label, name, &s.latency);
    }
}

/* --- services --- */

static void service_metric(struct metrics *m, const struct plan *p, const char *name,
                           const char *help, size_t offset)
{
    metric_head(m, name, help);
    for (size_t i = 0; i < p->config.services.n; i++) {
        _Atomic uint64_t *v = (void *)((char *)&p->backends[i] + offset);
        metric_value(m, name, "service", p->backends[i].conf->name, atomic_load(v));
    }
}

static void write_breakers(const struct plan *p, struct metrics *m)
{
    static const enum breaker_state states[] = { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };
    char labels[LABELS_BUF];
    metric_head(m, "firn_proxy_breaker_state", "1 for the state that the breaker is in.");
    for (size_t i = 0; i < p->config.services.n; i++) {
        struct backend *k = &p->backends[i];
        pthread_mutex_lock(&k->lock);
        const enum breaker_state is = k->breaker.state;
        pthread_mutex_unlock(&k->lock);
        for (size_t s = 0; s < sizeof states / sizeof states[0]; s++) {
            snprintf(labels, sizeof labels, "service=\"%s\",state=\"%s\"", k->conf->name,
                     breaker_state_name(states[s]));
            metric_sample(m, "firn_proxy_breaker_state", labels, is == states[s]);
        }
    }
    metric_head(m, "firn_proxy_breaker_opened_total", "Times that the breaker opened.");
    for (size_t i = 0; i < p->config.services.n; i++) {
        struct backend *k = &p->backends[i];
        pthread_mutex_lock(&k->lock);
        const uint64_t opened = k->breaker.opened;
        pthread_mutex_unlock(&k->lock);
        metric_value(m, "firn_proxy_breaker_opened_total", "service", k->conf->name, opened);
    }
}

static void write_services(struct app *a, const struct plan *p, struct metrics *m)
{
    service_metric(m, p, "firn_proxy_service_requests_total",
                   "Requests for a service, those that its breaker refused among them.",
                   offsetof(struct backend, requests));
    service_metric(m, p, "firn_proxy_retries_total", "Requests that were sent once more.",
                   offsetof(struct backend, retries));
    service_metric(m, p, "firn_proxy_breaker_refused_total", "Requests refused by a breaker.",
                   offsetof(struct backend, refused));
    service_metric(m, p, "firn_proxy_crowded_total",
                   "Requests refused because no connection became free in time.",
                   offsetof(struct backend, crowded));
    write_breakers(p, m);
    write_rows(a, p, m, STATS_SERVICE);
}

/* --- servers --- */

struct seen { /* one server at a time */
    const struct backend *backend;
    size_t i;
    struct balance_server balance;
    struct upstream_stats pool;
    uint64_t now;
};

static uint64_t up(const struct seen *s)
{
    const struct balance_server *b = &s->balance;
    return !b->down && !b->drained && b->ejected_until_ms <= s->now;
}

static uint64_t is_ejected(const struct seen *s)
{
    return s->balance.ejected_until_ms > s->now;
}

static uint64_t is_drained(const struct seen *s)
{
    return s->balance.drained;
}

static uint64_t ejections(const struct seen *s)
{
    return s->balance.ejections;
}

static uint64_t in_flight(const struct seen *s)
{
    return s->balance.in_flight;
}

static uint64_t requests(const struct seen *s)
{
    return atomic_load(&s->backend->server[s->i].requests);
}

static uint64_t errors(const struct seen *s)
{
    return atomic_load(&s->backend->server[s->i].errors);
}

#define POOL(member)                                    \
    static uint64_t pool_##member(const struct seen *s) \
    {                                                   \
        return s->pool.member;                          \
    }
POOL(conns)
POOL(waiting)
POOL(connects)
POOL(connect_errors)
POOL(requests)
POOL(reused)
POOL(pipelined)
POOL(timeouts)
POOL(bad_answers)

/* clang-format off */
static const struct {
    const char *name, *help;
    uint64_t (*value)(const struct seen *s);
    bool pool;
} of_servers[] = {
    { "firn_proxy_server_up", "1: the server gets requests.", up, false },
    { "firn_proxy_server_ejected", "1: it failed too often and gets none for a while.", is_ejected, false },
    { "firn_proxy_server_drained", "1: an operator took it out.", is_drained, false },
    { "firn_proxy_server_ejections_total", "Times that it was ejected.", ejections, false },
    { "firn_proxy_server_in_flight", "Requests that it works on.", in_flight, false },
    { "firn_proxy_server_requests_total", "Requests sent to a server.", requests, false },
    { "firn_proxy_server_errors_total", "Those that failed or gave 5xx.", errors, false },
    { "firn_proxy_pool_connections", "Connections to the server's address.", pool_conns, true },
    { "firn_proxy_pool_waiting", "Requests that wait for a connection.", pool_waiting, true },
    { "firn_proxy_pool_connects_total", "Connections that were begun.", pool_connects, true },
    { "firn_proxy_pool_connect_errors_total", "Those that failed.", pool_connect_errors, true },
    { "firn_proxy_pool_requests_total", "Requests on these connections.", pool_requests, true },
    { "firn_proxy_pool_reused_total", "Those on a connection that was there.", pool_reused, true },
    { "firn_proxy_pool_pipelined_total", "Those behind another one that was not answered yet.", pool_pipelined, true },
    { "firn_proxy_pool_timeouts_total", "Requests without an answer in time.", pool_timeouts, true },
    { "firn_proxy_pool_bad_answers_total", "Answers that are no HTTP/1.1.", pool_bad_answers, true },
};
/* clang-format on */

static void write_servers(struct app *a, const struct plan *p, struct metrics *m)
{
    char labels[LABELS_BUF];
    for (size_t f = 0; f < sizeof of_servers / sizeof of_servers[0]; f++) {
        metric_head(m, of_servers[f].name, of_servers[f].help);
        for (size_t i = 0; i < p->config.services.n; i++) {
            struct backend *k = &p->backends[i];
            for (size_t n = 0; n < k->n; n++) {
                struct seen s = { .backend = k, .i = n, .now = mono_ms() };
                pthread_mutex_lock(&k->lock);
                s.balance = k->balance[n];
                pthread_mutex_unlock(&k->lock);
                if (of_servers[f].pool)
                    pools_read(a, k->server[n].address, &s.pool);
                snprintf(labels, sizeof labels, "service=\"%s\",server=\"%s\"", k->conf->name,
                         k->server[n].address);
                metric_sample(m, of_servers[f].name, labels, (double)of_servers[f].value(&s));
            }
        }
    }
}

void metrics_write(struct app *a, struct metrics *m)
{
    struct plan *p = app_plan(a);
    write_process(a, p, m);
    write_rows(a, p, m, STATS_ROUTE);
    write_services(a, p, m);
    write_servers(a, p, m);
    worker_redis_metrics(a, p, m);
    for (size_t i = 0; i < chain_n; i++)
        if (chain[i].metrics)
            chain[i].metrics(a, p, m);
    metrics_process(m, a->started_ms);
    metrics_end(m);
    plan_unref(p);
}
