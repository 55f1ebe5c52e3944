/*
 * tracing.h - the link `trace`: takes part in traces by W3C Trace Context. A request has one span,
 * each try at a server one that is its child, whose ID the server gets as traceparent; so a retry
 * is a second span. A part of a composed request (call_inner()) has the span of its whole as
 * parent. Without a collector (app.spans is NULL) nothing is read or written.
 */
#ifndef FIRN_PROXY_TRACING_H
#define FIRN_PROXY_TRACING_H

#include "proxy/call.h"

enum link_result trace_request(struct call *c);
void trace_answer(struct call *c, struct answer *a);
void trace_done(struct call *c);
void trace_metrics(struct app *a, const struct plan *p, struct metrics *m);
void trace_status(struct app *a, const struct plan *p, struct buf *b);

/* The trace's ID in hex, or NULL. */
const char *trace_id_of(const struct call *c);

/* By forward.c: a try begins (before its fields are written), its answer's head is there, it is
 * over. `error`: NULL, or a word for error.type. Without a try the last two do nothing. */
void tracing_try(struct call *c);
void tracing_try_status(struct call *c, unsigned status);
void tracing_try_end(struct call *c, const char *error);

#endif
