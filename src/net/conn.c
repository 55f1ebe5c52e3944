/*
 * The life of a connection: reading, sending, deadlines and its end.
 *
 * A read lands in the loop's shared buffer, behind the bytes that the connection had left over.
 * conn_pump() (pump.c) parses and answers every whole request in it into the loop's shared output.
 * Short answers of the connections that one poll found readable are gathered there and sent one
 * after another (conn_flush()), so that clients wake up once for several of them. In the common
 * case nothing remains: the connection owns no buffer at all and costs its struct. What does remain
 * is kept: the unfinished request in `in`, unsent bytes in `sending` (libuv has them) and `out`
 * (behind those).
 *
 * libuv says when a socket can be read and sends what a socket did not take at once; all else goes
 * to the socket directly.
 *
 * Deferred replies stand in a queue; conn_settle() flushes the ones that are done from its front,
 * once per turn of the loop. A connection ends in three ways: conn_finish() after its last reply
 * (half-close, then wait for the peer, so that closing with unread input does not destroy the reply
 * on its way), conn_close() at once, or the peer's end, after all its requests have been answered.
 *
 * TLS lies below all that, in three places: conn_read() decrypts (conn_unseal()), conn_send()
 * encrypts, conn_wind_up() sends close_notify.
 */
#include "net/conn.h"
#include "platform/mono.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(n) (1u << (n))

static const uint8_t conn_next[] = {
    [CONN_READING] = BIT(CONN_WAITING) | BIT(CONN_DRAINING) | BIT(CONN_CLOSED),
    [CONN_WAITING] = BIT(CONN_READING) | BIT(CONN_DRAINING) | BIT(CONN_CLOSED),
    [CONN_DRAINING] = BIT(CONN_CLOSED),
    [CONN_CLOSED] = 0,
};

void conn_move(struct conn *c, enum conn_state next)
{
    firn_assert(conn_next[c->state] & BIT(next), "state=%d next=%d", c->state, next);
    c->state = next;
}

/* recv() and send() of glibc are points of cancellation, which costs a process with threads more
 * than what they do besides. */
static ssize_t socket_recv(int fd, char *p, size_t len)
{
    ssize_t n;
    do
        n = syscall(SYS_recvfrom, fd, p, len, MSG_DONTWAIT, NULL, NULL);
    while (n < 0 && errno == EINTR);
    return n;
}

static ssize_t socket_send(int fd, const char *p, size_t len)
{
    ssize_t n;
    do
        n = syscall(SYS_sendto, fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Drops what is behind `len` in a shared buffer, and memory that is rarely needed. */
static void shared_cut(struct buf *b, size_t len)
{
    enum { KEEP_CAP_BYTES = 4 * 1024 * 1024 };
    b->len = len;
    b->failed = false;
    if (len == 0 && b->cap > KEEP_CAP_BYTES)
        buf_done(b);
}

/* Forgets answers whose connection is gone. */
static void out_reset(struct loop *l)
{
    shared_cut(&l->out, l->out_from);
    shared_cut(&l->sealed, 0);
}

void conn_todo(struct conn *c)
{
    struct loop *l = c->loop;
    if (c->in_todo || c->state == CONN_CLOSED)
        return;
    firn_assert(!l->todo || (l->todo->in_todo && l->todo->todo_prev == &l->todo));
    c->in_todo = true;
    c->todo_next = l->todo;
    c->todo_prev = &l->todo;
    if (l->todo)
        l->todo->todo_prev = &c->todo_next;
    l->todo = c;
}

static void todo_remove(struct conn *c)
{
    if (!c->in_todo)
        return;
    firn_assert(*c->todo_prev == c);
    c->in_todo = false;
    *c->todo_prev = c->todo_next;
    if (c->todo_next)
        c->todo_next->todo_prev = c->todo_prev;
}

/* --- requests that are handed over again --- */

enum { RETRY_EVERY_MS = 1 };

/* In the order in which they paused: those that waited longest are asked first. */
static void on_retry(uv_timer_t *h)
{
    struct loop *l = h->data;
    uint64_t now = uv_now(&l->uv);
    for (struct conn *c = l->paused, *next; c; c = next) {
        next = c->pause_next;
        if (c->resume_ms <= now) {
            conn_resume(c);
            conn_todo(c);
        }
    }
}

void conn_pause(struct conn *c, uint32_t ms)
{
    struct loop *l = c->loop;
    firn_assert(!c->paused && !*l->paused_last);
    if (!l->paused)
        uv_timer_start(&l->retry, on_retry, RETRY_EVERY_MS, RETRY_EVERY_MS);
    c->paused = true;
    c->resume_ms = uv_now(&l->uv) + ms;
    c->pause_next = NULL;
    c->pause_prev = l->paused_last;
    *l->paused_last = c;
    l->paused_last = &c->pause_next;
}

void conn_resume(struct conn *c)
{
    struct loop *l = c->loop;
    if (!c->paused)
        return;
    firn_assert(*c->pause_prev == c);
    c->paused = false;
    *c->pause_prev = c->pause_next;
    if (c->pause_next)
        c->pause_next->pause_prev = c->pause_prev;
    else
        l->paused_last = c->pause_prev;
    if (!l->paused)
        uv_timer_stop(&l->retry);
}

/* The one deadline. `anew` restarts the kinds that any progress restarts. */
static void conn_deadline(struct conn *c, bool anew)
{
    const struct loop_opts *o = &c->loop->opts;
    enum wait_kind kind = WAIT_NOTHING;
    uint32_t ms = 0;
    if (conn_unsent(c) > 0) {
        kind = WAIT_WRITE;
        ms = o->write_ms;
        anew = anew || c->wait != kind;
    } else if (c->state == CONN_DRAINING) {
        kind = WAIT_LINGER;
        ms = LINGER_MS;
        anew = c->wait != kind;
    } else if (c->waiting > 0) {
        anew = true; /* the service has deadlines of its own */
    } else if (conn_above(c)) {
        kind = WAIT_HEAD;
        ms = LINGER_MS;
        anew = c->wait != kind;
    } else if (c->in_partial) {
        kind = c->in_body ? WAIT_BODY : WAIT_HEAD;
        ms = c->in_body ? o->body_ms : o->header_ms;
        anew = anew || c->wait != kind;
    } else {
        kind = WAIT_IDLE;
        ms = c->may_idle ? o->idle_resp_ms : o->idle_http_ms;
        anew = anew || c->wait != kind;
    }
    if (!anew)
        return;
    firn_assert(c->loop->slots[c->slot].conn == c, "slot=%u", c->slot);
    c->wait = kind;
    c->queue_seen = conn_unsent(c);
    uint64_t end_ms = ms > 0 ? uv_now(&c->loop->uv) + ms : 0;
    /* Before AUTH no number of requests makes a connection's time longer. */
    if (c->peer.proto > 1 && !c->may_idle && kind != WAIT_WRITE && kind != WAIT_LINGER) {
        uint64_t last_ms = c->unknown_ms + o->idle_http_ms;
        end_ms = end_ms == 0 || last_ms < end_ms ? last_ms : end_ms;
    }
    c->loop->slots[c->slot].deadline_ms = end_ms;
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf);
static void on_readable(uv_stream_t *s, ssize_t n, const uv_buf_t *buf);

/* Whether to read is computed in this one place. */
static void conn_want(struct conn *c)
{
    bool want = false;
    if (c->state == CONN_READING)
        want = !c->eof && !c->throttled && !(conn_kept(c) > 0 && !c->in_partial);
    else if (c->state == CONN_DRAINING)
        want = !c->eof; /* to see the peer's end; what it still says is dropped */
    if (want == c->reading || c->state == CONN_CLOSED)
        return;
    c->reading = want;
    if (!want)
        uv_read_stop((uv_stream_t *)&c->tcp);
    else if (uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_readable) < 0)
        conn_close(c);
}

static void on_closed(uv_handle_t *h)
{
    struct conn *c = h->data;
    struct loop *l = c->loop;
    firn_assert(c->state == CONN_CLOSED && !c->sending && !c->first && !c->in_todo);
    firn_assert(l->stats.conns > 0 && l->held_bytes >= c->out.cap, "held=%" PRIu64, l->held_bytes);
    stat_add(&l->stats.conns, (uint64_t)-1);
    places_give(l->places, c->peer.network, c->place);
    l->held_bytes -= c->out.cap;
    buf_done(&c->in);
    buf_done(&c->out);
    tls_free(c->tls);
    free(c);
}

void conn_close(struct conn *c)
{
    struct loop *l = c->loop;
    if (c->state == CONN_CLOSED)
        return;
    conn_move(c, CONN_CLOSED);
    todo_remove(c);
    for (unsigned i = 0; c->gathered && i < l->gathered_n; i++)
        if (l->gathered[i].conn == c)
            l->gathered[i].conn = NULL;
    conn_resume(c);
    firn_assert(c->slot < l->slots_len && l->slots[c->slot].conn == c, "slot=%u of %u", c->slot,
                l->slots_len);
    struct slot *last = &l->slots[--l->slots_len];
    last->conn->slot = c->slot;
    l->slots[c->slot] = *last;

    for (struct reply *r = c->first, *next; r; r = next) {
        next = r->next;
        firn_assert(r->peer == &c->peer && c->waiting > 0 && c->held >= r->held, "held=%zu of %zu",
                    r->held, c->held);
        c->waiting--;
        c->held -= r->held;
        r->peer = NULL; /* the service that has it does not notice */
        if (r->done)
            reply_free(l, r);
    }
    firn_assert(c->waiting == 0 && c->held == 0, "waiting=%u held=%zu", c->waiting, c->held);
    c->first = NULL;
    if (l->service->closed)
        l->service->closed(l->service->ctx, &c->peer);
    uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
    (void)status;
    free(req);
}

static void conn_send(struct conn *c);

/* Draining: once everything is sent, half-close and wait for the peer, or for LINGER_MS. */
static void conn_wind_up(struct conn *c)
{
    if (c->state != CONN_DRAINING || c->shut || conn_unsent(c) > 0)
        return;
    if (c->tls) {
        tls_bye(c->tls, &c->loop->sealed);
        conn_send(c);
        if (c->state == CONN_CLOSED || conn_unsent(c) > 0)
            return;
    }
    /* Replies may still be deferred here: a broken TLS record, or an answer that closes, ends the
     * connection before them. They are dropped when they come, or by conn_close(). */
    c->shut = true;
    if (c->eof) {
        conn_close(c);
        return;
    }
    uv_shutdown_t *req = malloc(sizeof *req);
    if (!req || uv_shutdown(req, (uv_stream_t *)&c->tcp, on_shutdown) < 0) {
        free(req);
        conn_close(c);
    }
}

/* No request after this; what is queued is still sent. */
void conn_finish(struct conn *c)
{
    if (c->state == CONN_DRAINING || c->state == CONN_CLOSED)
        return;
    conn_move(c, CONN_DRAINING);
    buf_done(&c->in);
    c->in_at = 0;
}

static void conn_overrun(struct conn *c)
{
    stat_add(&c->loop->stats.overruns, 1);
    conn_close(c);
}

/* Interest, deadline and end follow from the state after every event. */
static void conn_rest(struct conn *c, bool progress)
{
    struct loop *l = c->loop;
    if (c->state == CONN_CLOSED)
        return;
    conn_full(c, 0);
    bool nothing_left = c->waiting == 0 && conn_kept(c) == 0;
    bool grace = uv_is_active((uv_handle_t *)&l->grace) && c->peer.proto <= 1 &&
                 (l->ports_open || !c->begun);
    if (c->state == CONN_READING && nothing_left && (c->eof || (l->draining && !grace)))
        conn_finish(c);
    else if (c->state == CONN_READING && c->eof && c->waiting == 0 && c->in_partial)
        conn_finish(c); /* the rest of this request will never come */
    conn_wind_up(c);
    if (c->state == CONN_CLOSED)
        return;
    conn_want(c);
    if (c->state != CONN_CLOSED)
        conn_deadline(c, progress);
}

static void conn_push(struct conn *c);

static void on_written(uv_write_t *req, int status)
{
    struct sending *s = (struct sending *)req;
    struct conn *c = req->data;
    firn_assert(c->sending == s && c->loop->held_bytes >= s->b.cap, "held=%" PRIu64 " cap=%zu",
                c->loop->held_bytes, s->b.cap);
    c->loop->held_bytes -= s->b.cap;
    c->sending = NULL;
    buf_done(&s->b);
    free(s);
    if (c->state == CONN_CLOSED)
        return;
    if (status < 0) {
        conn_close(c);
        return;
    }
    if (c->out.len > 0)
        conn_push(c);
    if (c->state == CONN_READING && conn_kept(c) > 0)
        conn_todo(c); /* requests that waited for the peer to read */
    conn_rest(c, true);
}

/* Gives `b` from `at` on (transferred) to libuv. */
static void conn_send_later(struct conn *c, struct buf *b, size_t at)
{
    firn_assert(!c->sending && at < b->len, "at=%zu len=%zu", at, b->len);
    struct sending *s = malloc(sizeof *s);
    if (!s) {
        buf_done(b);
        conn_overrun(c);
        return;
    }
    s->b = *b;
    s->req.data = c;
    buf_init(b, b->max);
    uv_buf_t part = uv_buf_init(s->b.p + at, (unsigned)(s->b.len - at));
    c->loop->held_bytes += s->b.cap;
    if (uv_write(&s->req, (uv_stream_t *)&c->tcp, &part, 1, on_written) < 0) {
        c->loop->held_bytes -= s->b.cap;
        buf_done(&s->b);
        free(s);
        conn_close(c);
        return;
    }
    c->sending = s;
    if (c->loop->held_bytes > c->loop->opts.loop_out_max_bytes)
        conn_overrun(c);
}

static void conn_push(struct conn *c)
{
    firn_assert(c->loop->held_bytes >= c->out.cap, "held=%" PRIu64 " cap=%zu", c->loop->held_bytes,
                c->out.cap);
    c->loop->held_bytes -= c->out.cap;
    conn_send_later(c, &c->out, 0);
}

/* Moves the answers in hand to `sealed`, as records, behind what TLS itself had to say. */
static void conn_seal(struct conn *c)
{
    struct loop *l = c->loop;
    if (l->out.failed ||
        tls_write(c->tls, l->out.p + l->out_from, l->out.len - l->out_from, &l->sealed) != 0)
        l->sealed.failed = true;
    shared_cut(&l->out, l->out_from);
}

/* Sends a part of a shared buffer: at once if possible, all of it or some. */
static void conn_send_part(struct conn *c, struct buf *b, size_t at, size_t len)
{
    enum { STEAL_BYTES = 32 * 1024 };
    struct loop *l = c->loop;
    size_t sent = 0;
    if (!c->sending) { /* libuv has nothing of this connection to send: no need to ask it */
        ssize_t n = socket_send(c->fd, b->p + at, len);
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) {
            conn_close(c);
            return;
        }
        sent = n > 0 ? (size_t)n : 0;
    }
    firn_assert(sent <= len, "sent=%zu len=%zu", sent, len);
    stat_add(&l->stats.bytes_out, len);
    size_t rest = len - sent;
    if (rest == 0)
        return;
    if (!c->sending && rest >= STEAL_BYTES && len == b->len) { /* cheaper to give it away */
        conn_send_later(c, b, sent);
        return;
    }
    firn_assert(l->held_bytes >= c->out.cap, "held=%" PRIu64 " cap=%zu", l->held_bytes, c->out.cap);
    l->held_bytes -= c->out.cap;
    buf_add(&c->out, b->p + at + sent, rest);
    l->held_bytes += c->out.cap;
    if (c->out.failed || l->held_bytes > l->opts.loop_out_max_bytes)
        conn_overrun(c);
    else if (!c->sending)
        conn_push(c);
    firn_assert(c->sending || c->state == CONN_CLOSED); /* its end sends what is behind it */
}

/* Sends the answers in hand, which are this connection's. */
static void conn_send(struct conn *c)
{
    struct loop *l = c->loop;
    if (c->tls && l->out.len > l->out_from)
        conn_seal(c);
    struct buf *b = c->tls ? &l->sealed : &l->out;
    size_t from = c->tls ? 0 : l->out_from;
    if (b->failed || l->out.failed) {
        out_reset(l);
        conn_overrun(c);
        return;
    }
    if (b->len == from)
        return;
    conn_send_part(c, b, from, b->len - from);
    shared_cut(b, from);
}

/* Moves done replies from the front of the queue to the shared output. */
static void conn_collect(struct conn *c)
{
    struct reply *r;
    while ((r = c->first) && r->done) {
        bool close = r->close || !r->keep_alive;
        firn_assert(r->peer == &c->peer && c->waiting > 0, "waiting=%u", c->waiting);
        firn_assert(r->held == r->own.len && c->held >= r->held, "held=%zu len=%zu of %zu", r->held,
                    r->own.len, c->held);
        buf_add(&c->loop->out, r->own.p, r->own.len);
        if (r->own.failed)
            c->loop->out.failed = true;
        c->first = r->next;
        if (!c->first)
            c->last = &c->first;
        c->waiting--;
        c->held -= r->held;
        if (r->served)
            latency_add(&c->loop->latency[latency_index(c, r->timed_as)],
                        c->loop->settle_ns - r->began_ns, r->served);
        reply_free(c->loop, r);
        if (close) {
            conn_finish(c);
            break;
        }
    }
}

/* The answers are sent. */
static void conn_answered(struct conn *c, bool progress)
{
    if (c->state == CONN_READING && conn_kept(c) > 0 && !c->in_partial && !conn_full(c, 0) &&
        c->waiting < DEFERRED_PER_CONN && !c->paused)
        conn_todo(c); /* whole requests may remain that no event will announce */
    conn_rest(c, progress);
}

static void conn_after_pump(struct conn *c, bool progress)
{
    if (c->state == CONN_CLOSED) {
        out_reset(c->loop);
        return;
    }
    conn_send(c);
    conn_answered(c, progress);
}

/* Leaves the answers in hand where they are, for conn_flush(). False: they are to be sent now. */
static bool conn_gather(struct conn *c, bool progress)
{
    struct loop *l = c->loop;
    size_t len = l->out.len - l->out_from;
    if (len == 0 || len > GATHER_BYTES_MAX || l->out.failed || c->tls || c->sending ||
        c->state == CONN_CLOSED)
        return false;
    firn_assert(!c->gathered && l->gathered_n < GATHER_MAX, "%u", l->gathered_n);
    l->gathered[l->gathered_n++] = (struct gathered){ c, l->out_from, len, progress };
    l->out_from = l->out.len;
    c->gathered = true;
    return true;
}

void conn_time(struct loop *l)
{
    uint64_t usual[2] = { l->stats.http_requests - l->timed[0],
                          l->stats.resp_requests - l->timed[1] };
    if ((usual[0] | usual[1] | l->answered_set) == 0)
        return;
    uint64_t ns = mono_ns() - l->turn_ns;
    for (int proto = 0; proto < 2; proto++)
        if (usual[proto] > 0) {
            latency_add(&l->latency[proto * LATENCY_KINDS], ns, usual[proto]);
            l->timed[proto] += usual[proto];
        }
    for (; l->answered_set; l->answered_set &= l->answered_set - 1) {
        int k = __builtin_ctz(l->answered_set);
        latency_add(&l->latency[k], ns, l->answered[k]);
        l->answered[k] = 0;
    }
}

void conn_flush(struct loop *l)
{
    for (unsigned i = 0; i < l->gathered_n; i++) {
        struct gathered g = l->gathered[i];
        if (!g.conn)
            continue;
        g.conn->gathered = false;
        conn_send_part(g.conn, &l->out, g.at, g.len);
        conn_answered(g.conn, g.progress);
    }
    l->gathered_n = 0;
    l->out_from = 0;
    shared_cut(&l->out, 0);
    conn_time(l);
}

/* The first byte tells. False: the connection is closed. */
static bool conn_begin(struct conn *c, size_t n)
{
    struct loop *l = c->loop;
    c->begun = true;
    if (!tls_context_on(l->opts.tls))
        return true;
    c->plain = (unsigned char)l->in[0] != TLS_FIRST_BYTE;
    if (c->plain)
        return true;
    int r = tls_accept(l->opts.tls, &c->tls); /* above the limit, too: a health check may come */
    if (r == FIRN_ENOENT)                     /* turned off in this moment */
        return true;
    if (r) {
        conn_close(c);
        return false;
    }
    c->peer.tls = true;
    memcpy(l->cipher, l->in, n);
    return true;
}

/* Decrypts the `n` bytes in l->cipher to l->in, behind the bytes that were left over; returns how
 * many came out. Where none did, it has done everything that follows from that. */
static size_t conn_unseal(struct conn *c, size_t n)
{
    struct loop *l = c->loop;
    size_t kept = conn_kept(c), got = 0;
    bool was_ready = tls_ready(c->tls);
    int r = 0;
    if (kept > 0)
        memcpy(l->in, c->in.p + c->in_at, kept);
    for (size_t at = 0, part; at < n && r == 0; at += part) { /* only the first read is long */
        size_t len = 0;
        part = n - at < TLS_READ_BYTES ? n - at : TLS_READ_BYTES;
        r = tls_read(c->tls, l->cipher + at, part, l->in + kept + got, IN_BYTES_MAX - kept - got,
                     &len, &l->sealed);
        got += len;
        firn_assert(kept + got <= IN_BYTES_MAX, "kept=%zu got=%zu", kept, got);
    }
    if (!was_ready) {
        c->in_partial = !tls_ready(c->tls); /* so that the handshake has a head's deadline */
        c->peer.cert_name = tls_peer_name(c->tls);
        stat_add(&l->stats.tls_handshakes, tls_ready(c->tls));
    }
    if (r == FIRN_ECLOSED) {
        c->eof = true;
    } else if (r) {
        stat_add(&l->stats.tls_errors, 1);
        conn_finish(c); /* after the alert that says why */
        got = 0;
    }
    if (got == 0) /* bytes that complete no record win no time */
        conn_after_pump(c, false);
    return got;
}

/* Without a buffer libuv does not read: it calls on_readable(), which does. */
static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    (void)h;
    (void)suggested;
    *buf = uv_buf_init(NULL, 0);
}

static void conn_read(struct conn *c, size_t n);

/* Reads into the shared buffer, behind what this connection left over; TLS into its own. True: the
 * socket may have more. */
static bool conn_recv(struct conn *c)
{
    struct loop *l = c->loop;
    size_t kept = c->tls ? 0 : conn_kept(c), room = IN_BYTES_MAX - kept;
    firn_assert(kept < IN_BYTES_MAX, "kept=%zu", kept); /* a whole request is shorter than that */
    room = c->tls ? TLS_READ_BYTES : room < READ_BYTES ? room : READ_BYTES;
    if (kept > 0)
        memcpy(l->in, c->in.p + c->in_at, kept);
    if (l->turn_ns == 0)
        l->turn_ns = mono_ns();
    ssize_t n = socket_recv(c->fd, c->tls ? l->cipher : l->in + kept, room);
    if (n > 0) {
        conn_read(c, (size_t)n);
    } else if (n == 0 && !c->shut) {
        c->eof = true; /* it may still be reading: what it asked for is answered */
        conn_rest(c, false);
    } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
        conn_close(c);
    }
    return n == (ssize_t)room;
}

static void on_readable(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    (void)buf;
    struct conn *c = s->data;
    struct loop *l = c->loop;
    firn_assert(n == UV_ENOBUFS, "%zd", n);
    for (int i = 0; i < READS_PER_TURN; i++) {
        if (c->gathered || l->gathered_n == GATHER_MAX)
            conn_flush(l);
        if (!c->reading || c->state == CONN_CLOSED || !conn_recv(c))
            break;
    }
}

static void conn_read(struct conn *c, size_t n)
{
    struct loop *l = c->loop;
    stat_add(&l->stats.bytes_in, n);
    if (c->state != CONN_READING)
        return;
    size_t kept = conn_kept(c), fresh = n;
    if (!c->begun && !conn_begin(c, fresh))
        return;
    if (c->tls && (fresh = conn_unseal(c, fresh)) == 0)
        return;
    size_t len = kept + fresh;
    bool was_partial = c->in_partial, was_body = c->in_body;
    firn_assert(len <= IN_BYTES_MAX, "kept=%zu fresh=%zu", kept, fresh);
    size_t used = conn_pump(c, l->in, len);

    if (used == len || c->state == CONN_DRAINING || c->state == CONN_CLOSED) {
        if (c->in.cap > 0)
            buf_done(&c->in);
    } else {
        c->in.len = 0;
        buf_add(&c->in, l->in + used, len - used);
        if (c->in.failed) {
            conn_close(c);
            out_reset(l);
            return;
        }
    }
    c->in_at = 0;
    /* More bytes of the same unfinished request do not win it time; anything answered does. */
    bool crawling = used == 0 && was_partial && c->in_partial && was_body == c->in_body;
    if (!conn_gather(c, !crawling))
        conn_after_pump(c, !crawling);
}

void conn_settle(struct conn *c)
{
    bool progress = c->first && c->first->done;
    todo_remove(c);
    conn_collect(c);
    firn_assert((c->waiting > 0) == (c->first != NULL) &&
                    c->waiting <= DEFERRED_PER_CONN + REPLIES_MORE_MAX,
                "waiting=%u", c->waiting);
    conn_send(c);
    if (c->state == CONN_WAITING && !c->first)
        conn_move(c, CONN_READING);
    if (c->state == CONN_READING && conn_kept(c) > 0 && !c->paused) {
        size_t used = conn_pump(c, c->in.p + c->in_at, conn_kept(c));
        progress |= used > 0;
        c->in_at += used;
        firn_assert(c->in_at <= c->in.len || c->in.len == 0, "at=%zu len=%zu", c->in_at, c->in.len);
        if (c->in_at >= c->in.len) {
            buf_done(&c->in);
            c->in_at = 0;
        }
    }
    conn_after_pump(c, progress);
}

void conn_expire(struct conn *c)
{
    firn_assert(c->state != CONN_CLOSED);
    switch (c->wait) {
    case WAIT_NOTHING:
        return;
    case WAIT_WRITE:
        if (conn_unsent(c) < c->queue_seen) { /* slow, but it reads */
            conn_deadline(c, true);
            return;
        }
        break;
    case WAIT_HEAD:
    case WAIT_BODY:
        stat_add(&c->loop->stats.timeouts, 1);
        if (c->peer.proto == 1 && c->in_partial && c->state == CONN_READING) {
            conn_refuse(c, 408, "the request did not become whole in time", "");
            conn_after_pump(c, true);
        } else {
            conn_close(c);
        }
        return;
    case WAIT_IDLE:
    case WAIT_LINGER:
        break;
    }
    if (c->wait != WAIT_LINGER)
        stat_add(&c->loop->stats.timeouts, 1);
    conn_close(c);
}

void conn_drain(struct conn *c)
{
    conn_rest(c, false);
}

static bool slot_take(struct loop *l, struct conn *c)
{
    if (l->slots_len == l->slots_cap) {
        uint32_t cap = l->slots_cap ? l->slots_cap * 2 : 64;
        struct slot *slots = realloc(l->slots, cap * sizeof *slots);
        if (!slots)
            return false;
        l->slots = slots;
        l->slots_cap = cap;
    }
    firn_assert(l->slots_len < l->slots_cap, "%u of %u", l->slots_len, l->slots_cap);
    c->slot = l->slots_len++;
    l->slots[c->slot] = (struct slot){ c, 0 };
    return true;
}

static void on_turned_away(uv_handle_t *h)
{
    struct conn *c = h->data;
    places_give(c->loop->places, c->peer.network, c->place);
    free(c);
}

static struct network conn_network(const struct conn *c)
{
    struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
    int len = sizeof sa;
    if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&sa, &len) < 0)
        sa.ss_family = AF_UNSPEC;
    return network_of((struct sockaddr *)&sa);
}

void conn_accept(struct listener *from, int fd)
{
    static _Atomic uint64_t last_id;
    struct loop *l = from->loop;
    struct conn *c = calloc(1, sizeof *c);
    if (fd < 0)
        from->stuck = !c; /* until it is accepted libuv accepts no other */
    if (!c) {
        if (fd >= 0)
            close(fd);
        return;
    }
    c->loop = l;
    c->last = &c->first;
    buf_init(&c->in, IN_BYTES_MAX);
    buf_init(&c->out, l->opts.out_max_bytes);
    if (uv_tcp_init(&l->uv, &c->tcp) < 0) {
        free(c);
        if (fd >= 0)
            close(fd);
        return;
    }
    c->tcp.data = c;
    int failed = fd < 0 ? uv_accept((uv_stream_t *)&from->tcp, (uv_stream_t *)&c->tcp)
                        : uv_tcp_open(&c->tcp, fd);
    if (failed < 0 && fd >= 0)
        close(fd);
    c->peer.network = conn_network(c);
    c->place = places_take(l->places, c->peer.network);
    if (failed < 0 || c->place == PLACE_NONE || !slot_take(l, c)) {
        if (c->place == PLACE_NONE)
            stat_add(&l->stats.refused, 1);
        uv_close((uv_handle_t *)&c->tcp, on_turned_away);
        return;
    }
    stat_add(&l->stats.accepted, 1);
    stat_add(&l->stats.conns, 1);
    uv_tcp_nodelay(&c->tcp, 1);
    uv_fileno((uv_handle_t *)&c->tcp, &c->fd); /* it has one: it was accepted */
    c->peer.id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    c->peer.tag = from->tag;
    c->unknown_ms = uv_now(&l->uv);
    conn_rest(c, true);
}

void peer_address(const struct peer *p, char out[PEER_ADDRESS_BUF])
{
    struct sockaddr_storage sa;
    int len = sizeof sa;
    char host[46];
    snprintf(out, PEER_ADDRESS_BUF, "?");
    if (!p || uv_tcp_getpeername(&peer_conn(p)->tcp, (struct sockaddr *)&sa, &len) < 0)
        return;
    if (sa.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&sa;
        uv_ip6_name(in, host, sizeof host);
        snprintf(out, PEER_ADDRESS_BUF, "[%s]:%u", host, ntohs(in->sin6_port));
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&sa;
        uv_ip4_name(in, host, sizeof host);
        snprintf(out, PEER_ADDRESS_BUF, "%s:%u", host, ntohs(in->sin_port));
    }
}
