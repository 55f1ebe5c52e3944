/*
 * capture.h - the link `capture`: keeps the headers and the beginning of the bodies of requests and
 * answers for the access log, where a route asks for it (log_headers, log_body_bytes), without
 * secrets (proxy/redact.h). An answer is seen as JSON mapping made it and before gzip. All of it is
 * bounded, and other routes pay one branch.
 */
#ifndef FIRN_PROXY_CAPTURE_H
#define FIRN_PROXY_CAPTURE_H

#include "proxy/call.h"

enum { CAPTURE_BODY_MAX = 64 * 1024 }; /* log_body_bytes */

enum link_result capture_request(struct call *c);
void capture_answer(struct call *c, struct answer *a);

/* By call.c: a piece of the request's body, if c->capture is not NULL. */
void capture_body(struct call *c, const char *p, size_t len);

/* By the access log: the members request_headers, query, answer_headers, request_body and
 * answer_body of the open object. */
void capture_write(const struct call *c, struct buf *b);

/* NULL is fine. */
void capture_free(struct capture *k);

#endif
