/*
 * tracing.h - requests over HTTP that came with a trace or a request ID, or that are sampled: their
 * spans, the header lines of their answers and their place in the log. All other requests, nearly
 * all, cost one look at `traced` and one at `unsampled`.
 *
 * A request whose traceparent has the sampled flag is recorded where tracing.endpoint is set, one
 * without that flag never is, and of those without a traceparent every so many as tracing.sample
 * says. What is known of a request is kept in reply.user until the answer is complete.
 */
#ifndef FIRN_SERVER_TRACING_H
#define FIRN_SERVER_TRACING_H

#include "server/http_call.h"

/* Before the loop starts, and after the coordinator ended. */
void tracing_init(struct service_ctx *ctx);
void tracing_done(struct service_ctx *ctx);

/* Whether the request has to pass tracing_begin(). */
static inline bool tracing_wanted(const struct service_ctx *ctx, const struct http_request *req)
{
    return req->traced || ctx->unsampled == 0;
}

/* So many requests without a traceparent were answered; at most ctx->unsampled. */
static inline void tracing_passed(struct service_ctx *ctx, uint64_t n)
{
    ctx->unsampled -= n;
}

/* Begins what is wanted, with c->route and c->r->fields as they are. The log lines of this thread
 * are the request's until tracing_leave(). */
void tracing_begin(struct call *c);

/* The handler has returned, with or without an answer. */
void tracing_leave(struct service_ctx *ctx, struct reply *r);

/* A job of the request came back: its spans; from now on the log lines are the request's. NULL, or
 * a reply without a trace, is fine. */
void tracing_resume(struct service_ctx *ctx, struct reply *r, const struct job *j);
void tracing_pause(void);

/* An answer with a problem of the server's: it is logged if the request can be found by an ID. */
void tracing_failed(const struct reply *r, unsigned status, const char *problem,
                    const char *detail);

/* service.answered */
void tracing_answered(struct service_ctx *ctx, struct reply *r);

#endif
