/*
 * The last links: the breaker of a service, and the exchange with one of its servers. Tried again
 * on another server only when the first one cannot have seen the request, or when it may safely see
 * it twice and nothing of its body was consumed; within the service's budget. Tested in
 * tests/integration/gateway.py.
 */
#include "proxy/forward.h"
#include "daemon/log.h"
#include "id/fnv.h"
#include "platform/mono.h"
#include "proxy/admin.h"
#include "proxy/path.h"
#include "proxy/proxied.h"
#include "proxy/tracing.h"
#include "proxy/collect.h"
#include "proxy/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES_MAX = 64 * 1024, GOOD_BELOW = 500 };

/* --- the breaker --- */

enum link_result breaker_request(struct call *c)
{
    struct backend *b = c->backend;
    uint64_t now = mono_ms(), wait = 0;
    pthread_mutex_lock(&b->lock);
    c->pass = breaker_ask(&b->breaker, &b->breaker_rules, now);
    if (!c->pass.pass)
        wait = breaker_retry_ms(&b->breaker, now);
    else
        retry_budget_request(&b->budget);
    pthread_mutex_unlock(&b->lock);
    atomic_fetch_add_explicit(&b->requests, 1, memory_order_relaxed);
    if (c->pass.pass) {
        c->asked = true;
        return LINK_NEXT;
    }
    char fields[96];
    atomic_fetch_add_explicit(&b->refused, 1, memory_order_relaxed);
    snprintf(fields, sizeof fields, "Content-Type: application/json\r\nRetry-After: %llu\r\n",
             (unsigned long long)(wait + 999) / 1000);
    c->why = "the breaker is open";
    call_reply(c, 503, fields, slice_of(BREAKER_BODY));
    return LINK_DONE;
}

static void tell_breaker(struct call *c)
{
    struct backend *b = c->backend;
    pthread_mutex_lock(&b->lock);
    const enum breaker_state was = b->breaker.state;
    breaker_answer(&b->breaker, &b->breaker_rules, c->pass, c->outcome, mono_ms());
    const enum breaker_state is = b->breaker.state;
    pthread_mutex_unlock(&b->lock);
    c->pass.pass = false; /* told once */
    if (is != was && is == BREAKER_OPEN)
        log_warn("breaker_opened", "service=%s request_id=%s", b->conf->name, c->id);
    else if (is != was && is == BREAKER_CLOSED)
        log_info("breaker_closed", "service=%s", b->conf->name);
}

void breaker_done(struct call *c)
{
    if (c->asked)
        tell_breaker(c);
}

/* --- which server --- */

static uint64_t hash_key(const struct call *c)
{
    static const char segment[] = "segment:";
    const char *by = c->backend->conf->hash_by;
    struct slice key = { NULL, 0 };
    if (strcmp(by, "path") == 0) {
        key = c->path;
    } else if (strncmp(by, segment, sizeof segment - 1) == 0) {
        const char *query = memchr(c->target.p, '?', c->target.len);
        size_t len = query ? (size_t)(query - c->target.p) : c->target.len;
        key = path_segment((struct slice){ c->target.p, len },
                           (uint32_t)strtoul(by + sizeof segment - 1, NULL, 10));
    } else if (strcmp(by, "address") != 0) {
        key = fields_get(&c->request, by);
    }
    if (!key.p)
        key = slice_of(c->client);
    return fnv(FNV_BEGIN, key.p, key.len);
}

static void choose_server(struct call *c)
{
    struct backend *b = c->backend;
    pthread_mutex_lock(&b->lock);
    uint64_t mask = balance_usable(b->balance, b->n, mono_ms());
    if (mask & ~c->tried)
        mask &= ~c->tried;
    c->server = b->conf->balance == CONFIG_LEAST ? balance_least(b->balance, b->n, mask)
                : b->conf->balance == CONFIG_HASH
                    ? balance_hash(b->balance, b->n, mask, hash_key(c))
                    : balance_round_robin(b->balance, b->n, mask);
    if (c->server < b->n)
        b->balance[c->server].in_flight++;
    pthread_mutex_unlock(&b->lock);
    if (c->server < b->n) {
        c->tried |= UINT64_C(1) << c->server;
        c->last_server = b->server[c->server].address;
        c->tries++;
        atomic_fetch_add_explicit(&b->server[c->server].requests, 1, memory_order_relaxed);
    }
}

/* The exchange with the server is over. */
static void leave_server(struct call *c, enum breaker_outcome how)
{
    struct backend *b = c->backend;
    if (c->server >= b->n)
        return;
    pthread_mutex_lock(&b->lock);
    bool ejected = false;
    b->balance[c->server].in_flight--;
    if (how != BREAKER_UNKNOWN)
        ejected = balance_answer(b->balance, b->n, c->server, &b->outlier_rules,
                                 how == BREAKER_GOOD, mono_ms());
    pthread_mutex_unlock(&b->lock);
    if (ejected)
        log_warn("server_ejected", "service=%s server=%s request_id=%s", b->conf->name,
                 b->server[c->server].address, c->id);
    if (how == BREAKER_BAD)
        atomic_fetch_add_explicit(&b->server[c->server].errors, 1, memory_order_relaxed);
    if (how != BREAKER_UNKNOWN)
        c->outcome = how;
    c->server = b->n;
}

static bool budget_takes(struct backend *b)
{
    pthread_mutex_lock(&b->lock);
    bool ok = retry_budget_take(&b->budget);
    pthread_mutex_unlock(&b->lock);
    if (ok)
        atomic_fetch_add_explicit(&b->retries, 1, memory_order_relaxed);
    return ok;
}

/* --- the exchange --- */

static const struct exchange_calls calls;

static const char *fault_of(enum exchange_end end, unsigned *status)
{
    *status = end == EXCHANGE_TIMEOUT ? 504 : end == EXCHANGE_NO_CONNECT ? 503 : 502;
    return end == EXCHANGE_TIMEOUT      ? "the service did not answer in time"
           : end == EXCHANGE_NO_CONNECT ? "no server of the service can be reached"
           : end == EXCHANGE_BAD_ANSWER ? "the service's answer is not HTTP/1.1"
                                        : "the service closed the connection before its answer";
}

/* For error.type of a span. */
static const char *end_name(enum exchange_end end)
{
    static const char *const names[] = {
        [EXCHANGE_NO_CONNECT] = "no_connection",   [EXCHANGE_STALE] = "stale_connection",
        [EXCHANGE_BROKEN] = "connection_broken",   [EXCHANGE_TIMEOUT] = "timeout",
        [EXCHANGE_BAD_ANSWER] = "bad_answer",      [EXCHANGE_CLOSED] = "pool_closed",
        [EXCHANGE_CROWDED] = "no_free_connection",
    };
    return names[end];
}

/* Not now: later there may be a connection. */
static void refuse_crowded(struct call *c)
{
    atomic_fetch_add_explicit(&c->backend->crowded, 1, memory_order_relaxed);
    call_problem(c, 503, "too many requests wait for this service");
}

static void try_server(struct call *c)
{
    struct backend *b = c->backend;
    const struct http_head *h = c->head;
    struct upstream *u = NULL;
    choose_server(c);
    if (c->server < b->n)
        u = worker_pool(c->worker, c->view, (size_t)(b - c->view->plan->backends), c->server);
    if (c->worker->app->spans)
        tracing_try(c);
    if (c->collected)
        c->collected->sent = 0;
    struct buf lines;
    buf_init(&lines, HEAD_BYTES_MAX);
    buf_add_str(&lines, "Host: ");
    struct slice host = b->conf->host ? slice_of(b->conf->host)
                        : h->host.p
                            ? h->host
                            : slice_of(c->server < b->n ? server_host(&b->server[c->server]) : "");
    buf_add(&lines, host.p, host.len);
    buf_add_str(&lines, "\r\n");
    fields_write(&c->request, &lines);
    if (h->websocket)
        buf_add_str(&lines, "Upgrade: websocket\r\n");
    struct exchange_request req = {
        .method = h->method,
        .target = c->target,
        .fields = { lines.p, lines.len },
        .body_len = c->collected                     ? (int64_t)c->collected->bytes.len
                    : h->framing == FRAMED_BY_CHUNKS ? EXCHANGE_LENGTH_UNKNOWN
                                                     : (int64_t)h->body_len,
        .repeatable = c->idempotent && call_body_done(c),
        .fresh = c->stale,
        .upgrade = h->websocket,
    };
    char proxy[PROXY_WRITE_MAX];
    if (b->conf->proxy_protocol)
        req.proxy = (struct slice){ proxy, proxied_header(c, proxy) };
    int r = !u                                  ? FIRN_ENOMEM
            : lines.failed || c->request.failed ? FIRN_ERANGE
                                                : exchange_begin(u, &req, &calls, c, &c->x);
    buf_done(&lines);
    if (r == 0)
        return;
    tracing_try_end(c, firn_error_name(r));
    leave_server(c, BREAKER_UNKNOWN);
    if (r == FIRN_ERANGE)
        call_problem(c, 431, "the request's headers are too large for the gateway to pass on");
    else if (r == FIRN_EINVAL)
        call_problem(c, 400, "the request cannot be passed on as HTTP/1.1");
    else if (r == FIRN_EAGAIN)
        refuse_crowded(c);
    else
        call_problem(c, 503, "the gateway is out of memory");
}

static void on_deadline(struct alarm *a)
{
    struct call *c = (struct call *)((char *)a - offsetof(struct call, deadline));
    /* A client that sends or reads slowly says nothing about the server. */
    bool slow = c->x && exchange_waits_for_server(c->x);
    if (c->x)
        exchange_late(c->x);
    c->x = NULL;
    tracing_try_end(c, "timeout");
    leave_server(c, slow ? BREAKER_BAD : BREAKER_UNKNOWN);
    if (c->answered)
        call_abort(c, "the request took longer than its timeout_ms");
    else
        call_problem(c, 504, "the request took longer than its timeout_ms");
}

enum link_result forward_request(struct call *c)
{
    static const char *const idempotent[] = { "GET", "HEAD", "OPTIONS", "PUT", "DELETE" };
    const uint32_t ms = c->route->timeout_ms ? c->route->timeout_ms : c->backend->conf->timeout_ms;
    for (size_t i = 0; i < sizeof idempotent / sizeof idempotent[0]; i++)
        c->idempotent |= slice_is(c->head->method, idempotent[i]);
    c->idempotent |= fields_get(&c->request, "idempotency-key").p != NULL;
    c->server = c->backend->n;
    if (ms && alarm_set(c->worker->loop, &c->deadline, ms, on_deadline) != 0) {
        call_problem(c, 503, "the gateway is out of memory");
        return LINK_DONE;
    }
    try_server(c);
    return LINK_WAIT;
}

static void on_ready(void *user)
{
    struct call *c = user;
    if (exchange_pipelined(c->x))
        latency__more(&c->worker->pipelined, 1);
    if (c->collected) {
        collect_send(c);
        return;
    }
    if (call_body_done(c) && !c->body_begun)
        return;
    if (!c->body_begun) {
        c->body_begun = true;
        edge_want_body(c->q);
    } else {
        edge_resume(c->q);
    }
}

/* 100 is the gateway's own: it asks for the body itself. */
static void on_interim(void *user, const struct http_response *r)
{
    struct call *c = user;
    bool pass = r->status != 100 && c->q && !edge_answered(c->q);
    struct fields *f = pass ? malloc(sizeof *f) : NULL;
    struct buf lines;
    if (!f)
        return;
    f->n = 0;
    f->failed = false;
    fields_take(f, r->header, r->headers, false);
    for (size_t i = 0; i < c->route->answer_remove.n; i++)
        fields_remove(f, slice_of(c->route->answer_remove.v[i]));
    buf_init(&lines, HEAD_BYTES_MAX);
    fields_write(f, &lines);
    if (!f->failed && !lines.failed) /* it is only a hint: rather none than a part */
        edge_interim(c->q, r->status, r->reason, (struct slice){ lines.p, lines.len });
    buf_done(&lines);
    free(f);
}

static void on_head(void *user, const struct exchange_answer *e)
{
    struct call *c = user;
    const struct http_response *r = e->head;
    struct answer a; /* large: fields_take() sets its fields, and only as many as there are */
    a.status = r->status;
    a.reason = r->reason;
    c->bodiless = r->status == 205; /* for many clients; a body would be their next answer */
    a.body_len = c->bodiless ? 0 : e->body_len;
    a.own = false;
    fields_take(&a.fields, r->header, r->headers, false);
    if (r->status == 101)
        fields_set(&a.fields, slice_of("Upgrade"), slice_of("websocket"));
    c->outcome = r->status < GOOD_BELOW ? BREAKER_GOOD : BREAKER_BAD;
    tracing_try_status(c, r->status);
    if (a.fields.failed) { /* rather none than an answer without them */
        exchange_cancel(c->x);
        c->x = NULL;
        tracing_try_end(c, "bad_answer");
        leave_server(c, BREAKER_BAD);
        call_problem(c, 502, "the service's answer has more Connection headers than are taken");
        return;
    }
    if (c->pass.probes) /* its body may take hours, and all others wait for what it says */
        tell_breaker(c);
    if (r->status == 101) /* the tunnel has deadlines of its own */
        alarm_clear(&c->deadline);
    call_head(c, &a);
}

static bool on_body(void *user, const char *p, size_t len)
{
    struct call *c = user;
    return c->bodiless || call_body(c, p, len);
}

/* Idle connections end all the time; to notice it too late says nothing about the server. */
static bool repeat_stale(struct call *c, enum exchange_end end)
{
    if (end != EXCHANGE_STALE || c->stale || !c->idempotent || c->body_begun)
        return false;
    c->stale = true;
    c->tried = 0;
    return true;
}

static bool may_repeat(const struct call *c, enum exchange_end end)
{
    if (c->tries > c->backend->conf->retries)
        return false;
    if (end == EXCHANGE_NO_CONNECT)
        return !c->body_begun;
    return end == EXCHANGE_BROKEN && c->idempotent && !c->body_begun;
}

/* What the end says about the server. A tunnel that ends, or a full pool, says nothing. */
static enum breaker_outcome outcome_of(const struct call *c, enum exchange_end end)
{
    if (c->status == 101)
        return BREAKER_GOOD;
    return end == EXCHANGE_STALE || end == EXCHANGE_CLOSED || end == EXCHANGE_CROWDED
               ? BREAKER_UNKNOWN
               : BREAKER_BAD;
}

static void on_done(void *user, enum exchange_end end, const char *why, struct slice trailers)
{
    struct call *c = user;
    unsigned status;
    c->x = NULL;
    tracing_try_end(c, end == EXCHANGE_OK ? NULL : end_name(end));
    if (end == EXCHANGE_OK) {
        leave_server(c, c->outcome);
        call_done(c, trailers);
        return;
    }
    leave_server(c, outcome_of(c, end));
    if (c->answered) {
        char *text = call_text(c, strlen(why));
        call_abort(c, text ? strcpy(text, why) : "the answer broke off");
    } else if (end == EXCHANGE_CROWDED) {
        refuse_crowded(c);
    } else if (repeat_stale(c, end) || (may_repeat(c, end) && budget_takes(c->backend))) {
        try_server(c);
    } else {
        const char *detail = fault_of(end, &status);
        char *text = call_text(c, strlen(why));
        c->why = text ? strcpy(text, why) : detail;
        call_problem(c, status, detail);
    }
}

static const struct exchange_calls calls = {
    .ready = on_ready,
    .interim = on_interim,
    .head = on_head,
    .body = on_body,
    .done = on_done,
};

void forward_done(struct call *c)
{
    if (c->x) /* the client went away */
        exchange_cancel(c->x);
    c->x = NULL;
    tracing_try_end(c, "client_gone");
    leave_server(c, c->outcome == BREAKER_GOOD ? BREAKER_GOOD : BREAKER_UNKNOWN);
}

void forward_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    uint64_t n = 0;
    (void)p;
    for (size_t i = 0; i < a->workers_n; i++)
        n += __atomic_load_n(&a->workers[i].pipelined, __ATOMIC_RELAXED);
    metric(m, "firn_proxy_pipelined_total",
           "Requests that were sent behind another one on its connection.", (double)n);
}

/* --- the client's side --- */

bool forward_body(struct call *c, const char *p, size_t len)
{
    return c->x ? exchange_write(c->x, p, len) : true;
}

void forward_body_end(struct call *c)
{
    if (c->x)
        exchange_end(c->x);
}

void forward_writable(struct call *c)
{
    if (c->resume)
        c->resume(c);
    else if (c->x)
        exchange_resume(c->x);
}
