/* Spans of requests. Tested in tests/integration/auditlog.py. */
#include "auditlog/tracing.h"
#include "daemon/span_export.h"
#include "daemon/span_sample.h"
#include "platform/mono.h"

#include <stdio.h>
#include <stdlib.h>

static bool sampled_by_share(struct service_ctx *ctx)
{
    if (ctx->unsampled > 0) {
        ctx->unsampled -= ctx->unsampled != UINT64_MAX;
        return false;
    }
    ctx->unsampled = span_sample_next(ctx->app->sample);
    return true;
}

struct span *trace_begin(struct service_ctx *ctx, const struct http_request *req, const char *name,
                         uint32_t shard)
{
    struct trace_parent from;
    if (!ctx->app->spans)
        return NULL;
    const bool inside = req->traceparent.len > 0 && trace_parent_read(req->traceparent, &from) == 0;
    if (inside ? !(from.flags & TRACE_SAMPLED) : !sampled_by_share(ctx))
        return NULL;
    struct span *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    if (inside)
        span_init_child(s, &from, true, SPAN_SERVER);
    else
        span_init_root(s, SPAN_SERVER);
    if (inside && req->tracestate.len > 0 && trace_state_ok(req->tracestate))
        span_state(s, req->tracestate);
    const char *method = http_method_name(req->method);
    snprintf(s->name, sizeof s->name, "%s %s", method, name);
    s->start_ns = mono_ns();
    span_text(s, "http.request.method", (struct slice){ method, strlen(method) });
    span_text(s, "http.route", (struct slice){ name, strlen(name) });
    if (req->request_id.len > 0 && request_id_ok(req->request_id))
        span_text(s, "firn.request_id", req->request_id);
    span_number(s, "firn.shard", shard);
    return s;
}

/* A part of the time of `s`; nothing if it did not come to it. */
static void add_part(struct service_ctx *ctx, const struct span *s, const char *name,
                     uint64_t start_ns, uint64_t end_ns, const struct write_job *w)
{
    struct span part;
    if (start_ns == 0 || end_ns < start_ns)
        return;
    span_init_child(&part, &s->self, false, SPAN_INTERNAL);
    snprintf(part.name, sizeof part.name, "%s", name);
    part.start_ns = start_ns;
    part.end_ns = end_ns;
    if (w->batch_rows > 0)
        span_number(&part, "firn.batch_rows", w->batch_rows);
    (void)span_export_add(ctx->app->spans, &part);
}

void trace_end(struct service_ctx *ctx, struct span *s, unsigned status)
{
    if (!s)
        return;
    s->end_ns = mono_ns();
    s->error = status >= 500;
    span_number(s, "http.response.status_code", status);
    (void)span_export_add(ctx->app->spans, s);
    free(s);
}

void trace_write_end(struct service_ctx *ctx, struct write_job *w, unsigned status)
{
    if (w->span) {
        const uint64_t now = mono_ns();
        add_part(ctx, w->span, "queue", w->base.began_ns, w->taken_ns, w);
        add_part(ctx, w->span, "ids", w->taken_ns, w->numbered_ns, w);
        add_part(ctx, w->span, "commit", w->sent_ns, now, w);
    }
    trace_end(ctx, w->span, status);
    w->span = NULL;
}
