/*
 * origin.h - which page of the web sent a request. Browsers say by themselves where a request comes
 * from (Sec-Fetch-Site, Origin); other clients say nothing and are let through. Pure; any thread.
 */
#ifndef FIRN_DAEMON_ORIGIN_H
#define FIRN_DAEMON_ORIGIN_H

#include "wire/http.h"

/* Whether the page that sent this request is of this server's own origin, or no page sent it. The
 * ports of one machine are one site but different origins, so "same-site" is another one. */
bool origin_is_own(const struct http_request *req);

enum host_rank {
    HOST_FOREIGN, /* a name that this server does not know: perhaps a page that changed its DNS */
    HOST_SHORT,   /* a name without a dot, which the public DNS does not resolve */
    HOST_OWN,     /* an address, localhost, or no Host */
};

/* What a Host header, with or without a port, says. */
enum host_rank origin_host(struct slice host);

/* The host without its port, and without the dot that ends a full name. */
struct slice origin_host_name(struct slice host);

#endif
