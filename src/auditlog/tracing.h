/*
 * tracing.h - spans of requests: one for the request itself, and for a write where its time went:
 * the wait in the queue, its IDs, the commit that it shared with others. Requests that are refused
 * before they are queued have none. Attempts to get IDs are spans of ids.c. The loop's thread.
 */
#ifndef FIRN_AUDITLOG_TRACING_H
#define FIRN_AUDITLOG_TRACING_H

#include "auditlog/app.h"
#include "daemon/span.h"

/* The span of a request, where its traceparent or the share of tracing.sample wants it recorded;
 * else NULL. `name` is a literal. */
struct span *trace_begin(struct service_ctx *ctx, const struct http_request *req, const char *name,
                         uint32_t shard);

/* Sends the spans of a write that has been answered with `status`, and frees it. */
void trace_write_end(struct service_ctx *ctx, struct write_job *w, unsigned status);

/* The same for a read. */
void trace_end(struct service_ctx *ctx, struct span *s, unsigned status);

#endif
