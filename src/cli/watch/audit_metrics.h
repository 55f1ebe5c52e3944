/*
 * audit_metrics.h - a small HTTP server on loopback that shows firn audit's counters to Prometheus.
 * One thread serves one request per connection; the counters are atomics that firn audit sets.
 */
#ifndef FIRN_CLI_WATCH_AUDIT_METRICS_H
#define FIRN_CLI_WATCH_AUDIT_METRICS_H

#include "wire/url.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct audit_metrics {
    _Atomic uint64_t ids, duplicates, malformed, commits, errors, lag_bytes, last_commit_ms;
    int fd, wake[2];
    pthread_t thread;
    bool running;
};

/* Serve on host:port, a loopback address; port 0 takes a free one. `bound` gets the address. -1:
 * it serves; otherwise the status to exit with, after a message. Call audit_metrics_done() in
 * any case. */
int audit_metrics_start(struct audit_metrics *m, const char *address, char bound[HOST_PORT_BUF]);
void audit_metrics_done(struct audit_metrics *m);

#endif
