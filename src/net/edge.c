/*
 * Clients of a proxy: from bytes to requests, one after another on a connection, and from answers
 * to bytes. Framing is decided here alone, in both directions. Tested in tests/unit/net/proxy.c.
 *
 * A connection: READING (between requests, or in the middle of a head) -> IN_HAND (the owner has
 * the request) -> READING, with PASSING in between where the rest of a body that nobody wanted is
 * passed over -> LINGERING (the last answer is sent; the client's end is awaited, so that closing
 * with unread input does not destroy the answer on its way).
 */
#include "net/edge.h"
#include "net/stream.h"
#include "wire/http_body.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PASS_BYTES_MAX = 256 * 1024, /* of a body that nobody wanted, to keep the connection */
    SMALL_HEAD = 2048,           /* heads up to this need no memory of their own */
    SPARES_MAX = 256,
};

enum client_state { READING, IN_HAND, PASSING, LINGERING };

/* Which deadline runs. */
enum wait { FOR_NOTHING, FOR_HEAD, FOR_NEXT, FOR_BODY, FOR_WRITE, FOR_END };

struct request { /* what the owner has is its first member */
    struct edge_request pub;
    struct client *client;
    struct http_body in;
    char *bytes; /* of the head; `small`, or allocated */
    bool wanted, continued, paused, answered, keep, chunked, no_body, tunnel, end_told;
    bool body_begun;
    bool out_counted;
    uint64_t out_left; /* with out_counted */
    size_t progress;   /* body bytes since the deadline was set */
    struct request *next;
    char small[SMALL_HEAD];
};

struct client {
    struct stream *stream;
    struct edge *edge;
    enum client_state state;
    int tag;
    enum wait wait;
    bool begun, partial, eof, reset;
    bool unproxied; /* its PROXY header is awaited */
    uint32_t requests;
    struct request *q; /* IN_HAND, PASSING */
    size_t passed;
    uint64_t sent_seen; /* stream_sent() when the deadline was set */
    uint64_t idle_from; /* ms of the loop: since when the next request is awaited */
    struct network network;
    enum place place;
    char address[PEER_ADDRESS_BUF];
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } at;
    struct client *next, **prev;
};

struct port { /* user of a listener */
    struct edge *edge;
    struct tls_context *tls;
    struct port *next;
};

struct edge {
    struct loop *loop;
    struct edge_opts opts;
    const struct edge_calls *calls;
    void *ctx;
    struct edge_stats stats;
    struct client *clients;
    struct port *ports;
    struct request *spare;
    uint32_t spares;
};

static struct request *request_of(const struct edge_request *q)
{
    return (struct request *)(uintptr_t)q;
}

static struct request *request_new(struct client *c)
{
    struct edge *e = c->edge;
    struct request *q = e->spare;
    if (q) {
        e->spare = q->next;
        e->spares--;
    } else if (!(q = malloc(sizeof *q))) {
        return NULL;
    }
    q->client = c;
    q->bytes = q->small;
    return q;
}

static void request_free(struct edge *e, struct request *q)
{
    if (!q)
        return;
    if (q->bytes != q->small)
        free(q->bytes);
    if (e->spares == SPARES_MAX) {
        free(q);
        return;
    }
    q->next = e->spare;
    e->spare = q;
    e->spares++;
}

/* --- deadlines and ends --- */

static enum wait client_waits(const struct client *c)
{
    const struct request *q = c->q;
    if (stream_unsent(c->stream) > 0)
        return FOR_WRITE;
    if (c->state == LINGERING)
        return FOR_END;
    if (c->state == READING)
        return c->partial || !c->begun ? FOR_HEAD : FOR_NEXT;
    if (c->state == PASSING || (q->wanted && !q->paused && !q->pub.body_done && !q->tunnel))
        return FOR_BODY;
    return FOR_NOTHING;
}

static void client_deadline(struct client *c)
{
    const struct edge_opts *o = &c->edge->opts;
    const uint32_t ms[] = {
        [FOR_NOTHING] = 0,       [FOR_HEAD] = o->header_ms, [FOR_NEXT] = o->idle_ms,
        [FOR_BODY] = o->body_ms, [FOR_WRITE] = o->write_ms, [FOR_END] = LINGER_MS
    };
    c->wait = client_waits(c);
    c->sent_seen = stream_sent(c->stream);
    if (c->q)
        c->q->progress = 0;
    stream_deadline(c->stream, ms[c->wait]);
}

/* The next request is awaited. Its answer's last bytes leave at the end of the turn, so in this
 * moment the deadline would be that of a write, and idle_ms would count from its end only. */
static void client_next(struct client *c)
{
    const struct edge_opts *o = &c->edge->opts;
    c->idle_from = loop_now_ms(c->edge->loop);
    client_deadline(c);
    if (c->wait == FOR_WRITE && o->idle_ms < o->write_ms) {
        c->wait = FOR_NEXT; /* if it is still a write then, on_expired() goes on with write_ms */
        stream_deadline(c->stream, o->idle_ms);
    }
}

static void client_close(struct client *c, bool reset)
{
    struct edge *e = c->edge;
    request_free(e, c->q);
    *c->prev = c->next;
    if (c->next)
        c->next->prev = c->prev;
    stat_add(&e->stats.conns, (uint64_t)-1);
    places_give(e->loop->places, c->network, c->place);
    if (reset || stream_unsent(c->stream) > 0) /* nobody takes a part for the whole */
        stream_reset(c->stream);
    else
        stream_close(c->stream);
    free(c);
}

/* Nothing more is answered on this connection. */
static void client_linger(struct client *c)
{
    c->state = LINGERING;
    request_free(c->edge, c->q);
    c->q = NULL;
    stream_shut(c->stream);
    stream_resume(c->stream); /* to see the client's end; what it still says is dropped */
    client_deadline(c);
    if (c->wait != FOR_WRITE)
        return;
    /* The last answer is on its way to the kernel in most cases: on_expired() looks again soon. */
    c->wait = FOR_NOTHING;
    stream_deadline(c->stream, LINGER_MS);
}

/* An answer of the edge's own, and the end. */
static void client_answer(struct client *c, unsigned status, const char *why)
{
    struct edge *e = c->edge;
    char text[512], body[256];
    int len = snprintf(body, sizeof body, "{\"error\":\"%s\"}\n",
                       why); /* texts of ours: no quotes */
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 %u %s\r\n%.*sContent-Type: application/json\r\n"
                     "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
                     status, http_status_text(status), (int)e->loop->date_len, e->loop->date, len,
                     body);
    firn_assert(n > 0 && (size_t)n < sizeof text && (size_t)len < sizeof body, "%d", n);
    stream_write(c->stream, text, (size_t)n);
    stat_add(&e->stats.errors, 1);
    client_linger(c);
}

/* The same to what never became a request of the owner's. */
static void client_refuse(struct client *c, unsigned status, const char *why)
{
    if (c->edge->calls->refused)
        c->edge->calls->refused(c->edge->ctx, c->address, status, why);
    client_answer(c, status, why);
}

/* The request in hand will not become whole. The owner forgets it; if it has not answered, the edge
 * does. */
static void request_broken(struct client *c, unsigned status, const char *why)
{
    struct request *q = c->q;
    bool answered = q->answered, told = c->state == IN_HAND;
    if (told) {
        c->state = PASSING; /* gone() may not act on it any more */
        c->edge->calls->gone(c->edge->ctx, &q->pub, answered ? 0 : status, why);
    }
    if (answered && !told) { /* the answer is complete; it must not be lost with the rest */
        client_linger(c);
        return;
    }
    stat_add(&c->edge->stats.aborted, answered || !status);
    if (answered || !status)
        client_close(c, answered);
    else
        client_answer(c, status, why);
}

/* --- requests --- */

/* The answer is complete. */
static void request_done(struct client *c)
{
    struct request *q = c->q;
    if (!q->keep || c->eof) {
        client_linger(c);
        return;
    }
    if (!q->pub.body_done) {
        c->state = PASSING;
        c->passed = 0;
    } else {
        c->state = READING;
        request_free(c->edge, q);
        c->q = NULL;
    }
    stream_resume(c->stream);
    client_next(c);
}

/* Returns how many bytes the head took, 0: more are needed, -1: refused. */
static ssize_t take_head(struct client *c, const char *p, size_t len)
{
    struct edge *e = c->edge;
    struct http_error err;
    if (len == 0)
        return 0;
    struct request *q = request_new(c);
    if (!q) {
        client_refuse(c, 503, "out of memory");
        return -1;
    }
    ssize_t n = http_head_read(p, len, &q->pub.head, &err);
    if (n < 0) {
        request_free(e, q);
        if (n != FIRN_EAGAIN)
            client_refuse(c, err.status, err.reason);
        return n == FIRN_EAGAIN ? 0 : -1;
    }
    char *bytes = (size_t)n <= sizeof q->small ? q->small : malloc((size_t)n);
    if (!bytes) {
        request_free(e, q);
        client_refuse(c, 503, "out of memory");
        return -1;
    }
    memcpy(bytes, p, (size_t)n);
    http_head_moved(&q->pub.head, p, bytes);
    q->bytes = bytes;
    const struct http_head *h = &q->pub.head;
    http_body_begin(&q->in, h->framing, h->body_len);
    q->pub.user = NULL;
    q->pub.tls = stream_is_tls(c->stream);
    q->pub.tag = c->tag;
    q->pub.body_done = q->in.done;
    q->wanted = q->paused = q->answered = q->chunked = q->no_body = q->tunnel = q->end_told = false;
    q->continued = q->body_begun = q->out_counted = false;
    q->keep = h->keep_alive;
    q->progress = 0;
    c->q = q;
    c->state = IN_HAND;
    c->partial = false;
    c->requests++;
    stat_add(&e->stats.requests, 1);
    stream_deadline(c->stream, 0);
    e->calls->request(e->ctx, &q->pub);
    return n;
}

/* Returns how many bytes were used, -1: the connection is not what it was. */
static ssize_t take_body(struct client *c, const char *p, size_t len)
{
    struct edge *e = c->edge;
    struct request *q = c->q;
    struct slice data;
    ssize_t n = http_body_next(&q->in, p, len, &data);
    if (n < 0) {
        request_broken(c, 400, q->in.why);
        return -1;
    }
    q->body_begun |= n > 0;
    q->progress += (size_t)n;
    q->pub.body_done = q->in.done;
    if (c->state == PASSING) {
        c->passed += (size_t)n;
        if (c->passed > PASS_BYTES_MAX) {
            client_linger(c);
            return -1;
        }
        if (q->in.done) {
            c->state = READING;
            request_free(e, q);
            c->q = NULL;
            client_next(c);
        }
        return n;
    }
    bool more = data.len == 0 || e->calls->body(e->ctx, &q->pub, data.p, data.len);
    if (c->q != q || c->state != IN_HAND) /* the owner has answered or aborted meanwhile */
        return n;
    if (data.len > 0)
        q->paused = !more;
    if (q->in.done && !q->end_told) {
        q->end_told = true;
        e->calls->body_end(e->ctx, &q->pub);
    }
    return n;
}

static size_t on_input(void *user, const char *p, size_t len)
{
    struct client *c = user;
    struct stream *s = c->stream;
    struct edge *e = c->edge;
    size_t at = 0;
    bool fresh = false; /* an unfinished head begins */
    while (at < len) {
        ssize_t n = 0;
        if (c->state == LINGERING)
            return len;
        if (c->state == READING && stream_unsent(s) >= STREAM_WINDOW_BYTES) {
            stream_pause(s); /* it asks and does not read: no further answer before it does */
            break;
        }
        if (c->state == READING) {
            n = take_head(c, p + at, len - at);
            c->begun = true;
            if (n == 0 && !c->partial)
                c->partial = fresh = true;
        } else if (c->state == PASSING) {
            n = take_body(c, p + at, len - at);
        } else if (c->q->tunnel) {
            bool more = e->calls->body(e->ctx, &c->q->pub, p + at, len - at);
            if (c->state == IN_HAND)
                c->q->paused = !more;
            n = (ssize_t)(len - at);
        } else if (!c->q->wanted || c->q->paused || c->q->pub.body_done) {
            stream_pause(s);
            break;
        } else {
            n = take_body(c, p + at, len - at);
        }
        if (n < 0) /* c may be gone; what is left of the input is of no use */
            return len;
        if (n == 0)
            break;
        at += (size_t)n;
        if (c->state == IN_HAND && c->q->tunnel && c->q->paused) {
            stream_pause(s);
            break;
        }
    }
    if (c->state == READING && fresh)
        client_deadline(c);
    else if (c->state == IN_HAND && (c->q->progress >= EDGE_PROGRESS_BYTES || c->q->pub.body_done))
        client_deadline(c);
    return at;
}

static void on_drained(void *user)
{
    struct client *c = user;
    if (c->state == IN_HAND) {
        client_deadline(c);
        c->edge->calls->writable(c->edge->ctx, &c->q->pub);
    } else if (c->state != LINGERING) {
        stream_resume(c->stream);
        client_next(c);
    }
}

static void on_ended(void *user, enum stream_end how, const char *why)
{
    struct client *c = user;
    c->eof = true;
    stat_add(&c->edge->stats.unproxied, c->unproxied);
    if (stream_tls_failed(c->stream)) {
        stat_add(&c->edge->stats.tls_errors, 1);
        if (c->state == READING && c->edge->calls->refused)
            c->edge->calls->refused(c->edge->ctx, c->address, 0, why);
    }
    if (c->state == IN_HAND && how != STREAM_BROKEN && c->q->pub.body_done && !c->q->tunnel)
        return; /* it may still be reading: what it asked for is answered, then see linger */
    if (c->state == IN_HAND && c->q->tunnel && how != STREAM_BROKEN) {
        if (!c->q->end_told) {
            c->q->end_told = true;
            c->edge->calls->body_end(c->edge->ctx, &c->q->pub);
        }
        return;
    }
    if (c->state != IN_HAND && how != STREAM_BROKEN && stream_unsent(c->stream) > 0) {
        if (c->state != LINGERING) /* it may still be reading its answer */
            client_linger(c);
        return;
    }
    if (c->state == IN_HAND)
        request_broken(c, 0,
                       how == STREAM_BROKEN && c->q->pub.body_done
                           ? why
                           : "the client closed the connection in the middle of its request");
    else
        client_close(c, c->reset);
}

static void on_expired(void *user)
{
    struct client *c = user;
    enum wait now = client_waits(c);
    if (now == FOR_NEXT && c->wait == FOR_WRITE) { /* the answer has left since */
        uint64_t gone = loop_now_ms(c->edge->loop) - c->idle_from;
        c->wait = FOR_NEXT;
        if (gone < c->edge->opts.idle_ms) {
            stream_deadline(c->stream, c->edge->opts.idle_ms - gone);
            return;
        }
    }
    bool moves = now == FOR_WRITE && stream_sent(c->stream) > c->sent_seen; /* slow, but it reads */
    if (now != c->wait || moves || now == FOR_NOTHING) {
        client_deadline(c);
        return;
    }
    if (now != FOR_END)
        stat_add(&c->edge->stats.timeouts, 1);
    if (now == FOR_WRITE && c->state == LINGERING) /* a part of the answer is lost */
        stat_add(&c->edge->stats.aborted, 1);
    if (c->state == IN_HAND)
        request_broken(c, now == FOR_WRITE ? 0 : 408,
                       now == FOR_WRITE ? "the client does not read its answer"
                                        : "the request did not become whole in time");
    else if (now == FOR_HEAD && c->partial)
        client_refuse(c, 408, "the request did not become whole in time");
    else
        client_close(c, now == FOR_WRITE);
}

/* Takes the peer's address, and a place for its network. */
static void client_address(struct client *c)
{
    struct sockaddr_storage sa;
    stream_address(c->stream, c->address, &sa);
    memcpy(&c->at, &sa, sizeof c->at);
    c->network = network_of((struct sockaddr *)&sa);
    c->place = places_take(c->edge->loop->places, c->network);
}

/* From here on it counts as a connection of the client that the proxy told. */
static void on_proxied(void *user)
{
    struct client *c = user;
    struct edge *e = c->edge;
    c->unproxied = false;
    places_give(e->loop->places, c->network, c->place);
    client_address(c);
    if (c->place == PLACE_OPEN)
        return;
    stat_add(&e->stats.refused, 1);
    stream_fail(c->stream, "too many connections");
}

static const struct stream_calls client_calls = {
    .input = on_input,
    .drained = on_drained,
    .ended = on_ended,
    .expired = on_expired,
    .proxied = on_proxied,
};

static void on_accept(struct listener *from, int fd)
{
    struct port *port = from->user;
    struct edge *e = port->edge;
    struct client *c = calloc(1, sizeof *c);
    if (!c)
        from->stuck = fd < 0;
    struct stream *s = c ? stream_accept(from, fd, port->tls, &client_calls, c) : NULL;
    if (!s) {
        free(c);
        return;
    }
    c->stream = s;
    c->edge = e;
    c->tag = from->tag;
    client_address(c);
    c->next = e->clients;
    c->prev = &e->clients;
    if (c->next)
        c->next->prev = &c->next;
    e->clients = c;
    stat_add(&e->stats.conns, 1);
    if (c->place != PLACE_OPEN) {
        stat_add(&e->stats.refused, 1);
        client_close(c, false);
        return;
    }
    if (e->opts.proxy_protocol && !e->calls->trusts(e->ctx, &c->at.sa)) {
        stat_add(&e->stats.unproxied, 1);
        client_close(c, true);
        return;
    }
    c->unproxied = e->opts.proxy_protocol;
    if (c->unproxied)
        stream_expect_proxy(s);
    stat_add(&e->stats.accepted, 1);
    client_deadline(c);
}

/* --- the owner's side --- */

void edge_address(const struct edge_request *q, char out[PEER_ADDRESS_BUF],
                  struct sockaddr_storage *sa)
{
    const struct client *c = request_of(q)->client;
    memcpy(out, c->address, sizeof c->address);
    memset(sa, 0, sizeof *sa);
    memcpy(sa, &c->at, sizeof c->at);
}

void edge_own_address(const struct edge_request *q, struct sockaddr_storage *sa)
{
    stream_own_address(request_of(q)->client->stream, sa);
}

const char *edge_cert_name(const struct edge_request *q)
{
    return stream_peer_name(request_of(q)->client->stream);
}

struct slice edge_date(const struct edge_request *q)
{
    const struct loop *l = request_of(q)->client->edge->loop;
    return (struct slice){ l->date, l->date_len };
}

bool edge_answered(const struct edge_request *q)
{
    return request_of(q)->answered;
}

void edge_want_body(struct edge_request *pub)
{
    struct request *q = request_of(pub);
    if (q->wanted || pub->body_done)
        return;
    q->wanted = true;
    if (pub->head.expect_continue && !q->body_begun) {
        static const char go[] = "HTTP/1.1 100 Continue\r\n\r\n";
        q->continued = true;
        stream_write(q->client->stream, go, sizeof go - 1);
    }
    stream_resume(q->client->stream);
    client_deadline(q->client);
}

void edge_resume(struct edge_request *pub)
{
    struct request *q = request_of(pub);
    if (!q->paused)
        return;
    q->paused = false;
    stream_resume(q->client->stream);
    client_deadline(q->client);
}

/* Whether the connection can go on behind this answer. */
static bool may_keep(const struct request *q)
{
    const struct client *c = q->client;
    const struct edge *e = c->edge;
    if (!q->pub.head.keep_alive || e->loop->leaving || c->eof ||
        (e->opts.requests_max && c->requests >= e->opts.requests_max))
        return false;
    if (q->pub.body_done)
        return true;
    if (q->pub.head.expect_continue && !q->continued)
        return false; /* the client may or may not send the body now */
    return q->in.framing == FRAMED_BY_CHUNKS || q->in.left <= PASS_BYTES_MAX;
}

static void write_line(struct stream *s, unsigned status, struct slice reason)
{
    char line[] = "HTTP/1.1 000 ";
    if (!reason.p)
        reason = (struct slice){ http_status_text(status), strlen(http_status_text(status)) };
    for (size_t i = 3; i-- > 0; status /= 10)
        line[9 + i] = (char)('0' + status % 10);
    stream_write(s, line, sizeof line - 1);
    stream_write(s, reason.p, reason.len);
    stream_write(s, "\r\n", 2);
}

void edge_interim(struct edge_request *pub, unsigned status, struct slice reason,
                  struct slice fields)
{
    struct request *q = request_of(pub);
    struct stream *s = q->client->stream;
    firn_assert(!q->answered && status > 101 && status < 200, "status=%u", status);
    if (pub->head.minor == 0)
        return;
    write_line(s, status, reason);
    stream_write(s, fields.p, fields.len);
    stream_write(s, "\r\n", 2);
}

void edge_head(struct edge_request *pub, unsigned status, struct slice reason, struct slice fields,
               int64_t body_len)
{
    struct request *q = request_of(pub);
    struct stream *s = q->client->stream;
    bool head = slice_is(pub->head.method, "HEAD"), bare = status == 204 || status == 304;
    char line[64];
    int n = 0;
    firn_assert(!q->answered && status >= 200, "status=%u", status);
    q->answered = true;
    q->keep = may_keep(q);
    q->no_body = head || bare;
    q->out_counted = body_len >= 0 && !q->no_body;
    q->out_left = q->out_counted ? (uint64_t)body_len : 0;
    q->chunked = body_len < 0 && !bare && pub->head.minor == 1;
    if (body_len < 0 && !q->no_body && !q->chunked)
        q->keep = false; /* HTTP/1.0: the connection's end is the body's */
    write_line(s, status, reason);
    stream_write(s, fields.p, fields.len);
    if (body_len >= 0 && status != 204) {
        static const char name[] = "Content-Length: ";
        char *end = line + sizeof line - 2, *p = digits_before(end, (uint64_t)body_len);
        memcpy(end, "\r\n", 2);
        stream_write(s, name, sizeof name - 1);
        stream_write(s, p, (size_t)(line + sizeof line - p));
    } else if (q->chunked)
        n = snprintf(line, sizeof line, "Transfer-Encoding: chunked\r\n");
    stream_write(s, line, (size_t)n);
    if (!q->keep)
        stream_write(s, "Connection: close\r\n\r\n", 21);
    else if (pub->head.minor == 0)
        stream_write(s, "Connection: keep-alive\r\n\r\n", 26);
    else
        stream_write(s, "\r\n", 2);
    q->chunked &= !q->no_body;
    client_deadline(q->client);
}

bool edge_body(struct edge_request *pub, const char *p, size_t len)
{
    struct request *q = request_of(pub);
    struct stream *s = q->client->stream;
    char line[24];
    firn_assert(q->answered, "a body before the head");
    if (len == 0 || q->no_body)
        return true;
    if (q->out_counted) {
        firn_assert(len <= q->out_left, "len=%zu", len);
        q->out_left -= len;
    }
    if (q->chunked)
        stream_write(s, line, (size_t)snprintf(line, sizeof line, "%zx\r\n", len));
    bool room = stream_write(s, p, len);
    if (q->chunked)
        room = stream_write(s, "\r\n", 2);
    if (!room)
        client_deadline(q->client);
    return room;
}

void edge_end(struct edge_request *pub, struct slice trailers)
{
    struct request *q = request_of(pub);
    struct stream *s = q->client->stream;
    firn_assert(q->answered && (!q->out_counted || q->out_left == 0), "left=%llu",
                (unsigned long long)q->out_left);
    if (q->tunnel) {
        client_linger(q->client);
        return;
    }
    if (q->chunked) {
        stream_write(s, "0\r\n", 3);
        if (pub->head.te_trailers)
            stream_write(s, trailers.p, trailers.len);
        stream_write(s, "\r\n", 2);
    }
    request_done(q->client);
}

void edge_tunnel(struct edge_request *pub, struct slice reason, struct slice fields)
{
    struct request *q = request_of(pub);
    struct stream *s = q->client->stream;
    static const char line[] = "Connection: Upgrade\r\n\r\n";
    firn_assert(!q->answered && pub->head.websocket);
    q->answered = q->tunnel = q->wanted = true;
    q->keep = false;
    write_line(s, 101, reason);
    stream_write(s, fields.p, fields.len);
    stream_write(s, line, sizeof line - 1);
    stream_resume(s);
    stream_deadline(s, 0);
}

void edge_abort(struct edge_request *pub)
{
    struct client *c = request_of(pub)->client;
    stat_add(&c->edge->stats.aborted, 1);
    if (c->state != IN_HAND)
        return;
    /* Not under the feet of a callback of this stream: it is closed in the next turn. */
    c->state = LINGERING;
    request_free(c->edge, c->q);
    c->q = NULL;
    c->reset = true;
    stream_fail(c->stream, "aborted");
}

/* --- life --- */

int edge_new(struct loop *l, const struct edge_opts *opts, const struct edge_calls *calls,
             void *ctx, struct edge **out)
{
    struct edge *e = calloc(1, sizeof *e);
    if (!e)
        return FIRN_ENOMEM;
    firn_assert(!l->edge);
    e->loop = l;
    e->calls = calls;
    e->ctx = ctx;
    e->opts = opts ? *opts : (struct edge_opts){ 0 };
    struct edge_opts *o = &e->opts;
    o->header_ms = o->header_ms ? o->header_ms : 10 * 1000;
    o->body_ms = o->body_ms ? o->body_ms : 30 * 1000;
    o->idle_ms = o->idle_ms ? o->idle_ms : 60 * 1000;
    o->write_ms = o->write_ms ? o->write_ms : 30 * 1000;
    l->edge = e;
    *out = e;
    return 0;
}

int edge_listen(struct edge *e, int fd, int tag, bool shared, struct tls_context *tls)
{
    struct port *p = calloc(1, sizeof *p);
    if (!p)
        return FIRN_ENOMEM;
    *p = (struct port){ e, tls, e->ports };
    e->ports = p;
    return loop_listen_for(e->loop, fd, tag, shared, on_accept, p);
}

void edge_drain(struct edge *e)
{
    if (!e)
        return;
    struct loop *l = e->loop;
    bool grace = uv_is_active((uv_handle_t *)&l->grace);
    for (struct client *c = e->clients, *next; c; c = next) {
        next = c->next;
        if (c->state == READING && !c->partial && !(grace && (l->ports_open || !c->begun)))
            client_linger(c);
    }
}

uint64_t edge_open(const struct edge *e)
{
    return e ? e->stats.conns : 0;
}

void edge_close(struct edge *e)
{
    for (struct client *c = e ? e->clients : NULL, *next; c; c = next) {
        next = c->next;
        if (c->state == IN_HAND)
            request_broken(c, 0, "the gateway ends");
        else
            client_close(c, false);
    }
}

void edge_free(struct edge *e)
{
    if (!e)
        return;
    edge_close(e);
    for (struct port *p = e->ports, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    for (struct request *q = e->spare, *next; q; q = next) {
        next = q->next;
        free(q);
    }
    e->loop->edge = NULL;
    free(e);
}

void edge_stats(const struct edge *e, struct edge_stats *out)
{
    const uint64_t *from = (const uint64_t *)&e->stats;
    uint64_t *to = (uint64_t *)out;
    for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
        to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}
