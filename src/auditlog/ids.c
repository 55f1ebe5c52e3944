/*
 * Blocks of IDs over HTTP: GET /generate?n=N&shard=S, answered in eight bytes for each ID. The
 * connection is kept. Tested in tests/integration/auditlog.py.
 */
#include "auditlog/ids.h"
#include "auditlog/audit_id.h"
#include "auditlog/id_block.h"
#include "auditlog/pg_array.h"
#include "id/diag.h"
#include "platform/mono.h"
#include "wire/http_response.h"
#include "wire/link.h"
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REQUEST_BUF = 1024, ANSWER_BYTES_MAX = 1024 * 1024, NAP_MS = 20 };

struct ids {
    struct ids_opts opts;
    struct ids_stats *stats;
    size_t at; /* the generator that answered last */
    struct link *link;
    struct buf in;
    struct id_block block[SHARDS];
};

int ids_new(const struct ids_opts *o, struct ids_stats *stats, struct ids **out)
{
    struct ids *s = calloc(1, sizeof *s);
    if (!s)
        return FIRN_ENOMEM;
    s->opts = *o;
    s->stats = stats;
    buf_init(&s->in, ANSWER_BYTES_MAX);
    *out = s;
    return 0;
}

void ids_free(struct ids *s)
{
    if (!s)
        return;
    link_close(s->link);
    for (size_t i = 0; i < SHARDS; i++)
        id_block_done(&s->block[i]);
    buf_done(&s->in);
    free(s);
}

static void hang_up(struct ids *s)
{
    link_close(s->link);
    s->link = NULL;
}

/* The answer's IDs. */
static int read_ids(const struct http_response *res, uint32_t shard, uint64_t **out, size_t *out_n,
                    struct firn_diag *d)
{
    if (res->status != 200)
        return firn__diag(d, FIRN_EIO, 0, "it answers %u: %.*s", res->status,
                          (int)(res->body.len < 120 ? res->body.len : 120), res->body.p);
    const size_t n = res->body.len / 8;
    if (n == 0 || res->body.len % 8 != 0)
        return firn__diag(d, FIRN_EIO, 0, "its answer is no list of IDs");
    uint64_t *ids = calloc(n, sizeof *ids);
    if (!ids)
        return FIRN_ENOMEM;
    const int64_t now_ms = (int64_t)(clock_read_ns(CLOCK_REALTIME) / 1000000);
    for (size_t i = 0; i < n; i++) {
        ids[i] = pg_read_int8(res->body.p + 8 * i);
        if (!audit_id_plausible(ids[i], shard, now_ms)) {
            firn__diag(d, FIRN_EIO, 0,
                       "its ID %llu is not one of shard %u and now: start it with --layout audit, "
                       "and compare the clocks",
                       (unsigned long long)ids[i], shard);
            free(ids);
            return FIRN_EIO;
        }
    }
    *out = ids;
    *out_n = n;
    return 0;
}

static int receive(struct ids *s, struct http_response *res, int64_t until, struct firn_diag *d)
{
    s->in.len = 0;
    for (;;) {
        size_t got;
        char *p = buf_room(&s->in, 4096);
        int r = p ? link_recv(s->link, p, 4096, &got, until, d) : FIRN_ENOMEM;
        if (r)
            return r;
        buf_commit(&s->in, got);
        ssize_t used = http_response_read(s->in.p, s->in.len, false, res);
        if (used != FIRN_EAGAIN)
            return used < 0 ? firn__diag(d, FIRN_EIO, 0, "its answer is not HTTP") : 0;
    }
}

/* One request to the generator in hand. */
static int fetch_once(struct ids *s, uint32_t shard, size_t n, int64_t until, uint64_t **out,
                      size_t *out_n, struct firn_diag *d)
{
    const struct host_port *g = &s->opts.generators[s->at];
    const char *token = s->opts.token;
    char text[REQUEST_BUF], host[HOST_PORT_BUF];
    struct http_response res;
    if (s->link && !link_quiet(s->link))
        hang_up(s);
    int r = s->link ? 0 : link_open(g->host, g->port, NULL, until, &s->link, d);
    if (r)
        return r;
    int len = snprintf(text, sizeof text,
                       "GET /generate?n=%zu&shard=%u HTTP/1.1\r\nHost: %s\r\n"
                       "Accept: application/octet-stream\r\n%s%s%s\r\n",
                       n, shard, host_port_write(g->host, g->port, host),
                       token ? "Authorization: Bearer " : "", token ? token : "",
                       token ? "\r\n" : "");
    if (len < 0 || (size_t)len >= sizeof text)
        return firn__diag(d, FIRN_EINVAL, 0, "the token for generators is too long");
    r = link_send(s->link, text, (size_t)len, until, d);
    if (r == 0)
        r = receive(s, &res, until, d);
    if (r == 0)
        r = read_ids(&res, shard, out, out_n, d);
    if (r || res.close)
        hang_up(s);
    return r;
}

static bool ending(const struct ids *s)
{
    return s->opts.ending && atomic_load(s->opts.ending);
}

/* False: there is no time left, or the service ends. */
static bool nap(const struct ids *s, uint32_t ms, int64_t until)
{
    const int64_t end = mono_now_ms() + ms;
    while (mono_now_ms() < end && mono_now_ms() < until && !ending(s)) {
        const struct timespec t = { 0, (long)NAP_MS * 1000000 };
        nanosleep(&t, NULL);
    }
    return mono_now_ms() < until && !ending(s);
}

static int fetch(struct ids *s, uint32_t shard, size_t n, int64_t until, struct firn_diag *d)
{
    const struct ids_opts *o = &s->opts;
    struct firn_diag why = { 0, "" };
    int r = FIRN_EIO;
    for (uint32_t i = 0; i <= o->retries; i++) {
        if (i > 0 && !nap(s, o->retry_ms, until))
            break;
        const int64_t began = mono_now_ms(), end = began + o->timeout_ms;
        uint64_t *ids = NULL;
        size_t got = 0;
        atomic_fetch_add(&s->stats->requests, 1);
        r = fetch_once(s, shard, n, end < until ? end : until, &ids, &got, &why);
        if (r == 0) { /* no ID is older than the request that brought it */
            id_block_fill(&s->block[shard], ids, got, (uint64_t)began + o->fresh_ms);
            atomic_fetch_add(&s->stats->fetched, got);
            return 0;
        }
        char name[HOST_PORT_BUF];
        const struct host_port *g = &o->generators[s->at];
        firn__diag(d, r, 0, "%.60s: %.150s", host_port_write(g->host, g->port, name),
                   why.text[0] ? why.text : firn_error_message(r));
        atomic_fetch_add(&s->stats->failures, 1);
        hang_up(s);
        s->at = (s->at + 1) % o->generators_n;
    }
    return r;
}

int ids_take(struct ids *s, uint32_t shard, uint64_t *out, size_t n, int64_t until_ms,
             struct firn_diag *diag)
{
    struct id_block *b = &s->block[shard];
    size_t got = 0;
    for (;;) {
        uint64_t dropped = 0;
        got += id_block_take(b, out + got, n - got, mono_ms(), &dropped);
        if (dropped)
            atomic_fetch_add(&s->stats->dropped, dropped);
        if (got == n)
            return 0;
        int r = mono_now_ms() < until_ms
                    ? fetch(s, shard, id_block_want(b, n - got, s->opts.block), until_ms, diag)
                    : firn__diag(diag, FIRN_EIO, 0, "no generator made IDs in time");
        if (r)
            return r;
    }
}
