/*
 * The link `gzip`: compresses answers as they pass. What the compressor holds back is flushed when
 * the source pauses for a tick of the alarms, so a stream of events is late by some 20 ms at most.
 * Tested in tests/integration/gateway_bodies.py.
 */
#include "proxy/gzip.h"
#include "daemon/metrics.h"
#include "proxy/bodies.h"
#include "proxy/worker.h"

#include <stdlib.h>
#include <zlib.h>

enum {
    OUT_BYTES = 16 * 1024,
    GZIP_WRAPPER = 16, /* added to the window's bits: gzip's own header and trailer */
    WINDOW_BITS_MIN = 9,
    WINDOW_BITS_MAX = 15,
    MEM_LEVEL_MIN = 2,
};

struct gzip_filter {
    struct call_filter f;
    struct alarm flush;
    z_stream z;
    bool on, pending; /* compressing; bytes went in since the last flush */
};

/* A small answer needs no large window: 256 KiB are less than 16 then. */
static int begin(z_stream *z, int level, int64_t len)
{
    int bits = WINDOW_BITS_MAX;
    while (len >= 0 && bits > WINDOW_BITS_MIN && (INT64_C(1) << (bits - 1)) >= len)
        bits--;
    return deflateInit2(z, level, Z_DEFLATED, bits + GZIP_WRAPPER,
                        bits - WINDOW_BITS_MAX + 8 < MEM_LEVEL_MIN ? MEM_LEVEL_MIN
                                                                   : bits - WINDOW_BITS_MAX + 8,
                        Z_DEFAULT_STRATEGY);
}

static bool squeeze(struct gzip_filter *g, const char *p, size_t len, int how)
{
    struct service_ctx *w = g->f.call->worker;
    unsigned char out[OUT_BYTES];
    bool more = true;
    g->z.next_in = (unsigned char *)(uintptr_t)p;
    g->z.avail_in = (unsigned)len; /* a piece is at most a read or a cached body, below 4 GiB */
    do {
        g->z.next_out = out;
        g->z.avail_out = sizeof out;
        (void)deflate(&g->z, how); /* Z_BUF_ERROR: nothing left to do */
        size_t n = sizeof out - g->z.avail_out;
        latency__more(&w->gzip_out, n);
        if (n > 0)
            more = call_next_body(&g->f, (char *)out, n);
    } while (g->z.avail_out == 0);
    latency__more(&w->gzip_in, len);
    return more;
}

static void on_flush(struct alarm *a)
{
    struct gzip_filter *g = (struct gzip_filter *)((char *)a - offsetof(struct gzip_filter, flush));
    if (g->pending)
        squeeze(g, "", 0, Z_SYNC_FLUSH);
    g->pending = false;
}

static void filter_head(struct call_filter *f, struct answer *a)
{
    struct gzip_filter *g = (struct gzip_filter *)f;
    struct call *c = f->call;
    const struct config *conf = &c->view->plan->config;
    if ((a->body_len < 0 || (uint64_t)a->body_len >= conf->gzip.min_bytes) &&
        begin(&g->z, (int)conf->gzip.level, a->body_len) == Z_OK) {
        g->on = true;
        body_changed(c, &a->fields);
        fields_set(&a->fields, slice_of("Content-Encoding"), slice_of("gzip"));
        a->body_len = -1;
    }
    call_next_head(f, a);
}

static bool filter_body(struct call_filter *f, const char *p, size_t len)
{
    struct gzip_filter *g = (struct gzip_filter *)f;
    if (!g->on)
        return call_next_body(f, p, len);
    bool now = !g->pending &&
               alarm_set(f->call->worker->loop, &g->flush, ALARM_TICK_MS, on_flush) != 0;
    g->pending = !now;
    return squeeze(g, p, len, now ? Z_SYNC_FLUSH : Z_NO_FLUSH);
}

static void filter_end(struct call_filter *f, struct slice trailers)
{
    struct gzip_filter *g = (struct gzip_filter *)f;
    alarm_clear(&g->flush);
    if (g->on && !slice_is(f->call->head->method, "HEAD"))
        squeeze(g, "", 0, Z_FINISH);
    call_next_end(f, trailers);
}

static void filter_free(struct call_filter *f)
{
    struct gzip_filter *g = (struct gzip_filter *)f;
    alarm_clear(&g->flush);
    if (g->on)
        deflateEnd(&g->z);
    free(g);
}

static const struct call_filter_ops ops = { filter_head, filter_body, filter_end, filter_free };

static bool has(const struct fields *f, const char *name, const char *word)
{
    for (size_t i = 0; i < f->n; i++)
        if (http_word_is(f->v[i].name, name) && http_lists(f->v[i].value, word))
            return true;
    return false;
}

void gzip_answer(struct call *c, struct answer *a)
{
    const struct config *conf = &c->view->plan->config;
    const struct config_strings *types = &conf->gzip.types;
    if (!c->route || c->route->gzip == CONFIG_GZIP_OFF ||
        (c->route->gzip == CONFIG_GZIP_SETTING && !conf->gzip.on))
        return;
    struct slice type = fields_get(&a->fields, "content-type");
    struct slice coding = fields_get(&a->fields, "content-encoding");
    bool bare = a->status == 304; /* it must have the Vary of the whole */
    if (a->status == 101 || a->status == 204 || a->status == 206 ||
        (coding.p && !http_word_is(coding, "identity")) ||
        (!bare && !gzip_type_in(type, (const char *const *)types->v, types->n)) ||
        has(&a->fields, "cache-control", "no-transform"))
        return;
    if (!has(&a->fields, "vary", "accept-encoding") && !has(&a->fields, "vary", "*"))
        fields_add(&a->fields, slice_of("Vary"), slice_of("Accept-Encoding"));
    if (!gzip_accepted(http_head_value(c->head, "accept-encoding")))
        return;
    struct gzip_filter *g = bare ? NULL : calloc(1, sizeof *g);
    if (g)
        call_filter(c, &g->f, &ops);
    else if (bare)
        body_changed(c, &a->fields);
}

void gzip_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    uint64_t in = 0, out = 0;
    (void)p;
    for (size_t i = 0; i < a->workers_n; i++) {
        in += __atomic_load_n(&a->workers[i].gzip_in, __ATOMIC_RELAXED);
        out += __atomic_load_n(&a->workers[i].gzip_out, __ATOMIC_RELAXED);
    }
    metric(m, "firn_proxy_gzip_in_bytes_total", "Bytes of answers before gzip.", (double)in);
    metric(m, "firn_proxy_gzip_out_bytes_total", "The same bytes behind it.", (double)out);
}
