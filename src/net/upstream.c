/*
 * Pools of connections to servers, and the exchanges on them. A connection has at most one
 * exchange, or a queue of them with pipelining; while it is idle it is read, so that the server's
 * end is noticed, and any byte that comes then closes it. The queues are upstream_line.c. Tested in
 * tests/unit/net/proxy.c, upstream_line.c.
 */
#include "net/upstream_address.h"
#include "net/upstream_line.h"
#include "wire/proxy_protocol.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    INTERIM_MAX = 16,           /* 1xx before an answer: a server that sends more is broken */
    HEAD_BYTES_MAX = 64 * 1024, /* of a request, with what the proxy adds */
    STARVED_MS = 20, /* until a pool looks again whether the loop may have one more connection */
    DROP_BYTES_MAX = 64 * 1024, /* of an answer that nobody wants, to keep those behind it */
};

static void pump(struct upstream *u);

static void leave(struct upstream *u)
{
    if (--u->depth > 0 || !u->freeing)
        return;
    free((char *)(uintptr_t)u->opts.server_name);
    free(u);
}

static void finish(struct exchange *x, enum exchange_end end, const char *why, bool reuse,
                   struct slice trailers)
{
    struct upstream *u = x->pool;
    if (end == EXCHANGE_BAD_ANSWER)
        stat_add(&u->stats.bad_answers, 1);
    if (end == EXCHANGE_TIMEOUT)
        stat_add(&u->stats.timeouts, 1);
    if (end == EXCHANGE_NO_CONNECT)
        stat_add(&u->stats.connect_errors, 1);
    exchange_detach(x, reuse && !stream_deaf(x->line->stream));
    x->calls->done(x->user, end, why, trailers);
    exchange_free(x);
    pump(u);
}

static void fail(struct exchange *x, enum exchange_end end, const char *why)
{
    finish(x, end, why, false, (struct slice){ NULL, 0 });
}

static void send_head(struct exchange *x)
{
    stream_write(x->line->stream, x->head.p, x->head.len);
    buf_done(&x->head);
    x->sent = true;
    line_deadline(x->line);
    x->calls->ready(x->user); /* x may be cancelled in it */
}

/* --- answers --- */

/* Returns bytes used; the exchange may be gone when line->x is another one. */
static size_t take_head(struct line *c, struct exchange *x, const char *p, size_t len)
{
    static struct slice none = { NULL, 0 };
    struct upstream *u = c->pool;
    struct http_response r;
    size_t at = 0;
    for (;;) {
        ssize_t n = http_response_next(p + at, len - at, &r);
        if (n == FIRN_EAGAIN)
            return at;
        if (n < 0) {
            fail(x, EXCHANGE_BAD_ANSWER, "the server's answer is not HTTP/1.1");
            return len;
        }
        at += (size_t)n;
        if (r.status >= 200 || r.status == 101)
            break;
        if (++x->interim > INTERIM_MAX) {
            fail(x, EXCHANGE_BAD_ANSWER, "too many interim answers");
            return len;
        }
        if (x->calls->interim)
            x->calls->interim(x->user, &r);
    }
    if (r.status == 101 && !x->upgrade) {
        fail(x, EXCHANGE_BAD_ANSWER, "101 to a request that asked for no upgrade");
        return len;
    }
    if (r.status == 101 && !http_word_is(http_response_header(&r, "upgrade"), "websocket")) {
        fail(x, EXCHANGE_BAD_ANSWER, "101 to another protocol than WebSocket");
        return len;
    }
    struct exchange_answer a = { .head = &r, .body_len = (int64_t)r.body_len };
    x->answered = true;
    x->keep = !r.close && x->proxy_len == 0;
    x->tunnel = r.status == 101;
    bool none_follows = x->is_head || r.status == 204 || r.status == 304;
    if (r.framing != FRAMED_BY_LENGTH || x->tunnel)
        a.body_len = EXCHANGE_LENGTH_UNKNOWN;
    if (r.status == 304) { /* the length of what is not sent: 0 is what the reader put there */
        struct slice v = http_response_header(&r, "content-length");
        uint64_t n;
        a.body_len = v.p && http_u64(v, INT64_MAX, &n) == 0 ? (int64_t)n : EXCHANGE_LENGTH_UNKNOWN;
    }
    if (x->is_head && r.framing == FRAMED_BY_CLOSE && x->proxy_len == 0)
        x->keep = http_response_header(&r, "connection").p ? x->keep : r.minor == 1;
    if (x->tunnel)
        http_body_begin(&x->in, FRAMED_BY_CLOSE, 0);
    else if (none_follows)
        http_body_begin(&x->in, FRAMED_BY_LENGTH, 0);
    else
        http_body_begin(&x->in, r.framing, r.body_len);
    if (x->tunnel)
        x->ended = false;
    x->calls->head(x->user, &a);
    if (c->x != x)
        return at;
    if (!x->keep)
        line_orphan(c, x);
    if (x->in.done) {
        finish(x, EXCHANGE_OK, "", x->keep && x->ended && (at == len || x->next), none);
        return at;
    }
    line_deadline(c);
    pump(u);
    return at;
}

/* Bytes of the answer to c->x. Returns how many were used; c->x is another one when it is whole. */
static size_t take_answer(struct line *c, const char *p, size_t len)
{
    struct exchange *x = c->x;
    struct upstream *u = c->pool;
    size_t at = 0;
    if (!x) { /* bytes that answer nothing */
        stream_fail(c->stream, "bytes behind the answer");
        return len;
    }
    if (!x->sent) {
        fail(x, EXCHANGE_STALE, "the server spoke before it was asked");
        return len;
    }
    x->heard = true;
    if (!x->answered) {
        at = take_head(c, x, p, len);
        if (c->x != x || !x->answered)
            return at;
    }
    while (at < len && !x->paused) {
        struct slice data;
        ssize_t n = http_body_next(&x->in, p + at, len - at, &data);
        if (n < 0) {
            fail(x, EXCHANGE_BAD_ANSWER, x->in.why);
            return len;
        }
        if (n == 0)
            break;
        at += (size_t)n;
        if (data.len > 0) {
            bool more = x->calls->body(x->user, data.p, data.len);
            if (c->x != x) /* it was cancelled */
                return len;
            x->paused = !more && !x->dropped;
            if (x->dropped_bytes > DROP_BYTES_MAX) {
                fail(x, EXCHANGE_BROKEN, "");
                return len;
            }
        }
        if (x->in.done) { /* bytes behind the last answer are nobody's */
            finish(x, EXCHANGE_OK, "", x->keep && x->ended && (at == len || x->next),
                   x->in.trailers);
            return at;
        }
    }
    if (x->paused) {
        stream_pause(c->stream);
        if (x->next) { /* they do not wait for a slow reader */
            x->keep = false;
            line_orphan(c, x);
            pump(u);
        }
    }
    line_deadline(c);
    return at;
}

/* One answer after another. */
static size_t take_input(struct line *c, const char *p, size_t len)
{
    size_t at = 0;
    while (at < len) {
        const struct exchange *x = c->x;
        size_t used = take_answer(c, p + at, len - at);
        at += used;
        if (c->dead)
            return len;
        if (used == 0 || c->x == x || !c->x)
            break;
    }
    return at;
}

static size_t on_input(void *user, const char *p, size_t len)
{
    struct line *c = user;
    struct upstream *u = c->pool;
    u->depth++;
    c->busy = true;
    size_t used = take_input(c, p, len);
    c->busy = false;
    if (c->dead)
        free(c);
    leave(u);
    return used;
}

static void on_connected(void *user)
{
    struct line *c = user;
    struct upstream *u = c->pool;
    u->depth++;
    c->busy = true;
    c->connected = true;
    if (u->filling == c)
        u->filling = NULL;
    for (;;) {
        struct exchange *x = c->x;
        while (x && x->sent)
            x = x->next;
        if (!x)
            break;
        send_head(x); /* any of them may be cancelled in it */
    }
    c->busy = false;
    if (c->dead)
        free(c);
    leave(u);
}

static void on_drained(void *user)
{
    struct line *c = user;
    struct exchange *x = c->x;
    if (!x || !x->throttled)
        return;
    struct upstream *u = c->pool;
    u->depth++;
    x->throttled = false;
    line_deadline(c);
    x->calls->ready(x->user);
    leave(u);
}

static void on_ended(void *user, enum stream_end how, const char *why)
{
    struct line *c = user;
    struct exchange *x = c->x;
    struct upstream *u = c->pool;
    struct slice none = { NULL, 0 };
    u->depth++;
    if (!x)
        line_close(c);
    else if (!c->connected)
        fail(x, stream_own_fault(c->stream) ? EXCHANGE_CROWDED : EXCHANGE_NO_CONNECT, why);
    else if (x->answered && x->in.framing == FRAMED_BY_CLOSE && how == STREAM_EOF)
        finish(x, EXCHANGE_OK, "", false, none);
    else if (!x->heard && c->served > 0)
        fail(x, EXCHANGE_STALE, "the server closed an idle connection");
    else
        fail(x, EXCHANGE_BROKEN,
             how == STREAM_BROKEN ? why
                                  : "the server closed the connection before its answer ended");
    leave(u);
}

static void on_expired(void *user)
{
    struct line *c = user;
    struct exchange *x = c->x;
    struct upstream *u = c->pool;
    u->depth++;
    if (!x)
        line_close(c);
    else if (!c->connected)
        fail(x, EXCHANGE_NO_CONNECT, "the connection was not made in time");
    else
        fail(x, EXCHANGE_TIMEOUT,
             x->tunnel      ? "nothing came through the tunnel"
             : x->answered  ? "the answer's body stopped coming"
             : x->throttled ? "the server does not read the request"
                            : "no answer in time");
    leave(u);
}

static const struct stream_calls line_calls = {
    .input = on_input,
    .connected = on_connected,
    .drained = on_drained,
    .ended = on_ended,
    .expired = on_expired,
};

/* --- the pool --- */

static struct line *line_new(struct upstream *u, const struct exchange *x)
{
    struct line *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->pool = u;
    c->last = &c->x;
    c->stream = stream_connect(u->loop, (struct sockaddr *)&u->to, u->opts.tls,
                               u->opts.server_name ? u->opts.server_name : u->host,
                               (struct slice){ x->proxy, x->proxy_len }, &line_calls, c);
    if (!c->stream) {
        free(c);
        return NULL;
    }
    line_link(c, &u->lines);
    u->loop->outgoing++;
    stat_add(&u->stats.conns, 1);
    stat_add(&u->stats.connects, 1);
    line_deadline(c);
    return c;
}

/* Whether there may be one more. When the loop has as many as it may have, an idle one of any pool
 * makes room, so that a busy service does not take the last descriptors of the process. */
static bool may_connect(struct upstream *u)
{
    const struct loop *l = u->loop;
    if (u->stats.conns >= u->opts.conns_max)
        return false;
    for (struct upstream *p = l->pools; p && l->opts.outgoing_max; p = p->next) {
        if (l->outgoing < l->opts.outgoing_max)
            break;
        if (p->idle)
            line_close(p->idle);
    }
    u->starved = l->opts.outgoing_max && l->outgoing >= l->opts.outgoing_max;
    return !u->starved;
}

/* A connection for the exchange: one that takes more, an idle one, a new one, or NULL. */
static struct line *line_for(struct upstream *u, const struct exchange *x, bool repeatable)
{
    bool pipes = x->pipes && loop_now_ms(u->loop) >= u->rest_until_ms;
    struct line *c = NULL;
    if (pipes && u->filling)
        return u->filling;
    while (!c && u->idle && !x->fresh) {
        c = u->idle;
        line_unlink(c);
        line_link(c, &u->lines);
        if (!repeatable && stream_gone(c->stream)) {
            line_close(c);
            c = NULL;
        }
    }
    if (x->fresh && u->stats.conns >= u->opts.conns_max && u->idle)
        line_close(u->idle); /* makes room */
    if (!c && may_connect(u))
        c = line_new(u, x);
    if (c && pipes)
        u->filling = c;
    return c;
}

/* Those that wait, as long as there are connections. */
static void pump(struct upstream *u)
{
    while (u->waiting && !u->freeing) {
        struct exchange *x = u->waiting;
        if (x->orphan) {
            exchange_unlink(x);
            x->calls->done(x->user, x->end, "an answer before it on its connection failed",
                           (struct slice){ NULL, 0 });
            exchange_free(x);
            continue;
        }
        struct line *c = line_for(u, x, x->pipes);
        if (!c)
            return;
        exchange_unlink(x);
        exchange_attach(x, c);
        if (c->connected)
            stream_nudge(c->stream);
    }
}

static bool may_wait(struct upstream *u, uint64_t ms);

/* In order: all wait equally long, so the first is the first to give up. */
static void on_crowded(struct alarm *a)
{
    struct upstream *u = (struct upstream *)((char *)a - offsetof(struct upstream, crowded));
    const uint64_t now = loop_now_ms(u->loop);
    u->depth++;
    u->crowded_set = false;
    if (u->starved)
        pump(u);
    while (u->waiting && !u->freeing && u->waiting->wait_until_ms <= now)
        fail(u->waiting, EXCHANGE_CROWDED, "no connection to the server became free in time");
    while (u->waiting && !u->freeing && !may_wait(u, u->waiting->wait_until_ms - now))
        fail(u->waiting, EXCHANGE_CROWDED, "out of memory");
    leave(u);
}

/* Sees to it that those that wait are given up in time. The alarm may be for one that has its
 * connection meanwhile: it is set anew then. */
static bool may_wait(struct upstream *u, uint64_t ms)
{
    if (u->starved && ms > STARVED_MS)
        ms = STARVED_MS;
    if (!u->crowded_set)
        u->crowded_set = alarm_set(u->loop, &u->crowded, ms, on_crowded) == 0;
    return u->crowded_set;
}

static bool lines_ok(struct slice fields)
{
    const char *q = fields.p, *end = q + fields.len, *why;
    struct slice name, value;
    while (q && q < end)
        q = http_field(q, end, &name, &value, &why);
    return fields.len == 0 || q == end;
}

static bool all_are(struct slice s, uint8_t what)
{
    for (size_t i = 0; i < s.len; i++)
        if (!http_is(s.p[i], what))
            return false;
    return s.len > 0;
}

int exchange_begin(struct upstream *u, const struct exchange_request *req,
                   const struct exchange_calls *calls, void *user, struct exchange **out)
{
    if (!all_are(req->method, HTTP_TOKEN) || !all_are(req->target, HTTP_TARGET) ||
        !lines_ok(req->fields))
        return FIRN_EINVAL;
    struct exchange *x = calloc(1, sizeof *x);
    if (!x)
        return FIRN_ENOMEM;
    x->pool = u;
    x->calls = calls;
    x->user = user;
    x->is_head = slice_is(req->method, "HEAD");
    x->chunked = req->body_len < 0;
    x->counted = req->body_len > 0;
    x->left = x->counted ? (uint64_t)req->body_len : 0;
    x->ended = req->body_len == 0;
    x->upgrade = req->upgrade;
    firn_assert(req->proxy.len <= sizeof x->proxy, "len=%zu", req->proxy.len);
    if (req->proxy.len > 0)
        memcpy(x->proxy, req->proxy.p, req->proxy.len);
    x->proxy_len = (uint8_t)req->proxy.len;
    x->fresh = req->fresh || x->proxy_len > 0;
    x->pipes = u->opts.pipeline > 1 && req->repeatable && x->ended && !x->upgrade && !x->fresh;
    buf_init(&x->head, HEAD_BYTES_MAX);
    struct buf *b = &x->head;
    buf_add(b, req->method.p, req->method.len);
    buf_add(b, " ", 1);
    buf_add(b, req->target.p, req->target.len);
    buf_add_str(b, " HTTP/1.1\r\n");
    buf_add(b, req->fields.p, req->fields.len);
    /* A server reads "no body" from these methods alone. */
    bool bodyless = x->is_head || slice_is(req->method, "GET") ||
                    slice_is(req->method, "OPTIONS") || slice_is(req->method, "DELETE");
    if (x->chunked)
        buf_add_str(b, "Transfer-Encoding: chunked\r\n");
    else if (x->counted || !bodyless)
        buf_addf(b, "Content-Length: %llu\r\n", (unsigned long long)x->left);
    if (x->upgrade)
        buf_add_str(b, "Connection: Upgrade\r\n");
    else if (x->proxy_len > 0)
        buf_add_str(b, "Connection: close\r\n");
    buf_add_str(b, "\r\n");
    if (b->failed) {
        exchange_free(x);
        return FIRN_ENOMEM;
    }
    stat_add(&u->stats.requests, 1);
    struct line *c = u->waiting ? NULL : line_for(u, x, req->repeatable);
    if (c) {
        *out = x;
        exchange_attach(x, c);
        if (c->connected) /* on_connected() once more, when this has returned */
            stream_nudge(c->stream);
        return 0;
    }
    x->wait_until_ms = loop_now_ms(u->loop) + u->opts.wait_ms;
    if (u->stats.waiting >= u->opts.waiting_max || !may_wait(u, u->opts.wait_ms)) {
        exchange_free(x);
        return FIRN_EAGAIN;
    }
    *out = x;
    x->prev = u->waiting_last;
    *u->waiting_last = x;
    u->waiting_last = &x->next;
    stat_add(&u->stats.waiting, 1);
    return 0;
}

bool exchange_write(struct exchange *x, const char *p, size_t len)
{
    struct stream *s = x->line->stream;
    char line[24];
    firn_assert(x->sent && (!x->ended || x->tunnel), "sent=%d ended=%d", x->sent, x->ended);
    if (len == 0)
        return true;
    if (x->counted && !x->tunnel) {
        firn_assert(len <= x->left, "len=%zu", len);
        x->left -= len;
    }
    bool chunked = x->chunked && !x->tunnel;
    if (chunked)
        stream_write(s, line, (size_t)snprintf(line, sizeof line, "%zx\r\n", len));
    bool room = stream_write(s, p, len);
    if (chunked)
        room = stream_write(s, "\r\n", 2);
    x->throttled = !room;
    line_deadline(x->line);
    return room;
}

void exchange_end(struct exchange *x)
{
    struct stream *s = x->line->stream;
    if (x->ended)
        return;
    firn_assert(x->sent && (x->tunnel || x->left == 0));
    x->ended = true;
    if (x->tunnel)
        stream_shut(s);
    else if (x->chunked)
        stream_write(s, "0\r\n\r\n", 5);
    line_deadline(x->line);
}

bool exchange_waits_for_server(const struct exchange *x)
{
    return x->line && x->line->x == x && !x->paused && (!x->sent || x->throttled || x->ended);
}

void exchange_late(struct exchange *x)
{
    stat_add(&x->pool->stats.timeouts, 1);
    exchange_cancel(x);
}

bool exchange_pipelined(const struct exchange *x)
{
    return x->line && x->line->x != x;
}

void exchange_resume(struct exchange *x)
{
    if (!x->paused || !x->line)
        return;
    x->paused = false;
    stream_resume(x->line->stream);
    line_deadline(x->line);
}

/* What its owner gave up while others wait behind it is read and forgotten. */
static void drop_ready(void *user)
{
    (void)user;
}

static void drop_head(void *user, const struct exchange_answer *a)
{
    (void)user;
    (void)a;
}

static bool drop_body(void *user, const char *p, size_t len)
{
    struct exchange *x = user;
    (void)p;
    x->dropped_bytes += len;
    return true;
}

static void drop_done(void *user, enum exchange_end end, const char *why, struct slice trailers)
{
    (void)user;
    (void)end;
    (void)why;
    (void)trailers;
}

static const struct exchange_calls drop = {
    .ready = drop_ready, .head = drop_head, .body = drop_body, .done = drop_done
};

void exchange_cancel(struct exchange *x)
{
    struct upstream *u = x->pool;
    struct line *c = x->line;
    x->dropped = true;
    if (!c || !line_wanted(c)) {
        exchange_detach(x, false);
        exchange_free(x);
        pump(u);
    } else if (!x->sent) {
        exchange_unlink(x);
        exchange_free(x);
    } else {
        x->calls = &drop;
        x->user = x;
        exchange_resume(x);
    }
}

static void default_to(uint32_t *v, uint32_t preset)
{
    if (*v == 0)
        *v = preset;
}

int upstream_new(struct loop *loop, const char *address, const struct upstream_opts *opts,
                 struct upstream **out)
{
    struct upstream *u = calloc(1, sizeof *u);
    if (!u)
        return FIRN_ENOMEM;
    if (upstream_address(address, &u->to, u->host) != 0) {
        free(u);
        return FIRN_EINVAL;
    }
    u->loop = loop;
    u->next = loop->pools;
    u->prev = &loop->pools;
    if (u->next)
        u->next->prev = &u->next;
    loop->pools = u;
    u->waiting_last = &u->waiting;
    u->opts = opts ? *opts : (struct upstream_opts){ 0 };
    if (u->opts.server_name && !(u->opts.server_name = strdup(u->opts.server_name))) {
        free(u);
        return FIRN_ENOMEM;
    }
    default_to(&u->opts.conns_max, 256);
    default_to(&u->opts.pipeline, 1);
    default_to(&u->opts.rest_ms, 1000);
    default_to(&u->opts.waiting_max, 1024);
    default_to(&u->opts.wait_ms, 3000);
    default_to(&u->opts.connect_ms, 1000);
    default_to(&u->opts.head_ms, 60 * 1000);
    default_to(&u->opts.body_ms, 30 * 1000);
    default_to(&u->opts.idle_ms, 30 * 1000);
    default_to(&u->opts.tunnel_ms, 3600 * 1000);
    default_to(&u->opts.tunnel_end_ms, 10 * 1000);
    *out = u;
    return 0;
}

void upstream_free(struct upstream *u)
{
    if (!u || u->freeing)
        return;
    u->freeing = true;
    *u->prev = u->next;
    if (u->next)
        u->next->prev = u->prev;
    alarm_clear(&u->crowded);
    while (u->lines)
        if (u->lines->x)
            fail(u->lines->x, EXCHANGE_CLOSED, "the pool ends");
        else
            line_close(u->lines);
    while (u->waiting)
        fail(u->waiting, EXCHANGE_CLOSED, "the pool ends");
    while (u->idle)
        line_close(u->idle);
    u->depth++;
    leave(u);
}

void upstream_stats(const struct upstream *u, struct upstream_stats *out)
{
    const uint64_t *from = (const uint64_t *)&u->stats;
    uint64_t *to = (uint64_t *)out;
    for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
        to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}
