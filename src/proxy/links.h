/* links.h - the links that look at the head of a request, for the table in chain.c. */
#ifndef FIRN_PROXY_LINKS_H
#define FIRN_PROXY_LINKS_H

#include "proxy/call.h"
#include "wire/http_body.h"

/* log: the line when it ends. */
void log_done(struct call *c);
void log_metrics(struct app *a, const struct plan *p, struct metrics *m); /* access_log.c */

/* id: who asks, and the name of the request. */
enum link_result id_request(struct call *c);
void id_answer(struct call *c, struct answer *a);

/* route: the canonical path, the route and its service. */
enum link_result route_request(struct call *c);

/* limit, limit_user: the rates of the route, before and after its token. */
enum link_result limit_request(struct call *c);
enum link_result limit_user_request(struct call *c);
void limit_head(struct call *c, struct answer *a);
void limit_done(struct call *c);
void limit_metrics(struct app *a, const struct plan *p, struct metrics *m);
void limit_status(struct app *a, const struct plan *p, struct buf *b);

/* jwt: the token that the route asks for. */
enum link_result jwt_request(struct call *c);
void jwt_metrics(struct app *a, const struct plan *p, struct metrics *m);
void jwt_status(struct app *a, const struct plan *p, struct buf *b);
/* By transform: its claims as fields of the request. */
void jwt_add_fields(struct call *c);

/* transform: the fields that the server gets, and those that the client gets. */
enum link_result transform_request(struct call *c);
void transform_answer(struct call *c, struct answer *a);

/* Lines of trailers without those that the route removes or sets, in `to`. */
struct slice transform_trailers(const struct call *c, struct slice lines,
                                char to[HTTP_TRAILERS_BYTES_MAX]);

/* split: the service, where a route has several (split.c). */
enum link_result split_request(struct call *c);
void split_metrics(struct app *a, const struct plan *p, struct metrics *m);
void split_status(struct app *a, const struct plan *p, struct buf *b);

#endif
