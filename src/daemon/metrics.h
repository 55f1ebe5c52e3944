/*
 * metrics.h - the Prometheus text format: what every server writes the same way on its /metrics.
 * Names, labels and help texts are the program's literals; nothing is escaped.
 */
#ifndef FIRN_DAEMON_METRICS_H
#define FIRN_DAEMON_METRICS_H

#include "wire/buf.h"

/* A metric with its one value: a counter if its name ends with "_total", else a gauge. */
void metric(struct buf *out, const char *name, const char *help, double value);

/* A metric with several values, told apart by a label: the head once, then each value. */
void metric_head(struct buf *out, const char *name, const char *help);
void metric_value(struct buf *out, const char *name, const char *label, const char *is,
                  uint64_t value);

/* process_start_time_seconds, process_cpu_seconds_total and process_resident_memory_bytes. */
void metrics_process(struct buf *out, uint64_t started_ms);

#endif
