/* query.h - the link that answers routes with `graphql`, for the table in chain.c. */
#ifndef FIRN_PROXY_QUERY_H
#define FIRN_PROXY_QUERY_H

#include "proxy/call.h"

enum link_result query_request(struct call *c);
void query_done(struct call *c);
void query_metrics(struct app *a, const struct plan *p, struct metrics *m);

#endif
