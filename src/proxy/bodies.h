/* bodies.h - the links that change bodies (json, gzip) and the one that injects faults, for the
 * table in chain.c. */
#ifndef FIRN_PROXY_BODIES_H
#define FIRN_PROXY_BODIES_H

#include "proxy/call.h"

/* json: renames and drops members of JSON bodies, both ways. */
enum link_result json_request(struct call *c);
void json_answer(struct call *c, struct answer *a);
void json_done(struct call *c);

/* gzip: compresses answers. */
void gzip_answer(struct call *c, struct answer *a);
void gzip_metrics(struct app *a, const struct plan *p, struct metrics *m);

/* fault: delays requests, or answers them without asking the service. */
enum link_result fault_request(struct call *c);
void fault_done(struct call *c);
void fault_metrics(struct app *a, const struct plan *p, struct metrics *m);
void fault_status(struct app *a, const struct plan *p, struct buf *b);

/* What a changed body makes untrue: digests, ranges, and a strong ETag (it becomes a weak one). */
void body_changed(struct call *c, struct fields *f);

#endif
