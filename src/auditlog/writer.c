/* The thread that writes to one database. Tested in tests/integration/auditlog.py. */
#include "auditlog/writer.h"
#include "auditlog/audit_id.h"
#include "auditlog/check.h"
#include "auditlog/commit.h"
#include "auditlog/outbox.h"
#include "daemon/log.h"
#include "daemon/span.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CONNECT_MS = 3000,
    IDLE_MS = 200, /* between two looks at a connection that is not used */
    NAP_MS = 20,
    LAST_TRIES = 3, /* of batches with an unknown outcome, at the end */
};

#define TEND_NS (UINT64_C(600) * 1000000000) /* between two looks at the partitions */

struct writer {
    struct writer_opts opts;
    struct queue queue;
    struct writer_stats stats;
    pthread_t thread;
    atomic_bool ending;
    struct session *session; /* NULL: connect first */
    struct columns columns;
    struct write_job *batch; /* in hand, by base.next */
    struct write_job *rest;  /* behind it, one by one: one of them was refused */
    bool unknown;            /* the outcome of an earlier try of `batch` */
    uint32_t failures;       /* to connect, in a row */
    uint64_t began_ns;       /* the last commit */
    uint64_t tended_ns;
    _Atomic uint64_t last_ns;
};

static struct write_job *next_of(const struct write_job *w)
{
    return (struct write_job *)w->base.next;
}

static void give_up(struct job *list, enum outcome why)
{
    for (struct job *j = list; j; j = j->next)
        j->outcome = why;
    outbox_give(list);
}

static void nap(struct writer *w, uint32_t ms)
{
    for (uint32_t i = 0; i < ms && !atomic_load(&w->ending); i += NAP_MS) {
        const struct timespec t = { 0, (long)(ms - i < NAP_MS ? ms - i : NAP_MS) * 1000000 };
        nanosleep(&t, NULL);
    }
}

/* ---- the connection ---- */

static void drop(struct writer *w)
{
    session_close(w->session);
    w->session = NULL;
}

static bool tend(struct writer *w, struct session_why *why)
{
    w->tended_ns = mono_ns();
    return check_database(w->session, &w->opts.place, w->opts.ahead_days, why);
}

static bool connect_to(struct writer *w)
{
    struct session_why why = { "", "" };
    int r = session_open(w->opts.url, mono_now_ms() + CONNECT_MS, &w->session, &why);
    if (r == 0 && !tend(w, &why)) {
        drop(w);
        r = FIRN_EIO;
    }
    if (r) {
        if (w->failures++ == 0)
            log_error("database_away", "shard=%zu cause=%s cure=%s", w->opts.place.database,
                      why.text,
                      "start it, or run `firn-auditlog init`; writes to its shards are refused "
                      "with 503 meanwhile");
        return false;
    }
    log_info("database_there", "shard=%zu database=%s", w->opts.place.database,
             session_name(w->session));
    w->failures = 0;
    (void)queue_set_away(&w->queue, false);
    return true;
}

/* Clients whose commit has an unknown outcome are told so in time; the batch stays. */
static void tell_unknown(struct writer *w, bool all)
{
    const uint64_t now = mono_ns();
    for (struct write_job *j = w->batch; j; j = next_of(j)) {
        if (!j->reply || (!all && now < j->base.until_ns))
            continue;
        struct write_job *a = calloc(1, sizeof *a);
        if (!a)
            continue;
        a->base = j->base;
        a->base.next = NULL;
        a->base.outcome = OUTCOME_UNKNOWN;
        a->ctx = j->ctx;
        a->reply = j->reply;
        a->span = j->span;
        a->taken_ns = j->taken_ns;
        a->numbered_ns = j->numbered_ns;
        a->sent_ns = j->sent_ns;
        j->reply = NULL;
        j->span = NULL;
        atomic_fetch_add(&w->stats.unknown, 1);
        outbox_give(&a->base);
    }
}

static void go_away(struct writer *w)
{
    give_up(queue_set_away(&w->queue, true), OUTCOME_AWAY);
    if (w->rest)
        give_up(&w->rest->base, w->unknown ? OUTCOME_UNKNOWN : OUTCOME_AWAY);
    w->rest = NULL;
    if (w->batch && !w->unknown) {
        give_up(&w->batch->base, OUTCOME_AWAY);
        w->batch = NULL;
    }
    tell_unknown(w, false);
}

/* ---- a batch ---- */

/* Moves `j` from the batch to the list of those that are given back. */
static void put_back(struct write_job *j, enum outcome why, const char *text, struct job ***last)
{
    j->base.outcome = why;
    snprintf(j->base.why, sizeof j->base.why, "%.150s", text);
    j->base.next = NULL;
    **last = &j->base;
    *last = &j->base.next;
}

static int number(struct writer *w, struct write_job *j, bool wait, struct firn_diag *d)
{
    uint64_t ids[1024];
    if (w->opts.legacy) {
        for (size_t i = 0; i < j->rows_n; i++)
            j->rows[i].id = legacy_id(j->at_us / 1000);
        return 0;
    }
    firn_assert(j->rows_n <= sizeof ids / sizeof ids[0], "rows=%zu", j->rows_n);
    const uint64_t now = mono_ns(), until = j->base.until_ns;
    const uint64_t left_ms = wait && until > now ? (until - now) / 1000000 : 0;
    char parent[TRACE_PARENT_BUF] = "";
    if (j->span)
        trace_parent_write(&j->span->self, parent);
    int r = ids_take(w->opts.ids, j->shard, ids, j->rows_n, parent, left_ms ? (uint32_t)left_ms : 1,
                     d);
    j->numbered_ns = j->span ? mono_ns() : 0;
    for (size_t i = 0; i < j->rows_n && r == 0; i++)
        j->rows[i].id = ids[i];
    return r;
}

/* Gives the rows of the batch IDs, in order. Requests that get none, or are late, leave it. */
static void number_batch(struct writer *w)
{
    struct firn_diag d = { 0, "" };
    struct job *back = NULL, **last = &back, *kept = NULL, **end = &kept;
    bool wait = true;
    const uint64_t now = mono_ns();
    for (struct write_job *j = w->batch, *next; j; j = next) {
        next = next_of(j);
        j->taken_ns = now;
        if (now >= j->base.until_ns) {
            put_back(j, OUTCOME_LATE, "", &last);
        } else if (number(w, j, wait, &d) != 0) {
            wait = false; /* the generators were asked: not again for each request */
            put_back(j, OUTCOME_NO_ID, d.text, &last);
        } else {
            *end = &j->base;
            end = &j->base.next;
        }
    }
    *end = NULL;
    w->batch = (struct write_job *)kept;
    if (!wait)
        log_error("no_ids", "shard=%zu cause=%s cure=%s", w->opts.place.database, d.text,
                  "start a firnd with --layout audit that `generators` names");
    outbox_give(back);
}

static void next_batch(struct writer *w)
{
    if (w->rest) {
        w->batch = w->rest;
        w->rest = next_of(w->rest);
        w->batch->base.next = NULL;
        return;
    }
    const uint64_t now = mono_ns(), pause = pace_wait_ns(w->began_ns, w->opts.commit_ns, now);
    if (pause > 0) {
        const struct timespec t = mono_timespec(pause);
        nanosleep(&t, NULL);
    }
    struct job *found = queue_take(&w->queue, &w->opts.batch,
                                   mono_ns() + UINT64_C(1000000) * IDLE_MS);
    w->batch = (struct write_job *)found;
    if (w->batch)
        number_batch(w);
}

static void count(struct writer *w)
{
    for (struct write_job *j = w->batch; j; j = next_of(j)) {
        if (j->base.outcome == OUTCOME_DONE)
            atomic_fetch_add(&w->stats.rows, j->rows_n);
        if (j->base.outcome != OUTCOME_DUPLICATE)
            continue;
        atomic_fetch_add(&w->stats.duplicates, 1);
        if (!w->opts.legacy)
            log_error("duplicate_id", "shard=%zu id=%" PRIu64 " cure=%s", w->opts.place.database,
                      j->rows[0].id,
                      "two generators have one slot: compare the stores of the firnds");
    }
}

static void finish(struct writer *w)
{
    struct write_job *done = w->batch;
    w->batch = NULL;
    w->unknown &= w->rest != NULL; /* they were in that try, too */
    outbox_give(&done->base);
}

/* The batch has failed, and nothing of it was written: unless an earlier try was. */
static void fail(struct writer *w, const struct session_why *why)
{
    atomic_fetch_add(&w->stats.failed, 1);
    log_error("commit_failed", "shard=%zu sqlstate=%s cause=%s", w->opts.place.database,
              why->sqlstate, why->text);
    if (w->unknown) {
        nap(w, NAP_MS);
        tell_unknown(w, false);
        return;
    }
    for (struct write_job *j = w->batch; j; j = next_of(j))
        j->base.outcome = OUTCOME_AWAY;
    finish(w);
}

/* One of the requests is to blame: alone, if there is no other. */
static void divide(struct writer *w, enum outcome what, const struct session_why *why)
{
    if (next_of(w->batch)) {
        firn_assert(!w->rest);
        w->rest = next_of(w->batch);
        w->batch->base.next = NULL;
        return;
    }
    w->batch->base.outcome = what;
    if (what == OUTCOME_REFUSED) {
        atomic_fetch_add(&w->stats.refused, 1);
        snprintf(w->batch->base.why, sizeof w->batch->base.why, "%.150s", why->text);
    }
    count(w);
    finish(w);
}

static void lose(struct writer *w, const struct session_why *why)
{
    log_warn("commit_unknown", "shard=%zu cause=%s cure=%s", w->opts.place.database, why->text,
             "none is needed: the batch is committed again with the same IDs");
    drop(w);
    if (w->unknown) /* again: those behind it shall not wait any longer, either */
        go_away(w);
    w->unknown = true;
    tell_unknown(w, false);
}

/* For traces. */
static void note_batch(const struct writer *w)
{
    uint64_t rows = 0;
    for (const struct write_job *j = w->batch; j; j = next_of(j))
        rows += j->rows_n;
    for (struct write_job *j = w->batch; j; j = next_of(j)) {
        j->sent_ns = j->sent_ns ? j->sent_ns : w->began_ns;
        j->batch_rows = rows;
    }
}

static void commit(struct writer *w)
{
    struct session_why why = { "", "" };
    const struct commit_opts o = { .map_version = w->opts.map_version,
                                   .legacy = w->opts.legacy,
                                   .repeated = w->unknown,
                                   .until_ms = mono_now_ms() + w->opts.wait_ms };
    w->began_ns = mono_ns();
    note_batch(w);
    enum commit_end end = commit_batch(w->session, &w->columns, w->batch, &o, &why);
    atomic_fetch_add(&w->stats.repeated, w->unknown);
    switch (end) {
    case COMMIT_DONE:
        latency_add(&w->stats.commit, mono_ns() - w->began_ns, 1);
        atomic_fetch_add(&w->stats.commits, 1);
        atomic_store(&w->last_ns, mono_ns());
        count(w);
        finish(w);
        break;
    case COMMIT_NO_PARTITION:
        if (w->tended_ns < w->batch->base.began_ns && tend(w, &why))
            break; /* it is there now: once, for a refusal may have another reason */
        fail(w, &why);
        break;
    case COMMIT_AGAIN:
        nap(w, NAP_MS);
        if (mono_ns() >= w->batch->base.until_ns)
            fail(w, &why);
        break;
    case COMMIT_DIVIDE:
        divide(w, OUTCOME_REFUSED, &why);
        break;
    case COMMIT_DUPLICATE:
        divide(w, OUTCOME_DUPLICATE, &why);
        break;
    case COMMIT_AWAY:
        fail(w, &why);
        break;
    case COMMIT_UNKNOWN:
        lose(w, &why);
        break;
    }
    if (w->session && session_broken(w->session))
        drop(w);
}

static void idle(struct writer *w)
{
    struct session_why why;
    if (session_broken(w->session) || (mono_ns() - w->tended_ns > TEND_NS && !tend(w, &why)))
        drop(w);
}

static void *run(void *arg)
{
    struct writer *w = arg;
    uint32_t tries = 0; /* of an unknown batch, when nobody waits for its end any more */
    while (!atomic_load(&w->ending) || w->batch || w->rest || !queue_ended(&w->queue)) {
        if (!w->session && !connect_to(w)) {
            go_away(w);
            if (atomic_load(&w->ending))
                break;
            nap(w, pace_backoff_ms(w->failures));
            continue;
        }
        if (!w->batch)
            next_batch(w);
        if (w->batch)
            commit(w);
        else
            idle(w);
        if (w->unknown && atomic_load(&w->ending) && ++tries == LAST_TRIES)
            break;
    }
    go_away(w);
    tell_unknown(w, true);
    if (w->batch)
        give_up(&w->batch->base, OUTCOME_UNKNOWN);
    w->batch = NULL;
    return NULL;
}

/* ---- life ---- */

int writer_start(const struct writer_opts *o, struct writer **out)
{
    struct writer *w = calloc(1, sizeof *w);
    if (!w)
        return FIRN_ENOMEM;
    w->opts = *o;
    columns_init(&w->columns);
    queue_init(&w->queue, o->queue_rows, o->queue_bytes);
    (void)queue_set_away(&w->queue, true); /* until it is there */
    if (pthread_create(&w->thread, NULL, run, w) != 0) {
        queue_done(&w->queue);
        free(w);
        return FIRN_ENOMEM;
    }
    *out = w;
    return 0;
}

struct queue *writer_queue(struct writer *w)
{
    return &w->queue;
}

const struct writer_stats *writer_stats(const struct writer *w)
{
    return &w->stats;
}

uint64_t writer_last_ns(const struct writer *w)
{
    return atomic_load(&w->last_ns);
}

void writer_stop(struct writer *w)
{
    if (!w)
        return;
    queue_end(&w->queue);
    atomic_store(&w->ending, true);
    pthread_join(w->thread, NULL);
}

void writer_free(struct writer *w)
{
    if (!w)
        return;
    session_close(w->session);
    columns_done(&w->columns);
    queue_done(&w->queue);
    free(w);
}
