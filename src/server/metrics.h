/* metrics.h - the part of /metrics that only a member of a cluster has. */
#ifndef FIRN_SERVER_METRICS_H
#define FIRN_SERVER_METRICS_H

#include "daemon/metrics.h"
#include "server/app.h"

/* metrics_cluster.c; nothing without a cluster. */
void metrics_cluster(struct node *n, struct metrics *m);

#endif
