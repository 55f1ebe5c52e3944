/*
 * What stays of a call when it ends: counters of the loop, of its route and its service, and where
 * it failed an entry among the last errors. Tested in tests/integration/gateway_watch.py.
 */
#include "platform/mono.h"
#include "proxy/worker.h"

#include <stdio.h>
#include <time.h>

static void copy(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
}

static void copy_slice(char *out, size_t size, struct slice s)
{
    snprintf(out, size, "%.*s", (int)(s.len < size ? s.len : size - 1), s.p ? s.p : "");
}

static void keep_error(const struct call *c)
{
    struct error_entry e = { .time_us = (int64_t)(clock_read_ns(CLOCK_REALTIME) / 1000),
                             .status = c->status };
    copy(e.id, sizeof e.id, c->id);
    copy(e.client, sizeof e.client, c->client);
    copy_slice(e.method, sizeof e.method, c->head->method);
    copy_slice(e.path, sizeof e.path, c->head->path); /* without the query: secrets travel there */
    copy(e.route, sizeof e.route, c->route ? c->route->name : NULL);
    copy(e.service, sizeof e.service, c->backend ? c->backend->conf->name : NULL);
    copy(e.server, sizeof e.server, c->last_server);
    copy(e.why, sizeof e.why, c->why ? c->why : "the service's own answer");
    error_ring_add(&c->worker->app->errors, &e);
}

void call_count(const struct call *c)
{
    struct service_ctx *w = c->worker;
    const struct view *v = c->view;
    const struct plan *p = v->plan;
    const uint64_t took = mono_ns() - c->began_ns;
    struct stats *s;
    if (c->asked && (s = v->service_stats[c->backend - p->backends]))
        stats_add(s, c->status, c->bytes_in, c->bytes_out, took);
    if (c->outer)
        return;
    if (c->route && (s = v->route_stats[c->route - p->config.routes.v]))
        stats_add(s, c->status, c->bytes_in, c->bytes_out, took);
    latency__more(&w->calls, (uint64_t)-1);
    latency__more(&w->status[stats_class_of(c->status)], 1);
    latency_add(&w->latency, took, 1);
    if (c->first_byte_ns)
        latency_add(&w->first_byte, c->first_byte_ns - c->began_ns, 1);
    if (c->status >= 500 || (c->answered && c->why && c->status < 400)) /* or it broke off */
        keep_error(c);
}
