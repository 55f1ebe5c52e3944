/*
 * span_export.h - sends spans to a collector by OTLP/HTTP with JSON, from a thread of its own. Any
 * thread gives it spans, which wait in a queue of fixed size: where that is full, or the collector
 * does not take them, spans are lost and counted, and whoever gave them never waits.
 */
#ifndef FIRN_DAEMON_SPAN_EXPORT_H
#define FIRN_DAEMON_SPAN_EXPORT_H

#include "daemon/span.h"

#include <stdatomic.h>

struct span_export;

struct span_export_opts {
    const char *endpoint; /* http:// or https://HOST[:4318][/v1/traces]; copied */
    const char *tls_ca;   /* PEM file for https; NULL: the system's authorities */
    uint32_t queue;       /* spans that may wait */
    uint32_t timeout_ms;  /* for one request; also what spans may add to the end of the process */
    struct span_resource resource; /* borrowed as long as the exporter lives */
};

struct span_export_stats {
    _Atomic uint64_t exported; /* the collector has them */
    _Atomic uint64_t dropped;  /* the queue was full */
    _Atomic uint64_t failed;   /* the collector did not take them, or not in time */
};

/* For the check of a setting: what is wrong with an endpoint. */
FIRN_MUSTUSE int span_export_check(const char *endpoint, struct firn_diag *why);

/* Starts the thread. FIRN_EFORMAT: the endpoint. FIRN_EIO: tls_ca cannot be read. FIRN_ENOMEM. A
 * collector that is not there yet is no error. */
FIRN_MUSTUSE int span_export_start(const struct span_export_opts *o, struct span_export **out,
                                   struct firn_diag *d);

/* Any thread: a copy of `s` is sent some time. False: the queue is full, and it is counted. */
bool span_export_add(struct span_export *e, const struct span *s);

const struct span_export_stats *span_export_stats(const struct span_export *e);
uint32_t span_export_waiting(struct span_export *e);

/* Sends what waits, within timeout_ms and without trying twice, ends the thread and frees `e`.
 * After the last span_export_add(). NULL is fine. */
void span_export_stop(struct span_export *e);

#endif
