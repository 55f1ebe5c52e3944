/* The thread that reads from one database. Tested in tests/integration/auditlog.py. */
#include "auditlog/reader.h"
#include "auditlog/outbox.h"
#include "auditlog/rows.h"
#include "auditlog/statement.h"
#include "daemon/log.h"
#include "platform/mono.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    CONNECT_MS = 3000,
    READ_MS = 10000,
    READS_MAX = 16, /* in one round trip, and about so many bytes */
    TRIP_BYTES_MAX = 2 * 1024 * 1024,
    IDLE_MS = 200,
    NAP_MS = 20,
    /* Of one answer, then it ends with a cursor: a deferred reply has room for 16 MiB. */
    ANSWER_BYTES_MAX = 4 * 1024 * 1024,
    /* jsonb shows 9e307 with all its digits: 64 KiB of such numbers become 3.3 MiB. */
    ROW_BYTES_MAX = 4 * 1024 * 1024,
};

struct reader {
    struct reader_opts opts;
    struct queue queue;
    struct reader_stats stats;
    pthread_t thread;
    atomic_bool ending;
    struct session *session;
    uint32_t failures;
};

static void give_up(struct job *list, enum outcome why)
{
    for (struct job *j = list; j; j = j->next)
        j->outcome = why;
    outbox_give(list);
}

static void nap(struct reader *r, uint32_t ms)
{
    for (uint32_t i = 0; i < ms && !atomic_load(&r->ending); i += NAP_MS) {
        const struct timespec t = { 0, (long)NAP_MS * 1000000 };
        nanosleep(&t, NULL);
    }
}

static bool connect_to(struct reader *r)
{
    struct session_why why = { "", "" };
    if (session_open(r->opts.url, mono_now_ms() + CONNECT_MS, &r->session, &why) == 0) {
        r->failures = 0;
        (void)queue_set_away(&r->queue, false);
        return true;
    }
    if (r->failures++ == 0)
        log_error("database_unreadable", "shard=%zu cause=%s cure=%s", r->opts.index, why.text,
                  "start it; reads from its shards are refused with 503 meanwhile");
    return false;
}

static void drop(struct reader *r)
{
    session_close(r->session);
    r->session = NULL;
}

static struct slice field(const PGresult *res, int row, int column)
{
    return (struct slice){ PQgetvalue(res, row, column), (size_t)PQgetlength(res, row, column) };
}

static void show(const struct reader *r, struct read_job *j, const PGresult *res)
{
    const int n = PQntuples(res);
    j->more = n > (int)j->limit && !j->id;
    buf_init(&j->out, ANSWER_BYTES_MAX + ROW_BYTES_MAX);
    for (int i = 0; i < n && (j->id || i < (int)j->limit); i++) {
        if (j->out.len > ANSWER_BYTES_MAX) {
            j->more = true;
            break;
        }
        const struct shown_row row = { .id = pg_read_int8(PQgetvalue(res, i, READ_ID)),
                                       .map_version = pg_read_int8(
                                           PQgetvalue(res, i, READ_VERSION)),
                                       .at_us = pg_read_time(PQgetvalue(res, i, READ_AT)),
                                       .user = field(res, i, READ_USER),
                                       .actor = field(res, i, READ_ACTOR),
                                       .action = field(res, i, READ_ACTION),
                                       .detail = field(res, i, READ_DETAIL),
                                       .legacy = r->opts.legacy };
        row_write(&j->out, &row);
        j->last = row.id;
        j->found++;
    }
    j->base.outcome = j->out.failed ? OUTCOME_NO_MEMORY : OUTCOME_DONE;
}

/* Up to READS_MAX jobs in one round trip. False: the connection is gone. */
static bool ask(struct reader *r, struct job *list)
{
    struct query q[READS_MAX];
    struct read_params p[READS_MAX];
    PGresult *res[READS_MAX];
    struct session_why why = { "", "" };
    int n = 0;
    for (struct job *j = list; j; j = j->next, n++)
        q[n] = statement_read((const struct read_job *)j, &p[n], r->opts.legacy);
    const uint64_t began = mono_ns();
    enum session_end end = session_run(r->session, q, n, res, mono_now_ms() + READ_MS, &why);
    latency_add(&r->stats.trips, mono_ns() - began, 1);
    if (end != SESSION_OK) {
        atomic_fetch_add(&r->stats.failed, 1);
        log_error("read_failed", "shard=%zu sqlstate=%s cause=%s", r->opts.index, why.sqlstate,
                  why.text);
        give_up(list, OUTCOME_AWAY);
        return end == SESSION_REFUSED && !session_broken(r->session);
    }
    int i = 0;
    for (struct job *j = list; j; j = j->next, i++) {
        show(r, (struct read_job *)j, res[i]);
        atomic_fetch_add(&r->stats.reads, 1);
        atomic_fetch_add(&r->stats.rows, ((struct read_job *)j)->found);
    }
    session_clear(res, n);
    outbox_give(list);
    return true;
}

/* Those that waited too long are not asked for any more. */
static struct job *leave_late(struct job *list)
{
    struct job *kept = NULL, **end = &kept, *late = NULL, **last = &late;
    const uint64_t now = mono_ns();
    for (struct job *j = list; j; j = j->next) {
        struct job ***at = now >= j->until_ns ? &last : &end;
        **at = j;
        *at = &j->next;
    }
    *end = *last = NULL;
    give_up(late, OUTCOME_LATE);
    return kept;
}

static void *run(void *arg)
{
    static const struct batch_limits limits = { READS_MAX, TRIP_BYTES_MAX };
    struct reader *r = arg;
    while (!atomic_load(&r->ending) || !queue_ended(&r->queue)) {
        if (!r->session && !connect_to(r)) {
            give_up(queue_set_away(&r->queue, true), OUTCOME_AWAY);
            if (atomic_load(&r->ending))
                break;
            nap(r, pace_backoff_ms(r->failures));
            continue;
        }
        struct job *list = queue_take(&r->queue, &limits, mono_ns() + UINT64_C(1000000) * IDLE_MS);
        if (session_broken(r->session)) { /* a server that ended says so while nothing is asked */
            drop(r);
            if (!list || !connect_to(r)) {
                give_up(list, OUTCOME_AWAY);
                continue;
            }
        }
        list = leave_late(list);
        if (list && !ask(r, list))
            drop(r);
    }
    return NULL;
}

int reader_start(const struct reader_opts *o, struct reader **out)
{
    struct reader *r = calloc(1, sizeof *r);
    if (!r)
        return FIRN_ENOMEM;
    r->opts = *o;
    queue_init(&r->queue, o->queue_reads, SIZE_MAX / 2);
    (void)queue_set_away(&r->queue, true); /* until it is there */
    if (pthread_create(&r->thread, NULL, run, r) != 0) {
        queue_done(&r->queue);
        free(r);
        return FIRN_ENOMEM;
    }
    *out = r;
    return 0;
}

struct queue *reader_queue(struct reader *r)
{
    return &r->queue;
}

const struct reader_stats *reader_stats(const struct reader *r)
{
    return &r->stats;
}

void reader_stop(struct reader *r)
{
    if (!r)
        return;
    queue_end(&r->queue);
    atomic_store(&r->ending, true);
    pthread_join(r->thread, NULL);
}

void reader_free(struct reader *r)
{
    if (!r)
        return;
    session_close(r->session);
    queue_done(&r->queue);
    free(r);
}
