/*
 * Answers on cached routes: those that are kept while they pass, and those that are sent from a
 * value. An answer that is kept is read as fast as the server sends it, up to cache.entry_kb, so
 * that a slow client does not hold up those who wait for it. Tested in
 * tests/integration/gateway_cache.py.
 */
#include "proxy/cache_link.h"
#include "proxy/worker.h"

#include <stdio.h>

enum {
    PIECE_BYTES = 64 * 1024,
    KEPT_BYTES_MAX = 64 * 1024 * 1024, /* of a loop, in answers that are being fetched */
    LINES_BYTES_MAX = 64 * 1024,
};

/* --- from a value --- */

static bool usable(const struct cache_call *s, const struct cache_value *v)
{
    struct cached m;
    const uint64_t now = cache_now_ms();
    return cached_view((struct slice){ v->p, v->len }, &m) == 0 && cached_fresh(&m, now) &&
           cache_may_use(&s->c->rules->cache, &s->q, cached_age_s(&m, now),
                         (m.until_ms - now) / 1000);
}

/* The sink has room. */
static void send_more(struct call *c)
{
    struct cache_call *s = c->cache;
    bool more = true;
    while (more && s->sent < s->value->len) {
        size_t left = s->value->len - s->sent, n = left < PIECE_BYTES ? left : PIECE_BYTES;
        s->sent += n;
        more = call_body(c, s->value->p + s->sent - n, n);
    }
    if (s->sent == s->value->len)
        call_done(c, (struct slice){ NULL, 0 });
}

static void add_lines(struct fields *f, struct slice lines)
{
    const char *end = lines.p + lines.len, *why;
    struct slice name, value;
    for (const char *q = lines.p; q && q < end;)
        if ((q = http_field(q, end, &name, &value, &why)))
            fields_add(f, name, value);
}

bool cache_serve(struct cache_call *s, struct cache_value *v)
{
    struct call *c = s->c;
    struct cached m;
    struct answer a;
    if (!usable(s, v) || cached_view((struct slice){ v->p, v->len }, &m) != 0)
        return false;
    cache_lead_ends(s, v, false);
    c->cached = CACHE_HIT;
    s->value = cache_value_ref(v);
    s->sent = v->len - m.body.len;
    a.status = m.status;
    a.reason = (struct slice){ NULL, 0 };
    a.own = false;
    a.body_len = (int64_t)m.body.len;
    a.fields.n = 0;
    a.fields.failed = false;
    add_lines(&a.fields, m.lines);
    int n = snprintf(s->age, sizeof s->age, "%llu",
                     (unsigned long long)cached_age_s(&m, cache_now_ms()));
    fields_set(&a.fields, slice_of("Age"), (struct slice){ s->age, (size_t)n });
    if (m.status == 200 && s->if_none_match.p &&
        cached_etag_in(s->if_none_match, fields_get(&a.fields, "etag"))) {
        a.status = 304;
        a.body_len = -1;
    }
    if (a.status == 304 || slice_is(c->head->method, "HEAD"))
        s->sent = v->len;
    c->resume = send_more;
    call_head(c, &a);
    send_more(c);
    return true;
}

/* --- while it passes --- */

static void stop_keeping(struct cache_call *s)
{
    if (s->keeping)
        s->c->worker->cache->kept -= s->body.len;
    s->keeping = false;
    buf_done(&s->lines);
    buf_done(&s->body);
}

static void give_up(struct cache_call *s)
{
    stop_keeping(s);
    cache_lead_ends(s, NULL, false);
}

static bool tee_body(struct call_filter *f, const char *p, size_t len)
{
    struct cache_call *s = (struct cache_call *)((char *)f - offsetof(struct cache_call, tee));
    struct cache *cache = s->c->worker->cache;
    if (s->keeping) {
        buf_add(&s->body, p, len);
        if (!s->body.failed)
            cache->kept += len;
        if (s->body.failed || cache->kept > KEPT_BYTES_MAX)
            give_up(s);
    }
    bool more = call_next_body(f, p, len);
    return more || s->keeping;
}

static void on_stored(void *user, enum redis_result result, const struct redis_reply *reply)
{
    struct service_ctx *w = user;
    if (result != REDIS_OK || reply->n != 1 || reply->value[0].type == RESP_FAILURE)
        latency__more(&w->cached.unshared, 1);
}

/* The whole answer is here. */
static void store(struct cache_call *s)
{
    struct service_ctx *w = s->c->worker;
    const struct config *conf = &s->c->view->plan->config;
    const bool redis = s->c->rules->cache_redis;
    uint64_t left_ms = (uint64_t)s->fresh_s * 1000, now = (uint64_t)s->stored_ms;
    uint64_t memory_ms = redis && conf->cache.memory_s * 1000 < left_ms
                             ? conf->cache.memory_s * 1000
                             : left_ms;
    struct cached m = { .identity = cache_memory_key(s),
                        .status = s->status,
                        .stored_ms = now,
                        .until_ms = now + left_ms,
                        .age_s = s->age_s,
                        .lines = { s->lines.p, s->lines.len },
                        .body = { s->body.p, s->body.len } };
    struct cache_value *v = cached_write(&m);
    if (v)
        cache_put(w->app, cache_memory_key(s), v, memory_ms);
    if (v && redis && w->redis)
        if (redis_set(w->redis, (struct slice){ s->key.p, s->shared },
                      (struct slice){ v->p, v->len }, (uint32_t)s->fresh_s, on_stored, w) != 0)
            latency__more(&w->cached.unshared, 1);
    stop_keeping(s);
    cache_lead_ends(s, v, false);
    cache_value_unref(v);
}

static void tee_end(struct call_filter *f, struct slice trailers)
{
    struct cache_call *s = (struct cache_call *)((char *)f - offsetof(struct cache_call, tee));
    if (s->keeping)
        store(s);
    call_next_end(f, trailers);
}

static void tee_free(struct call_filter *f)
{
    stop_keeping((struct cache_call *)((char *)f - offsetof(struct cache_call, tee)));
}

static const struct call_filter_ops tee_ops = { NULL, tee_body, tee_end, tee_free };

/* A server that lets one origin in, often the one that asked, may have forgotten to say so in
 * Vary. */
static bool for_one_origin(const struct cache_route *r, const struct fields *f)
{
    struct slice allowed = fields_get(f, "access-control-allow-origin");
    for (size_t i = 0; i < r->vary_n; i++)
        if (strcmp(r->vary[i], "origin") == 0)
            return false;
    return allowed.p && !slice_is(allowed, "*");
}

/* How long it may be kept; 0: not at all. */
static uint32_t may_keep(struct cache_call *s, const struct answer *a)
{
    struct call *c = s->c;
    const struct fields *f = &a->fields;
    const struct cache_route *r = &c->rules->cache;
    struct slice coding = fields_get(f, "content-encoding");
    struct cache_answer p = {
        .status = a->status,
        .cache_control = cache_field(c, f, "cache-control"),
        .expires = fields_get(f, "expires"),
        .date = fields_get(f, "date"),
        .age = fields_get(f, "age"),
        .vary = cache_field(c, f, "vary"),
        .set_cookie = fields_get(f, "set-cookie"),
        .content_range = fields_get(f, "content-range"),
        .pragma = fields_get(f, "pragma"),
    };
    if (!s->stores || a->own || f->failed || (coding.p && r->plain) || for_one_origin(r, f) ||
        a->body_len > (int64_t)c->worker->cache->entry_max)
        return 0;
    return cache_may_store(r, &s->q, &p, s->stored_ms / 1000, NULL);
}

static void keep(struct cache_call *s, const struct answer *a)
{
    struct cache *cache = s->c->worker->cache;
    struct fields f = a->fields;
    struct slice age = fields_get(&f, "age");
    uint64_t n = 0;
    if (age.p && http_u64(age, INT32_MAX, &n) != 0)
        n = 0;
    static const char *const of_this_request[] = { "Age", "X-Request-ID", "Traceresponse" };
    for (size_t i = 0; i < sizeof of_this_request / sizeof of_this_request[0]; i++)
        fields_remove(&f, slice_of(of_this_request[i]));
    buf_init(&s->lines, LINES_BYTES_MAX);
    buf_init(&s->body, cache->entry_max);
    fields_write(&f, &s->lines);
    if (s->lines.failed) {
        buf_done(&s->lines);
        cache_lead_ends(s, NULL, false);
        return;
    }
    s->status = a->status;
    s->age_s = (uint32_t)n;
    s->keeping = true;
    call_filter(s->c, &s->tee, &tee_ops);
}

void cache_answer(struct call *c, struct answer *a)
{
    struct cache_call *s = c->cache;
    if (!c->rules->cache.on || !c->q)
        return;
    if (s && c->cached != CACHE_HIT) {
        s->stored_ms = (int64_t)cache_now_ms();
        s->fresh_s = may_keep(s, a);
        fields_remove(&a->fields, slice_of("X-Cache"));
        if (s->fresh_s > 0)
            keep(s, a);
        else
            cache_lead_ends(s, NULL, false);
    }
    fields_set(&a->fields, slice_of("X-Cache"), slice_of(cache_outcome_name(c->cached)));
}
