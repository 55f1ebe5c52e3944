/*
 * GET /v1/events: the history as server-sent events, for the dashboard. An answer is finite: the
 * rows behind Last-Event-ID (or `after`), and a `retry` after which an EventSource asks again on
 * the same connection. So it holds no connection open, and ends when the server drains. An event
 * id is the start of the process and a row's number: one of another process gets all rows.
 * history_sample() makes a row. Tested in tests/unit/server/http.c and
 * tests/integration/http_api.py.
 */
#include "server/http_call.h"
#include "daemon/about.h"
#include "wire/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COLUMNS(X) /* counters, of which the kinds of IDs are the first */ \
    X(http)                                                                \
    X(resp) X(errors) X(refused) X(tickets) X(commits) X(store_errors) X(store_calls) X(store_us)
#define GAUGES(X) X(connections) X(waiting) X(window_ms) X(behind_ms) X(clock) X(ready) X(leases)

static const char *const columns[] = {
#define X(name) #name,
    COLUMNS(X) GAUGES(X)
#undef X
};

enum {
#define X(name) COLUMN_##name,
    COLUMNS(X) COUNTERS_N,
    COLUMN_before_gauges_ = COUNTERS_N - 1,
    GAUGES(X) COLUMNS_N
#undef X
};
_Static_assert(sizeof columns / sizeof columns[0] == COLUMNS_N, "a name for each column");

/* Latencies of both protocols, as counters per bucket: the reader of the rows adds up as many
 * seconds as it likes before it asks for a percentile. A row has the kinds, the counters, these,
 * and then the gauges. */
enum { TOOK_IDS, TOOK_TICKETS, TOOK_N, TOOK_BUCKETS = LATENCY_BOUNDS + 1 };
static const struct {
    const char *name;
    unsigned http, resp; /* what requests are timed as: app.h */
} took[TOOK_N] = { [TOOK_IDS] = { "ids", HTTP_IDS, RESP_IDS },
                   [TOOK_TICKETS] = { "tickets", HTTP_TICKETS, RESP_TICKETS } };

enum { KINDS_ROOM = HISTORY_COLUMNS - COLUMNS_N - TOOK_N * TOOK_BUCKETS };
_Static_assert(KINDS_ROOM >= 24, "room for the kinds");

/* --- sampling --- */

static void sum_loops(struct app *app, uint64_t v[COLUMNS_N])
{
    for (size_t i = 0; i < app->loops; i++) {
        struct loop_stats s;
        loop_stats(app->ctx[i].loop, &s);
        v[COLUMN_http] += s.http_requests;
        v[COLUMN_resp] += s.resp_requests;
        v[COLUMN_errors] += s.http_errors + s.resp_errors;
        v[COLUMN_refused] += s.refused;
        v[COLUMN_connections] += s.conns;
        v[COLUMN_waiting] += s.deferred;
        for (size_t k = 0; http_route_name(k); k++)
            v[COLUMN_errors] += atomic_load_explicit(&app->ctx[i].http[k].errors,
                                                     memory_order_relaxed);
    }
}

static void sum_store(struct app *app, uint64_t v[COLUMNS_N])
{
    const struct store_counts *s = coordinator_store_counts(app->coordinator);
    struct latency all = { 0 };
    for (int op = 0; op < STORE_OPS_N; op++)
        latency_merge(&all, &s->took[op]);
    for (size_t i = 0; i < TOOK_BUCKETS; i++)
        v[COLUMN_store_calls] += all.bucket[i];
    v[COLUMN_store_us] = all.sum_ns / 1000;
}

/* Returns the number of columns. */
static size_t sum_latencies(struct app *app, uint64_t *row)
{
    for (size_t t = 0; t < TOOK_N; t++) {
        struct latency all = { 0 };
        for (size_t i = 0; i < app->loops; i++) {
            loop_latency(app->ctx[i].loop, false, took[t].http, &all);
            loop_latency(app->ctx[i].loop, true, took[t].resp, &all);
        }
        memcpy(row + t * TOOK_BUCKETS, all.bucket, sizeof all.bucket);
    }
    return (size_t)TOOK_N * TOOK_BUCKETS;
}

static int64_t window_left_ms(struct app *app, const struct lease_view *v)
{
    struct board_clock c;
    board_clock_init(&c, &app->board);
    int64_t now_us = (int64_t)(c.base.fine_ns(&c.base) / 1000);
    return v->grant.gen ? (firn_layout_unix_us(&app->plan.lease, v->grant.until) - now_us) / 1000
                        : 0;
}

void history_sample(struct app *app)
{
    struct timespec now;
    struct lease_view view;
    const char *why;
    size_t kinds, n = 0;
    uint64_t v[COLUMNS_N] = { 0 }, row[HISTORY_COLUMNS];
    const struct coordinator_stats *s = coordinator_stats(app->coordinator);
    const struct firn_kind *kind = firn_kinds(&kinds);
    board_copy(&app->board, &view);
    sum_loops(app, v);
    v[COLUMN_tickets] = atomic_load(&s->tickets);
    v[COLUMN_commits] = atomic_load(&s->commits);
    v[COLUMN_store_errors] = view.store_errors;
    v[COLUMN_window_ms] = (uint64_t)window_left_ms(app, &view);
    v[COLUMN_behind_ms] = (uint64_t)(view.behind_ns / 1000000);
    v[COLUMN_clock] = view.clock;
    v[COLUMN_ready] = app_ready(app, &why);
    v[COLUMN_leases] = atomic_load(&coordinator_leases(app->coordinator)->held);
    sum_store(app, v);
    for (size_t k = 0; k < kinds && n < KINDS_ROOM; k++) {
        if (!(kind[k].flags & FIRN_KIND_MAKES))
            continue;
        row[n] = 0;
        for (size_t i = 0; i < app->loops; i++)
            row[n] += minter_counted(app->ctx[i].minter, k);
        n++;
    }
    for (size_t i = 0; i < COUNTERS_N; i++)
        row[n++] = v[i];
    n += sum_latencies(app, row + n);
    size_t counters = n;
    for (size_t i = COUNTERS_N; i < COLUMNS_N; i++)
        row[n++] = v[i];
    clock_gettime(CLOCK_REALTIME, &now);
    history_add(app->history, (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, row, n,
                counters);
}

/* --- answering --- */

/* {"128":7,"inf":1}: 7 requests of at most 128 us, and more than 64; one beyond the last bound. */
static void write_took(struct buf *b, const char *name, const int32_t *bucket)
{
    char bound[24] = "inf";
    size_t i = 0;
    while (i < TOOK_BUCKETS && bucket[i] == 0)
        i++;
    if (i == TOOK_BUCKETS)
        return;
    json_begin(b, name, '{');
    for (; i < TOOK_BUCKETS; i++) {
        if (bucket[i] == 0)
            continue;
        if (i < LATENCY_BOUNDS)
            snprintf(bound, sizeof bound, "%llu", (unsigned long long)latency_bound_us(i));
        else
            memcpy(bound, "inf", 4);
        json_signed(b, bound, bucket[i]);
    }
    json_end(b, '}');
}

static void write_columns(struct buf *b, const int32_t *value, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++, value++)
        if (*value)
            json_signed(b, columns[i], *value);
}

/* Rows are sparse: a value of 0 is left out. */
static void write_row(struct buf *b, const struct history_row *row)
{
    size_t kinds, n = 0;
    const struct firn_kind *kind = firn_kinds(&kinds);
    json_begin(b, NULL, '{');
    json_count(b, "t", row->unix_ms);
    json_begin(b, "ids", '{');
    for (size_t k = 0; k < kinds && n < KINDS_ROOM; k++)
        if (kind[k].flags & FIRN_KIND_MAKES) {
            if (row->value[n])
                json_signed(b, kind[k].name, row->value[n]);
            n++;
        }
    json_end(b, '}');
    write_columns(b, row->value + n, 0, COUNTERS_N);
    n += COUNTERS_N;
    json_begin(b, "took", '{');
    for (size_t t = 0; t < TOOK_N; t++, n += TOOK_BUCKETS)
        write_took(b, took[t].name, row->value + n);
    json_end(b, '}');
    write_columns(b, row->value + n, COUNTERS_N, COLUMNS_N);
    json_end(b, '}');
}

/* The number behind this process's name in an event id; 0: all rows. */
static uint64_t rows_seen(struct slice id, const char *start)
{
    size_t len = strlen(start);
    char digits[24];
    if (!id.p || id.len <= len + 1 || id.len - len - 1 >= sizeof digits ||
        memcmp(id.p, start, len) != 0 || id.p[len] != '.')
        return 0;
    snprintf(digits, sizeof digits, "%.*s", (int)(id.len - len - 1), id.p + len + 1);
    return strtoull(digits, NULL, 10);
}

void route_events(struct call *c)
{
    struct app *app = c->ctx->app;
    struct slice id = c->req->last_event_id.p ? c->req->last_event_id : c->q.value[PARAM_AFTER];
    uint64_t after = rows_seen(id, app->start);
    struct history_row rows[HISTORY_PAGE];
    struct buf *b = c->r->out;
    size_t n = history_read(app->history, after, rows), total = 0;
    reply_begin(c->r, 200, "Content-Type: text/event-stream\r\n" ABOUT_NO_STORE);
    buf_add_str(b, "retry: 1000\n\n");
    for (; n > 0 && total < HISTORY_ROWS; n = history_read(app->history, after, rows)) {
        buf_add_str(b, "data: {\"rows\":[");
        for (size_t i = 0; i < n; i++)
            write_row(b, &rows[i]);
        after = rows[n - 1].number;
        total += n;
        buf_addf(b, "]}\nid: %s.%llu\n\n", app->start, (unsigned long long)after);
    }
    reply_end(c->r);
}
