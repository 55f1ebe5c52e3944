/*
 * Connections of a proxy. A read lands in a buffer that all streams of the loop share and is handed
 * to the owner from there; only what the owner leaves is copied. Output is collected until the end
 * of the turn, so that a head and the body behind it leave with one write, and long pieces are
 * given to the kernel without a copy where nothing waits before them. Ends, resumed input and
 * output that waits are settled in one place, on_prepare(), for the streams on the loop's list.
 * Tested in tests/unit/net/proxy.c.
 */
#include "net/stream.h"
#include "wire/proxy_protocol.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    IN_MAX = STREAM_READ_BYTES + 256 * 1024, /* behind what an owner leaves: a head, or a pause */
    OUT_MAX = 64 * 1024 * 1024,              /* never reached by owners that stop when asked to */
    DIRECT_BYTES = 4 * 1024,                 /* from here on a write is worth a system call */
    RECORD_BYTES = 16 * 1024,                /* of a TLS record, at most */
    TURN_BYTES = 64 * 1024,                  /* of output, before it is sent within the turn */
};

struct outgoing { /* bytes that libuv has until its callback */
    uv_write_t req;
    struct buf b;
};

struct stream {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe; /* with `local` */
    };
    uv_timer_t timer;
    struct loop *loop;
    const struct stream_calls *calls;
    void *user;
    struct tls_context *context; /* until the first byte tells */
    struct tls *tls;
    struct buf in, out; /* out: sealed, with TLS */
    struct buf plain;   /* with TLS: output that is not sealed yet */
    struct outgoing *sending;
    uint64_t deadline_ms, timer_ms; /* of the loop's clock; timer_ms: when the timer fires */
    uv_connect_t connect;
    const char *why;
    uint64_t sent;
    uint8_t open_handles;
    bool connecting, ready, reading, paused, full, eof, cut, broken, told, closed, shut_asked, shut;
    bool nudged, told_broken;
    bool again; /* input that is there is handed over once more */
    bool in_todo, settling;
    bool local;     /* a Unix socket that this side has connected */
    bool to_server; /* made by stream_connect() */
    bool own_fault;
    bool tls_failed;
    const char *deaf;            /* why the server takes nothing more; what it said is still read */
    bool proxy_due;              /* a PROXY header comes first; `in` has its begin */
    struct proxy_header *proxy;  /* what it told, or NULL */
    struct stream *next, **prev; /* on the list of this turn */
};

struct streams { /* of a loop */
    struct loop *loop;
    uv_prepare_t prepare;
    uv_idle_t busy; /* while the list is not empty the loop does not sleep */
    struct stream *todo;
    char in[STREAM_READ_BYTES], plain[TLS_PLAIN_BYTES];
};

static void settle(struct stream *s);

static void on_busy(uv_idle_t *h)
{
    (void)h;
}

static void on_prepare(uv_prepare_t *h)
{
    struct streams *all = h->data;
    /* What joins during this pass is settled in the next turn, after the poll. */
    struct stream *s = all->todo;
    all->todo = NULL;
    if (s)
        s->prev = &s; /* the list hangs on this variable, from which removals work too */
    while (s) {
        struct stream *now = s;
        s = now->next;
        if (s)
            s->prev = &s;
        now->in_todo = false;
        settle(now);
    }
    if (all->todo)
        uv_idle_start(&all->busy, on_busy);
    else
        uv_idle_stop(&all->busy);
}

static struct streams *streams_of(struct loop *l)
{
    if (l->streams)
        return l->streams;
    struct streams *all = calloc(1, sizeof *all);
    if (!all)
        return NULL;
    all->loop = l;
    all->prepare.data = all->busy.data = all;
    uv_prepare_init(&l->uv, &all->prepare);
    uv_idle_init(&l->uv, &all->busy);
    uv_prepare_start(&all->prepare, on_prepare);
    l->streams = all;
    return all;
}

void streams_free(struct loop *l)
{
    struct streams *all = l->streams;
    if (!all)
        return;
    uv_close((uv_handle_t *)&all->prepare, NULL);
    uv_close((uv_handle_t *)&all->busy, NULL);
    uv_run(&l->uv, UV_RUN_NOWAIT); /* both, and streams that were closed */
    l->streams = NULL;
    free(all);
}

static void todo(struct stream *s)
{
    struct streams *all = s->loop->streams;
    if (s->in_todo || s->closed || s->settling)
        return;
    s->in_todo = true;
    s->next = all->todo;
    s->prev = &all->todo;
    if (all->todo)
        all->todo->prev = &s->next;
    all->todo = s;
    uv_idle_start(&all->busy, on_busy);
}

static void todo_remove(struct stream *s)
{
    if (!s->in_todo)
        return;
    s->in_todo = false;
    *s->prev = s->next;
    if (s->next)
        s->next->prev = s->prev;
}

static void fail(struct stream *s, const char *why)
{
    if (s->broken)
        return;
    s->broken = true;
    s->why = why;
    todo(s);
}

/* A server may answer early and close its end while the request is still being sent: then writing
 * fails before its answer is read. */
static void fail_write(struct stream *s, int error)
{
    if (!s->to_server || (error != UV_EPIPE && error != UV_ECONNRESET)) {
        fail(s, uv_strerror(error));
        return;
    }
    s->deaf = uv_strerror(error);
    s->out.len = s->plain.len = 0;
    todo(s);
}

void stream_fail(struct stream *s, const char *why)
{
    s->in.len = 0; /* of no use any more */
    s->paused = false;
    fail(s, why);
}

/* --- reading --- */

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct stream *s = h->data;
    (void)suggested;
    *buf = uv_buf_init(s->loop->streams->in,
                       s->tls || s->context ? TLS_READ_BYTES : STREAM_READ_BYTES);
}

/* Hands bytes over, behind those that were left. */
static void deliver(struct stream *s, const char *p, size_t len)
{
    bool kept = s->in.len > 0;
    s->again = false;
    if (kept || s->paused) {
        buf_add(&s->in, p, len);
        p = s->in.p;
        len = s->in.len;
    }
    size_t used = s->paused || len == 0 ? 0 : s->calls->input(s->user, p, len);
    if (s->closed)
        return;
    firn_assert(used <= len, "used=%zu of %zu", used, len);
    if (kept)
        buf_consume(&s->in, used);
    else if (!s->in.len)
        buf_add(&s->in, p + used, len - used);
    if (s->in.failed)
        fail(s, "more input than there is room for");
    else if (s->in.len == 0 && s->in.cap > 0)
        buf_done(&s->in);
}

static void on_read(uv_stream_t *h, ssize_t n, const uv_buf_t *buf);

/* Whether to read is computed in this one place. */
static void want(struct stream *s)
{
    bool read = !s->closed && !s->broken && !s->eof && !s->paused && !s->connecting;
    if (read == s->reading || s->closed)
        return;
    s->reading = read;
    if (!read)
        uv_read_stop(&s->stream);
    else if (uv_read_start(&s->stream, on_alloc, on_read) < 0)
        fail(s, "cannot read");
}

static void begin_ready(struct stream *s)
{
    if (s->ready)
        return;
    s->ready = true;
    if (s->calls->connected)
        s->calls->connected(s->user);
}

/* Bytes of TLS: plaintext out of them, answers of TLS itself into the output. */
static void unseal(struct stream *s, const char *p, size_t len)
{
    struct streams *all = s->loop->streams;
    size_t got = 0;
    int r = tls_read(s->tls, p, len, all->plain, sizeof all->plain, &got, &s->out);
    todo(s);
    if (r == FIRN_EFORMAT) {
        stat_add(&s->loop->stats.tls_errors, 1);
        s->tls_failed = true;
        fail(s, tls_why(s->tls));
        return;
    }
    if (!s->ready && tls_ready(s->tls)) {
        stat_add(&s->loop->stats.tls_handshakes, 1);
        begin_ready(s);
    }
    if (got > 0 && !s->closed)
        deliver(s, all->plain, got);
    if (r == FIRN_ECLOSED)
        s->eof = true;
}

/* The first byte of an accepted connection tells whether it speaks TLS as it must. */
static bool begin_tls(struct stream *s, const char *p)
{
    struct tls_context *c = s->context;
    s->context = NULL;
    if (!tls_context_on(c))
        return true;
    if ((unsigned char)*p != TLS_FIRST_BYTE) {
        static const char text[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
                                   "Content-Type: text/plain\r\nContent-Length: 32\r\n\r\n"
                                   "this port speaks TLS: use https\n";
        buf_add(&s->out, text, sizeof text - 1);
        s->shut_asked = true;
        stat_add(&s->loop->stats.tls_errors, 1);
        s->tls_failed = true;
        fail(s, "plaintext on a port for TLS");
        return false;
    }
    int r = tls_accept(c, &s->tls);
    if (r && r != FIRN_ENOENT)
        fail(s, "out of memory");
    return r == 0 || r == FIRN_ENOENT;
}

/* Bytes from the socket, behind a PROXY header. */
static void take(struct stream *s, const char *p, size_t len)
{
    if (s->context && !begin_tls(s, p))
        return;
    if (s->tls)
        unseal(s, p, len);
    else
        deliver(s, p, len);
}

/* The begin of a connection that a proxy makes for somebody. */
static void take_proxied(struct stream *s, const char *p, size_t len)
{
    struct proxy_header h;
    struct buf raw;
    buf_add(&s->in, p, len);
    ssize_t n = s->in.failed ? FIRN_EFORMAT : proxy_header_read(s->in.p, s->in.len, &h);
    if (n == FIRN_EAGAIN)
        return;
    if (n > 0 && h.told && !(s->proxy = malloc(sizeof h)))
        n = FIRN_ENOMEM;
    if (n < 0) {
        s->in.len = 0;
        fail(s, n == FIRN_ENOMEM ? "out of memory" : "no PROXY header");
        return;
    }
    if (h.told)
        *s->proxy = h;
    s->proxy_due = false;
    raw = s->in;
    buf_init(&s->in, IN_MAX);
    s->calls->proxied(s->user);
    for (size_t at = (size_t)n, piece; at < raw.len && !s->closed && !s->broken; at += piece) {
        piece = raw.len - at < TLS_READ_BYTES ? raw.len - at : TLS_READ_BYTES;
        take(s, raw.p + at, piece);
    }
    buf_done(&raw);
}

/* libuv calls a reset that comes right behind data an end; a body must not end properly by it. 0,
 * or the error. */
static int reset_of(const struct stream *s)
{
    uv_os_fd_t fd;
    int error = 0;
    socklen_t len = sizeof error;
    if (uv_fileno(&s->handle, &fd) == 0)
        (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    return uv_translate_sys_error(error);
}

static void on_read(uv_stream_t *h, ssize_t n, const uv_buf_t *buf)
{
    struct stream *s = h->data;
    if (n == 0 || s->broken)
        return;
    if (n == UV_EOF && s->deaf) {
        fail(s, s->deaf);
    } else if (n == UV_EOF && (n = reset_of(s)) == 0) {
        s->eof = true;
        s->cut = s->tls != NULL; /* close_notify would have set `eof` before */
        todo(s);
    } else if (n < 0) {
        fail(s, uv_strerror((int)n));
    } else {
        stat_add(&s->loop->stats.bytes_in, (uint64_t)n);
        if (s->proxy_due)
            take_proxied(s, buf->base, (size_t)n);
        else
            take(s, buf->base, (size_t)n);
    }
    want(s);
}

/* --- writing --- */

size_t stream_unsent(const struct stream *s)
{
    return s->plain.len + s->out.len + (s->sending ? s->sending->b.len : 0);
}

uint64_t stream_sent(const struct stream *s)
{
    return s->sent;
}

static void push(struct stream *s);

static void after_write(struct stream *s)
{
    if (s->closed || s->broken)
        return;
    if (s->full && stream_unsent(s) <= STREAM_LOW_BYTES) {
        s->full = false;
        s->calls->drained(s->user);
    }
}

static void on_written(uv_write_t *req, int status)
{
    struct outgoing *o = (struct outgoing *)req;
    struct stream *s = req->data;
    s->sending = NULL;
    s->sent += o->b.len;
    buf_done(&o->b);
    free(o);
    if (s->closed)
        return;
    if (status < 0)
        fail_write(s, status);
    else
        push(s);
    after_write(s);
}

/* Everything is sent. With the peer's end seen before, nothing is left to wait for. */
static void on_shutdown(uv_shutdown_t *req, int status)
{
    struct stream *s = req->data;
    (void)status;
    free(req);
    if (s->closed || !s->eof)
        return;
    s->told = false;
    fail(s, "both sides have ended");
}

static void send_end(struct stream *s)
{
    if (!s->shut_asked || s->shut || s->out.len > 0 || s->connecting)
        return;
    s->shut = true;
    uv_shutdown_t *req = malloc(sizeof *req);
    if (req)
        req->data = s;
    if (!req || uv_shutdown(req, &s->stream, on_shutdown) < 0)
        free(req);
}

/* What was written since the last time becomes as few records as can be. */
static void seal(struct stream *s)
{
    if (s->plain.failed)
        fail(s, "more output than there is room for");
    if (s->plain.len == 0 || s->broken)
        return;
    if (tls_write(s->tls, s->plain.p, s->plain.len, &s->out) != 0)
        fail(s, tls_why(s->tls));
    buf_done(&s->plain);
}

/* As much as the kernel takes now; libuv has the rest. */
static void push(struct stream *s)
{
    if (s->closed || s->connecting)
        return;
    if (s->deaf)
        s->out.len = s->plain.len = 0; /* of TLS: it answers by itself */
    seal(s);
    if (s->out.failed)
        fail(s, "more output than there is room for");
    if (s->out.len > 0 && !s->sending && !s->out.failed) {
        uv_buf_t b = uv_buf_init(s->out.p, (unsigned)s->out.len);
        uv_os_fd_t fd = -1;
        (void)uv_fileno(&s->handle, &fd);
        ssize_t n = send(fd, s->out.p, s->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            n = errno == EAGAIN || errno == EINTR ? UV_EAGAIN : uv_translate_sys_error(errno);
        size_t sent = n > 0 ? (size_t)n : 0;
        if (n < 0 && n != UV_EAGAIN) {
            fail_write(s, (int)n);
            return;
        }
        stat_add(&s->loop->stats.bytes_out, s->out.len);
        s->sent += sent;
        struct outgoing *o = sent < s->out.len ? malloc(sizeof *o) : NULL;
        if (sent == s->out.len) {
            s->out.len = 0;
        } else if (!o) {
            fail(s, "out of memory");
            return;
        } else {
            o->b = s->out;
            o->req.data = s;
            buf_init(&s->out, OUT_MAX);
            b = uv_buf_init(o->b.p + sent, (unsigned)(o->b.len - sent));
            o->b.len -= sent; /* for stream_unsent() */
            s->sending = o;
            if (uv_write(&o->req, &s->stream, &b, 1, on_written) < 0) {
                s->sending = NULL;
                buf_done(&o->b);
                free(o);
                fail(s, "cannot write");
                return;
            }
        }
        if (s->out.cap > TURN_BYTES * 2 || (s->out.len == 0 && !s->sending))
            buf_done(&s->out);
    }
    send_end(s);
}

/* Long plaintext goes to the kernel from where it is. Returns how much did. */
static size_t write_direct(struct stream *s, const char *p, size_t len)
{
    uv_buf_t b[2] = { uv_buf_init(s->out.p, (unsigned)s->out.len),
                      uv_buf_init((char *)(uintptr_t)p, (unsigned)len) };
    unsigned first = s->out.len == 0;
    int n = uv_try_write(&s->stream, b + first, 2 - first);
    if (n < 0) {
        if (n != UV_EAGAIN)
            fail_write(s, n);
        return 0;
    }
    stat_add(&s->loop->stats.bytes_out, (uint64_t)n);
    s->sent += (uint64_t)n;
    size_t before = (size_t)n < s->out.len ? (size_t)n : s->out.len;
    buf_consume(&s->out, before);
    return (size_t)n - before;
}

bool stream_write(struct stream *s, const char *p, size_t len)
{
    if (s->closed || s->broken || s->deaf || s->shut_asked || len == 0)
        return !s->full;
    if (s->tls) {
        buf_add(&s->plain, p, len);
        if (s->plain.len >= RECORD_BYTES)
            seal(s);
    } else {
        if (len >= DIRECT_BYTES && !s->sending && !s->connecting) {
            size_t n = write_direct(s, p, len);
            p += n;
            len -= n;
        }
        buf_add(&s->out, p, len);
    }
    if (s->out.len > TURN_BYTES)
        push(s);
    s->full |= stream_unsent(s) >= STREAM_WINDOW_BYTES;
    todo(s);
    return !s->full;
}

void stream_shut(struct stream *s)
{
    if (s->closed || s->shut_asked)
        return;
    if (s->tls) {
        seal(s);
        tls_bye(s->tls, &s->out);
    }
    s->shut_asked = true;
    todo(s);
}

/* --- the list of the turn --- */

static void tell_end(struct stream *s)
{
    bool input_left = !s->broken && s->in.len > 0 && (s->paused || s->again);
    if ((s->broken ? s->told_broken : s->told) || s->closed || input_left ||
        (!s->broken && !s->eof))
        return;
    s->told = true;
    s->told_broken = s->broken;
    s->calls->ended(s->user,
                    s->broken ? STREAM_BROKEN
                    : s->cut  ? STREAM_CUT
                              : STREAM_EOF,
                    s->why ? s->why : "the connection ended");
}

static void settle(struct stream *s)
{
    s->settling = true; /* what these two write is pushed below: no further turn for it */
    if (s->nudged && !s->broken) {
        s->nudged = false;
        s->calls->connected(s->user);
    }
    if (!s->closed && s->again && s->in.len > 0 && !s->paused)
        deliver(s, "", 0);
    s->settling = false;
    if (s->closed)
        return;
    if (s->nudged || (s->again && s->in.len > 0 && !s->paused))
        todo(s);
    push(s);
    after_write(s);
    if (s->closed)
        return;
    tell_end(s);
    want(s);
}

/* --- life --- */

static void on_timer(uv_timer_t *h);

static void timer_set(struct stream *s, uint64_t now)
{
    if (s->deadline_ms == 0 || (s->timer_ms != 0 && s->timer_ms <= s->deadline_ms))
        return;
    s->timer_ms = s->deadline_ms;
    uv_timer_start(&s->timer, on_timer, s->deadline_ms > now ? s->deadline_ms - now : 0, 0);
}

/* A deadline that was put off leaves its timer as it is, until that fires. */
static void on_timer(uv_timer_t *h)
{
    struct stream *s = h->data;
    uint64_t now = uv_now(&s->loop->uv);
    s->timer_ms = 0;
    if (s->closed || s->deadline_ms == 0)
        return;
    if (s->deadline_ms > now) {
        timer_set(s, now);
        return;
    }
    s->deadline_ms = 0;
    s->calls->expired(s->user);
}

void stream_deadline(struct stream *s, uint64_t ms)
{
    if (s->closed)
        return;
    uint64_t now = uv_now(&s->loop->uv);
    s->deadline_ms = ms ? now + ms : 0;
    timer_set(s, now);
}

void stream_pause(struct stream *s)
{
    s->paused = true;
    want(s);
}

void stream_nudge(struct stream *s)
{
    s->nudged = true;
    todo(s);
}

void stream_resume(struct stream *s)
{
    if (!s->paused || s->closed)
        return;
    s->paused = false;
    s->again = true;
    todo(s);
}

static void on_closed(uv_handle_t *h)
{
    struct stream *s = h->data;
    if (--s->open_handles > 0)
        return;
    buf_done(&s->in);
    buf_done(&s->out);
    buf_done(&s->plain);
    tls_free(s->tls);
    free(s->proxy);
    free(s);
}

static void close_handles(struct stream *s, bool reset)
{
    if (s->closed)
        return;
    todo_remove(s);
    s->closed = true;
    uv_close((uv_handle_t *)&s->timer, on_closed);
    uv_os_fd_t fd;
    const struct linger now = { .l_onoff = 1, .l_linger = 0 };
    if (reset && uv_fileno(&s->handle, &fd) == 0) /* libuv resets only what it does not shut down */
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    uv_close(&s->handle, on_closed);
}

void stream_close(struct stream *s)
{
    if (s)
        close_handles(s, false);
}

void stream_reset(struct stream *s)
{
    if (s)
        close_handles(s, true);
}

static struct stream *stream_new(struct loop *l, bool local, const struct stream_calls *calls,
                                 void *user)
{
    struct stream *s = streams_of(l) ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return NULL;
    s->loop = l;
    s->calls = calls;
    s->user = user;
    buf_init(&s->in, IN_MAX);
    buf_init(&s->out, OUT_MAX);
    buf_init(&s->plain, OUT_MAX);
    s->local = local;
    if ((local ? uv_pipe_init(&l->uv, &s->pipe, 0) : uv_tcp_init(&l->uv, &s->tcp)) < 0) {
        free(s);
        return NULL;
    }
    uv_timer_init(&l->uv, &s->timer);
    s->open_handles = 2;
    s->handle.data = s->timer.data = s;
    return s;
}

struct stream *stream_accept(struct listener *from, int fd, struct tls_context *tls,
                             const struct stream_calls *calls, void *user)
{
    struct stream *s = stream_new(from->loop, false, calls, user);
    from->stuck = !s && fd < 0;
    int r = !s       ? -1
            : fd < 0 ? uv_accept((uv_stream_t *)&from->tcp, &s->stream)
                     : uv_tcp_open(&s->tcp, fd);
    if (r < 0) {
        if (fd >= 0)
            close(fd);
        stream_close(s);
        return NULL;
    }
    uv_tcp_nodelay(&s->tcp, 1);
    s->context = tls_context_on(tls) ? tls : NULL;
    s->ready = true;
    want(s);
    return s;
}

static void on_connected(uv_connect_t *req, int status)
{
    struct stream *s = req->data;
    if (s->closed)
        return;
    s->connecting = false;
    if (status < 0) {
        fail(s, uv_strerror(status));
        return;
    }
    if (!s->local)
        uv_tcp_nodelay(&s->tcp, 1);
    if (s->tls)
        unseal(s, "", 0);
    else
        begin_ready(s);
    todo(s);
}

void stream_expect_proxy(struct stream *s)
{
    s->proxy_due = true;
}

struct stream *stream_connect(struct loop *l, const struct sockaddr *to, struct tls_context *tls,
                              const char *host, struct slice first,
                              const struct stream_calls *calls, void *user)
{
    struct stream *s = stream_new(l, to->sa_family == AF_UNIX, calls, user);
    if (!s)
        return NULL;
    s->to_server = true;
    buf_add(&s->out, first.p, first.len);
    s->connect.data = s;
    s->connecting = true;
    if (tls && tls_connect(tls, host, &s->tls) != 0) {
        stream_close(s);
        return NULL;
    }
    int r = 0;
    if (s->local)
        uv_pipe_connect(&s->connect, &s->pipe, ((const struct sockaddr_un *)to)->sun_path,
                        on_connected);
    else
        r = uv_tcp_connect(&s->connect, &s->tcp, to, on_connected);
    s->own_fault = r == UV_EMFILE || r == UV_ENFILE || r == UV_ENOBUFS || r == UV_ENOMEM ||
                   r == UV_EADDRNOTAVAIL;
    if (r < 0) /* told in the next turn, as every end is */
        fail(s, uv_strerror(r));
    return s;
}

bool stream_own_fault(const struct stream *s)
{
    return s->own_fault;
}

bool stream_deaf(const struct stream *s)
{
    return s->deaf != NULL;
}

bool stream_gone(const struct stream *s)
{
    uv_os_fd_t fd;
    char c;
    if (s->broken || s->deaf || s->eof || s->closed || uv_fileno(&s->handle, &fd) != 0)
        return true;
    ssize_t n = recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || (n > 0 && !s->tls);
}

bool stream_tls_failed(const struct stream *s)
{
    return s->tls_failed;
}

bool stream_is_tls(const struct stream *s)
{
    return s->tls != NULL;
}

const char *stream_peer_name(const struct stream *s)
{
    return s->tls ? tls_peer_name(s->tls) : NULL;
}

void stream_address(const struct stream *s, char out[PEER_ADDRESS_BUF], struct sockaddr_storage *at)
{
    struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
    int len = sizeof sa;
    char host[46];
    snprintf(out, PEER_ADDRESS_BUF, "?");
    if (s->proxy)
        sa = s->proxy->from;
    else if (uv_tcp_getpeername(&s->tcp, (struct sockaddr *)&sa, &len) < 0)
        sa.ss_family = AF_UNSPEC;
    if (sa.ss_family == AF_UNIX) {
        snprintf(out, PEER_ADDRESS_BUF, "unix");
    } else if (sa.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&sa;
        uv_ip6_name(in, host, sizeof host);
        snprintf(out, PEER_ADDRESS_BUF, "[%s]:%u", host, ntohs(in->sin6_port));
    } else if (sa.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&sa;
        uv_ip4_name(in, host, sizeof host);
        snprintf(out, PEER_ADDRESS_BUF, "%s:%u", host, ntohs(in->sin_port));
    }
    if (at)
        *at = sa;
}

void stream_own_address(const struct stream *s, struct sockaddr_storage *sa)
{
    int len = sizeof *sa;
    memset(sa, 0, sizeof *sa);
    if (s->proxy)
        *sa = s->proxy->to;
    else if (uv_tcp_getsockname(&s->tcp, (struct sockaddr *)sa, &len) < 0)
        sa->ss_family = AF_UNSPEC;
}
