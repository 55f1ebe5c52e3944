/* The last requests that failed (error_ring.h). Tested in tests/integration/gateway_watch.py. */
#include "proxy/error_ring.h"
#include "wire/json_write.h"

#include <string.h>

void error_ring_init(struct error_ring *r)
{
    r->n = 0;
    pthread_mutex_init(&r->lock, NULL);
}

static bool same(const struct error_entry *a, const struct error_entry *b)
{
    return a->status == b->status && strcmp(a->route, b->route) == 0 &&
           strcmp(a->service, b->service) == 0 && strcmp(a->server, b->server) == 0 &&
           strcmp(a->why, b->why) == 0;
}

void error_ring_add(struct error_ring *r, const struct error_entry *e)
{
    uint64_t times = 1;
    pthread_mutex_lock(&r->lock);
    size_t at = 0;
    while (at < r->n && !same(&r->kept[at], e))
        at++;
    if (at < r->n)
        times += r->kept[at].times;
    else if (r->n < ERRORS_KEPT)
        r->n++;
    else
        at--; /* the oldest makes room */
    memmove(&r->kept[1], &r->kept[0], at * sizeof r->kept[0]);
    r->kept[0] = *e;
    r->kept[0].times = times;
    pthread_mutex_unlock(&r->lock);
}

static void text(struct buf *b, const char *key, const char *value)
{
    json_text(b, key, value[0] ? value : NULL);
}

void error_ring_write(struct error_ring *r, struct buf *b)
{
    json_begin(b, "errors", '[');
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n; i++) {
        const struct error_entry *e = &r->kept[i];
        json_begin(b, NULL, '{');
        json_time(b, "time", e->time_us);
        json_count(b, "times", e->times);
        json_text(b, "id", e->id);
        json_text(b, "client", e->client);
        json_text(b, "method", e->method);
        json_text(b, "path", e->path);
        text(b, "route", e->route);
        text(b, "service", e->service);
        text(b, "server", e->server);
        json_count(b, "status", e->status);
        text(b, "why", e->why);
        json_end(b, '}');
    }
    pthread_mutex_unlock(&r->lock);
    json_end(b, ']');
}
