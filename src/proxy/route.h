/*
 * route.h - which route a request takes. Routes are compared from the most to the least particular:
 * an exact host before "*.example.org" before every host, then the longer path, then more headers,
 * then named methods before every method, then the order of the configuration. Pure; any thread.
 */
#ifndef FIRN_PROXY_ROUTE_H
#define FIRN_PROXY_ROUTE_H

#include "proxy/config.h"
#include "wire/http_line.h"

struct route_query {
    struct slice host; /* with or without a port, in any case */
    struct slice path; /* canonical */
    struct slice method;
    const struct http_header *headers;
    size_t headers_n;
};

/* Whether it is a name or address, perhaps with a port; or empty, as HTTP/1.0 has it. Servers
 * disagree about what other characters mean ("a:80@b", "a,b"), so they are not passed on. */
bool route_host_ok(struct slice host);

/* `order`: pointers to the n routes, sorted. */
void route_sort(const struct config_route *routes, size_t n, const struct config_route **order);

/* NULL: none; *method_is_wrong: one would match another method. */
const struct config_route *route_find(const struct config_route *const *order, size_t n,
                                      const struct route_query *q, bool *method_is_wrong);

/* "GET, POST": the methods of all routes that match but for the method, for Allow (RFC 9110,
 * 15.5.6). Those for which there is no room are left out. */
enum { ROUTE_ALLOW_BUF = 224 };
void route_allow(const struct config_route *const *order, size_t n, const struct route_query *q,
                 char out[ROUTE_ALLOW_BUF]);

#endif
