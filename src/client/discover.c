/*
 * discover=1: the servers of the URL are only where to begin; all that share their store are asked for from time
 * to time (GET /v1/nodes) and added. None is taken away: one that is gone is left alone as long as it fails.
 */
#include "client/parts.h"
#include "platform/mono.h"

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
    pthread_mutex_lock(&c->desk);
    bool known = c->servers == SERVERS_MAX;
    for (size_t i = 0; i < c->servers && !known; i++)
        known = c->server[i].name.port == name->port &&
                strcmp(c->server[i].name.host, name->host) == 0;
    if (!known) {
        c->server[c->servers] = (struct server){ .name = *name };
        c->health[c->servers] = (struct health){ 0 };
        c->servers++;
    }
    pthread_mutex_unlock(&c->desk);
}

/* {"nodes":[{...},{...}]}: flat objects, one behind the other. */
static void read_nodes(struct core *c, const char *p, size_t len)
{
    const char *end = p + len;
    for (p = memchr(p, '[', len); p && (p = memchr(p, '{', (size_t)(end - p))); p++) {
        const char *stop = memchr(p, '}', (size_t)(end - p));
        struct server_name name;
        size_t n;
        if (!stop)
            return;
        size_t object = (size_t)(stop - p) + 1;
        const char *kind = json_pick(p, object, "kind", &n);
        bool server = kind && n == 5 && memcmp(kind, "firnd", 5) == 0;
        const char *state = json_pick(p, object, "state", &n);
        bool up = state && n == 2 && memcmp(state, "up", 2) == 0;
        const char *address = json_pick(p, object, "address", &n);
        if (server && up && address && read_address(address, n, &name))
            add(c, &name);
        p = stop;
    }
}

void discover_tend(struct core *c)
{
    struct question q = { .what = ASK_GET, .path = "/v1/nodes" };
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
        crowd_watch(c, c->discovery);
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
