/*
 * admin.h - what the admin address shows: the service that answers there (admin.c), the JSON of
 * /status (status.c) and the metrics (metrics.c). They run on the loop that has the connection and
 * read the counters of all loops.
 */
#ifndef FIRN_PROXY_ADMIN_H
#define FIRN_PROXY_ADMIN_H

#include "daemon/metrics.h"
#include "proxy/worker.h"

/* The service of the admin address, for loop_new(). */
void admin_http(struct service_ctx *w, const struct http_request *req, struct reply *r);
bool admin_vital(const struct http_request *req);

struct sums { /* the counters of all loops together */
    struct edge_stats edge;
    uint64_t status[6], calls;
    struct latency latency, first_byte;
};
void sums_read(struct app *a, struct sums *s);

void status_write(struct app *a, struct buf *b);
void metrics_write(struct app *a, struct metrics *m);

#endif
