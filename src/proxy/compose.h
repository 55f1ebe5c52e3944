/* compose.h - the link that answers routes with `compose` from parts, for the table in chain.c. */
#ifndef FIRN_PROXY_COMPOSE_H
#define FIRN_PROXY_COMPOSE_H

#include "proxy/call.h"

enum link_result compose_request(struct call *c);
void compose_done(struct call *c);
void compose_metrics(struct app *a, const struct plan *p, struct metrics *m);

#endif
