/*
 * Replies: heads, bodies and deferring. A reply that is given at once goes straight into the loop's
 * shared output; a deferred one has a buffer of its own and stands in its connection's queue, so
 * that replies leave in the order of their requests, whatever order they are done in. While the
 * queue is not empty every reply goes through it (conn.c). Tested in tests/unit/net/conn.c.
 */
#include "net/conn.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    SPARES_MAX = 4096,          /* kept for reuse; more than so many at once is rare */
    SPARE_BUF_BYTES_MAX = 1024, /* larger buffers are given back */
};

struct reply *reply_new(struct conn *c)
{
    struct loop *l = c->loop;
    if (c->waiting >= DEFERRED_PER_CONN + REPLIES_MORE_MAX)
        return NULL;
    firn_assert(c->state == CONN_READING && (c->waiting > 0) == (c->first != NULL),
                "state=%d waiting=%u", c->state, c->waiting);
    firn_assert((l->spare != NULL) == (l->spares > 0), "spares=%u", l->spares);
    struct reply *r = l->spare;
    if (r) {
        l->spare = r->next;
        l->spares--;
    } else if (!(r = calloc(1, sizeof *r))) {
        return NULL;
    }
    struct buf own = r->own; /* its memory is used again */
    own.len = 0;
    own.max = l->opts.out_max_bytes;
    *r = (struct reply){ .peer = &c->peer, .loop = l, .own = own };
    r->out = &r->own;
    firn_assert(!*c->last); /* it becomes the last one */
    *c->last = r;
    c->last = &r->next;
    c->waiting++;
    stat_add(&l->stats.deferred, 1);
    return r;
}

void reply_free(struct loop *l, struct reply *r)
{
    firn_assert(r->done && r->loop == l && l->stats.deferred > 0);
    firn_assert(l->held_bytes >= r->held, "held=%zu of %" PRIu64, r->held, l->held_bytes);
    stat_add(&l->stats.deferred, (uint64_t)-1);
    l->held_bytes -= r->held;
    if (r->own.cap > SPARE_BUF_BYTES_MAX || r->own.failed)
        buf_done(&r->own);
    if (l->spares >= SPARES_MAX) {
        buf_done(&r->own);
        free(r);
        return;
    }
    r->next = l->spare;
    l->spare = r;
    l->spares++;
}

void reply_take_back(struct conn *c, struct reply *r)
{
    struct reply **at = &c->first;
    while (*at != r)
        at = &(*at)->next;
    firn_assert(!r->next && !r->done && !r->deferred && r->held == 0 && c->waiting > 0);
    *at = NULL;
    c->last = at;
    c->waiting--;
    r->done = true;
    reply_free(c->loop, r);
}

bool reply_retry(struct reply *r, uint32_t ms)
{
    if (r->deferred || !r->peer || r->once)
        return false;
    r->retry_ms = ms ? ms : 1;
    return true;
}

struct reply *reply_defer(struct reply *r, enum defer_mode mode)
{
    struct reply *q = r;
    firn_assert(!r->deferred && !r->done); /* once for each request */
    if (r->out != &r->own) {
        q = reply_new(peer_conn(r->peer));
        if (!q)
            return NULL;
        q->head = r->head;
        q->keep_alive = r->keep_alive;
        q->minor = r->minor;
        q->close = r->close;
        q->fields = r->fields;
        q->user = r->user;
    }
    q->serial = mode == DEFER_SERIAL;
    q->deferred = r->deferred = true;
    return q;
}

struct reply *reply_more(struct reply *r, struct reply *spot)
{
    struct conn *c = peer_conn(r->peer);
    struct reply *m = spot;
    firn_assert(!r->done);
    if (c->first)
        m = reply_new(c);
    else
        *spot = (struct reply){ .out = &c->loop->out, .peer = &c->peer, .loop = c->loop };
    if (m)
        m->keep_alive = m->once = true; /* what came before it has been answered */
    return m;
}

void reply_more_done(struct reply *r, struct reply *more)
{
    if (more->out == &more->own && !more->deferred)
        reply_done(more);
    if (r->out != &r->own) /* the rest of this answer stands in the queue */
        r->deferred = peer_conn(r->peer)->first != NULL;
}

void reply_expect(struct reply *r, size_t len)
{
    if (!r->peer || r->held > 0)
        return;
    firn_assert(!r->done && r->out == &r->own);
    r->held = len;
    peer_conn(r->peer)->held += len;
    r->loop->held_bytes += len;
}

void reply_done(struct reply *r)
{
    firn_assert(!r->done && r->out == &r->own); /* one answer for each request */
    if (r->head && r->own.len > r->body_at && r->body_at > 0)
        r->own.len = r->body_at;
    if (r->user && r->deferred)
        r->loop->service->answered(r->loop->service->ctx, r);
    r->done = true;
    if (!r->peer) {
        reply_free(r->loop, r);
        return;
    }
    struct conn *c = peer_conn(r->peer);
    firn_assert(c->held >= r->held && r->loop->held_bytes >= r->held,
                "held=%zu conn=%zu loop=%" PRIu64, r->held, c->held, r->loop->held_bytes);
    firn_assert(c->state != CONN_CLOSED);
    c->held -= r->held;
    r->loop->held_bytes -= r->held;
    if (c->held + r->own.len > r->loop->opts.out_max_bytes) {
        buf_done(&r->own); /* at once, not when the queue is looked at: many may be done by then */
        r->own.failed = true;
    }
    r->held = r->own.len;
    c->held += r->held;
    r->loop->held_bytes += r->held;
    if (r->close && !r->next && !c->pumping && c->state == CONN_READING) {
        c->last_request = true; /* it has said so: what arrives from now on is not looked at */
        conn_move(c, CONN_WAITING);
    }
    conn_todo(c); /* flushed once a turn, not once a reply */
}

static const char connection_close[] = "Connection: close\r\n";
static const char connection_keep[] = "Connection: keep-alive\r\n";

/* Whether no request of its connection has arrived behind the one that this answers: the answer
 * that says "Connection: close" is the last one that the peer looks at. */
static bool is_last(const struct reply *r)
{
    if (!r->peer)
        return true;
    struct conn *c = peer_conn(r->peer);
    if (r->follows) {
        if (c->pumping) /* the next one of a run is taken from what is behind */
            c->behind -= r->run_bytes < c->behind ? r->run_bytes : c->behind;
        return false;
    }
    if (r->out == &r->own && r->next)
        return false;
    return c->pumping ? c->behind == 0 : conn_kept(c) == 0;
}

/* Everything of a head but Content-Length and the empty line. */
static void add_head(struct reply *r, unsigned status, const char *fields)
{
    struct buf *b = r->out;
    const struct loop *l = r->loop;
    r->status = (uint16_t)status;
    bool keep = r->keep_alive && !r->close && (!l->leaving || !is_last(r));
    r->close = !keep;
    if (status == 200) {
        static const char ok[] = "HTTP/1.1 200 OK\r\n";
        buf_add(b, ok, sizeof ok - 1);
    } else {
        buf_addf(b, "HTTP/1.1 %u %s\r\n", status, http_status_text(status));
    }
    buf_add(b, l->date, l->date_len);
    buf_add_str(b, fields);
    if (r->fields)
        buf_add_str(b, r->fields);
    if (!keep)
        buf_add(b, connection_close, sizeof connection_close - 1);
    else if (r->minor == 0)
        buf_add(b, connection_keep, sizeof connection_keep - 1);
}

/* The text of "Content-Length: n" and the end of the head, right-aligned in `text`. */
enum { LENGTH_LINE_BYTES = 16 + 20 + 4 };
static char *length_line(char text[LENGTH_LINE_BYTES], uint64_t len)
{
    char *q = text + LENGTH_LINE_BYTES - 4;
    memcpy(q, "\r\n\r\n", 4);
    q = digits_before(q, len) - 16;
    memcpy(q, "Content-Length: ", 16);
    return q;
}

static bool bodiless(unsigned status)
{
    return status == 204 || status == 304 || status < 200;
}

void reply_head(struct reply *r, unsigned status, const char *fields, uint64_t len)
{
    add_head(r, status, fields);
    if (bodiless(status)) {
        buf_add(r->out, "\r\n", 2);
    } else {
        char text[LENGTH_LINE_BYTES], *q = length_line(text, len);
        buf_add(r->out, q, (size_t)(text + LENGTH_LINE_BYTES - q));
    }
    r->body_at = r->out->len;
}

void reply_http(struct reply *r, unsigned status, const char *fields, const void *body, size_t len)
{
    reply_head(r, status, fields, len);
    if (!bodiless(status))
        buf_add(r->out, body, len);
}

/* One look at the room, copies of known size where possible, three digits at most. */
void reply_ok(struct reply *r, const char *fields, size_t fields_len, const char *body, size_t len)
{
    static const char ok[17] = "HTTP/1.1 200 OK\r\n", length[16] = "Content-Length: ";
    const struct loop *l = r->loop;
    if (!r->keep_alive || r->close || (l->leaving && !r->follows) || r->minor == 0 || r->fields ||
        len > 999) {
        reply_http(r, 200, fields, body, len);
        return;
    }
    char *start = buf_room(r->out,
                           sizeof ok + sizeof l->date + fields_len + sizeof length + 7 + len);
    if (!start)
        return;
    char *p = start;
    memcpy(p, ok, sizeof ok);
    p += sizeof ok;
    memcpy(p, l->date, sizeof l->date);
    p += l->date_len;
    memcpy(p, fields, fields_len);
    p += fields_len;
    memcpy(p, length, sizeof length);
    p += sizeof length;
    unsigned n = (unsigned)len;
    if (n >= 100)
        *p++ = (char)('0' + n / 100);
    if (n >= 10)
        *p++ = (char)('0' + n / 10 % 10);
    *p++ = (char)('0' + n % 10);
    memcpy(p, "\r\n\r\n", 4);
    p += 4;
    buf_commit(r->out, (size_t)(p - start));
    r->body_at = r->out->len;
    memcpy(p, body, len);
    buf_commit(r->out, len);
}

void reply_begin(struct reply *r, unsigned status, const char *fields)
{
    add_head(r, status, fields);
    r->body_at = r->out->len;
}

void reply_end(struct reply *r)
{
    struct buf *b = r->out;
    firn_assert(b->len >= r->body_at, "len=%zu body=%zu", b->len, r->body_at);
    char text[LENGTH_LINE_BYTES], *q = length_line(text, b->len - r->body_at);
    size_t n = (size_t)(text + LENGTH_LINE_BYTES - q);
    if (!buf_room(b, n))
        return;
    char *body = b->p + r->body_at;
    memmove(body + n, body, b->len - r->body_at);
    memcpy(body, q, n);
    b->len += n;
    r->body_at += n;
}

void reply_problem(struct reply *r, unsigned status, const char *detail)
{
    reply_begin(r, status, "Content-Type: application/problem+json\r\nCache-Control: no-store\r\n");
    buf_addf(r->out, "{\"title\":\"%s\",\"status\":%u,\"detail\":\"%s\"}\n",
             http_status_text(status), status, detail);
    reply_end(r);
}
