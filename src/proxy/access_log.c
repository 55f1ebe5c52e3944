/*
 * The access log: one line of JSON on stdout for each request. Lines are collected per loop and
 * written together, under a lock, so that those of several loops do not mix. Tested in
 * tests/integration/gateway.py.
 */
#include "platform/mono.h"
#include "proxy/tracing.h"
#include "proxy/worker.h"
#include "wire/json_write.h"

#include <errno.h>
#include <unistd.h>

enum { WRITE_BYTES = 16 * 1024, WRITE_MS = 50 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void access_log_flush(struct service_ctx *w)
{
    size_t at = 0;
    pthread_mutex_lock(&lock);
    while (at < w->log.len) {
        ssize_t n = write(STDOUT_FILENO, w->log.p + at, w->log.len - at);
        if (n < 0 && errno != EINTR)
            break; /* a log that cannot be written has no place to say so */
        at += n > 0 ? (size_t)n : 0;
    }
    pthread_mutex_unlock(&lock);
    w->log.len = 0;
    w->log.failed = false;
}

static void on_alarm(struct alarm *a)
{
    access_log_flush((struct service_ctx *)((char *)a - offsetof(struct service_ctx, log_alarm)));
}

static void ms(struct buf *b, const char *key, uint64_t ns)
{
    json_key(b, key);
    buf_addf(b, "%.3f", (double)ns / 1e6);
}

void access_log(struct call *c)
{
    struct service_ctx *w = c->worker;
    const struct http_head *h = c->head;
    struct buf *b = &w->log;
    uint64_t now = mono_ns();
    if (!c->view->plan->config.log.access)
        return;
    bool first = b->len == 0;
    json_begin(b, NULL, '{');
    json_time(b, "time", (int64_t)(clock_read_ns(CLOCK_REALTIME) / 1000));
    json_text(b, "id", c->id);
    json_text(b, "client", c->client);
    json_bytes(b, "method", h->method.p, h->method.len);
    json_bytes(b, "host", h->host.p, h->host.len);
    json_bytes(b, "path", h->path.p, h->path.len); /* without the query: secrets travel there */
    json_text(b, "route", c->route ? c->route->name : NULL);
    json_text(b, "service", c->backend ? c->backend->conf->name : NULL);
    json_text(b, "server", c->last_server ? c->last_server : NULL);
    json_count(b, "tries", c->tries);
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
    json_end(b, '}');
    buf_add(b, "\n", 1);
    if (b->len >= WRITE_BYTES)
        access_log_flush(w);
    else if (first && alarm_set(w->loop, &w->log_alarm, WRITE_MS, on_alarm) != 0)
        access_log_flush(w);
}
