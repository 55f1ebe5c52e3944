/*
 * admin.h - what the admin address shows: the service that answers there (admin.c), the JSON of
 * /status (status.c) and the metrics (metrics.c). They run on the loop that has the connection and
 * read the counters of all loops.
 */
#ifndef FIRN_PROXY_ADMIN_H
#define FIRN_PROXY_ADMIN_H

#include "daemon/metrics.h"
#include "daemon/problem.h"
#include "proxy/worker.h"

/* The service of the admin address, for loop_new(). */
void admin_http(struct service_ctx *w, const struct http_request *req, struct reply *r);
bool admin_vital(const struct http_request *req);

struct sums { /* the counters of all loops together */
    struct edge_stats edge;
    uint64_t status[STATS_CLASSES], calls;
    struct latency latency, first_byte;
};
void sums_read(struct app *a, struct sums *s);
void stats_read(struct app *a, enum stats_kind kind, const char *name, struct stats *out);
void pools_read(struct app *a, const char *address, struct upstream_stats *out);

/* admin_actions.c: whether POST to this path is an action; do it. */
bool admin_is_action(struct slice path);
void admin_act(struct service_ctx *w, const struct http_request *req, struct reply *r);
void admin_problem(struct reply *r, const struct problem_kind *k, const char *detail);

void status_write(struct app *a, struct buf *b);
void metrics_write(struct app *a, struct metrics *m);

#endif
