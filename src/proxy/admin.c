/*
 * The admin address: /status, /metrics, /healthz, /readyz. Nothing here changes anything. Tested in
 * tests/integration/gateway.py.
 */
#include "daemon/about.h"
#include "daemon/metrics.h"
#include "daemon/problem.h"
#include "platform/mono.h"
#include "proxy/worker.h"

static const char json_fields[] = "Content-Type: application/json\r\n" ABOUT_NO_STORE;

struct sums {
    struct edge_stats edge;
    uint64_t status[6], calls;
    struct latency latency, first_byte;
};

static void sum_up(struct app *a, struct sums *s)
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

static void write_status(struct app *a, struct buf *b)
{
    struct plan *p = app_plan(a);
    struct sums s;
    uint64_t now = mono_ms();
    sum_up(a, &s);
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
        json_end(b, '}');
    }
    json_end(b, ']');
    json_end(b, '}');
    buf_add(b, "\n", 1);
    plan_unref(p);
}

static void server_metric(struct metrics *m, const struct plan *p, const char *name,
                          const char *help, uint64_t (*value)(struct backend *k, size_t i))
{
    metric_head(m, name, help);
    for (size_t i = 0; i < p->config.services.n; i++)
        for (size_t k = 0; k < p->backends[i].n; k++)
            buf_addf(m->out, "%s{service=\"%s\",server=\"%s\"} %llu\n", name,
                     p->backends[i].conf->name, p->backends[i].server[k].address,
                     (unsigned long long)value(&p->backends[i], k));
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

static void write_metrics(struct app *a, struct metrics *m)
{
    static const char *const classes[] = { "gone", "1xx", "2xx", "3xx", "4xx", "5xx" };
    struct plan *p = app_plan(a);
    struct sums s;
    sum_up(a, &s);
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
    metric_histogram_head(m, "firn_proxy_request_seconds", "Time from head to end of an answer.");
    metric_histogram(m, "firn_proxy_request_seconds", NULL, NULL, &s.latency);
    service_metric(m, p, "firn_proxy_service_requests_total", "Requests for a service.",
                   offsetof(struct backend, requests));
    service_metric(m, p, "firn_proxy_retries_total", "Requests that were sent once more.",
                   offsetof(struct backend, retries));
    service_metric(m, p, "firn_proxy_breaker_refused_total", "Requests refused by a breaker.",
                   offsetof(struct backend, refused));
    server_metric(m, p, "firn_proxy_server_up", "1: the server gets requests.", up_of);
    server_metric(m, p, "firn_proxy_server_requests_total", "Requests sent to a server.",
                  requests_of);
    server_metric(m, p, "firn_proxy_server_errors_total", "Those that failed or gave 5xx.",
                  errors_of);
    metric(m, "firn_proxy_reloads_total", "Configurations that were put in force.",
           (double)atomic_load(&a->reloads));
    metric(m, "firn_proxy_reload_errors_total", "Configurations that were refused.",
           (double)atomic_load(&a->reload_errors));
    metrics_process(m, a->started_ms);
    metrics_end(m);
    plan_unref(p);
}

static bool is_vital(const struct http_request *req)
{
    return slice_is(req->path, "/healthz") || slice_is(req->path, "/readyz") ||
           slice_is(req->path, "/metrics");
}

bool admin_vital(const struct http_request *req)
{
    return is_vital(req);
}

static void problem(struct reply *r, const struct problem_kind *k, const char *detail)
{
    char fields[PROBLEM_FIELDS_BUF];
    problem_fields(k, "", fields);
    reply_begin(r, k->status, fields);
    problem_write(r->out, k, detail);
    reply_end(r);
}

void admin_http(struct service_ctx *w, const struct http_request *req, struct reply *r)
{
    static const struct problem_kind none = { 404, "urn:firn:problem:no-such-page",
                                              "No such page" },
                                     wrong = { 405, "urn:firn:problem:method-not-allowed",
                                               "Method not allowed" },
                                     unready = { 503, "urn:firn:problem:not-ready", "Not ready" };
    struct app *a = w->app;
    if (req->method != METHOD_GET && req->method != METHOD_HEAD) {
        problem(r, &wrong, "GET and HEAD alone");
    } else if (slice_is(req->path, "/metrics")) {
        struct metrics m = { .out = r->out,
                             .open = http_names_type(req->accept, ABOUT_OPENMETRICS_TYPE) };
        reply_begin(r, 200, m.open ? ABOUT_OPENMETRICS_FIELDS : ABOUT_METRICS_FIELDS);
        write_metrics(a, &m);
        reply_end(r);
    } else if (slice_is(req->path, "/status")) {
        reply_begin(r, 200, json_fields);
        write_status(a, r->out);
        reply_end(r);
    } else if (slice_is(req->path, "/readyz") && atomic_load(&a->draining)) {
        problem(r, &unready, "the gateway is going to end");
    } else if (slice_is(req->path, "/readyz") || slice_is(req->path, "/healthz")) {
        reply_begin(r, 200, json_fields);
        json_begin(r->out, NULL, '{');
        if (req->path.p[1] == 'r')
            about_ready(r->out, NULL);
        else
            about_healthy(r->out);
        json_end(r->out, '}');
        buf_add(r->out, "\n", 1);
        reply_end(r);
    } else {
        problem(r, &none, "here are /status, /metrics, /healthz and /readyz");
    }
}
