/*
 * From bytes to answers: finds out which protocol a connection speaks and hands its requests to the
 * service, one after another or in runs. Nothing is read or sent here; conn.c keeps the bytes that
 * remain. Tested in tests/unit/net/conn.c.
 */
#include "net/conn.h"

#include <string.h>
#include <strings.h>

/* The reply of a request: on the spot if nothing is before it, else at the end of the queue. */
static struct reply *reply_start(struct conn *c, struct reply *spot)
{
    if (c->first)
        return reply_new(c); /* there is room: conn_pump() stops before the queue is full */
    *spot = (struct reply){ .out = &c->loop->out, .peer = &c->peer, .loop = c->loop };
    return spot;
}

/* For how long the request in hand is handed over again and again; 0: it is the first time. */
static uint32_t waited_ms(const struct conn *c)
{
    uint64_t ms = c->paused_since_ms ? uv_now(&c->loop->uv) - c->paused_since_ms + 1 : 0;
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX - 1;
}

/* The handler wants the request again, later: it stays where it is, unread. True: it does. */
static bool put_off(struct conn *c, struct reply *r)
{
    uint32_t ms = r->retry_ms;
    if (ms == 0) {
        c->paused_since_ms = 0;
        return false;
    }
    if (c->paused_since_ms == 0)
        c->paused_since_ms = uv_now(&c->loop->uv) + 1; /* the loop's clock may show 0 */
    if (r->out == &r->own)
        reply_take_back(c, r);
    conn_pause(c, ms);
    return true;
}

/* The newest reply in the queue. */
static struct reply *queue_last(const struct conn *c)
{
    return (struct reply *)((char *)c->last - offsetof(struct reply, next));
}

/* Counts requests for their latency that are not answered at once. Those in the queue are timed
 * when their reply is sent. */
static void count_late(struct conn *c, const struct reply *r, uint32_t n)
{
    struct loop *l = c->loop;
    unsigned k = latency_index(c, r->timed_as);
    l->timed[k / LATENCY_KINDS] += n;
    if (c->first) {
        struct reply *q = queue_last(c);
        q->timed_as = r->timed_as;
        q->served = n;
        q->began_ns = l->turn_ns - r->waited_ms * UINT64_C(1000000);
    } else {
        latency_add(&l->latency[k], r->waited_ms * UINT64_C(1000000), n);
    }
}

/* `first_kind`: of the protocol. */
static inline void reply_count(struct conn *c, const struct reply *r, uint32_t n,
                               unsigned first_kind)
{
    struct loop *l = c->loop;
    unsigned k = first_kind + r->timed_as;
    if (c->first || r->waited_ms) {
        count_late(c, r, n);
    } else if (r->timed_as) {
        l->timed[first_kind / LATENCY_KINDS] += n;
        l->answered[k] += n;
        l->answered_set |= 1u << k;
    }
}

static void reply_finish(struct conn *c, struct reply *r, size_t start)
{
    if (r->out->len == start && !r->out->failed && !r->deferred) {
        if (c->peer.proto == 1)
            reply_problem(r, 500, "the handler gave no answer");
        else
            resp_error(r->out, "ERR the handler gave no answer");
    }
    if (r->deferred) {
        firn_assert(c->first && !*c->last && c->waiting > 0, "waiting=%u", c->waiting);
        struct reply *last = queue_last(c);
        c->last_request = last->close || !last->keep_alive;
        if ((last->serial && !last->done) || c->last_request)
            conn_move(c, CONN_WAITING);
        return;
    }
    if (r->out == &r->own) { /* answered at once, but earlier ones wait */
        reply_done(r);
        if (r->close || !r->keep_alive) {
            c->last_request = true;
            conn_move(c, CONN_WAITING);
        }
        return;
    }
    firn_assert(!c->first); /* nothing overtakes a reply that waits */
    if (r->head && r->body_at > 0) {
        firn_assert(r->body_at <= r->out->len || r->out->failed, "body=%zu len=%zu", r->body_at,
                    r->out->len);
        r->out->len = r->body_at;
    }
    if (r->close || !r->keep_alive)
        conn_finish(c);
}

void conn_refuse(struct conn *c, unsigned status, const char *http, const char *resp)
{
    struct reply spot, *r = reply_start(c, &spot);
    if (!r) {
        conn_close(c);
        return;
    }
    size_t start = r->out->len;
    r->close = true;
    if (c->peer.proto == 1) {
        r->minor = 1;
        reply_problem(r, status, http);
    } else {
        resp_errorf(r->out, "ERR %s", resp);
    }
    reply_finish(c, r, start);
}

/* The limit on connections is reached. */
static void refuse_above(struct conn *c)
{
    stat_add(&c->loop->stats.refused, 1);
    if (c->place == PLACE_CROWDED) {
        stat_add(&c->loop->stats.crowded, 1);
        conn_refuse(c, 503,
                    "too many connections from this address: keep fewer open, or raise "
                    "limits.connections_per_address",
                    "max number of clients of this address reached");
    } else {
        conn_refuse(c, 503, "too many connections: try again, or raise limits.connections",
                    "max number of clients reached");
    }
}

/* The bytes behind a request that a run of requests like it may take. */
static struct slice what_follows(const char *p, size_t len, size_t used, int budget)
{
    size_t most = (size_t)budget * used, rest = len - used;
    return (struct slice){ p + used, rest < most ? rest : most };
}

/* Clients send the same request again and again, and equal bytes mean the same: a head is parsed
 * once. One in HEAD_LEARN_EVERY of those that differ takes its place, unless it has a trace or
 * request ID, which will not come again. What authorizes a client is never compared with the bytes
 * of another one: that takes longer the better they agree. */
static void head_learn(struct known_head *k, const char *p, size_t len,
                       const struct http_request *req)
{
    struct http_error err;
    if (len > sizeof k->bytes || req->method > METHOD_HEAD || req->body.p != p + len ||
        req->authorization.p || req->idempotency_key.p || req->traced ||
        ++k->misses % HEAD_LEARN_EVERY != 0)
        return;
    memcpy(k->bytes, p, len);
    k->len = http_parse(k->bytes, len, &k->req, &err) == (ssize_t)len ? len : 0;
    firn_assert(k->len > 0); /* these bytes were a request a moment ago */
}

static bool head_known(const struct known_head *k, const char *p, size_t len)
{
    return k->len > 0 && len >= k->len && memcmp(p, k->bytes, k->len) == 0;
}

/* It is not whole yet, or never will be. */
static ssize_t step_http_short(struct conn *c, ssize_t used, const struct http_request *req,
                               const struct http_error *err)
{
    struct loop *l = c->loop;
    if (used != FIRN_EAGAIN) {
        stat_add(&l->stats.http_errors, 1);
        conn_refuse(c, err->status, err->reason, "");
        return -1;
    }
    c->in_body = req->in_body;
    if (req->expect_continue && !c->continued && !c->first) {
        c->continued = true;
        buf_add_str(&l->out, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    return 0;
}

/* Bytes used, 0: more are needed, negative: refused and finished. */
static ssize_t step_http(struct conn *c, char *p, size_t len, int *budget)
{
    struct loop *l = c->loop;
    struct http_request fresh, *req = &l->known.req;
    ssize_t used = (ssize_t)l->known.len;
    if (conn_above(c) || !head_known(&l->known, p, len)) {
        struct http_error err;
        used = http_parse(p, len, &fresh, &err);
        if (used < 0)
            return step_http_short(c, used, &fresh, &err);
        req = &fresh;
        head_learn(&l->known, p, (size_t)used, req);
    }
    c->continued = c->in_body = false;
    if (conn_above(c)) {
        if (!l->service->vital || !l->service->vital(req)) {
            refuse_above(c);
            return -1;
        }
        req->keep_alive = false;
    }
    struct reply spot, *r = reply_start(c, &spot);
    if (!r) {
        conn_close(c);
        return -1;
    }
    size_t start = r->out->len;
    r->head = req->method == METHOD_HEAD;
    r->keep_alive = req->keep_alive;
    r->minor = req->minor;
    r->waited_ms = waited_ms(c);
    r->run_bytes = (size_t)used;
    /* Chunks were joined. */
    r->once = req->body.len > 0 && req->body.p + req->body.len != p + used;
    req->self = (struct slice){ p, (size_t)used };
    req->rest = what_follows(p, len, (size_t)used, *budget);
    c->behind = len - (size_t)used;
    l->service->http(l->service->ctx, req, r);
    if (put_off(c, r))
        return 0;
    ssize_t served = 1 + (ssize_t)r->repeats;
    stat_add(&l->stats.http_requests, (uint64_t)served);
    reply_count(c, r, (uint32_t)served, 0);
    *budget -= (int)r->repeats;
    reply_finish(c, r, start);
    return used * served;
}

static ssize_t step_resp(struct conn *c, char *p, size_t len, int *budget)
{
    struct loop *l = c->loop;
    char err[RESP_ERROR_BUF];
    ssize_t used = resp_parse(p, len, &l->resp, err);
    if (used == FIRN_EAGAIN)
        return 0;
    if (used < 0) {
        stat_add(&l->stats.resp_errors, 1);
        conn_refuse(c, 400, "", err);
        return -1;
    }
    if (l->resp.argc == 0)
        return used;
    struct reply spot, *r = reply_start(c, &spot);
    if (!r) {
        conn_close(c);
        return -1;
    }
    size_t start = r->out->len;
    r->keep_alive = true;
    l->resp.self = (struct slice){ p, (size_t)used };
    l->resp.rest = what_follows(p, len, (size_t)used, *budget);
    r->waited_ms = waited_ms(c);
    r->run_bytes = (size_t)used;
    r->once = *p != '*'; /* an inline command may have been unescaped */
    c->behind = len - (size_t)used;
    l->service->resp(l->service->ctx, &l->resp, r);
    if (put_off(c, r))
        return 0;
    ssize_t served = 1 + (ssize_t)r->repeats;
    stat_add(&l->stats.resp_requests, (uint64_t)served);
    reply_count(c, r, (uint32_t)served, LATENCY_KINDS);
    *budget -= (int)r->repeats;
    reply_finish(c, r, start);
    return used * served;
}

enum { GUESS_BYTES_MAX = 256 };

static bool is_command(const struct service *s, const char *p, size_t len)
{
    static const char *const always[] = { "PING", "QUIT" }; /* so that the refusal is RESP, too */
    for (int i = 0; i < 2; i++)
        if (len == 4 && strncasecmp(p, always[i], 4) == 0)
            return true;
    return s->command && s->command(p, len);
}

/* A '*' begins RESP. So does a line that people type into telnet: one whose first word is a command
 * and no method of HTTP, and that has no version of HTTP in it, as every request of HTTP has (not
 * looked for beyond GUESS_BYTES_MAX). Everything else is HTTP's to judge. 0: the first bytes do not
 * tell yet. */
static uint8_t guess_proto(const struct service *s, const char *p, size_t len)
{
    size_t word = 0, most = len < GUESS_BYTES_MAX ? len : GUESS_BYTES_MAX;
    if (*p == '*')
        return 2;
    while (word < most && p[word] > ' ')
        word++;
    if (word == len && len < COMMAND_BYTES_MAX)
        return (*p | 0x20) >= 'a' && (*p | 0x20) <= 'z' ? 0 : 1;
    if (word > COMMAND_BYTES_MAX || http_is_method(p, word) || !is_command(s, p, word))
        return 1;
    const char *end = memchr(p, '\n', most);
    if (!end && len < GUESS_BYTES_MAX)
        return 0;
    return memmem(p, end ? (size_t)(end - p) : most, " HTTP/", 6) ? 1 : 2;
}

static bool conn_know(struct conn *c, const char *p, size_t len)
{
    if (c->peer.proto == 0)
        c->peer.proto = guess_proto(c->loop->service, p, len);
    if (c->peer.proto == 0)
        return false;
    if (c->peer.proto != 1) /* may idle for ever: let the kernel find dead peers */
        uv_tcp_keepalive(&c->tcp, 1, 300);
    return true;
}

size_t conn_pump(struct conn *c, char *p, size_t len)
{
    size_t at = 0;
    int budget = REQUESTS_PER_WAKE;
    c->in_partial = false;
    c->pumping = true;
    while (at < len && c->state == CONN_READING &&
           !conn_full(c, c->loop->out.len - c->loop->out_from) && budget-- > 0 &&
           c->waiting < DEFERRED_PER_CONN) {
        if (c->peer.proto == 0) {
            if (!conn_know(c, p + at, len - at)) {
                c->in_partial = true;
                break;
            }
            if (conn_above(c) && c->peer.proto != 1) {
                refuse_above(c);
                break;
            }
            if (c->plain) {
                stat_add(&c->loop->stats.tls_errors, 1);
                conn_refuse(c, 400, "this port speaks TLS: use https",
                            "this port speaks TLS: use rediss or --tls");
                break;
            }
            if (c->peer.proto != 1 && !c->loop->service->resp) {
                stat_add(&c->loop->stats.resp_errors, 1);
                conn_refuse(c, 400, "", "this port speaks HTTP, not the Redis protocol");
                break;
            }
        }
        ssize_t used = c->peer.proto == 1 ? step_http(c, p + at, len - at, &budget)
                                          : step_resp(c, p + at, len - at, &budget);
        if (used == 0)
            c->in_partial = !c->paused;
        if (used <= 0)
            break;
        at += (size_t)used;
        /* With the repeats that the handler answered, too. */
        firn_assert(at <= len && budget >= 0, "at=%zu len=%zu budget=%d", at, len, budget);
        c->loop->handed_over = true;
    }
    if (c->peer.proto > 1) {
        const struct service *s = c->loop->service;
        bool may_idle = !s->may_idle || s->may_idle(s->ctx, &c->peer);
        if (c->may_idle && !may_idle)
            c->unknown_ms = uv_now(&c->loop->uv);
        c->may_idle = may_idle;
    }
    c->pumping = false;
    return at;
}
