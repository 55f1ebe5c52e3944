/* Splits of routes, and the link that applies them. Tested in tests/unit/proxy/split.c and
 * tests/integration/gateway_net.py. */
#include "proxy/split.h"
#include "daemon/metrics.h"
#include "id/fnv.h"
#include "proxy/call.h"
#include "proxy/links.h"
#include "proxy/worker.h"
#include "wire/json_write.h"

#include <stdio.h>
#include <stdlib.h>

enum { LABELS_BUF = 256 };

struct split *split_new(const struct config_route *route, const struct split *old)
{
    const struct config_split *c = &route->split;
    struct split *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->route = route;
    pthread_mutex_init(&s->lock, NULL);
    for (size_t i = 0; i < c->n; i++) {
        s->turn[i].weight = c->v[i].weight;
        for (size_t k = 0; old && k < old->route->split.n; k++)
            if (strcmp(c->v[i].service, old->route->split.v[k].service) == 0)
                atomic_store(&s->requests[i], atomic_load(&old->requests[k]));
    }
    return s;
}

void split_free(struct split *s)
{
    if (s)
        pthread_mutex_destroy(&s->lock);
    free(s);
}

size_t split_choose(struct split *s, const char *key, size_t len)
{
    const size_t n = s->route->split.n;
    const char *name = s->route->name;
    size_t i;
    if (key) { /* with the route's name, so that not the same users are first in each canary */
        i = balance_split_sticky(s->turn, n, fnv(fnv(FNV_BEGIN, name, strlen(name)), key, len));
    } else {
        pthread_mutex_lock(&s->lock);
        i = balance_split(s->turn, n);
        pthread_mutex_unlock(&s->lock);
    }
    atomic_fetch_add_explicit(&s->requests[i], 1, memory_order_relaxed);
    return i;
}

struct slice split_cookie(struct slice header, const char *name)
{
    const size_t want = strlen(name);
    const char *p = header.p, *end = p + header.len;
    while (p && p < end) {
        const char *stop = memchr(p, ';', (size_t)(end - p));
        stop = stop ? stop : end;
        while (p < stop && (*p == ' ' || *p == '\t'))
            p++;
        if ((size_t)(stop - p) > want && memcmp(p, name, want) == 0 && p[want] == '=')
            return (struct slice){ p + want + 1, (size_t)(stop - p) - want - 1 };
        p = stop + 1;
    }
    return (struct slice){ NULL, 0 };
}

/* --- the link --- */

static struct slice key_of(const struct call *c)
{
    static const struct slice none = { NULL, 0 };
    const char *by = c->route->split_by;
    if (!by)
        return none;
    if (strcmp(by, "address") == 0)
        return slice_of(c->client);
    if (strcmp(by, "user") == 0)
        return c->user;
    if (by[0] == 'h')
        return http_head_value(c->head, by + strlen("header:"));
    for (size_t i = 0; i < c->head->headers; i++) {
        struct slice v = none;
        if (http_word_is(c->head->header[i].name, "cookie"))
            v = split_cookie(c->head->header[i].value, by + strlen("cookie:"));
        if (v.p)
            return v;
    }
    return none;
}

enum link_result split_request(struct call *c)
{
    const struct plan *p = c->view->plan;
    struct split *s = p->splits[c->route - p->config.routes.v];
    if (s) {
        struct slice key = key_of(c);
        c->backend = &p->backends[s->backend[split_choose(s, key.p, key.len)]];
    }
    return LINK_NEXT;
}

void split_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    static const char name[] = "firn_proxy_split_total";
    char labels[LABELS_BUF];
    (void)a;
    metric_head(m, name, "Requests of a route with `split`, by the service chosen.");
    for (size_t i = 0; i < p->config.routes.n; i++)
        for (size_t k = 0; k < p->config.routes.v[i].split.n; k++) {
            const struct config_route *r = &p->config.routes.v[i];
            snprintf(labels, sizeof labels, "route=\"%s\",service=\"%s\"", r->name,
                     r->split.v[k].service);
            metric_sample(m, name, labels, (double)atomic_load(&p->splits[i]->requests[k]));
        }
}

void split_status(struct app *a, const struct plan *p, struct buf *b)
{
    (void)a;
    for (size_t i = 0; i < p->config.routes.n; i++) {
        const struct config_route *r = &p->config.routes.v[i];
        if (r->split.n == 0)
            continue;
        json_begin(b, r->name, '[');
        for (size_t k = 0; k < r->split.n; k++) {
            json_begin(b, NULL, '{');
            json_text(b, "service", r->split.v[k].service);
            json_count(b, "weight", r->split.v[k].weight);
            json_count(b, "requests", atomic_load(&p->splits[i]->requests[k]));
            json_end(b, '}');
        }
        json_end(b, ']');
    }
}
