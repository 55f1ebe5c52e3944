/* What /metrics and /status say about caches. Tested in tests/integration/gateway_cache.py. */
#include "daemon/metrics.h"
#include "proxy/cache_link.h"
#include "proxy/worker.h"
#include "wire/json_write.h"

#include <stdio.h>

static const char *const results[] = { "hit", "miss", "bypass" }; /* by enum cache_outcome */

static uint64_t sum(const struct app *a, size_t offset)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->workers_n; i++)
        n += __atomic_load_n(
            (const uint64_t *)(const void *)((const char *)&a->workers[i].cached + offset),
            __ATOMIC_RELAXED);
    return n;
}

static void in_memory(struct app *a, struct cache_memory_stats *out)
{
    *out = (struct cache_memory_stats){ .bytes = 0 };
    if (!a->cache.memory)
        return;
    pthread_mutex_lock(&a->cache.lock);
    cache_memory_stats(a->cache.memory, out);
    pthread_mutex_unlock(&a->cache.lock);
}

void cache_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    static const char name[] = "firn_proxy_cache_total";
    char labels[160];
    bool begun = false;
    struct cache_memory_stats now;
    for (size_t i = 0; i < p->config.routes.n; i++) {
        if (!p->rules[i].cache.on)
            continue;
        if (!begun)
            metric_head(m, name, "Requests of cached routes, by what became of them.");
        begun = true;
        for (size_t k = 0; k < sizeof results / sizeof results[0]; k++) {
            snprintf(labels, sizeof labels, "route=\"%s\",result=\"%s\"",
                     p->config.routes.v[i].name, results[k]);
            metric_sample(m, name, labels, (double)atomic_load(&p->rules[i].cached[k]));
        }
    }
    if (!begun)
        return;
    in_memory(a, &now);
    metric(m, "firn_proxy_cache_bytes", "Answers in memory.", (double)now.bytes);
    metric(m, "firn_proxy_cache_entries", "The number of answers in memory.", (double)now.entries);
    metric(m, "firn_proxy_cache_evicted_total", "Answers that left memory for want of room.",
           (double)now.evicted);
    metric(m, "firn_proxy_cache_coalesced_total",
           "Requests that waited for another one's answer instead of fetching it.",
           (double)sum(a, offsetof(struct cache_counts, coalesced)));
    metric(m, "firn_proxy_cache_unshared_total", "Answers that Redis did not take.",
           (double)sum(a, offsetof(struct cache_counts, unshared)));
}

void cache_status(struct app *a, const struct plan *p, struct buf *b)
{
    struct cache_memory_stats now;
    in_memory(a, &now);
    json_count(b, "bytes", now.bytes);
    json_count(b, "entries", now.entries);
    json_count(b, "coalesced", sum(a, offsetof(struct cache_counts, coalesced)));
    json_begin(b, "routes", '[');
    for (size_t i = 0; i < p->config.routes.n; i++) {
        if (!p->rules[i].cache.on)
            continue;
        json_begin(b, NULL, '{');
        json_text(b, "name", p->config.routes.v[i].name);
        json_text(b, "in", p->rules[i].cache_redis ? "redis" : "memory");
        for (size_t k = 0; k < sizeof results / sizeof results[0]; k++)
            json_count(b, results[k], atomic_load(&p->rules[i].cached[k]));
        json_end(b, '}');
    }
    json_end(b, ']');
}
