/*
 * top_node.h - the state of one server for firn top, read from its answers to /v1/node and
 * /metrics.
 * Reading is pure and may be called from any thread.
 */
#ifndef FIRN_CLI_WATCH_TOP_NODE_H
#define FIRN_CLI_WATCH_TOP_NODE_H

#include "coord/clash.h"
#include "firn/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOP_HISTORY = 60 };

struct top_sample { /* one poll of a server */
    uint64_t at_ns; /* monotonic */
    char name[65], version[24], state[16], clock[12], reason[160];
    bool ready;
    int64_t slot, behind_ms;
    uint64_t uptime_s, connections, store_errors;
    double ids, tickets, requests, cpu_s, memory_bytes, window_s; /* counters, and gauges */
    uint64_t unix_us; /* the server's clock; 0: not told */
    struct node_face face;
};

struct top_node {
    char url[256]; /* as given */
    bool asked;    /* it was polled, with success or not */
    bool up;
    char why[200];   /* down: the reason */
    uint64_t ask_ns; /* how long the server took for /v1/node */
    int64_t skew_us; /* its clock minus ours, corrected by half the response time */
    bool clash;      /* it uses a slot that another server of the list uses, too */
    bool has_rates;  /* two polls of the same process */
    double ids_per_s, tickets_per_s, requests_per_s, cpu_percent;
    struct top_sample last;
};

/* {"name":…} of /v1/node. FIRN_EFORMAT: it is something else. */
FIRN_MUSTUSE int top_read_node(const char *p, size_t len, struct top_sample *out);

/* Sets `clash` of each. */
void top_find_clashes(struct top_node *node, size_t n);

/* The Prometheus text; lines that it does not know are skipped. FIRN_EFORMAT: it has no metrics
 * of firnd. */
FIRN_MUSTUSE int top_read_metrics(const char *p, size_t len, struct top_sample *out);

/* Add a poll: rates are computed from the difference, unless the server was restarted in
 * between. */
void top_node_update(struct top_node *n, const struct top_sample *now);

#endif
