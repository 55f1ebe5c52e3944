/* http_call.h - a request on its way through the http_*.c files; the loop's thread. */
#ifndef FIRN_AUDITLOG_HTTP_CALL_H
#define FIRN_AUDITLOG_HTTP_CALL_H

#include "auditlog/app.h"
#include "auditlog/entry.h"
#include "auditlog/problem.h"

#define JSON_FIELDS "Content-Type: application/json\r\nCache-Control: no-store\r\n"

struct call {
    struct service_ctx *ctx;
    const struct http_request *req;
    struct reply *r;
    struct slice arg; /* the variable segment of the path, percent-encoded */
};

/* Whether the token has the scope, and its tenant; if not, that is answered. */
bool call_allowed(struct call *c, uint32_t scope, struct slice *tenant);

/* The user in the path; false: it is none, and that is answered. */
bool call_user(struct call *c, char out[USER_BYTES_MAX + 1], size_t *out_len);

/* Answers a deferred reply whose job the queue has refused with `error`. */
void call_refused(struct service_ctx *ctx, struct reply *r, int error);

/* What all jobs answer the same way: outcomes that say what is wrong. */
void answer_outcome(struct reply *r, const struct job *j);

/* http_write.c, http_read.c */
void route_write(struct call *c);
void route_list(struct call *c);
void route_entry(struct call *c);

#endif
