/*
 * Spans, header lines and log of requests that can be found by an ID (tracing.h). Tested in
 * tests/unit/server/tracing.c and tests/integration/tracing.py.
 */
#include "server/tracing.h"
#include "daemon/log.h"
#include "daemon/span_export.h"
#include "daemon/span_sample.h"
#include "firn/random.h"
#include "platform/mono.h"
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TRACES_MAX = 4096, /* of one loop; beyond that requests are served without */
    TRACES_IDLE = 64,  /* that are kept for the next requests */
    SHOWN_MAX = 256,   /* bytes of a path or query in a span */
    FIELDS_BYTES = 1024,
};

struct trace { /* of one request */
    bool recorded;
    struct span span;
    struct log_request log;
    char id[REQUEST_ID_BYTES_MAX + 1], trace[TRACE_ID_BUF];
    char fields[FIELDS_BYTES];
    struct trace *next;          /* in the pool */
    struct trace *all, **all_at; /* every one of the loop */
};

/* ---- which requests ---- */

void tracing_init(struct service_ctx *ctx)
{
    ctx->unsampled = span_sample_next(ctx->app->spans ? ctx->app->sample : 0);
}

static struct trace *trace_take(struct service_ctx *ctx)
{
    struct trace *t = ctx->trace_idle;
    if (t) {
        ctx->trace_idle = t->next;
        ctx->traces_idle--;
        return t;
    }
    if (ctx->traces >= TRACES_MAX || !(t = malloc(sizeof *t)))
        return NULL;
    ctx->traces++;
    t->all = ctx->trace_all;
    t->all_at = &ctx->trace_all;
    if (t->all)
        t->all->all_at = &t->all;
    ctx->trace_all = t;
    return t;
}

static void trace_free(struct service_ctx *ctx, struct trace *t)
{
    if (ctx->traces_idle < TRACES_IDLE) {
        t->next = ctx->trace_idle;
        ctx->trace_idle = t;
        ctx->traces_idle++;
        return;
    }
    *t->all_at = t->all;
    if (t->all)
        t->all->all_at = t->all_at;
    ctx->traces--;
    free(t);
}

void tracing_done(struct service_ctx *ctx)
{
    while (ctx->trace_all) {
        struct trace *t = ctx->trace_all;
        ctx->trace_all = t->all;
        free(t);
    }
    ctx->trace_idle = NULL;
}

/* ---- the beginning ---- */

static struct slice text_slice(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

static struct slice shortened(struct slice s)
{
    s.len = s.len < SHOWN_MAX ? s.len : SHOWN_MAX;
    return s;
}

/* Names and units are those of OpenTelemetry's semantic conventions for HTTP servers. */
static void describe(struct call *c, struct span *s)
{
    const struct http_request *req = c->req;
    const char *method = http_method_name(req->method);
    char client[PEER_ADDRESS_BUF];
    struct host_port h;
    snprintf(s->name, sizeof s->name, "%s%s%s", method, c->route ? " " : "",
             c->route ? c->route->path : "");
    span_text(s, "http.request.method", text_slice(method));
    if (c->route)
        span_text(s, "http.route", text_slice(c->route->path));
    span_text(s, "url.scheme", text_slice(c->r->peer->tls ? "https" : "http"));
    span_text(s, "url.path", shortened(req->path));
    span_text(s, "url.query", shortened(req->query));
    span_text(s, "network.protocol.version", text_slice(req->minor ? "1.1" : "1.0"));
    if (req->host.p && host_port_read(req->host, &h) == HOST_OK) {
        span_text(s, "server.address", text_slice(h.host));
        if (h.has_port)
            span_number(s, "server.port", h.port);
    }
    peer_address(c->r->peer, client);
    if (host_port_read(text_slice(client), &h) == HOST_OK && h.has_port) {
        span_text(s, "client.address", text_slice(h.host));
        span_number(s, "client.port", h.port);
    }
}

static void write_fields(struct trace *t, struct reply *r)
{
    char parent[TRACE_PARENT_BUF];
    int n = snprintf(t->fields, sizeof t->fields, "%s", r->fields ? r->fields : "");
    const size_t room = sizeof t->fields - (size_t)n;
    if (n < 0 || (size_t)n >= sizeof t->fields || room < REQUEST_ID_BYTES_MAX + 128)
        return; /* a browser's lines come first */
    if (t->id[0])
        n += snprintf(t->fields + n, sizeof t->fields - (size_t)n, "X-Request-ID: %s\r\n", t->id);
    if (t->recorded)
        snprintf(t->fields + n, sizeof t->fields - (size_t)n, "traceresponse: %s\r\n",
                 trace_parent_write(&t->span.self, parent));
    r->fields = t->fields;
}

void tracing_begin(struct call *c)
{
    struct service_ctx *ctx = c->ctx;
    const struct http_request *req = c->req;
    struct trace_parent from;
    bool in_trace = trace_parent_read(req->traceparent, &from) == 0;
    bool sampled = in_trace ? from.flags & TRACE_SAMPLED : ctx->unsampled == 0;
    bool has_id = request_id_ok(req->request_id);
    if (!in_trace && !sampled && c->r->waited_ms == 0)
        tracing_passed(ctx, 1);
    if (!in_trace && !sampled && !has_id)
        return;
    struct trace *t = trace_take(ctx);
    if (!t)
        return;
    t->recorded = sampled && ctx->app->spans;
    snprintf(t->id, sizeof t->id, "%.*s", has_id ? (int)req->request_id.len : 0,
             has_id ? req->request_id.p : "");
    t->trace[0] = '\0';
    if (in_trace)
        trace_hex(from.trace, sizeof from.trace, t->trace);
    if (t->recorded) {
        struct span *s = &t->span;
        if (in_trace)
            span_init_child(s, &from, true, SPAN_SERVER);
        else
            span_init_root(s, SPAN_SERVER);
        s->start_ns = mono_ns() - c->r->waited_ms * UINT64_C(1000000);
        describe(c, s);
        span_text(s, "firn.request_id", t->id[0] ? text_slice(t->id) : (struct slice){ NULL, 0 });
        if (in_trace && trace_state_ok(req->tracestate))
            span_state(s, req->tracestate);
        trace_hex(s->self.trace, sizeof s->self.trace, t->trace);
    }
    if (!in_trace && sampled)
        ctx->unsampled = span_sample_next(ctx->app->sample);
    t->log = (struct log_request){ t->id, t->trace };
    write_fields(t, c->r);
    c->r->user = t;
    log_request(&t->log);
}

/* ---- the end ---- */

static void record(struct service_ctx *ctx, struct trace *t, const struct reply *r)
{
    struct span *s = &t->span;
    char text[8];
    unsigned status = reply_status(r);
    s->end_ns = mono_ns();
    span_number(s, "http.response.status_code", status);
    if (status >= 500) {
        s->error = true;
        snprintf(text, sizeof text, "%u", status % 1000);
        span_text(s, "error.type", text_slice(text));
    }
    span_export_add(ctx->app->spans, s);
}

void tracing_answered(struct service_ctx *ctx, struct reply *r)
{
    struct trace *t = r->user;
    if (t->recorded)
        record(ctx, t, r);
    log_request(NULL);
    r->user = NULL;
    trace_free(ctx, t);
}

void tracing_leave(struct service_ctx *ctx, struct reply *r)
{
    struct trace *t = r->user;
    log_request(NULL);
    if (!t || r->deferred)
        return; /* tracing_answered() comes, or has come */
    if (reply_answered(r)) {
        tracing_answered(ctx, r);
        return;
    }
    if (t->recorded && !t->span.has_parent)
        ctx->unsampled = 0; /* this request or another one is sampled in its place */
    r->user = NULL;
    trace_free(ctx, t);
}

/* ---- the store's part ---- */

/* "sqlite", "etcd"; db.system.name has another word for one of them. */
static struct slice store_name(const struct app *app)
{
    size_t n = strcspn(app->store_text, ":");
    return n == 8 && memcmp(app->store_text, "postgres", 8) == 0
               ? text_slice("postgresql")
               : (struct slice){ app->store_text, n };
}

static void part(const struct trace *t, const struct job *j, enum span_kind kind, const char *name,
                 uint64_t from_ns, uint64_t until_ns, struct span *out)
{
    span_init_child(out, &t->span.self, false, kind);
    snprintf(out->name, sizeof out->name, "%s", name);
    out->start_ns = from_ns;
    out->end_ns = until_ns;
    if (j->name_len > 0)
        span_text(out, "firn.sequence", (struct slice){ j->name, j->name_len });
}

static void record_job(struct service_ctx *ctx, const struct trace *t, const struct job *j)
{
    static const char *const names[] = {
        [JOB_TAKE] = "group commit",      [JOB_KEEP] = "group commit",
        [JOB_FETCH] = "fetch block",      [JOB_CREATE] = "create sequence",
        [JOB_DELETE] = "delete sequence", [JOB_DESCRIBE] = "read sequence",
        [JOB_LIST] = "list sequences",    [JOB_NODES] = "list nodes",
        [JOB_SLOTS] = "list slots",       [JOB_LEASE] = "lease",
    };
    struct span s;
    uint64_t now_ns = mono_ns(), from_ns = j->began_ns;
    if (j->began_ns == 0) /* it did not go to the coordinator */
        return;
    if (j->served_ns > from_ns) {
        part(t, j, SPAN_INTERNAL, "wait for the store", from_ns, j->served_ns, &s);
        span_export_add(ctx->app->spans, &s);
        from_ns = j->served_ns;
    }
    part(t, j, SPAN_CLIENT, names[j->what], from_ns, now_ns, &s);
    span_text(&s, "db.system.name", store_name(ctx->app));
    if (j->result) {
        s.error = true;
        span_text(&s, "error.type", text_slice(firn_error_name(j->result)));
    }
    span_export_add(ctx->app->spans, &s);
}

void tracing_resume(struct service_ctx *ctx, struct reply *r, const struct job *j)
{
    const struct trace *t = r ? r->user : NULL;
    if (!t)
        return;
    log_request(&t->log);
    if (t->recorded)
        record_job(ctx, t, j);
}

void tracing_pause(void)
{
    log_request(NULL);
}

void tracing_failed(const struct reply *r, unsigned status, const char *problem, const char *detail)
{
    if (r->user)
        log_warn("request_failed", "status=%u problem=%s detail=%s", status, problem, detail);
}
