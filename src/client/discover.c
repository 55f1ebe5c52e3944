/*
 * discover=1: finds the servers that share a store with those of the URL.
 * GET /v1/nodes lists them, from time to time; new ones are added. None is removed: a server that
 * is gone is avoided as long as it fails.
 */
#include "client/internal.h"
#include "platform/mono.h"
#include "wire/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DISCOVER_MS = 30000, DISCOVER_RETRY_MS = 5000 };

/* "home,snowflake,ticket": every port serves everything; the second is the usual one. */
static bool read_address(const char *p, size_t len, struct server_name *out)
{
    const char *comma = memchr(p, ',', len), *end = p + len;
    if (comma && comma + 1 < end && comma[1] != ',') {
        p = comma + 1;
        comma = memchr(p, ',', (size_t)(end - p));
    }
    if (comma)
        end = comma;
    const char *colon = memrchr(p, ':', (size_t)(end - p));
    if (!colon || colon == p || end - colon < 2 || end - colon > 6)
        return false;
    unsigned long port = strtoul(colon + 1, NULL, 10);
    if (*p == '[' && colon[-1] == ']') {
        p++;
        colon--;
    }
    size_t host = (size_t)(colon - p);
    if (port == 0 || port > 65535 || host >= sizeof out->host)
        return false;
    memcpy(out->host, p, host);
    out->host[host] = '\0';
    out->port = (uint16_t)port;
    return strcmp(out->host, "0.0.0.0") != 0 && strcmp(out->host, "::") != 0;
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
        read_address(address.p, address.len, &server))
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
