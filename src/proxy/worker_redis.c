/*
 * The loop's connection to Redis, for the links that share state with other gateways. It outlives a
 * reload that does not concern it; otherwise the calls under way end as if Redis were away. Tested
 * in tests/integration/gateway_guards.py.
 */
#include "daemon/log.h"
#include "platform/mono.h"
#include "proxy/admin.h"
#include "proxy/limit.h"
#include "wire/json_write.h"

#include <stdio.h>
#include <string.h>

static void on_state(void *user, bool ready, const char *why)
{
    struct service_ctx *w = user;
    __atomic_store_n(&w->redis_up, ready, __ATOMIC_RELAXED);
    pthread_mutex_lock(&w->app->plan_lock);
    snprintf(w->redis_why, sizeof w->redis_why, "%s", ready ? "" : why);
    pthread_mutex_unlock(&w->app->plan_lock);
    if (ready)
        log_info("redis_ready", "loop=%zu", w->index);
    else
        log_warn("redis_away", "loop=%zu cause=%s cure=%s", w->index, why,
                 "start it, or correct redis.address; the gateway connects by itself and goes on "
                 "without it meanwhile");
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same(const struct plan *a, const struct plan *b)
{
    const struct config *x = &a->config, *y = &b->config;
    return strcmp(a->redis.address, b->redis.address) == 0 &&
           same_text(a->redis.password, b->redis.password) &&
           same_text(x->redis.user, y->redis.user) && x->redis.db == y->redis.db &&
           x->redis.timeout_ms == y->redis.timeout_ms;
}

int worker_redis_prepare(struct service_ctx *w, const struct plan *p)
{
    const struct config *c = &p->config;
    struct firn_diag d;
    w->next.redis = w->redis;
    if (w->view && same(w->view->plan, p))
        return 0;
    w->next.redis = NULL;
    __atomic_store_n(&w->redis_up, false, __ATOMIC_RELAXED);
    if (!p->redis.address[0])
        return 0;
    struct redis_opts o = { .address = p->redis.address,
                            .user = c->redis.user,
                            .password = p->redis.password,
                            .script = limit_script,
                            .database = (uint32_t)c->redis.db,
                            .connect_ms = 1000,
                            .call_ms = (uint32_t)c->redis.timeout_ms,
                            .stats = &w->redis_stats };
    int r = redis_new(loop_uv(w->loop), &o, on_state, w, &w->next.redis, &d);
    if (r)
        worker_redis_drop(w);
    return r;
}

void worker_redis_commit(struct service_ctx *w)
{
    struct redis *old = w->redis;
    w->redis = w->next.redis;
    w->next.redis = NULL;
    if (old != w->redis)
        redis_close(old); /* ends its calls, which may use the new one */
}

void worker_redis_drop(struct service_ctx *w)
{
    if (w->next.redis != w->redis) {
        redis_close(w->next.redis);
        __atomic_store_n(&w->redis_up, w->redis && redis_ready(w->redis), __ATOMIC_RELAXED);
    }
    w->next.redis = NULL;
}

static uint64_t sum(const struct app *a, size_t offset)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->workers_n; i++)
        n += __atomic_load_n(
            (const uint64_t *)(const void *)((const char *)&a->workers[i].redis_stats + offset),
            __ATOMIC_RELAXED);
    return n;
}

static uint64_t connected(const struct app *a)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->workers_n; i++)
        n += __atomic_load_n(&a->workers[i].redis_up, __ATOMIC_RELAXED);
    return n;
}

static const struct {
    const char *name, *help;
    size_t offset;
} counters[] = {
    { "firn_proxy_redis_calls_total", "Commands sent to Redis.",
      offsetof(struct redis_stats, calls) },
    { "firn_proxy_redis_refused_total", "Commands not sent, because Redis was away or late.",
      offsetof(struct redis_stats, refused) },
    { "firn_proxy_redis_timeouts_total", "Commands without an answer within redis.timeout_ms.",
      offsetof(struct redis_stats, timeouts) },
    { "firn_proxy_redis_lost_total", "Commands whose connection ended before the answer.",
      offsetof(struct redis_stats, lost) },
    { "firn_proxy_redis_errors_total", "Errors that Redis answered.",
      offsetof(struct redis_stats, errors) },
    { "firn_proxy_redis_connects_total", "Connections to Redis that became ready.",
      offsetof(struct redis_stats, connects) },
};

void worker_redis_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    if (!p->redis.address[0])
        return;
    metric(m, "firn_proxy_redis_connected", "Loops whose connection to Redis is ready.",
           (double)connected(a));
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        metric(m, counters[i].name, counters[i].help, (double)sum(a, counters[i].offset));
}

void worker_redis_status(struct app *a, const struct plan *p, struct buf *b)
{
    const char *why = NULL;
    if (!p->redis.address[0]) {
        json_null(b, "redis");
        return;
    }
    json_begin(b, "redis", '{');
    json_text(b, "address", p->redis.address);
    json_count(b, "loops", a->workers_n);
    json_count(b, "connected", connected(a));
    pthread_mutex_lock(&a->plan_lock);
    for (size_t i = 0; i < a->workers_n; i++)
        if (a->workers[i].redis_why[0])
            why = a->workers[i].redis_why;
    json_text(b, "error", why);
    pthread_mutex_unlock(&a->plan_lock);
    json_end(b, '}');
}
