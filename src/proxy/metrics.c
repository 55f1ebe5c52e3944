/*
 * /metrics: what Prometheus reads. The families of a link are written by the link itself (struct
 * link, metrics()). Tested in tests/integration/gateway.py.
 */
#include "platform/mono.h"
#include "proxy/admin.h"
#include "proxy/call.h"

#include <stdio.h>

enum { LABELS_BUF = 512 };

static void server_metric(struct metrics *m, const struct plan *p, const char *name,
                          const char *help, uint64_t (*value)(struct backend *k, size_t i))
{
    char labels[LABELS_BUF];
    metric_head(m, name, help);
    for (size_t i = 0; i < p->config.services.n; i++)
        for (size_t k = 0; k < p->backends[i].n; k++) {
            snprintf(labels, sizeof labels, "service=\"%s\",server=\"%s\"",
                     p->backends[i].conf->name, p->backends[i].server[k].address);
            metric_sample(m, name, labels, (double)value(&p->backends[i], k));
        }
}

static uint64_t requests_of(struct backend *k, size_t i)
{
    return atomic_load(&k->server[i].requests);
}

static uint64_t errors_of(struct backend *k, size_t i)
{
    return atomic_load(&k->server[i].errors);
}

static uint64_t up_of(struct backend *k, size_t i)
{
    uint64_t now = mono_ms();
    pthread_mutex_lock(&k->lock);
    bool up = !k->balance[i].down && k->balance[i].ejected_until_ms <= now;
    pthread_mutex_unlock(&k->lock);
    return up;
}

static void service_metric(struct metrics *m, const struct plan *p, const char *name,
                           const char *help, size_t offset)
{
    metric_head(m, name, help);
    for (size_t i = 0; i < p->config.services.n; i++) {
        _Atomic uint64_t *v = (void *)((char *)&p->backends[i] + offset);
        metric_value(m, name, "service", p->backends[i].conf->name, atomic_load(v));
    }
}

void metrics_write(struct app *a, struct metrics *m)
{
    static const char *const classes[] = { "gone", "1xx", "2xx", "3xx", "4xx", "5xx" };
    struct plan *p = app_plan(a);
    struct sums s;
    sums_read(a, &s);
    metric_head(m, "firn_proxy_requests_total", "Requests, by the class of their answer.");
    for (size_t i = 0; i < 6; i++)
        metric_value(m, "firn_proxy_requests_total", "status", classes[i], s.status[i]);
    metric(m, "firn_proxy_requests_in_hand", "Requests that are not answered yet.",
           (double)s.calls);
    metric(m, "firn_proxy_connections", "Connections of clients.", (double)s.edge.conns);
    metric(m, "firn_proxy_accepted_total", "Connections of clients so far.",
           (double)s.edge.accepted);
    metric(m, "firn_proxy_connections_refused_total", "Connections beyond limits.connections.",
           (double)s.edge.refused);
    metric(m, "firn_proxy_malformed_total", "Requests that were refused by the parser.",
           (double)s.edge.errors);
    metric(m, "firn_proxy_client_timeouts_total", "Clients that were too slow.",
           (double)s.edge.timeouts);
    metric(m, "firn_proxy_aborted_total", "Requests whose client or answer broke off.",
           (double)s.edge.aborted);
    metric(m, "firn_proxy_unproxied_total",
           "Connections without a PROXY header, or from a peer that is not trusted.",
           (double)s.edge.unproxied);
    metric_histogram_head(m, "firn_proxy_request_seconds", "Time from head to end of an answer.");
    metric_histogram(m, "firn_proxy_request_seconds", NULL, NULL, &s.latency);
    service_metric(m, p, "firn_proxy_service_requests_total", "Requests for a service.",
                   offsetof(struct backend, requests));
    service_metric(m, p, "firn_proxy_retries_total", "Requests that were sent once more.",
                   offsetof(struct backend, retries));
    service_metric(m, p, "firn_proxy_breaker_refused_total", "Requests refused by a breaker.",
                   offsetof(struct backend, refused));
    service_metric(m, p, "firn_proxy_crowded_total",
                   "Requests refused because no connection became free in time.",
                   offsetof(struct backend, crowded));
    server_metric(m, p, "firn_proxy_server_up", "1: the server gets requests.", up_of);
    server_metric(m, p, "firn_proxy_server_requests_total", "Requests sent to a server.",
                  requests_of);
    server_metric(m, p, "firn_proxy_server_errors_total", "Those that failed or gave 5xx.",
                  errors_of);
    metric(m, "firn_proxy_lookups_total", "Names of servers that were looked up again.",
           (double)atomic_load(&a->lookups));
    metric(m, "firn_proxy_lookup_errors_total", "Those that failed; their addresses stay.",
           (double)atomic_load(&a->lookup_errors));
    metric(m, "firn_proxy_reloads_total", "Configurations that were put in force.",
           (double)atomic_load(&a->reloads));
    metric(m, "firn_proxy_reload_errors_total", "Configurations that were refused.",
           (double)atomic_load(&a->reload_errors));
    worker_redis_metrics(a, p, m);
    for (size_t i = 0; i < chain_n; i++)
        if (chain[i].metrics)
            chain[i].metrics(a, p, m);
    metrics_process(m, a->started_ms);
    metrics_end(m);
    plan_unref(p);
}
