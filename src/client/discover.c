/*
 * discover=1: finds the servers that share a store with those of the URL.
 * GET /v1/nodes lists them, from time to time; new ones are added. None is removed: a server that
 * is gone is avoided as long as it fails.
 */
#include "client/internal.h"
#include "platform/mono.h"
#include "wire/json_read.h"
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DISCOVER_MS = 30000, DISCOVER_RETRY_MS = 5000 };

/* "home,snowflake,ticket": every port serves everything; the second is the usual one. */
static bool read_address(struct slice list, struct server_name *out)
{
    struct slice first, second;
    struct host_port at;
    if (!url_host_next(&list, &first))
        return false;
    if (!url_host_next(&list, &second) || second.len == 0)
        second = first;
    if (host_port_read(second, &at) != HOST_OK || at.port == 0)
        return false;
    snprintf(out->host, sizeof out->host, "%s", at.host);
    out->port = at.port;
    return strcmp(at.host, "0.0.0.0") != 0 && strcmp(at.host, "::") != 0;
}

static void add(struct core *c, const struct server_name *name)
{
    pthread_mutex_lock(&c->server_mutex);
    bool known = c->servers == SERVERS_MAX;
    for (size_t i = 0; i < c->servers && !known; i++)
        known = c->server[i].name.port == name->port &&
                strcmp(c->server[i].name.host, name->host) == 0;
    if (!known) {
        c->server[c->servers] = (struct server){ .name = *name };
        c->health[c->servers] = (struct health){ 0 };
        c->servers++;
    }
    pthread_mutex_unlock(&c->server_mutex);
}

static int read_node(struct json_reader *j, struct core *c)
{
    struct slice kind = { NULL, 0 }, state = kind, address = kind;
    struct server_name server;
    char name[32];
    int r = json_object(j);
    while (r == 0 && (r = json_member(j, name, sizeof name)) > 0) {
        struct slice *to = strcmp(name, "kind") == 0      ? &kind
                           : strcmp(name, "state") == 0   ? &state
                           : strcmp(name, "address") == 0 ? &address
                                                          : NULL;
        r = to && json_next(j) == JSON_STRING ? json_slice(j, to) : FIRN_ENOTSUP;
        if (r == FIRN_ENOTSUP) /* not for us, or with an escape: no address of a server has one */
            r = json_skip(j);
    }
    if (r == 0 && slice_is(kind, "firnd") && slice_is(state, "up") && address.p &&
        read_address(address, &server))
        add(c, &server);
    return r;
}

/* {"nodes":[{...},{...}]}; what cannot be read is ignored, and asked for again later. */
static void read_nodes(struct core *c, const char *p, size_t len)
{
    struct json_reader j;
    json_start(&j, p, len, NULL);
    if (json_object(&j) != 0 || json_find(&j, "nodes") != 1 || json_array(&j) != 0)
        return;
    while (json_element(&j) > 0)
        if (read_node(&j, c) != 0)
            return;
}

void discover_tend(struct core *c)
{
    struct request q = { .kind = REQUEST_GET, .path = "/v1/nodes" };
    uint64_t now = mono_ms();
    if (!c->opts->discover)
        return;
    if (!c->discovery && now >= c->discover_due_ms) {
        c->discover_due_ms = now + DISCOVER_RETRY_MS;
        c->discovery = malloc(sizeof *c->discovery);
        if (c->discovery)
            trip_start(c->discovery, c, &q);
    }
    if (!c->discovery || c->discovery->polled)
        return;
    if (!trip_step(c->discovery)) {
        async_watch(c, c->discovery);
        return;
    }
    if (c->discovery->error == 0) {
        read_nodes(c, c->discovery->body, c->discovery->body_len);
        c->discover_due_ms = now + DISCOVER_MS;
    }
    trip_done(c->discovery);
    free(c->discovery);
    c->discovery = NULL;
}
