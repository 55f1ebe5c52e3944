/*
 * metrics.h - metrics as text, in the two formats that Prometheus reads: its own (0.0.4) and
 * OpenMetrics 1.0. What every server writes the same way on its /metrics. Names, labels and help
 * texts are the program's literals; nothing is escaped.
 */
#ifndef FIRN_DAEMON_METRICS_H
#define FIRN_DAEMON_METRICS_H

#include "wire/buf.h"
#include "wire/latency.h"

struct metrics { /* where they are written */
    struct buf *out;
    bool open; /* OpenMetrics */
};

/* A metric with its one value: a counter if its name ends with "_total", else a gauge. A name that
 * ends with "_seconds" or "_bytes", "_total" aside, has that unit. */
void metric(struct metrics *m, const char *name, const char *help, double value);

/* A metric with several values, told apart by a label: the head once, then each value. */
void metric_head(struct metrics *m, const char *name, const char *help);
void metric_value(struct metrics *m, const char *name, const char *label, const char *is,
                  uint64_t value);

/* The same with several labels, as text: service="a",server="b". Names from a configuration may
 * stand there if its check allows neither '"' nor backslash in them. */
void metric_sample(struct metrics *m, const char *name, const char *labels, double value);

/* A histogram in seconds, without a label or with one that tells several apart: the head once, then
 * each. */
void metric_histogram_head(struct metrics *m, const char *name, const char *help);
void metric_histogram(struct metrics *m, const char *name, const char *label, const char *is,
                      const struct latency *l);

/* process_start_time_seconds, process_cpu_seconds_total and process_resident_memory_bytes. */
void metrics_process(struct metrics *m, uint64_t started_ms);

/* Behind the last metric: OpenMetrics marks its end. */
void metrics_end(struct metrics *m);

#endif
