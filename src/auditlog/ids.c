/*
 * IDs from libfirn-client. They rise as long as one server makes them; the next server's clock may
 * be behind, and a later entry must not get a smaller ID: such IDs are not used. Tested in
 * tests/integration/auditlog.py.
 */
#include "auditlog/ids.h"
#include "auditlog/audit_id.h"
#include "daemon/log.h"
#include "daemon/span_export.h"
#include "firn/client.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { URL_BUF = 4096 };

struct ids {
    struct firn_client *client;
    struct span_export *spans; /* or NULL */
    _Atomic uint64_t unordered, failures;
    uint64_t last[SHARDS]; /* the highest that was taken; of the thread that takes them */
};

/* An attempt that is for a traced request gets a span of its own, whose children the server's
 * are. */
static void attempt_begin(void *user, const struct firn_client_attempt *a, char *traceparent)
{
    const struct ids *s = user;
    struct trace_parent parent;
    struct span span;
    if (!s->spans || trace_parent_read((struct slice){ a->parent, strlen(a->parent) }, &parent))
        return;
    span_init_child(&span, &parent, false, SPAN_CLIENT);
    trace_parent_write(&span.self, traceparent);
}

static void add_span(const struct ids *s, const struct firn_client_attempt *a)
{
    struct trace_parent parent, self;
    struct span span;
    if (!s->spans || trace_parent_read((struct slice){ a->parent, strlen(a->parent) }, &parent) ||
        trace_parent_read((struct slice){ a->traceparent, strlen(a->traceparent) }, &self))
        return;
    span_init_child(&span, &parent, false, SPAN_CLIENT);
    span.self = self;
    snprintf(span.name, sizeof span.name, "attempt %u", a->number);
    span.start_ns = a->began_ns;
    span.end_ns = a->ended_ns;
    span.error = a->error != 0;
    span_text(&span, "server.address", (struct slice){ a->host, strlen(a->host) });
    span_number(&span, "server.port", a->port);
    span_number(&span, "firn.shard", a->shard);
    if (a->error)
        span_text(&span, "error.type", (struct slice){ a->text, strlen(a->text) });
    (void)span_export_add(s->spans, &span);
}

static void attempt_end(void *user, const struct firn_client_attempt *a)
{
    struct ids *s = user;
    add_span(s, a);
    if (!a->error)
        return;
    atomic_fetch_add(&s->failures, 1);
    log_warn("generator_failed", "server=%s:%u attempt=%u shard=%u ms=%" PRIu64 " cause=%s",
             a->host, a->port, a->number, a->shard, (a->ended_ns - a->began_ns) / 1000000, a->text);
}

/* `url` with options behind it. */
static int with_options(const char *url, const char *options, char out[URL_BUF],
                        struct firn_diag *diag)
{
    const size_t n = strlen(url);
    const char *joint = strchr(url, '?') ? "&" : n > 0 && url[n - 1] == '/' ? "?" : "/?";
    int len = snprintf(out, URL_BUF, "%s%s%s", url, joint, options);
    return len > 0 && len < URL_BUF ? 0 : firn__diag(diag, FIRN_ERANGE, 0, "the URL is too long");
}

int ids_check(const char *url, struct firn_diag *diag)
{
    char whole[URL_BUF];
    struct firn_client *c;
    int r = with_options(url, "mode=prefetch", whole, diag);
    if (r == 0)
        r = firn_client_open(whole, &c, diag);
    if (r == 0)
        firn_client_close(c);
    return r;
}

int ids_open(const char *url, struct span_export *spans, struct ids **out, struct firn_diag *diag)
{
    struct firn_client_opts o = FIRN_CLIENT_OPTS_INIT;
    char whole[URL_BUF];
    struct ids *s = calloc(1, sizeof *s);
    if (!s)
        return FIRN_ENOMEM;
    s->spans = spans;
    o.attempt_begin = attempt_begin;
    o.attempt_end = attempt_end;
    o.user = s;
    int r = with_options(url, "mode=prefetch", whole, diag);
    if (r == 0)
        r = firn_client_open_with(whole, &o, &s->client, diag);
    if (r) {
        free(s);
        return r;
    }
    *out = s;
    return 0;
}

void ids_close(struct ids *s)
{
    if (!s)
        return;
    firn_client_close(s->client);
    free(s);
}

/* Leaves those that rise, in place; their number. */
static size_t keep_rising(uint64_t *ids, size_t n, uint64_t *last)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (ids[i] > *last)
            *last = ids[kept++] = ids[i];
    return kept;
}

static int check(const uint64_t *ids, size_t n, uint32_t shard, struct firn_diag *d)
{
    const int64_t now_ms = (int64_t)(clock_read_ns(CLOCK_REALTIME) / 1000000);
    for (size_t i = 0; i < n; i++)
        if (!audit_id_plausible(ids[i], shard, now_ms))
            return firn__diag(d, FIRN_EIO, 0,
                              "the generators' ID %" PRIu64 " is not one of shard %u and now: "
                              "start firnd with --layout audit, and compare the clocks",
                              ids[i], shard);
    return 0;
}

int ids_take(struct ids *s, uint32_t shard, uint64_t *out, size_t n, const char *traceparent,
             uint32_t deadline_ms, struct firn_diag *diag)
{
    struct firn_client_ask ask = FIRN_CLIENT_ASK_INIT;
    const uint64_t until_ms = mono_ms() + deadline_ms;
    ask.shard = shard;
    ask.deadline_ms = deadline_ms;
    ask.traceparent = traceparent[0] ? traceparent : NULL;
    for (size_t got = 0; got < n;) {
        int r = firn_client_mint(s->client, &ask, out + got, n - got, diag);
        if (r == 0)
            r = check(out + got, n - got, shard, diag);
        if (r)
            return r;
        const size_t kept = keep_rising(out + got, n - got, &s->last[shard]);
        if (kept < n - got) {
            atomic_fetch_add(&s->unordered, n - got - kept);
            if (mono_ms() >= until_ms)
                return firn__diag(diag, FIRN_EIO, 0,
                                  "the generators' clocks are behind the last ID of shard %u",
                                  shard);
        }
        got += kept;
    }
    return 0;
}

void ids_look(const struct ids *s, struct ids_stats *out)
{
    struct firn_client_stats c = { .size = sizeof c };
    firn_client_stats(s->client, &c);
    *out = (struct ids_stats){ .fetched = c.block_ids,
                               .stale = c.stale_ids,
                               .unordered = atomic_load(&s->unordered),
                               .requests = c.requests,
                               .failures = atomic_load(&s->failures) };
}
