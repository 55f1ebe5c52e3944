/*
 * The links `limit` and `limit_user`: how many requests of one client a route lets through, before
 * its token is looked at (by address or header) and afterwards (by user). A request passes when all
 * rates of its route let it pass; those before the one that refuses have counted it.
 *
 * With Redis all gateways count together: the call waits for the answer of the script, which comes
 * within redis.timeout_ms. A question outlives its call when the client goes away meanwhile; it
 * then has no call any more. What Redis refused is remembered in the table of this process until
 * the wait is over. Without Redis that table counts; where Redis is configured and away, the rate
 * says whether the table counts or all are refused. Tested in tests/integration/gateway_guards.py.
 */
#include "platform/mono.h"
#include "proxy/admin.h"
#include "proxy/links.h"
#include "wire/json_write.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENT_BUF = PEER_ADDRESS_BUF + 1, FIELDS_BUF = 64 };

struct question {
    struct call *c; /* NULL: it ended meanwhile */
    bool again;     /* Redis had forgotten the script once */
};

static uint64_t now_us(void)
{
    return mono_ns() / 1000;
}

static struct rate *rate_of(const struct call *c)
{
    return call_guard(c)->rate[c->rate_at];
}

/* --- who --- */

/* The address, of IPv6 only the network: a client usually has all of its addresses. */
static struct slice network_of_client(const char *client, uint32_t bits, char out[CLIENT_BUF])
{
    struct in6_addr a;
    if (inet_pton(AF_INET6, client, &a) != 1)
        return slice_of(client);
    if (IN6_IS_ADDR_V4MAPPED(&a)) {
        inet_ntop(AF_INET, &a.s6_addr[12], out, CLIENT_BUF);
        return slice_of(out);
    }
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t keep = bits > 8 * i ? bits - 8 * i : 0;
        if (keep < 8)
            a.s6_addr[i] &= (uint8_t)(0xff00 >> keep);
    }
    inet_ntop(AF_INET6, &a, out, CLIENT_BUF);
    return slice_of(out);
}

/* Whether the header by which a route counts has one reading: a second field, or one that servers
 * take for it, would let a client be counted as another one than the service sees. */
static bool one_reading(const struct call *c)
{
    const struct route_guard *g = call_guard(c);
    for (size_t k = 0; k < g->first_n; k++) {
        size_t n = 0;
        if (g->rate[k]->by != RATE_BY_HEADER)
            continue;
        for (size_t i = 0; i < c->head->headers; i++) {
            struct slice name = c->head->header[i].name;
            if (!field_alike(name, slice_of(g->rate[k]->header)))
                continue;
            if (n++ > 0 || !http_word_is(name, g->rate[k]->header))
                return false;
        }
    }
    return true;
}

/* Requests without the header are one client. Those without a user (token_optional) are told apart
 * by address, behind a control character, which no user has. */
static struct slice client_of(const struct call *c, const struct rate *r, char out[CLIENT_BUF])
{
    if (r->by == RATE_BY_HEADER) {
        struct slice v = http_head_value(c->head, r->header);
        return v.p ? v : slice_of("");
    }
    if (r->by == RATE_BY_USER && c->user.p)
        return c->user;
    struct slice address = network_of_client(c->client, r->conf->ipv6_bits, out);
    if (r->by == RATE_BY_ADDRESS)
        return address;
    memmove(out + 1, address.p, address.len); /* an address is shorter than CLIENT_BUF - 1 */
    out[0] = '\1';
    return (struct slice){ out, address.len + 1 };
}

/* --- what follows --- */

static void note(struct call *c, const struct rate *r, const struct limit_answer *a)
{
    if (c->tightest && c->tightest_answer.remaining <= a->remaining && a->pass)
        return;
    c->tightest = r;
    c->tightest_answer = *a;
}

static enum link_result refuse(struct call *c, struct rate *r, const struct limit_answer *a)
{
    char fields[FIELDS_BUF], detail[160];
    uint32_t wait_s = limit_retry_after_s(a);
    atomic_fetch_add_explicit(&r->limited, 1, memory_order_relaxed);
    c->rate = r->conf->name;
    c->why = "too many requests";
    snprintf(fields, sizeof fields, "Retry-After: %" PRIu32 "\r\n", wait_s);
    snprintf(detail, sizeof detail,
             "more than %" PRIu32 " requests in %" PRIu32 " s; try again in %" PRIu32 " s",
             r->conf->count, r->conf->period_s, wait_s);
    call_problem_with(c, 429, fields, detail);
    return LINK_DONE;
}

static enum link_result take(struct call *c, struct rate *r, const struct limit_answer *a)
{
    note(c, r, a);
    if (!a->pass)
        return refuse(c, r, a);
    atomic_fetch_add_explicit(&r->passed, 1, memory_order_relaxed);
    c->rate_at++;
    return LINK_NEXT;
}

static enum link_result decide_here(struct call *c, struct rate *r)
{
    char text[CLIENT_BUF];
    struct limit_answer a = limit_table_take(c->worker->app->limits, &r->rule, r->id,
                                             client_of(c, r, text), now_us());
    return take(c, r, &a);
}

static enum link_result without_redis(struct call *c, struct rate *r)
{
    atomic_fetch_add_explicit(&r->away, 1, memory_order_relaxed);
    if (r->conf->away == LIMIT_AWAY_LOCAL)
        return decide_here(c, r);
    c->rate = r->conf->name;
    call_problem(c, 503, "requests cannot be counted now; try again");
    return LINK_DONE;
}

/* --- Redis --- */

static enum link_result go_on(struct call *c);
static void on_answer(void *user, enum redis_result result, const struct redis_reply *reply);

static int ask(struct call *c, const struct rate *r, struct question *q)
{
    char text[CLIENT_BUF];
    struct buf key;
    struct slice args[LIMIT_SCRIPT_ARGS];
    buf_init(&key, LIMIT_KEY_BYTES_MAX + 1024);
    buf_add_str(&key, c->view->plan->redis.prefix);
    limit_key(&key, r->conf->name, client_of(c, r, text));
    for (size_t i = 0; i < LIMIT_SCRIPT_ARGS; i++)
        args[i] = slice_of(r->args[i]);
    int e = key.failed || !c->worker->redis
                ? FIRN_EAGAIN
                : redis_eval(c->worker->redis, (struct slice){ key.p, key.len }, args,
                             LIMIT_SCRIPT_ARGS, on_answer, q);
    buf_done(&key);
    return e;
}

static enum link_result ask_redis(struct call *c, struct rate *r)
{
    char text[CLIENT_BUF];
    struct limit_answer no = { .pass = false };
    no.wait_us = limit_table_refused(c->worker->app->limits, r->id, client_of(c, r, text),
                                     now_us());
    if (no.wait_us > 0)
        return take(c, r, &no);
    struct question *q = calloc(1, sizeof *q);
    if (!q || ask(c, r, q) != 0) {
        free(q);
        return without_redis(c, r);
    }
    q->c = c;
    c->question = q;
    return LINK_WAIT;
}

static bool read_answer(const struct redis_reply *reply, struct limit_answer *out)
{
    int64_t n[3];
    if (reply->n != 4 || reply->value[0].type != RESP_CONTAINER)
        return false;
    for (size_t i = 0; i < 3; i++) {
        const struct resp_value *v = &reply->value[i + 1];
        uint64_t u;
        if (v->type != RESP_NUMBER || http_u64(v->text, INT64_MAX, &u) != 0)
            return false;
        n[i] = (int64_t)u;
    }
    return limit_script_answer(n, out);
}

static bool forgot_script(enum redis_result result, const struct redis_reply *reply)
{
    static const char word[] = "NOSCRIPT";
    return result == REDIS_OK && reply->value[0].type == RESP_FAILURE &&
           reply->value[0].text.len >= sizeof word - 1 &&
           memcmp(reply->value[0].text.p, word, sizeof word - 1) == 0;
}

static void on_answer(void *user, enum redis_result result, const struct redis_reply *reply)
{
    struct question *q = user;
    struct call *c = q->c;
    struct limit_answer a;
    char text[CLIENT_BUF];
    if (c && !q->again && forgot_script(result, reply)) { /* it is loaded already */
        q->again = true;
        if (ask(c, rate_of(c), q) == 0)
            return;
    }
    free(q);
    if (!c)
        return;
    c->question = NULL;
    struct rate *r = rate_of(c);
    enum link_result next;
    if (result == REDIS_OK && read_answer(reply, &a)) {
        uint64_t now = now_us();
        if (!a.pass)
            limit_table_refuse(c->worker->app->limits, r->id, client_of(c, r, text),
                               now + a.wait_us, now);
        next = take(c, r, &a);
    } else {
        next = without_redis(c, r);
    }
    if (next == LINK_NEXT && go_on(c) == LINK_NEXT)
        call_resume(c);
}

/* --- the links --- */

static enum link_result go_on(struct call *c)
{
    enum link_result next = LINK_NEXT;
    while (next == LINK_NEXT && c->rate_at < c->rate_end) {
        struct rate *r = rate_of(c);
        next = c->view->plan->redis.address[0] ? ask_redis(c, r) : decide_here(c, r);
    }
    return next;
}

enum link_result limit_request(struct call *c)
{
    if (!one_reading(c)) {
        call_problem(c, 400,
                     "the header that this route counts by is there twice, or under a name "
                     "that is only alike");
        return LINK_DONE;
    }
    c->rate_end = call_guard(c)->first_n;
    return go_on(c);
}

enum link_result limit_user_request(struct call *c)
{
    c->rate_end = call_guard(c)->rates_n;
    return go_on(c);
}

void limit_head(struct call *c, struct answer *a)
{
    const struct limit_rule *r;
    char text[3][24];
    if (!c->tightest)
        return;
    r = &c->tightest->rule;
    snprintf(text[0], sizeof text[0], "%" PRIu32, r->kind == LIMIT_SMOOTH ? r->burst : r->count);
    snprintf(text[1], sizeof text[1], "%" PRIu32, c->tightest_answer.remaining);
    snprintf(text[2], sizeof text[2], "%" PRIu32, limit_retry_after_s(&c->tightest_answer));
    static const char *const name[] = { "RateLimit-Limit", "RateLimit-Remaining",
                                        "RateLimit-Reset" };
    for (size_t i = 0; i < 3; i++) {
        struct slice value = call_copy(c, slice_of(text[i]));
        if (value.p)
            fields_set(&a->fields, slice_of(name[i]), value);
    }
}

void limit_done(struct call *c)
{
    if (c->question)
        c->question->c = NULL;
    c->question = NULL;
}

/* --- for the operator --- */

static const struct {
    const char *name, *help;
    size_t offset;
} counters[] = {
    { "firn_proxy_limited_total", "Requests that a rate refused.", offsetof(struct rate, limited) },
    { "firn_proxy_rate_passed_total", "Requests that a rate let pass.",
      offsetof(struct rate, passed) },
    { "firn_proxy_rate_away_total",
      "Requests that a rate decided on without Redis, which was away.",
      offsetof(struct rate, away) },
};

void limit_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    const struct guards *g = p->guards;
    (void)a;
    for (size_t i = 0; g->rates_n > 0 && i < sizeof counters / sizeof counters[0]; i++) {
        metric_head(m, counters[i].name, counters[i].help);
        for (size_t k = 0; k < g->rates_n; k++) {
            _Atomic uint64_t *v = (void *)((char *)&g->rate[k] + counters[i].offset);
            metric_value(m, counters[i].name, "rate", g->rate[k].conf->name, atomic_load(v));
        }
    }
}

void limit_status(struct app *a, const struct plan *p, struct buf *b)
{
    (void)a;
    json_begin(b, "rates", '[');
    for (size_t i = 0; i < p->guards->rates_n; i++) {
        struct rate *r = &p->guards->rate[i];
        json_begin(b, NULL, '{');
        json_text(b, "name", r->conf->name);
        json_text(b, "by", r->conf->by);
        json_count(b, "count", r->conf->count);
        json_count(b, "period_s", r->conf->period_s);
        json_count(b, "passed", atomic_load(&r->passed));
        json_count(b, "limited", atomic_load(&r->limited));
        json_count(b, "without_redis", atomic_load(&r->away));
        json_end(b, '}');
    }
    json_end(b, ']');
}
