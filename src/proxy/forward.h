/* forward.h - the links `breaker` and `forward`, for the table in chain.c. */
#ifndef FIRN_PROXY_FORWARD_H
#define FIRN_PROXY_FORWARD_H

#include "proxy/call.h"

enum link_result breaker_request(struct call *c);
void breaker_done(struct call *c);
enum link_result forward_request(struct call *c);
void forward_done(struct call *c);
void forward_metrics(struct app *a, const struct plan *p, struct metrics *m);

#endif
