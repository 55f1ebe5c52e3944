/*
 * Two servers of the list on one slot: servers with different stores know nothing of each other and
 * may give out the same IDs (docs/protocol.md, Clones). Each is asked for /v1/node from time to
 * time, one after the other; of two that were seen so twice in a row, the one with the higher start
 * is used only when no other answers. All clients choose the same one.
 * Tests: tests/unit/client/watch.c, tests/integration/client.py.
 */
#include "client/watch.h"
#include "client/internal.h"
#include "platform/mono.h"
#include "wire/json_read.h"

#include <stdlib.h>
#include <string.h>

enum { WATCH_MS = 30000, SOON_MS = 1000, LOOKS_SURE = 2 };

static void take(void *user, const char *path, const char *value, bool quoted)
{
    struct node_face *f = user;
    if (quoted && strcmp(path, "layout") == 0 && strlen(value) < sizeof f->layout)
        memcpy(f->layout, value, strlen(value) + 1);
    else if (quoted && strcmp(path, "start") == 0 && strlen(value) < sizeof f->start)
        memcpy(f->start, value, strlen(value) + 1);
    else if (strcmp(path, "ready") == 0)
        f->ready = strcmp(value, "true") == 0;
    else if (!quoted && strcmp(path, "slot") == 0 && strcmp(value, "null") != 0)
        f->slot = strtoll(value, NULL, 10);
}

void watch_read(const char *p, size_t len, struct node_face *out)
{
    *out = (struct node_face){ .slot = -1 };
    if (json_each(p, len, take, out) != 0)
        *out = (struct node_face){ .slot = -1 };
}

uint32_t watch_judge(struct watch *w, size_t n)
{
    uint32_t out = 0;
    bool seen = false;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            if (i != k && faces_clash(&w->face[i], &w->face[k])) {
                seen = true;
                if (strcmp(w->face[i].start, w->face[k].start) > 0)
                    out |= UINT32_C(1) << i;
            }
    w->looks = seen ? w->looks + 1 : 0;
    return w->looks >= LOOKS_SURE ? out : 0;
}

/* All have answered, or not: act on it. */
static void conclude(struct core *c, uint64_t now)
{
    struct watch *w = c->watch;
    pthread_mutex_lock(&c->server_mutex);
    uint32_t out = watch_judge(w, c->servers);
    for (size_t i = 0; i < c->servers; i++)
        c->health[i].clash = out >> i & 1;
    pthread_mutex_unlock(&c->server_mutex);
    if (out & ~w->told)
        atomic_fetch_add_explicit(&c->stats.clashes, 1, memory_order_relaxed);
    w->told = out;
    w->at = 0;
    w->due_ms = now + (w->looks == 1 ? SOON_MS : WATCH_MS);
}

void watch_tend(struct core *c)
{
    struct request q = { .kind = REQUEST_GET, .path = "/v1/node" };
    uint64_t now = mono_ms();
    if (c->servers < 2)
        return;
    if (!c->watch && (c->watch = calloc(1, sizeof *c->watch)))
        c->watch->due_ms = now + SOON_MS; /* short-lived programs do not ask */
    struct watch *w = c->watch;
    if (!w || (!c->watching && now < w->due_ms))
        return;
    if (!c->watching && (c->watching = malloc(sizeof *c->watching))) {
        trip_start(c->watching, c, &q);
        c->watching->pin = w->at;
    }
    if (!c->watching || c->watching->polled)
        return;
    if (!trip_step(c->watching)) {
        async_watch(c, c->watching);
        return;
    }
    watch_read(c->watching->body, c->watching->error ? 0 : c->watching->body_len, &w->face[w->at]);
    trip_done(c->watching);
    free(c->watching);
    c->watching = NULL;
    if (++w->at >= c->servers)
        conclude(c, now);
}
