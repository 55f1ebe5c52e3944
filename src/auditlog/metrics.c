/* The audit log's metrics. Tested in tests/integration/auditlog.py. */
#include "auditlog/app.h"
#include "daemon/metrics.h"
#include "daemon/span_export.h"
#include "platform/mono.h"

#include <stdio.h>

enum { LABEL_BUF = 40 };

static double seconds_since(uint64_t ns)
{
    const uint64_t now = mono_ns();
    return ns == 0 || ns > now ? 0 : (double)(now - ns) / 1e9;
}

/* ---- of each database ---- */

static void count_of(struct metrics *m, struct app *a, const char *name, const char *help,
                     uint64_t (*get)(const struct database *d))
{
    char label[LABEL_BUF];
    metric_head(m, name, help);
    for (size_t i = 0; i < a->databases_n; i++) {
        snprintf(label, sizeof label, "%zu", i);
        metric_value(m, name, "shard", label, get(&a->databases[i]));
    }
}

#define WRITER_COUNT(field)                                  \
    static uint64_t get_##field(const struct database *d)    \
    {                                                        \
        return atomic_load(&writer_stats(d->writer)->field); \
    }
WRITER_COUNT(rows)
WRITER_COUNT(commits)
WRITER_COUNT(repeated)
WRITER_COUNT(failed)
WRITER_COUNT(duplicates)
WRITER_COUNT(unknown)
WRITER_COUNT(refused)

static uint64_t get_reads(const struct database *d)
{
    return atomic_load(&reader_stats(d->reader)->reads);
}

static uint64_t get_read_rows(const struct database *d)
{
    return atomic_load(&reader_stats(d->reader)->rows);
}

static const struct {
    const char *name, *help;
    uint64_t (*get)(const struct database *d);
} counts[] = {
    { "firn_auditlog_rows_total", "Entries that were committed.", get_rows },
    { "firn_auditlog_commits_total", "Commits; rows divided by it is the size of a batch.",
      get_commits },
    { "firn_auditlog_commits_repeated_total", "Commits after one whose outcome was unknown.",
      get_repeated },
    { "firn_auditlog_commits_failed_total", "Commits that the database refused.", get_failed },
    { "firn_auditlog_duplicates_total", "Requests with an ID that another entry had.",
      get_duplicates },
    { "firn_auditlog_unknown_total", "Requests that were answered: nobody knows.", get_unknown },
    { "firn_auditlog_refused_total", "Requests whose values the database does not take.",
      get_refused },
    { "firn_auditlog_reads_total", "Requests that read.", get_reads },
    { "firn_auditlog_rows_read_total", "Entries that were read.", get_read_rows },
};

struct look {
    size_t rows;
    uint64_t since_ns;
    bool away;
};

static struct look look_at(struct app *a, size_t i)
{
    struct look l;
    queue_look(writer_queue(a->databases[i].writer), &l.rows, &l.since_ns, &l.away);
    return l;
}

static void write_queues(struct app *a, struct metrics *m)
{
    char labels[LABEL_BUF];
    metric_head(m, "firn_auditlog_queue_rows", "Entries that wait for the database.");
    for (size_t i = 0; i < a->databases_n; i++) {
        snprintf(labels, sizeof labels, "shard=\"%zu\"", i);
        metric_sample(m, "firn_auditlog_queue_rows", labels, (double)look_at(a, i).rows);
    }
    metric_head(m, "firn_auditlog_lag_seconds",
                "How long the first entry in the queue has waited.");
    for (size_t i = 0; i < a->databases_n; i++) {
        snprintf(labels, sizeof labels, "shard=\"%zu\"", i);
        metric_sample(m, "firn_auditlog_lag_seconds", labels,
                      seconds_since(look_at(a, i).since_ns));
    }
    metric_head(m, "firn_auditlog_up", "Whether the database takes entries.");
    for (size_t i = 0; i < a->databases_n; i++) {
        snprintf(labels, sizeof labels, "shard=\"%zu\"", i);
        metric_sample(m, "firn_auditlog_up", labels, look_at(a, i).away ? 0 : 1);
    }
}

static void write_times(struct app *a, struct metrics *m)
{
    char label[LABEL_BUF];
    metric_histogram_head(m, "firn_auditlog_commit_seconds", "How long a commit took.");
    for (size_t i = 0; i < a->databases_n; i++) {
        struct latency l = { 0 };
        latency_merge(&l, &writer_stats(a->databases[i].writer)->commit);
        snprintf(label, sizeof label, "%zu", i);
        metric_histogram(m, "firn_auditlog_commit_seconds", "shard", label, &l);
    }
    metric_histogram_head(m, "firn_auditlog_read_seconds", "How long a round trip of reads took.");
    for (size_t i = 0; i < a->databases_n; i++) {
        struct latency l = { 0 };
        latency_merge(&l, &reader_stats(a->databases[i].reader)->trips);
        snprintf(label, sizeof label, "%zu", i);
        metric_histogram(m, "firn_auditlog_read_seconds", "shard", label, &l);
    }
}

/* ---- of the loops ---- */

static uint64_t sum(const struct app *a, size_t offset)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->loops; i++) {
        const char *at = (const char *)&a->ctx[i] + offset;
        n += __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_RELAXED);
    }
    return n;
}

static void write_outcomes(const struct app *a, struct metrics *m)
{
    static const char *const names[OUTCOMES] = {
        [OUTCOME_DONE] = "done",         [OUTCOME_REPEATED] = "repeated",
        [OUTCOME_REUSED] = "key-reused", [OUTCOME_DUPLICATE] = "duplicate",
        [OUTCOME_REFUSED] = "refused",   [OUTCOME_AWAY] = "away",
        [OUTCOME_UNKNOWN] = "unknown",   [OUTCOME_NO_ID] = "no-id",
        [OUTCOME_LATE] = "late",         [OUTCOME_NO_MEMORY] = "no-memory",
    };
    const char *name = "firn_auditlog_writes_total";
    metric_head(m, name, "Requests that write, by what became of them.");
    for (size_t i = 0; i < OUTCOMES; i++)
        metric_value(m, name, "outcome", names[i],
                     sum(a, offsetof(struct service_ctx, outcomes) + i * sizeof(uint64_t)));
    metric_value(m, name, "outcome", "queue-full", sum(a, offsetof(struct service_ctx, full)));
    metric_value(m, name, "outcome", "shard-away", sum(a, offsetof(struct service_ctx, closed)));
}

static void write_loops(const struct app *a, struct metrics *m)
{
    struct latency l = { 0 };
    uint64_t conns = 0, requests = 0;
    for (size_t i = 0; i < a->loops; i++) {
        struct loop_stats s;
        loop_stats(a->ctx[i].loop, &s);
        loop_latency(a->ctx[i].loop, false, 0, &l);
        conns += s.conns;
        requests += s.http_requests;
    }
    metric(m, "firn_auditlog_connections", "Connections of clients.", (double)conns);
    metric(m, "firn_auditlog_requests_total", "Requests of all kinds.", (double)requests);
    metric_histogram_head(m, "firn_auditlog_request_seconds",
                          "From when a request was there to when its answer was sent.");
    metric_histogram(m, "firn_auditlog_request_seconds", NULL, NULL, &l);
}

static void write_ids(const struct app *a, struct metrics *m)
{
    struct ids_stats s = { 0 };
    if (a->ids)
        ids_look(a->ids, &s);
    metric(m, "firn_auditlog_ids_fetched_total", "IDs from generators.", (double)s.fetched);
    metric(m, "firn_auditlog_ids_stale_total", "IDs that became too old before they were used.",
           (double)s.stale);
    metric(m, "firn_auditlog_ids_unordered_total", "IDs below one that was used before.",
           (double)s.unordered);
    metric(m, "firn_auditlog_id_requests_total", "Requests to generators.", (double)s.requests);
    metric(m, "firn_auditlog_id_failures_total", "Requests to generators that failed.",
           (double)s.failures);
}

static void write_spans(const struct app *a, struct metrics *m)
{
    const char *name = "firn_auditlog_trace_spans_total";
    if (!a->spans)
        return;
    const struct span_export_stats *s = span_export_stats(a->spans);
    metric_head(m, name, "Spans, by what became of them.");
    metric_value(m, name, "result", "exported", atomic_load(&s->exported));
    metric_value(m, name, "result", "dropped", atomic_load(&s->dropped));
    metric_value(m, name, "result", "failed", atomic_load(&s->failed));
}

void metrics_write(struct app *a, struct metrics *m)
{
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        count_of(m, a, counts[i].name, counts[i].help, counts[i].get);
    write_queues(a, m);
    write_times(a, m);
    write_outcomes(a, m);
    write_loops(a, m);
    write_ids(a, m);
    write_spans(a, m);
    metric(m, "firn_auditlog_map_version", "Version of the shard map.", (double)a->map.version);
    metrics_process(m, a->started_ms);
    metrics_end(m);
}
