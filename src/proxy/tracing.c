/*
 * Spans of requests and of tries (tracing.h). Names of attributes are those of OpenTelemetry's
 * semantic conventions for HTTP. Tested in tests/integration/gateway_watch.py.
 */
#include "proxy/tracing.h"
#include "daemon/metrics.h"
#include "daemon/span_export.h"
#include "daemon/span_sample.h"
#include "firn/random.h"
#include "platform/mono.h"
#include "proxy/redact.h"
#include "proxy/worker.h"
#include "wire/json_write.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHOWN_MAX = 200, AGENT_MAX = 100 }; /* bytes in a span */

struct call_trace {
    struct trace_parent self; /* the gateway's own place in the trace */
    bool recorded;
    bool pass; /* the client does not want it recorded: its fields are passed on as they are */
    bool has_state;
    char id[TRACE_ID_BUF], parent[TRACE_PARENT_BUF];
    struct span span; /* last: only there when it is recorded */
};

struct call_try {
    char parent[TRACE_PARENT_BUF];
    struct span span;
};

/* Two of them are none. */
static bool read_parent(const struct call *c, struct trace_parent *out)
{
    const struct http_head *h = c->head;
    struct slice found = { NULL, 0 };
    for (size_t i = 0; i < h->headers; i++)
        if (http_word_is(h->header[i].name, "traceparent")) {
            if (found.p)
                return false;
            found = h->header[i].value;
        }
    return found.p && trace_parent_read(found, out) == 0;
}

/* The share of tracing.sample. */
static bool sampled_by_share(struct service_ctx *w, const struct config *conf)
{
    if (w->unsampled > 0) {
        w->unsampled -= w->unsampled != UINT64_MAX;
        return false;
    }
    w->unsampled = span_sample_next(span_sample_read(conf->tracing.sample));
    return true;
}

static struct slice shortened(struct slice s, size_t max)
{
    s.len = s.len < max ? s.len : max;
    return s;
}

static struct slice method_of(const struct call *c)
{
    static const char *const known[] = { "GET",   "HEAD",   "POST",    "PUT",
                                         "PATCH", "DELETE", "OPTIONS", "QUERY" };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (slice_is(c->head->method, known[i]))
            return c->head->method;
    return slice_of("_OTHER");
}

static void describe_query(struct span *s, struct slice query)
{
    const struct redact none = { NULL };
    struct buf b;
    buf_init(&b, 2 * HTTP_HEAD_BYTES_MAX);
    redact_query(&none, query, &b);
    if (query.p && !b.failed)
        span_text(s, "url.query", shortened((struct slice){ b.p ? b.p : "", b.len }, SHOWN_MAX));
    buf_done(&b);
}

static void describe(const struct call *c, struct span *s)
{
    const struct http_head *head = c->head;
    struct host_port h;
    span_text(s, "http.request.method", method_of(c));
    span_text(s, "url.scheme", slice_of(c->q->tls ? "https" : "http"));
    span_text(s, "url.path", shortened(head->path, SHOWN_MAX));
    describe_query(s, head->query);
    span_text(s, "network.protocol.version", slice_of(head->minor ? "1.1" : "1.0"));
    if (head->host.p && host_port_read(head->host, &h) == HOST_OK) {
        span_text(s, "server.address", slice_of(h.host));
        if (h.has_port)
            span_number(s, "server.port", h.port);
    }
    span_text(s, "client.address", slice_of(c->client));
    span_text(s, "firn.request_id", slice_of(c->id));
}

enum link_result trace_request(struct call *c)
{
    struct service_ctx *w = c->worker;
    const struct config *conf = &c->view->plan->config;
    struct trace_parent from;
    if (!w->app->spans)
        return LINK_NEXT;
    bool honoured = conf->tracing.incoming == CONFIG_TRACES_ALL || c->trusted;
    bool in_trace = honoured && read_parent(c, &from);
    bool sampled = in_trace ? from.flags & TRACE_SAMPLED : sampled_by_share(w, conf);
    struct call_trace *t = (void *)call_text(c, sampled ? sizeof *t
                                                        : offsetof(struct call_trace, span));
    if (!t)
        return LINK_NEXT;
    t->recorded = sampled;
    t->pass = in_trace && !sampled;
    struct slice state = in_trace ? http_head_value(c->head, "tracestate")
                                  : (struct slice){ NULL, 0 };
    t->has_state = state.p && trace_state_ok(state);
    if (sampled) {
        struct span *s = &t->span;
        if (in_trace)
            span_init_child(s, &from, true, SPAN_SERVER);
        else
            span_init_root(s, SPAN_SERVER);
        s->start_ns = c->began_ns;
        describe(c, s);
        if (t->has_state)
            span_state(s, state);
        t->self = s->self;
    } else if (in_trace) {
        t->self = from;
    } else { /* servers are told that this one is not recorded, so that they do not toss again */
        firn_rng_bytes(firn_rng_thread(), t->self.trace, sizeof t->self.trace);
        firn_rng_bytes(firn_rng_thread(), t->self.span, sizeof t->self.span);
        t->self.flags = TRACE_RANDOM;
    }
    trace_hex(t->self.trace, sizeof t->self.trace, t->id);
    trace_parent_write(&t->self, t->parent);
    c->trace = t;
    return LINK_NEXT;
}

void trace_answer(struct call *c, struct answer *a)
{
    if (c->trace && c->trace->recorded)
        fields_set(&a->fields, slice_of("traceresponse"), slice_of(c->trace->parent));
}

void trace_done(struct call *c)
{
    struct call_trace *t = c->trace;
    char text[8];
    if (!t || !t->recorded)
        return;
    struct span *s = &t->span;
    struct slice method = method_of(c);
    snprintf(s->name, sizeof s->name, "%.*s%s%s", (int)method.len, method.p, c->route ? " " : "",
             c->route ? c->route->path : "");
    if (c->route) {
        span_text(s, "http.route", slice_of(c->route->path));
        span_text(s, "firn.route", slice_of(c->route->name));
    }
    if (c->backend)
        span_text(s, "firn.service", slice_of(c->backend->conf->name));
    if (c->answered)
        span_number(s, "http.response.status_code", c->status);
    snprintf(text, sizeof text, "%u", c->status % 1000);
    const bool broke = c->answered && c->why && c->status < 400;
    s->error = c->status >= 500 || broke;
    if (s->error || !c->answered)
        span_text(s, "error.type",
                  slice_of(broke          ? "aborted"
                           : !c->answered ? "client_gone"
                                          : text));
    struct slice agent = http_head_value(c->head, "user-agent");
    if (agent.p)
        span_text(s, "user_agent.original", shortened(agent, AGENT_MAX));
    s->end_ns = mono_ns();
    span_export_add(c->worker->app->spans, s);
}

const char *trace_id_of(const struct call *c)
{
    return c->trace ? c->trace->id : NULL;
}

/* --- tries --- */

static void describe_try(const struct call *c, struct span *s)
{
    const struct backend *b = c->backend;
    struct host_port h;
    struct slice method = method_of(c);
    char url[SHOWN_MAX + HOST_PORT_BUF + sizeof "https://"];
    const char *query = memchr(c->target.p, '?', c->target.len);
    size_t path = query ? (size_t)(query - c->target.p) : c->target.len; /* secrets travel behind */
    snprintf(s->name, sizeof s->name, "%.*s", (int)method.len, method.p);
    s->start_ns = mono_ns();
    span_text(s, "http.request.method", method);
    span_text(s, "firn.service", slice_of(b->conf->name));
    if (c->server < b->n) {
        const char *address = b->server[c->server].address;
        snprintf(url, sizeof url, "%s://%s%.*s", b->conf->tls ? "https" : "http", address,
                 (int)(path < SHOWN_MAX ? path : SHOWN_MAX), c->target.p);
        span_text(s, "url.full", slice_of(url));
        if (host_port_read(slice_of(address), &h) == HOST_OK) {
            span_text(s, "server.address", slice_of(h.host));
            span_number(s, "server.port", h.port);
        }
    }
    if (c->tries > 1)
        span_number(s, "http.request.resend_count", c->tries - 1);
    span_text(s, "firn.request_id", slice_of(c->id));
}

void tracing_try(struct call *c)
{
    const struct call *whole = c;
    while (!whole->trace && whole->outer)
        whole = whole->outer;
    struct call_trace *t = whole->trace;
    if (!t || t->pass)
        return;
    const char *parent = t->parent;
    if (t->recorded && (c->attempt = malloc(sizeof *c->attempt))) {
        span_init_child(&c->attempt->span, &t->self, false, SPAN_CLIENT);
        describe_try(c, &c->attempt->span);
        parent = trace_parent_write(&c->attempt->span.self, c->attempt->parent);
    }
    fields_set(&c->request, slice_of("traceparent"), slice_of(parent));
    if (!t->has_state)
        fields_remove(&c->request, slice_of("tracestate"));
}

void tracing_try_status(struct call *c, unsigned status)
{
    char text[8];
    if (!c->attempt)
        return;
    struct span *s = &c->attempt->span;
    span_number(s, "http.response.status_code", status);
    if (status >= 400) { /* of a client's span 4xx is an error, too */
        snprintf(text, sizeof text, "%u", status % 1000);
        span_text(s, "error.type", slice_of(text));
        s->error = true;
    }
}

void tracing_try_end(struct call *c, const char *error)
{
    struct call_try *t = c->attempt;
    if (!t)
        return;
    if (error && !t->span.error) {
        span_text(&t->span, "error.type", slice_of(error));
        t->span.error = true;
    }
    t->span.end_ns = mono_ns();
    span_export_add(c->worker->app->spans, &t->span);
    free(t);
    c->attempt = NULL;
}

/* --- what an operator sees --- */

void trace_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    (void)p;
    if (!a->spans)
        return;
    const struct span_export_stats *s = span_export_stats(a->spans);
    metric_head(m, "firn_proxy_trace_spans_total", "Spans, by what became of them.");
    metric_value(m, "firn_proxy_trace_spans_total", "result", "exported",
                 atomic_load(&s->exported));
    metric_value(m, "firn_proxy_trace_spans_total", "result", "dropped", atomic_load(&s->dropped));
    metric_value(m, "firn_proxy_trace_spans_total", "result", "failed", atomic_load(&s->failed));
    metric(m, "firn_proxy_trace_spans_waiting", "Spans that wait for the collector.",
           span_export_waiting(a->spans));
}

void trace_status(struct app *a, const struct plan *p, struct buf *b)
{
    json_text(b, "endpoint", a->spans ? p->config.tracing.endpoint : NULL);
    if (!a->spans)
        return;
    const struct span_export_stats *s = span_export_stats(a->spans);
    json_count(b, "exported", atomic_load(&s->exported));
    json_count(b, "dropped", atomic_load(&s->dropped));
    json_count(b, "failed", atomic_load(&s->failed));
}
