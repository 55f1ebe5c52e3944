/*
 * The exporter's queue, thread and connection (span_export.h).
 *
 * Spans wait in a ring of fixed size. The thread takes up to BATCH_MAX of them, EVERY_MS after the
 * last time or as soon as so many wait or the ring is half full, writes them as one body, which
 * frees their places, and sends it over a connection that stays open. A collector that is away, or
 * asks for patience (429, 502, 503, 504), is asked again with growing pauses for RETRY_MS; other
 * answers end the batch. Only copying into the ring is done under the lock.
 *
 * Tested in tests/unit/daemon/span_export.c and tests/integration/tracing.py.
 */
#include "daemon/span_export.h"
#include "daemon/log.h"
#include "firn/random.h"
#include "id/diag.h"
#include "platform/mono.h"
#include "wire/http_response.h"
#include "wire/json_read.h"
#include "wire/link.h"
#include "wire/tls_context.h"
#include "wire/url.h"

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PORT_DEFAULT = 4318,
    BATCH_MAX = 256,
    EVERY_MS = 1000,
    RETRY_MS = 30 * 1000, /* for one batch; others wait meanwhile, and the queue may get full */
    PAUSE_MIN_MS = 250,
    PAUSE_MAX_MS = 8000,
    TARGET_BYTES_MAX = 512,
    ANSWER_BYTES = 16 * 1024,
    /* A span's text is at most doubled or, for control characters, six times as long. */
    BODY_BYTES_MAX = BATCH_MAX * (6 * (SPAN_TEXT_BYTES + SPAN_NAME_BUF) + 3072),
};

struct endpoint {
    bool tls;
    uint16_t port;
    char host[HOST_BYTES_MAX + 1], at[HOST_PORT_BUF];
    char target[TARGET_BYTES_MAX + 1];
};

struct span_export {
    struct span_export_opts opts;
    struct endpoint to;
    struct tls_context *tls;
    struct span_export_stats stats;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows, up to `stop_ms` */
    pthread_cond_t wake;
    uint32_t first, n; /* of the ring */
    uint32_t batch;    /* as soon as so many wait, they are sent; constant */
    bool stop;
    int64_t stop_ms; /* when all must be over, once `stop` is set */
    struct span *ring;
    /* the thread's own */
    struct link *link; /* or NULL */
    bool failing;
    uint64_t lost_then; /* failed and dropped when it began to fail */
    struct buf body;
    char answer[ANSWER_BYTES];
};

/* ---- the endpoint ---- */

static bool host_chars_ok(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!isalnum((unsigned char)s.p[i]) && !memchr("-_.:[]", s.p[i], 6))
            return false;
    return true;
}

static int read_endpoint(const char *text, struct endpoint *out, struct firn_diag *d)
{
    static const char example[] = "give a URL such as http://127.0.0.1:4318";
    struct url_parts p;
    struct host_port h;
    *out = (struct endpoint){ 0 };
    if (!url_split((struct slice){ text, strlen(text) }, &p) ||
        (!slice_is(p.scheme, "http") && !slice_is(p.scheme, "https")))
        return firn__diag(d, FIRN_EFORMAT, 0, "the collector is reached by http:// or https://; %s",
                          example);
    out->tls = slice_is(p.scheme, "https");
    if (p.user.p)
        return firn__diag(d, FIRN_EFORMAT, 0, "a user and password are not sent to a collector; %s",
                          example);
    if (host_port_read(p.hosts, &h) != HOST_OK || !host_chars_ok(p.hosts) ||
        (h.has_port && h.port == 0))
        return firn__diag(d, FIRN_EFORMAT, 0, "there is no host, or no port from 1 to 65535; %s",
                          example);
    memcpy(out->host, h.host, sizeof out->host);
    out->port = h.has_port ? h.port : PORT_DEFAULT;
    host_port_write(h.host, out->port, out->at);
    if (p.target.len == 0 || slice_is(p.target, "/"))
        p.target = (struct slice){ "/v1/traces", 10 };
    bool fine = p.target.p[0] == '/' && p.target.len <= TARGET_BYTES_MAX;
    for (size_t i = 0; i < p.target.len; i++)
        fine &= http_is(p.target.p[i], HTTP_TARGET);
    if (!fine)
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "the path begins with '/', has at most %d bytes and neither spaces nor "
                          "'#'; without one it is /v1/traces",
                          TARGET_BYTES_MAX);
    memcpy(out->target, p.target.p, p.target.len);
    return 0;
}

int span_export_check(const char *endpoint, struct firn_diag *why)
{
    struct endpoint to;
    return read_endpoint(endpoint, &to, why);
}

/* ---- one request ---- */

static void hang_up(struct span_export *e)
{
    link_close(e->link);
    e->link = NULL;
}

/* The answer to what was sent; its slices borrow from e->answer. Of one whose body is too long, or
 * ends with the connection, the head is what counts. */
static int receive(struct span_export *e, int64_t until_ms, struct http_response *out,
                   struct firn_diag *d)
{
    size_t len = 0, got = 0;
    for (out->status = 0;;) {
        int r = len == sizeof e->answer ? FIRN_ENOSPC
                                        : link_recv(e->link, e->answer + len,
                                                    sizeof e->answer - len, &got, until_ms, d);
        if (r && out->status > 0) {
            out->body = (struct slice){ NULL, 0 };
            hang_up(e);
            return 0;
        }
        if (r == FIRN_ENOSPC)
            return firn__diag(d, FIRN_EFORMAT, 0, "%s: its answer is too long", e->to.at);
        if (r)
            return r;
        len += got;
        ssize_t used = http_response_read(e->answer, len, false, out);
        if (used > 0) {
            if (out->close || (size_t)used != len)
                hang_up(e);
            return 0;
        }
        if (used != FIRN_EAGAIN && out->status > 0) { /* a body that is not worth reading */
            out->body = (struct slice){ NULL, 0 };
            hang_up(e);
            return 0;
        }
        if (used != FIRN_EAGAIN)
            return firn__diag(d, FIRN_EFORMAT, 0, "%s: its answer is not HTTP", e->to.at);
    }
}

static int post_once(struct span_export *e, int64_t until_ms, struct http_response *out,
                     struct firn_diag *d)
{
    char head[TARGET_BYTES_MAX + HOST_PORT_BUF + 256];
    int n = snprintf(head, sizeof head,
                     "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: firn/%s\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                     e->to.target, e->to.at, e->opts.resource.version, e->body.len);
    int r = e->link ? 0 : link_open(e->to.host, e->to.port, e->tls, until_ms, &e->link, d);
    if (r == 0)
        r = link_send(e->link, head, (size_t)n, until_ms, d);
    if (r == 0)
        r = link_send(e->link, e->body.p, e->body.len, until_ms, d);
    if (r == 0)
        r = receive(e, until_ms, out, d);
    if (r)
        hang_up(e);
    return r;
}

/* A collector may close a connection that stayed open just when the next request comes. */
static int post(struct span_export *e, int64_t until_ms, struct http_response *out,
                struct firn_diag *d)
{
    if (e->link && !link_quiet(e->link))
        hang_up(e);
    bool used_before = e->link != NULL;
    int r = post_once(e, until_ms, out, d);
    return r && used_before ? post_once(e, until_ms, out, d) : r;
}

/* ---- one batch ---- */

static void note_trouble(struct span_export *e, const char *cause)
{
    if (e->failing)
        return;
    e->failing = true;
    e->lost_then = atomic_load(&e->stats.failed) + atomic_load(&e->stats.dropped);
    log_warn("trace_export_failed", "endpoint=%s cause=%s", e->to.at, cause);
}

static void note_success(struct span_export *e)
{
    uint64_t lost = atomic_load(&e->stats.failed) + atomic_load(&e->stats.dropped);
    if (e->failing)
        log_info("trace_export_recovered", "endpoint=%s spans_lost=%" PRIu64, e->to.at,
                 lost - e->lost_then);
    e->failing = false;
}

static void take_rejected(void *user, const char *path, const char *value, bool string)
{
    (void)string;
    if (strcmp(path, "partialSuccess.rejectedSpans") == 0)
        *(uint64_t *)user = strtoull(value, NULL, 10);
}

/* The collector took the batch, or at least a part of it. */
static void count_taken(struct span_export *e, uint32_t n, const struct http_response *answer)
{
    uint64_t rejected = 0;
    if (answer->body.len > 0 &&
        json_each(answer->body.p, answer->body.len, take_rejected, &rejected) != 0)
        rejected = 0; /* protobuf, or nothing that we know: the status is what counts */
    if (rejected > n)
        rejected = n;
    atomic_fetch_add(&e->stats.exported, n - rejected);
    atomic_fetch_add(&e->stats.failed, rejected);
    if (rejected > 0)
        note_trouble(e, "the collector rejected spans");
    else
        note_success(e);
}

static uint64_t retry_after_ms(const struct http_response *answer)
{
    uint64_t s = 0;
    struct slice value = http_response_header(answer, "retry-after");
    return value.p && http_u64(value, RETRY_MS / 1000, &s) == 0 ? s * 1000 : 0;
}

/* When a request that begins now must be over; *out_stopping: the process ends. */
static int64_t deadline(struct span_export *e, bool *out_stopping)
{
    int64_t until_ms = mono_now_ms() + e->opts.timeout_ms;
    pthread_mutex_lock(&e->mutex);
    *out_stopping = e->stop;
    if (e->stop && e->stop_ms < until_ms)
        until_ms = e->stop_ms;
    pthread_mutex_unlock(&e->mutex);
    return until_ms;
}

/* Until then, or until the process ends. */
static void rest(struct span_export *e, uint64_t ms)
{
    struct timespec t = mono_timespec(mono_ns() + ms * 1000000);
    pthread_mutex_lock(&e->mutex);
    int over = 0;
    while (!e->stop && !over)
        over = pthread_cond_timedwait(&e->wake, &e->mutex, &t);
    pthread_mutex_unlock(&e->mutex);
}

static bool worth_a_retry(unsigned status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

/* Sends the body, which has `n` spans. */
static void deliver(struct span_export *e, uint32_t n)
{
    const int64_t give_up_ms = mono_now_ms() + RETRY_MS;
    for (uint32_t pause = PAUSE_MIN_MS;;
         pause = pause < PAUSE_MAX_MS / 2 ? 2 * pause : PAUSE_MAX_MS) {
        struct firn_diag d = { 0, "" };
        struct http_response answer;
        bool stopping;
        uint64_t wait = pause / 2 + firn_rng_below(firn_rng_thread(), pause / 2 + 1), asked = 0;
        int64_t until_ms = deadline(e, &stopping);
        int r = post(e, until_ms, &answer, &d);
        if (r == 0 && answer.status / 100 == 2) {
            count_taken(e, n, &answer);
            return;
        }
        if (r == 0) {
            snprintf(d.text, sizeof d.text, "it answered %u", answer.status);
            asked = retry_after_ms(&answer);
        }
        note_trouble(e, d.text);
        wait = asked > wait ? asked : wait;
        (void)deadline(e, &stopping); /* it may have begun meanwhile */
        if (stopping || (r == 0 && !worth_a_retry(answer.status)) ||
            mono_now_ms() + (int64_t)wait >= give_up_ms)
            break;
        rest(e, wait);
    }
    atomic_fetch_add(&e->stats.failed, n);
}

/* ---- the thread ---- */

/* Waits for a batch; how many spans it may have. 0: the process ends, and none is left. */
static uint32_t next_batch(struct span_export *e)
{
    struct timespec t = mono_timespec(mono_ns() + UINT64_C(1000000) * EVERY_MS);
    pthread_mutex_lock(&e->mutex);
    while (!e->stop && e->n < e->batch)
        if (pthread_cond_timedwait(&e->wake, &e->mutex, &t) != 0) {
            if (e->n > 0)
                break;
            t = mono_timespec(mono_ns() + UINT64_C(1000000) * EVERY_MS);
        }
    uint32_t n = e->n < BATCH_MAX ? e->n : BATCH_MAX;
    pthread_mutex_unlock(&e->mutex);
    return n;
}

/* The places are given back when the bodies are written: givers never touch a place in use. */
static bool write_batch(struct span_export *e, uint32_t n)
{
    uint64_t real_ns = clock_read_ns(CLOCK_REALTIME) - mono_ns();
    e->body.len = 0;
    e->body.failed = false;
    spans_begin(&e->body, &e->opts.resource);
    for (uint32_t i = 0; i < n; i++)
        spans_add(&e->body, &e->ring[(e->first + i) % e->opts.queue], real_ns);
    spans_end(&e->body);
    pthread_mutex_lock(&e->mutex);
    e->first = (e->first + n) % e->opts.queue;
    e->n -= n;
    pthread_mutex_unlock(&e->mutex);
    return !e->body.failed;
}

static void *run(void *arg)
{
    struct span_export *e = arg;
    for (uint32_t n; (n = next_batch(e)) > 0;) {
        if (write_batch(e, n))
            deliver(e, n);
        else
            atomic_fetch_add(&e->stats.failed, n);
    }
    return NULL;
}

/* ---- what others call ---- */

bool span_export_add(struct span_export *e, const struct span *s)
{
    pthread_mutex_lock(&e->mutex);
    bool room = e->n < e->opts.queue;
    if (room) {
        memcpy(&e->ring[(e->first + e->n) % e->opts.queue], s, span_size(s));
        if (++e->n == e->batch)
            pthread_cond_signal(&e->wake);
    }
    pthread_mutex_unlock(&e->mutex);
    if (!room)
        atomic_fetch_add_explicit(&e->stats.dropped, 1, memory_order_relaxed);
    return room;
}

const struct span_export_stats *span_export_stats(const struct span_export *e)
{
    return &e->stats;
}

uint32_t span_export_waiting(struct span_export *e)
{
    pthread_mutex_lock(&e->mutex);
    uint32_t n = e->n;
    pthread_mutex_unlock(&e->mutex);
    return n;
}

static void free_all(struct span_export *e)
{
    hang_up(e);
    tls_context_free(e->tls);
    buf_done(&e->body);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->mutex);
    free(e->ring);
    free(e);
}

int span_export_start(const struct span_export_opts *o, struct span_export **out,
                      struct firn_diag *d)
{
    struct span_export *e = calloc(1, sizeof *e);
    if (!e)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    e->opts = *o;
    e->batch = o->queue / 2 < BATCH_MAX ? o->queue / 2 : BATCH_MAX;
    e->opts.endpoint = e->opts.tls_ca = NULL; /* they were borrowed for the call */
    pthread_mutex_init(&e->mutex, NULL);
    mono_cond_init(&e->wake);
    buf_init(&e->body, BODY_BYTES_MAX);
    int r = read_endpoint(o->endpoint, &e->to, d);
    if (r == 0 && e->to.tls)
        r = tls_context_open(
            TLS_CLIENT, &(struct tls_files){ .ca = o->tls_ca, .area = "tracing.tls_" }, &e->tls, d);
    if (r == 0 && !(e->ring = calloc(o->queue, sizeof *e->ring)))
        r = firn__diag(d, FIRN_ENOMEM, 0, "no memory for tracing.queue spans");
    if (r == 0 && pthread_create(&e->thread, NULL, run, e) != 0)
        r = firn__diag(d, FIRN_ENOMEM, 0, "no thread for the spans");
    if (r) {
        free_all(e);
        return r;
    }
    *out = e;
    return 0;
}

void span_export_stop(struct span_export *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->mutex);
    e->stop = true;
    e->stop_ms = mono_now_ms() + e->opts.timeout_ms;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->mutex);
    pthread_join(e->thread, NULL);
    free_all(e);
}
