/*
 * Requests on cached routes: which are looked up, in memory and in Redis, and which wait for one
 * another. Redis is asked at most once for each fetch and never waited for beyond redis.timeout_ms;
 * whatever it says that is no good value is a miss. Tested in tests/integration/gateway_cache.py.
 */
#include "proxy/cache_link.h"
#include "id/rng_take.h"
#include "platform/mono.h"
#include "proxy/key.h"
#include "proxy/worker.h"

#include <stdlib.h>

enum {
    FLIGHTS_MAX = 1024, /* keys that are fetched at a time, by a loop */
    WAITERS_MAX = 4096, /* requests that wait for one of them */
    KEY_BYTES_MAX = 2 * CACHE_KEY_BYTES_MAX + 32 * 1024, /* parts of CACHE_VARY_MAX headers, Host */
    KIB = 1024,
    MIB = 1024 * 1024,
};

uint64_t cache_now_ms(void)
{
    return clock_read_ns(CLOCK_REALTIME) / 1000000;
}

/* --- in memory --- */

static void take_random(struct siphash_key *out)
{
    firn__entropy(out, sizeof *out);
}

int cache_open(struct app *a, const struct config *c)
{
    struct siphash_key random;
    size_t bytes = c->cache.memory_mb * MIB;
    pthread_mutex_init(&a->cache.lock, NULL);
    take_random(&random);
    return bytes ? cache_memory_new(bytes, c->cache.entry_kb * KIB + KEY_BYTES_MAX, random,
                                    &a->cache.memory)
                 : 0;
}

void cache_close(struct app *a)
{
    cache_memory_free(a->cache.memory);
    a->cache.memory = NULL;
}

struct cache_value *cache_find(struct app *a, struct slice key)
{
    struct cache_value *v;
    if (!a->cache.memory)
        return NULL;
    pthread_mutex_lock(&a->cache.lock);
    v = cache_memory_get(a->cache.memory, key, cache_now_ms());
    if (v)
        cache_value_ref(v);
    pthread_mutex_unlock(&a->cache.lock);
    return v;
}

void cache_put(struct app *a, struct slice key, struct cache_value *v, uint64_t ttl_ms)
{
    if (!a->cache.memory || ttl_ms == 0)
        return;
    pthread_mutex_lock(&a->cache.lock);
    (void)cache_memory_put(a->cache.memory, key, v, ttl_ms, cache_now_ms());
    pthread_mutex_unlock(&a->cache.lock);
}

static struct cache *make_cache(const struct service_ctx *w)
{
    struct siphash_key random;
    struct cache *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    take_random(&random);
    s->entry_max = w->view->plan->config.cache.entry_kb * KIB;
    if (cache_flights_new(FLIGHTS_MAX, WAITERS_MAX, random, &s->flights) == 0)
        return s;
    free(s);
    return NULL;
}

void cache_free(struct cache *s)
{
    if (!s)
        return;
    cache_flights_free(s->flights);
    free(s);
}

/* --- the key --- */

struct slice cache_field(struct call *c, const struct fields *f, const char *name)
{
    struct slice one = { NULL, 0 };
    size_t n = 0, len = 0;
    for (size_t i = 0; i < f->n; i++)
        if (http_word_is(f->v[i].name, name)) {
            one = f->v[i].value;
            len += one.len + 2;
            n++;
        }
    if (n < 2)
        return one;
    char *all = call_text(c, len), *to = all;
    for (size_t i = 0; i < f->n && all; i++)
        if (http_word_is(f->v[i].name, name)) {
            memcpy(to, f->v[i].value.p, f->v[i].value.len);
            memcpy(to + f->v[i].value.len, ", ", 2);
            to += f->v[i].value.len + 2;
        }
    return all ? (struct slice){ all, len - 2 } : (struct slice){ "no-store", 8 };
}

/* Headers that make some servers answer another request than the one in the request line, or send
 * the client elsewhere. Those of them that the gateway writes itself are in the key. */
static bool overrides(const struct fields *f)
{
#define NAME(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }
    static const struct slice names[] = {
        NAME("x-original-url"),      NAME("x-rewrite-url"),
        NAME("x-http-method"),       NAME("x-http-method-override"),
        NAME("x-method-override"),   NAME("x-host"),
        NAME("x-original-host"),     NAME("x-http-host-override"),
        NAME("x-forwarded-server"),  NAME("x-forwarded-scheme"),
        NAME("x-forwarded-port"),    NAME("x-forwarded-prefix"),
        NAME("x-forwarded-path"),    NAME("x-forwarded-uri"),
        NAME("x-forwarded-ssl"),     NAME("x-scheme"),
        NAME("x-url-scheme"),        NAME("front-end-https"),
        NAME("x-original-protocol"), NAME("x-forwarded")
    };
#undef NAME
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            if (field_alike(f->v[i].name, names[k]))
                return true;
    return false;
}

/* API keys and sessions in headers of their own: the usual names, and the header by which a rate of
 * the route tells clients apart. */
static struct slice key_of(const struct call *c)
{
    static const char *const names[] = { "x-api-key",           "api-key",        "apikey",
                                         "x-auth-token",        "x-access-token", "x-auth-key",
                                         "x-csrf-token",        "x-session-id",   "x-session-token",
                                         "x-amz-security-token" };
    const struct route_guard *g = call_guard(c);
    for (size_t i = 0; i < c->request.n; i++) {
        const struct http_header *h = &c->request.v[i];
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            if (field_alike(h->name, slice_of(names[k])))
                return h->value;
        for (size_t k = 0; k < g->rates_n; k++)
            if (g->rate[k]->by == RATE_BY_HEADER &&
                field_alike(h->name, slice_of(g->rate[k]->header)))
                return h->value;
    }
    return (struct slice){ NULL, 0 };
}

/* What tells the client apart from others: an answer to it may be for it alone. */
static struct slice credentials(const struct call *c)
{
    struct slice v = c->user.p ? c->user : http_head_value(c->head, "authorization");
    if (!v.p && c->identity) /* a token that names no user */
        v = slice_of("token");
    if (!v.p)
        v = fields_get(&c->request, "authorization");
    if (!v.p)
        v = fields_get(&c->request, "cookie");
    if (!v.p)
        v = fields_get(&c->request, "x-user-id");
    return v.p ? v : key_of(c);
}

static struct slice user_of(const struct call *c)
{
    return c->user.p ? c->user : fields_get(&c->request, "x-user-id");
}

static void read_request(struct cache_call *s)
{
    struct call *c = s->c;
    const struct fields *f = &c->request;
    const char *mark = c->target.len ? memchr(c->target.p, '?', c->target.len) : NULL;
    size_t len = mark ? (size_t)(mark - c->target.p) : c->target.len;
    s->q = (struct cache_request){
        .method = c->head->method,
        .path = { c->target.p, len },
        .query = mark ? (struct slice){ mark + 1, c->target.len - len - 1 }
                      : (struct slice){ NULL, 0 },
        .authorization = credentials(c),
        .cache_control = cache_field(c, f, "cache-control"),
        .pragma = fields_get(f, "pragma"),
        .range = fields_get(f, "range"),
        .upgrade = { c->head->websocket ? "websocket" : NULL, 0 },
        .has_body = !call_body_done(c) || c->collected,
    };
}

static enum cache_outcome may_look(const struct cache_call *s)
{
    const struct call *c = s->c;
    const struct fields *f = &c->request;
    const struct route_rules *r = c->rules;
    if (r->cache_by_user && s->q.authorization.p && !user_of(c).p)
        return CACHE_BYPASS; /* nobody said who that is */
    if (path_mints(s->q.path) || overrides(f) || fields_get(f, "if-match").p ||
        fields_get(f, "if-unmodified-since").p)
        return CACHE_BYPASS;
    return cache_may_look(&r->cache, &s->q);
}

/* What is fetched for many is asked for without what concerns the first of them alone. */
static void ask_for_all(struct cache_call *s)
{
    struct fields *f = &s->c->request;
    s->if_none_match = cache_field(s->c, f, "if-none-match");
    fields_remove(f, slice_of("If-None-Match"));
    fields_remove(f, slice_of("If-Modified-Since"));
    if (s->c->rules->cache.plain)
        fields_remove(f, slice_of("Accept-Encoding"));
}

static void add_lower(struct buf *b, struct slice v)
{
    for (size_t i = 0; i < v.len; i++) {
        char c = v.p[i] >= 'A' && v.p[i] <= 'Z' ? v.p[i] | 0x20 : v.p[i];
        buf_add(b, &c, 1);
    }
}

/* The hosts that a trusted proxy names in Forwarded. */
static void add_forwarded_hosts(struct buf *b, const struct call *c)
{
    static const char name[] = "host=";
    const struct http_head *h = c->head;
    for (size_t i = 0; i < h->headers && c->trusted; i++) {
        if (!http_word_is(h->header[i].name, "forwarded"))
            continue;
        const char *p = h->header[i].value.p, *end = p + h->header[i].value.len;
        for (; (size_t)(end - p) >= sizeof name - 1; p++) {
            if (strncasecmp(p, name, sizeof name - 1) != 0)
                continue;
            const char *stop = p;
            while (stop < end && *stop != ';' && *stop != ',')
                stop++;
            buf_add(b, " ", 1);
            add_lower(b, (struct slice){ p, (size_t)(stop - p) });
        }
    }
}

/* Users of two issuers may have one name, and a service may answer by any claim that it gets. */
static void add_identity(struct buf *b, const struct call *c)
{
    const struct config_token *t = call_guard(c)->token->conf;
    buf_add(b, " ", 1);
    key_part(b, t->name, strlen(t->name));
    for (size_t i = 0; i < t->copy.n; i++) {
        struct slice claim = jwt_copy_of(c->identity, i);
        buf_add(b, "&", 1);
        key_part(b, t->copy.v[i].header, strlen(t->copy.v[i].header));
        buf_add(b, "=", 1);
        key_part(b, claim.p, claim.len);
    }
}

static bool make_key(struct cache_call *s)
{
    struct call *c = s->c;
    const struct cache_route *r = &c->rules->cache;
    const char *prefix = c->view->plan->redis.prefix;
    const char *host = c->backend->conf->host;
    bool by_user = false;
    for (size_t i = 0; i < r->vary_n; i++) {
        by_user |= strcmp(r->vary[i], "x-user-id") == 0;
        s->q.vary[i] = strcmp(r->vary[i], "host") == 0 ? c->head->host
                       : strcmp(r->vary[i], "x-user-id") == 0
                           ? user_of(c)
                           : cache_field(c, &c->request, r->vary[i]);
    }
    buf_init(&s->key, KEY_BYTES_MAX);
    if (prefix)
        buf_add_str(&s->key, prefix);
    cache_key(&s->key, r, &s->q);
    s->shared = s->key.len;
    buf_add(&s->key, " ", 1);
    buf_add_str(&s->key, c->backend->conf->name);
    const struct slice part[] = { fields_get(&c->request, "x-forwarded-proto"),
                                  host ? slice_of(host) : c->head->host,
                                  fields_get(&c->request, "x-forwarded-host") };
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        buf_add(&s->key, " ", 1);
        add_lower(&s->key, part[i]);
    }
    add_forwarded_hosts(&s->key, c);
    if (by_user && c->identity)
        add_identity(&s->key, c);
    return !s->key.failed;
}

/* --- waiting for another request --- */

/* On to the service, without anyone waiting for it. */
static void go_alone(struct cache_call *s)
{
    alarm_clear(&s->wait);
    call_resume(s->c);
}

static void on_wait_over(struct alarm *a)
{
    struct cache_call *s = (struct cache_call *)((char *)a - offsetof(struct cache_call, wait));
    (void)cache_flight_leave(s->c->worker->cache->flights, cache_memory_key(s), &s->waiter);
    s->waits = false;
    go_alone(s);
}

static enum cache_flight begin_flight(struct cache_call *s)
{
    enum cache_flight f = cache_flight_begin(s->c->worker->cache->flights, cache_memory_key(s),
                                             &s->waiter);
    s->leads = f == FLIGHT_FETCH;
    s->waits = f == FLIGHT_WAIT;
    return f;
}

void cache_lead_ends(struct cache_call *s, struct cache_value *v, bool again)
{
    struct cache_waiter *w, *next, *alone = NULL, **last = &alone;
    struct service_ctx *worker = s->c->worker;
    if (!s->leads)
        return;
    s->leads = false;
    w = cache_flight_end(s->c->worker->cache->flights, cache_memory_key(s));
    /* All of them take their places before the first one goes on, which may end at once. */
    for (; w; w = next) {
        struct cache_call *one = (struct cache_call *)w;
        next = w->next;
        one->waits = false;
        if (again && begin_flight(one) == FLIGHT_WAIT)
            continue;
        w->next = NULL;
        *last = w;
        last = &w->next;
    }
    for (w = alone; w; w = next) {
        struct cache_call *one = (struct cache_call *)w;
        next = w->next;
        alarm_clear(&one->wait);
        if (v && cache_serve(one, v))
            latency__more(&worker->cached.coalesced, 1);
        else
            go_alone(one);
    }
}

/* Nothing was found. */
static enum link_result without(struct cache_call *s)
{
    if (!s->only)
        return LINK_NEXT;
    call_problem(s->c, 504, "only-if-cached, and the gateway has no fresh answer");
    return LINK_DONE;
}

/* --- Redis --- */

struct redis_look {       /* outlives the request, because a command cannot be taken back */
    struct cache_call *s; /* NULL: it is over */
};

static struct cache_value *value_of(const struct cache_call *s, const struct redis_reply *reply)
{
    struct cached m;
    struct cache_value *v;
    struct slice text, want = cache_memory_key(s);
    if (!reply || reply->n != 1 || reply->value[0].type != RESP_TEXT)
        return NULL;
    text = reply->value[0].text;
    if (cached_read(text, &m) != 0 || !cached_fresh(&m, cache_now_ms()) ||
        m.identity.len != want.len || memcmp(m.identity.p, want.p, want.len) != 0 ||
        !(v = cache_value_new(text.len)))
        return NULL;
    memcpy(v->p, text.p, text.len);
    return v;
}

static void remember(struct cache_call *s, struct cache_value *v)
{
    struct cached m;
    const uint64_t now = cache_now_ms(), most = s->c->view->plan->config.cache.memory_s * 1000;
    if (cached_view((struct slice){ v->p, v->len }, &m) != 0 || m.until_ms <= now)
        return;
    uint64_t left = m.until_ms - now;
    cache_put(s->c->worker->app, cache_memory_key(s), v, left < most ? left : most);
}

static void on_redis(void *user, enum redis_result result, const struct redis_reply *reply)
{
    struct redis_look *look = user;
    struct cache_call *s = look->s;
    free(look);
    if (!s)
        return;
    s->look = NULL;
    struct call *c = s->c;
    struct cache_value *v = value_of(s, result == REDIS_OK ? reply : NULL);
    if (v)
        remember(s, v);
    /* It may be fresh, but older than this client wants. */
    if ((!v || !cache_serve(s, v)) && without(s) == LINK_NEXT)
        call_resume(c);
    cache_value_unref(v);
}

static bool ask_redis(struct cache_call *s)
{
    struct redis *r = s->c->worker->redis;
    struct redis_look *look = s->c->rules->cache_redis && r ? malloc(sizeof *look) : NULL;
    if (!look)
        return false;
    look->s = s;
    if (redis_get(r, (struct slice){ s->key.p, s->shared }, on_redis, look) != 0) {
        free(look);
        return false;
    }
    s->look = look;
    return true;
}

/* --- the link --- */

static enum link_result look_up(struct cache_call *s)
{
    struct call *c = s->c;
    struct cache *cache = c->worker->cache;
    struct cache_value *v = cache_find(c->worker->app, cache_memory_key(s));
    bool served = v && cache_serve(s, v);
    cache_value_unref(v);
    if (served)
        return LINK_WAIT;
    if (s->only || !slice_is(s->q.method, "GET"))
        return ask_redis(s) ? LINK_WAIT : without(s);
    const uint64_t wait_ms = c->view->plan->config.cache.wait_ms;
    enum cache_flight f = wait_ms ? begin_flight(s) : FLIGHT_ALONE;
    if (f == FLIGHT_WAIT) {
        if (alarm_set(c->worker->loop, &s->wait, wait_ms, on_wait_over) == 0)
            return LINK_WAIT;
        (void)cache_flight_leave(cache->flights, cache_memory_key(s), &s->waiter);
        s->waits = false;
    }
    return ask_redis(s) ? LINK_WAIT : LINK_NEXT;
}

enum link_result cache_request(struct call *c)
{
    struct service_ctx *w = c->worker;
    if (!c->rules->cache.on || !c->q)
        return LINK_NEXT;
    c->cached = CACHE_BYPASS;
    if (!w->cache && !(w->cache = make_cache(w)))
        return LINK_NEXT;
    struct cache_call *s = c->cache = calloc(1, sizeof *s);
    if (!s)
        return LINK_NEXT;
    s->c = c;
    read_request(s);
    enum cache_outcome how = may_look(s);
    if (how == CACHE_BYPASS)
        return LINK_NEXT;
    s->stores = slice_is(s->q.method, "GET");
    s->only = cache_only(&s->q);
    if (s->stores)
        ask_for_all(s);
    if (!make_key(s)) {
        s->stores = false;
        return LINK_NEXT;
    }
    c->cached = CACHE_MISS;
    return how == CACHE_MISS ? LINK_NEXT : look_up(s);
}

void cache_done(struct call *c)
{
    struct cache_call *s = c->cache;
    if (!c->rules->cache.on || c->outer)
        return;
    atomic_fetch_add_explicit(&c->rules->cached[c->cached], 1, memory_order_relaxed);
    c->cache_result = cache_outcome_name(c->cached);
    if (!s)
        return;
    if (s->waits)
        (void)cache_flight_leave(c->worker->cache->flights, cache_memory_key(s), &s->waiter);
    alarm_clear(&s->wait);
    if (s->look)
        s->look->s = NULL;
    cache_lead_ends(s, NULL, true);
    cache_value_unref(s->value);
    buf_done(&s->key);
    free(s);
    c->cache = NULL;
}
