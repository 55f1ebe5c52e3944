/* metrics.h - what the files that write /metrics share. */
#ifndef FIRN_SERVER_METRICS_H
#define FIRN_SERVER_METRICS_H

#include "server/app.h"

void metric_head(struct buf *out, const char *name, const char *type, const char *help);

/* With its one value. */
void metric(struct buf *out, const char *name, const char *type, const char *help, double value);

/* metrics_cluster.c; nothing without a cluster. */
void metrics_cluster(struct node *n, struct buf *out);

#endif
