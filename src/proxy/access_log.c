/*
 * The access log: one line of JSON on stdout for each request, also for what was none. Lines are
 * collected per loop and written together, under a lock, so that those of several loops do not mix.
 * A reader of stdout that stops reading does not stop the gateway: what does not fit is kept up to
 * KEEP_BYTES per loop, further lines are dropped and counted. stdout is not made non-blocking,
 * because whoever shares it would be, too: poll() is asked before each piece, and a piece of
 * PIPE_BUF fits where poll() says so. Tested in tests/integration/gateway.py, gateway_net.py and
 * gateway_watch.py.
 */
#include "platform/mono.h"
#include "proxy/admin.h"
#include "proxy/capture.h"
#include "proxy/client.h"
#include "proxy/links.h"
#include "proxy/tracing.h"
#include "wire/json_write.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WRITE_BYTES = 16 * 1024,
    WRITE_MS = 50,
    KEEP_BYTES = 256 * 1024, /* of a loop, while stdout takes nothing */
    LAST_MS = 1000,          /* for a stdout that takes nothing when the gateway ends */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct service_ctx *torn; /* half a line of this loop is written; guarded by lock */

/* Files take everything, at any time. */
static bool is_file(void)
{
    struct stat st;
    return fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
}

static bool takes(int wait_ms)
{
    struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
    int n;
    do
        n = poll(&p, 1, wait_ms);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

/* Whole lines of at most PIPE_BUF, or a piece of a longer one. */
static size_t piece_of(const char *p, size_t len)
{
    if (len <= PIPE_BUF)
        return len;
    const char *end = memrchr(p, '\n', PIPE_BUF);
    return end ? (size_t)(end + 1 - p) : PIPE_BUF;
}

static uint64_t lines_in(const struct buf *b)
{
    uint64_t n = 0;
    for (const char *p = b->p, *end = p + b->len;
         b->len && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        n++;
    return n;
}

static void flush(struct service_ctx *w, int wait_ms)
{
    size_t at = 0;
    const bool file = is_file();
    bool broken = false;
    pthread_mutex_lock(&lock);
    while (at < w->log.len && (!torn || torn == w) && (file || takes(wait_ms))) {
        size_t left = w->log.len - at;
        ssize_t n = write(STDOUT_FILENO, w->log.p + at,
                          file ? left : piece_of(w->log.p + at, left));
        broken = n < 0 && errno != EINTR && errno != EAGAIN;
        if (n < 0 && errno != EINTR)
            break;
        if (n > 0) {
            at += (size_t)n;
            torn = w->log.p[at - 1] != '\n' ? w : NULL;
        }
    }
    if (broken)
        torn = NULL;
    pthread_mutex_unlock(&lock);
    buf_consume(&w->log, at);
    if (broken) { /* closed or full: nothing to wait for */
        latency__more(&w->log_lost, lines_in(&w->log));
        w->log.len = 0;
    }
    w->log_blocked = w->log.len > 0;
}

static void on_alarm(struct alarm *a)
{
    struct service_ctx *w = (struct service_ctx *)((char *)a -
                                                   offsetof(struct service_ctx, log_alarm));
    flush(w, 0);
    if (w->log.len > 0 && alarm_set(w->loop, &w->log_alarm, WRITE_MS, on_alarm) != 0)
        flush(w, LAST_MS);
}

void access_log_end(struct service_ctx *w)
{
    flush(w, LAST_MS);
    latency__more(&w->log_lost, lines_in(&w->log));
    w->log.len = 0;
    pthread_mutex_lock(&lock);
    torn = torn == w ? NULL : torn;
    pthread_mutex_unlock(&lock);
}

static void ms(struct buf *b, const char *key, uint64_t ns)
{
    json_key(b, key);
    uint64_t us = (ns + 500) / 1000;
    buf_add_u64(b, us / 1000);
    const char rest[] = { '.', (char)('0' + us / 100 % 10), (char)('0' + us / 10 % 10),
                          (char)('0' + us % 10) };
    buf_add(b, rest, sizeof rest);
}

static bool begin_line(struct service_ctx *w)
{
    if (w->log.len >= KEEP_BYTES) {
        latency__more(&w->log_lost, 1);
        return false;
    }
    w->log.failed = false;
    json_begin(&w->log, NULL, '{');
    json_time(&w->log, "time", (int64_t)(clock_read_ns(CLOCK_REALTIME) / 1000));
    return true;
}

/* Of the line that began at `begin`. */
static void end_line(struct service_ctx *w, size_t begin)
{
    struct buf *b = &w->log;
    json_end(b, '}');
    buf_add(b, "\n", 1);
    if (b->failed) { /* too long for what is left: no part of it, which would run into the next */
        b->len = begin;
        b->failed = false;
        latency__more(&w->log_lost, 1);
        return;
    }
    if (begin == 0 && alarm_set(w->loop, &w->log_alarm, WRITE_MS, on_alarm) != 0)
        flush(w, 0);
    else if (b->len >= WRITE_BYTES && !w->log_blocked)
        flush(w, 0);
}

void access_log_refused(struct service_ctx *w, const char *peer, unsigned status, const char *why)
{
    struct buf *b = &w->log;
    const size_t begin = b->len;
    if (!w->view->plan->config.log.access || !begin_line(w))
        return;
    struct slice client = client_host(peer);
    json_bytes(b, "client", client.p, client.len);
    if (status)
        json_count(b, "status", status);
    json_text(b, "error", why);
    end_line(w, begin);
}

void access_log(struct call *c)
{
    struct service_ctx *w = c->worker;
    const struct http_head *h = c->head;
    struct buf *b = &w->log;
    const size_t begin = b->len;
    uint64_t now = mono_ns();
    if (!c->view->plan->config.log.access || !begin_line(w))
        return;
    json_text(b, "id", c->id);
    json_text(b, "client", c->client);
    json_bytes(b, "method", h->method.p, h->method.len);
    json_bytes(b, "host", h->host.p, h->host.len);
    json_bytes(b, "path", h->path.p, h->path.len); /* without the query: secrets travel there */
    json_text(b, "route", c->route ? c->route->name : NULL);
    json_text(b, "service", c->backend ? c->backend->conf->name : NULL);
    json_text(b, "server", c->last_server ? c->last_server : NULL);
    if (c->cert.p)
        json_bytes(b, "cert", c->cert.p, c->cert.len);
    if (c->user.p)
        json_bytes(b, "user", c->user.p, c->user.len);
    if (c->verdict)
        json_text(b, "token", c->verdict);
    if (c->rate)
        json_text(b, "rate", c->rate);
    json_count(b, "tries", c->tries);
    if (c->parts)
        json_count(b, "parts", c->parts);
    if (c->cache_result)
        json_text(b, "cache", c->cache_result);
    json_count(b, "status", c->status);
    json_count(b, "bytes_in", c->bytes_in);
    json_count(b, "bytes_out", c->bytes_out);
    ms(b, "ms", now - c->began_ns);
    if (c->first_byte_ns)
        ms(b, "first_byte_ms", c->first_byte_ns - c->began_ns);
    if (c->trace)
        json_text(b, "trace", trace_id_of(c));
    if (c->why)
        json_text(b, "error", c->why);
    if (c->capture)
        capture_write(c, b);
    end_line(w, begin);
}

void log_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    uint64_t lost = 0;
    (void)p;
    for (size_t i = 0; i < a->workers_n; i++)
        lost += __atomic_load_n(&a->workers[i].log_lost, __ATOMIC_RELAXED);
    metric(m, "firn_proxy_log_lost_total", "Lines of the access log that stdout did not take.",
           (double)lost);
}
