/*
 * split.h - a route over several services (canary, A/B): which one a request goes to. The state of
 * a split is shared by all loops, so that shares are exact for the gateway as a whole: of 10,000
 * requests with weights 90 and 10 exactly 1,000 take the second service. With split_by the same
 * header, cookie, address or user always gets the same one, and shares are those of the keys.
 */
#ifndef FIRN_PROXY_SPLIT_H
#define FIRN_PROXY_SPLIT_H

#include "proxy/balance.h"
#include "proxy/config.h"

#include <pthread.h>
#include <stdatomic.h>

struct call;
struct plan;
struct app;
struct metrics;

struct split {
    const struct config_route *route;
    pthread_mutex_t lock;
    struct balance_turn turn[CONFIG_SPLIT_MAX]; /* guarded by lock */
    size_t backend[CONFIG_SPLIT_MAX];           /* by part: its place in the plan */
    _Atomic uint64_t requests[CONFIG_SPLIT_MAX];
};

/* `old`: the split of the route with this name before, or NULL; counters of its services go on.
 * NULL: no memory. The caller fills in backend[]. */
struct split *split_new(const struct config_route *route, const struct split *old);
void split_free(struct split *s); /* NULL is fine */

/* The part for a key, or with p NULL the one whose turn it is. */
size_t split_choose(struct split *s, const char *key, size_t len);

/* The first value of a cookie in a Cookie header; absent: p is NULL. */
struct slice split_cookie(struct slice header, const char *name);

#endif
