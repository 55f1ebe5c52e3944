/*
 * A connection of the peer port: a TCP handle with an input buffer and, with TLS, a struct tls.
 *
 * Life: frames until gone() or wire_close(); then the handles close, and the last one frees the
 * wire.
 */
#include "raft/wire_host.h"
#include "platform/assert.h"
#include "wire/tls.h"
#include "wire/url.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    CHUNK_BYTES = 64 * 1024,
    OUT_BYTES_MAX = 2 << 20, /* the longest frame, encrypted */
};

struct wire {
    struct wire_host *on;
    uv_tcp_t tcp;
    uv_timer_t timer; /* while it connects */
    uv_connect_t connect;
    uv_getaddrinfo_t resolve;
    struct tls *tls; /* NULL: plain */
    struct buf out;  /* encrypted output; empty between calls */
    const struct wire_events *events;
    void *user;
    unsigned handles;                   /* still open */
    bool resolving, client, up, silent; /* silent: no more events */
    bool begun;                         /* a frame has arrived */
    bool closing;
    const char *why; /* it has failed, and gone() will be called */
    char host[HOST_BYTES_MAX + 1];
    char *in; /* FRAME_RAFT_MAX + CHUNK_BYTES, allocated with the first bytes */
    size_t in_len;
    char chunk[CHUNK_BYTES]; /* libuv reads into it */
};

struct write {
    uv_write_t req;
    struct wire *wire;
    char bytes[];
};

/* ---- closing ---- */

static void maybe_free(struct wire *w)
{
    if (w->handles > 0 || w->resolving)
        return;
    tls_free(w->tls);
    buf_done(&w->out);
    free(w->in);
    free(w);
}

static void closed(uv_handle_t *h)
{
    struct wire *w = h->data;
    firn_assert(w->closing && w->handles > 0, "handles=%u", w->handles);
    w->handles--;
    maybe_free(w);
}

void wire_close(struct wire *w)
{
    w->silent = true;
    if (w->closing)
        return;
    w->closing = true;
    firn_assert(w->handles == 2, "handles=%u", w->handles);
    if (w->resolving)
        uv_cancel((uv_req_t *)&w->resolve);
    uv_close((uv_handle_t *)&w->tcp, closed);
    uv_close((uv_handle_t *)&w->timer, closed);
}

/* Before each event. */
static void enter(struct wire *w)
{
    if (w->on->enter)
        w->on->enter(w->on->user);
}

static void end(struct wire *w, const char *why)
{
    if (!w->silent) {
        w->silent = true;
        enter(w);
        w->events->gone(w, why);
    }
    wire_close(w);
}

/* wire_close_all() finds the wires of a loop by this callback of their timers. */
static void on_silent(uv_timer_t *t)
{
    struct wire *w = t->data;
    end(w, w->why ? w->why : "no answer");
}

/* wire_send() must not call gone(): its caller is in the middle of something. The timer does. */
static void fail_later(struct wire *w, const char *why)
{
    if (!w->why && !w->closing) {
        w->why = why;
        uv_timer_start(&w->timer, on_silent, 0, 0);
    }
}

static void close_one(uv_handle_t *h, void *user)
{
    (void)user;
    if (h->type == UV_TIMER && ((uv_timer_t *)h)->timer_cb == on_silent)
        wire_close(h->data);
}

void wire_close_all(struct wire_host *h)
{
    uv_walk(h->loop, close_one, NULL);
}

/* ---- output ---- */

static void written(uv_write_t *req, int status)
{
    struct write *x = (struct write *)req;
    struct wire *w = x->wire;
    free(x);
    if (status < 0)
        end(w, uv_strerror(status));
}

/* First without queueing: mostly the kernel takes all of it. */
static void write_out(struct wire *w, const char *p, size_t len)
{
    uv_stream_t *to = (uv_stream_t *)&w->tcp;
    uv_buf_t all = uv_buf_init((char *)p, (unsigned)len);
    int done = uv_try_write(to, &all, 1);
    if (done < 0 && done != UV_EAGAIN) {
        fail_later(w, uv_strerror(done));
        return;
    }
    size_t sent = done > 0 ? (size_t)done : 0;
    firn_assert(sent <= len, "sent=%zu len=%zu", sent, len);
    if (sent == len)
        return;
    struct write *x = malloc(sizeof *x + len - sent);
    if (!x) {
        fail_later(w, "out of memory");
        return;
    }
    x->wire = w;
    memcpy(x->bytes, p + sent, len - sent);
    uv_buf_t b = uv_buf_init(x->bytes, (unsigned)(len - sent));
    int r = uv_write(&x->req, to, &b, 1, written);
    if (r < 0) {
        free(x);
        fail_later(w, uv_strerror(r));
    }
}

static void tls_flush(struct wire *w)
{
    if (w->out.failed)
        fail_later(w, "out of memory");
    else if (!w->closing && w->out.len > 0)
        write_out(w, w->out.p, w->out.len);
    w->out.len = 0;
}

static void seal(struct wire *w, const char *p, size_t len)
{
    firn_assert(w->out.len == 0, "%zu sealed bytes were not sent", w->out.len);
    int r = tls_write(w->tls, p, len, &w->out);
    tls_flush(w);
    if (r != 0)
        fail_later(w, tls_why(w->tls));
}

void wire_send(struct wire *w, const char *p, size_t len)
{
    if (w->closing || w->why)
        return;
    if (w->tcp.write_queue_size > WIRE_OUT_BYTES_MAX)
        fail_later(w, "the peer does not read");
    else if (w->tls)
        seal(w, p, len);
    else
        write_out(w, p, len);
}

/* ---- input ---- */

static void frames(struct wire *w)
{
    size_t at = 0;
    while (!w->closing && !w->silent) {
        struct frame f;
        ssize_t used = frame_parse(w->in + at, w->in_len - at, &f);
        if (used < 0)
            end(w, "the peer does not speak the protocol of a firnd cluster");
        if (used <= 0)
            break;
        at += (size_t)used;
        firn_assert(at <= w->in_len, "at=%zu len=%zu", at, w->in_len);
        if (!w->why)
            uv_timer_stop(&w->timer); /* the peer is not silent */
        enter(w);
        w->events->frame(w, &f);
        w->begun = true;
    }
    if (at > 0 && at < w->in_len)
        memmove(w->in, w->in + at, w->in_len - at);
    w->in_len -= at;
    firn_assert(w->in_len < FRAME_RAFT_MAX || w->closing || w->silent, "len=%zu", w->in_len);
}

static void take_plain(struct wire *w, const char *p, size_t len)
{
    if (!w->in)
        w->in = malloc(FRAME_RAFT_MAX + CHUNK_BYTES);
    if (!w->in) {
        end(w, "out of memory");
        return;
    }
    /* frames() leaves less than a frame, and this is at most a chunk. */
    firn_assert(w->in_len + len <= FRAME_RAFT_MAX + CHUNK_BYTES, "have=%zu more=%zu", w->in_len,
                len);
    memcpy(w->in + w->in_len, p, len);
    w->in_len += len;
}

/* Calls up() once a client's connection, and with TLS its handshake, is done. */
static void stand(struct wire *w)
{
    if (w->client && !w->up && !w->silent && (!w->tls || tls_ready(w->tls))) {
        firn_assert(!w->resolving && !w->closing);
        w->up = true;
        enter(w);
        w->events->up(w);
    }
}

/* At most TLS_READ_BYTES; none begin the handshake of a client. */
static void take_sealed(struct wire *w, const char *p, size_t len)
{
    char plain[TLS_PLAIN_BYTES];
    size_t n = 0;
    int r = tls_read(w->tls, p, len, plain, sizeof plain, &n, &w->out);
    tls_flush(w); /* an alert, too: it tells the peer why */
    if (n > 0)
        take_plain(w, plain, n);
    if (n > 0 && !w->closing)
        frames(w);
    if (r != 0)
        fail_later(w, tls_why(w->tls));
    else if (!w->closing)
        stand(w);
}

static void give_chunk(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
    (void)suggested;
    struct wire *w = h->data;
    *b = uv_buf_init(w->chunk, sizeof w->chunk);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    struct wire *w = s->data;
    if (n < 0) {
        end(w, n == UV_EOF ? "the peer closed the connection" : uv_strerror((int)n));
        return;
    }
    if (n == 0)
        return;
    if (!w->tls) {
        take_plain(w, b->base, (size_t)n);
        frames(w);
        return;
    }
    size_t len = (size_t)n;
    for (size_t at = 0, part; at < len && !w->closing && !w->why; at += part) {
        part = len - at < TLS_READ_BYTES ? len - at : TLS_READ_BYTES;
        take_sealed(w, b->base + at, part);
    }
}

/* The connection ends when the peer's kernel acknowledges nothing for that long. Else this kernel
 * retransmits after longer and longer pauses: a member that was partitioned for a minute would hear
 * nothing for another minute. */
static void give_up_in_time(uv_tcp_t *tcp)
{
    unsigned ms = WIRE_SILENT_MS;
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)tcp, &fd) == 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static int start(struct wire *w)
{
    struct tls_context *tls = w->on->tls;
    uv_tcp_nodelay(&w->tcp, 1);
    uv_tcp_keepalive(&w->tcp, 1, 5);
    give_up_in_time(&w->tcp);
    int r = uv_read_start((uv_stream_t *)&w->tcp, give_chunk, on_read);
    if (r < 0 || !tls)
        return r;
    int e = w->client ? tls_connect(tls, w->host, &w->tls) : tls_accept(tls, &w->tls);
    if (e)
        return e == FIRN_EINVAL ? UV_EINVAL : UV_ENOMEM;
    if (w->client)
        take_sealed(w, NULL, 0);
    return 0;
}

/* ---- connecting ---- */

static struct wire *wire_new(struct wire_host *h, const struct wire_events *e, void *user)
{
    struct wire *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    buf_init(&w->out, OUT_BYTES_MAX);
    w->on = h;
    w->events = e;
    w->user = user;
    uv_tcp_init(h->loop, &w->tcp);
    uv_timer_init(h->loop, &w->timer);
    w->timer.timer_cb = on_silent; /* also if it is never started: wire_close_all() looks for it */
    w->tcp.data = w->timer.data = w;
    w->handles = 2;
    return w;
}

struct wire *wire_accept(struct wire_host *h, uv_stream_t *listener, const struct wire_events *e,
                         void *user, bool *out_waits)
{
    struct wire *w = wire_new(h, e, user);
    *out_waits = !w;
    if (!w)
        return NULL;
    if (uv_accept(listener, (uv_stream_t *)&w->tcp) != 0 || start(w) != 0) {
        wire_close(w);
        return NULL;
    }
    uv_timer_start(&w->timer, on_silent, WIRE_GREETING_MS, 0);
    return w;
}

static void on_connected(uv_connect_t *req, int status)
{
    struct wire *w = req->data;
    if (w->closing)
        return;
    int r = status < 0 ? status : start(w);
    if (r < 0)
        end(w, uv_strerror(r));
    else
        stand(w);
}

static void connect_to(struct wire *w, const struct sockaddr *address)
{
    w->connect.data = w;
    int r = uv_tcp_connect(&w->connect, &w->tcp, address, on_connected);
    if (r < 0)
        end(w, uv_strerror(r));
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    struct wire *w = req->data;
    firn_assert(w->resolving && !w->up);
    w->resolving = false;
    if (w->closing)
        maybe_free(w);
    else if (status < 0)
        end(w, uv_strerror(status));
    else
        connect_to(w, found->ai_addr);
    uv_freeaddrinfo(found);
}

/* Without asking a resolver: that has threads, which all loops and names share. FIRN_ENOENT: the
 * host is a name. */
static int connect_numeric(struct wire *w, int port)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    bool four = uv_ip4_addr(w->host, port, &v4) == 0;
    if (!four && uv_ip6_addr(w->host, port, &v6) != 0)
        return FIRN_ENOENT;
    const struct sockaddr *to = four ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    w->connect.data = w;
    return uv_tcp_connect(&w->connect, &w->tcp, to, on_connected) == 0 ? 0 : FIRN_EIO;
}

struct wire *wire_connect(struct wire_host *h, const char *address, const struct wire_events *e,
                          void *user)
{
    struct wire *w = wire_new(h, e, user);
    if (!w)
        return NULL;
    w->client = true;
    w->resolve.data = w;
    struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    struct host_port to;
    bool named = host_port_full(address, &to);
    char port[8];
    snprintf(port, sizeof port, "%u", to.port);
    memcpy(w->host, to.host, sizeof w->host);
    int r = named ? connect_numeric(w, to.port) : FIRN_EINVAL;
    if (r == FIRN_ENOENT) {
        r = uv_getaddrinfo(h->loop, &w->resolve, on_resolved, w->host, port, &want);
        w->resolving = r == 0;
    }
    if (r != 0) {
        wire_close(w);
        return NULL;
    }
    uv_timer_start(&w->timer, on_silent, WIRE_SILENT_MS, 0);
    return w;
}

void *wire_user(const struct wire *w)
{
    return w->user;
}

bool wire_works(const struct wire *w)
{
    return !w->closing && !w->why;
}

bool wire_first(const struct wire *w)
{
    return !w->begun;
}

size_t wire_unsent(const struct wire *w)
{
    return w->tcp.write_queue_size;
}
