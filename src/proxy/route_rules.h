/*
 * route_rules.h - what the keys of a route about caching, JSON bodies and faults become: rules in
 * the form that the links want, and the route's counters. Made with a plan, constant but for the
 * counters, read by all loops.
 */
#ifndef FIRN_PROXY_ROUTE_RULES_H
#define FIRN_PROXY_ROUTE_RULES_H

#include "proxy/cache_policy.h"
#include "proxy/config.h"
#include "proxy/fault.h"
#include "proxy/json_map.h"

#include <stdatomic.h>

struct json_rules {
    struct json_map_rule *v;
    size_t n, renames; /* the first `renames` own their texts */
};

struct route_rules {
    struct cache_route cache;
    bool cache_redis, cache_by_user;
    const char *vary[CACHE_VARY_MAX];
    struct json_rules request_json, answer_json;
    struct fault_rule fault;
    char *fault_header; /* "name\0value": what fault.header and .value are in, or NULL */

    _Atomic uint64_t cached[3]; /* requests by enum cache_outcome */
    _Atomic uint64_t delayed, aborted;
};

/* FIRN_EFORMAT: *why, and *key is the key to blame. FIRN_ENOMEM. route_rules_free() in any case. */
FIRN_MUSTUSE int route_rules_make(const struct config_route *r, struct route_rules *out,
                                  const char **key, const char **why);
void route_rules_free(struct route_rules *r);

/* Whether firnd hands out IDs at this path, whose answers must never be cached: a cached ID is a
 * duplicate ID. */
bool path_mints(struct slice path);

#endif
