/*
 * firn audit: records every ID in a database with a unique index, and reports duplicates.
 * Lines are collected into batches; a batch is one transaction (audit_db.h) and is not reported, on
 * standard output or as a metric, before it is durable. A database that is unavailable is retried
 * until it is back; the recorded position of the source shows whether a commit whose answer was
 * lost has happened.
 */
#include "cli/watch/audit_db.h"
#include "cli/watch/audit_metrics.h"
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/verify/follow.h"
#include "wire/json_write.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/when.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH_DEFAULT = 5000, WAIT_MS = 50, LINGER_MS = 200, AGAIN_MS = 1000, TEXT_ROOM = 128 };

struct audit {
    const char *db_url, *metrics;
    uint64_t batch, idle_ms;
    bool follow_file, json;

    struct audit_db *db;
    struct audit_metrics m;
    struct follow in;
    char source[PATH_MAX];
    struct audit_id *id;
    char *texts; /* batch * TEXT_ROOM */
    size_t n;
    uint64_t malformed;       /* of the batch */
    uint64_t first_ms;        /* when the batch began */
    struct audit_position at; /* after its last line */
    uint64_t last_duplicate;
    uint64_t run_ids, run_duplicates, run_malformed;
};

static const struct opt opts[] = {
    { .name = "db",
      .type = OPT_TEXT,
      .at = offsetof(struct audit, db_url),
      .value = "URL",
      .about =
          "the database that IDs are recorded in: sqlite:FILE or postgres://user@host/database" },
    { .name = "follow",
      .letter = 'f',
      .at = offsetof(struct audit, follow_file),
      .about = "keep reading while the file grows, as tail -F does" },
    { .name = "idle",
      .type = OPT_TIME,
      .at = offsetof(struct audit, idle_ms),
      .value = "TIME",
      .min = 1,
      .max = UINT64_C(31536000000),
      .about = "with --follow: end when no line came for this long" },
    { .name = "metrics",
      .type = OPT_TEXT,
      .at = offsetof(struct audit, metrics),
      .value = "ADDR",
      .about = "serve metrics for Prometheus on this loopback address, such as 127.0.0.1:9109" },
    { .name = "batch",
      .type = OPT_COUNT,
      .at = offsetof(struct audit, batch),
      .value = "N",
      .min = 1,
      .max = AUDIT_BATCH_MAX,
      .about = "commit after N lines (default 5000), or 200 ms after the first one" },
    OPT_JSON(struct audit, json),
    { .name = NULL },
};

const struct usage audit_usage = {
    .name = "audit",
    .examples = "  firn gen uuidv7 -n 1M | firn audit --db sqlite:audit.db\n"
                "  firn audit --db sqlite:audit.db --follow ids.log --metrics 127.0.0.1:9109\n"
                "  firn audit --db postgres://firn@127.0.0.1/audit --follow ids.log\n",
    .synopsis =
        "firn audit --db URL [--follow] [--idle TIME] [--metrics ADDR] [--batch N] [--json]\n"
        "                  [FILE|-]",
    .about =
        "Reads IDs, one per line, records each in a table with a unique index, and reports\n"
        "those that were recorded before, in this run or in an earlier one. It may be killed at\n"
        "any moment: what it has reported is on disk, and the next run continues after the last\n"
        "recorded line. Lines that hold no ID (not printable, or longer than 128 bytes) are\n"
        "counted. The exit status is 1 if there were duplicates.\n",
    .operands = "@files",
    .opts = opts,
};

/* sqlite:FILE or postgres://…; creates the tables firn_audit_* if they do not exist. NULL:
 * failed, see `why`. */
static struct audit_db *audit_db_open(const char *url, char why[200])
{
    if (strncmp(url, "sqlite:", 7) == 0 && url[7])
        return audit_sqlite_open(url + 7, why);
    if (strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0)
        return audit_postgres_open(url, why);
    snprintf(why, 200, "give sqlite:FILE or postgres://user@host/database");
    return NULL;
}

static volatile sig_atomic_t ended;

static void on_end(int signal_)
{
    (void)signal_;
    ended = 1;
}

/* ---- reporting ---- */

static void tell_duplicate(void *user, const struct audit_duplicate *d)
{
    struct audit *a = user;
    char when[WHEN_BUF];
    when_utc((int64_t)d->first_ms * 1000, when);
    if (a->json) {
        struct buf j;
        buf_init(&j, OUTPUT_JSON_MAX);
        json_begin(&j, NULL, '{');
        json_text(&j, "duplicate", d->id);
        json_text(&j, "source", a->source);
        json_count(&j, "line", d->line);
        json_text(&j, "first_seen", when);
        json_end(&j, '}');
        output_json(&j, stdout);
    } else {
        bool in = strcmp(a->in.path, "-") == 0;
        printf("%s:%" PRIu64 ": %s was recorded before, at %s\n", in ? "(stdin)" : a->source,
               d->line, d->id, when);
    }
    a->run_duplicates++;
    a->last_duplicate = d->number;
}

/* The counters as the database has them: those of all runs. */
static void take_totals(struct audit *a)
{
    struct audit_totals t;
    uint64_t last;
    if (a->db->ops->totals(a->db, &t, &last) != 0) {
        atomic_fetch_add(&a->m.errors, 1);
        return;
    }
    atomic_store(&a->m.ids, t.ids);
    atomic_store(&a->m.duplicates, t.duplicates);
    atomic_store(&a->m.malformed, t.malformed);
}

/* ---- batches ---- */

/* A commit that failed may have happened: then the source's position is after the batch. */
static bool happened(struct audit *a, const struct audit_batch *b)
{
    struct audit_position p;
    return a->db->ops->position(a->db, b->source, &p) == 1 && p.file == b->after.file &&
           p.offset == b->after.offset && p.line == b->after.line;
}

/* -1: done. Otherwise the status to exit with. */
static int flush(struct audit *a)
{
    struct audit_batch b = { .source = a->source,
                             .id = a->id,
                             .n = a->n,
                             .malformed = a->malformed,
                             .seen_ms = (uint64_t)when_now_us() / 1000,
                             .after = a->at };
    bool told = false;
    if (a->n == 0 && a->malformed == 0)
        return -1;
    while (a->db->ops->commit(a->db, &b) != 0) {
        char why[200];
        atomic_fetch_add(&a->m.errors, 1);
        memcpy(why, a->db->why, sizeof why);
        if (happened(a, &b))
            break;
        if (!told)
            say_warning("the database does not accept the batch: %s; trying again every second",
                        why);
        told = true;
        if (ended) /* the batch was not reported; the next run reads it again */
            return say_trouble("%zu IDs are not recorded: the database is unavailable", a->n);
        nanosleep(&(struct timespec){ .tv_sec = AGAIN_MS / 1000 }, NULL);
    }
    if (told)
        say_warning("the database accepts batches again");
    atomic_fetch_add(&a->m.commits, 1);
    atomic_store(&a->m.last_commit_ms, b.seen_ms);
    a->run_ids += a->n;
    a->run_malformed += a->malformed;
    a->n = 0;
    a->malformed = 0;
    if (a->db->ops->duplicates(a->db, a->source, a->last_duplicate, tell_duplicate, a) != 0)
        atomic_fetch_add(&a->m.errors, 1); /* they come with the next batch */
    take_totals(a);
    fflush(stdout);
    return -1;
}

static bool is_id(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] <= ' ' || p[i] > '~')
            return false;
    return len > 0 && len <= TEXT_ROOM;
}

static void take(struct audit *a, int got, const char *p, size_t len)
{
    while (got == FOLLOW_LINE && len > 0 && (p[0] == ' ' || p[0] == '\t')) {
        p++;
        len--;
    }
    while (got == FOLLOW_LINE && len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t'))
        len--;
    if (a->n == 0 && a->malformed == 0)
        a->first_ms = mono_ms();
    if (got == FOLLOW_LINE && is_id(p, len)) {
        char *text = a->texts + a->n * TEXT_ROOM;
        memcpy(text, p, len);
        a->id[a->n++] = (struct audit_id){ text, len, a->in.line };
    } else if (got == FOLLOW_LONG || len > 0) {
        a->malformed++;
    }
    a->at = (struct audit_position){ follow_identity(&a->in), a->in.offset, a->in.line };
}

static bool due(const struct audit *a)
{
    return a->n == a->batch ||
           ((a->n > 0 || a->malformed > 0) && mono_ms() - a->first_ms >= LINGER_MS);
}

/* -1: it ended as it should. */
static int read_on(struct audit *a)
{
    const char *p = NULL;
    size_t len = 0;
    uint64_t last_ms = mono_ms(), lag_ms = 0;
    while (!ended) {
        int r = -1, got = follow_next(&a->in, &p, &len);
        if (got < 0)
            return say_trouble("%s: cannot read: %s", a->in.path, a->in.why);
        if (got == FOLLOW_END)
            break;
        if (got == FOLLOW_LINE || got == FOLLOW_LONG)
            take(a, got, p, len);
        if (got != FOLLOW_NOTHING)
            last_ms = mono_ms();
        /* The end of one file is recorded before the next one's beginning. */
        if (due(a) || got == FOLLOW_AGAIN)
            r = flush(a);
        if (r >= 0)
            return r;
        if (mono_ms() - lag_ms >= WAIT_MS) {
            atomic_store(&a->m.lag_bytes, follow_lag(&a->in));
            lag_ms = mono_ms();
        }
        if (got == FOLLOW_NOTHING) {
            if (a->idle_ms && mono_ms() - last_ms >= a->idle_ms)
                break;
            follow_wait(&a->in, WAIT_MS);
        }
    }
    return flush(a);
}

/* ---- a run ---- */

static int open_source(struct audit *a, const char *path)
{
    char shown[SAY_TEXT_BUF];
    struct audit_position p;
    bool in = strcmp(path, "-") == 0;
    if (follow_open(&a->in, path, a->follow_file) != 0)
        return say_trouble("%s: %s: check the name and its permissions",
                           say_text(path, strlen(path), shown), a->in.why);
    if (in) /* a name per run: standard input cannot be continued */
        snprintf(a->source, sizeof a->source, "stdin-%" PRIx64 "-%ld", (uint64_t)when_now_us(),
                 (long)getpid());
    else if (!realpath(path, a->source))
        snprintf(a->source, sizeof a->source, "%s", path);
    int known = a->db->ops->position(a->db, a->source, &p);
    if (known < 0)
        return say_trouble("--db: %s", a->db->why);
    if (known)
        follow_resume(&a->in, p.file, p.offset, p.line);
    return -1;
}

static int finish(const struct audit *a)
{
    char n[3][GROUPED_BUF];
    if (a->json) {
        struct buf j;
        buf_init(&j, OUTPUT_JSON_MAX);
        json_begin(&j, NULL, '{');
        json_count(&j, "ids", a->run_ids);
        json_count(&j, "duplicates", a->run_duplicates);
        json_count(&j, "malformed", a->run_malformed);
        json_count(&j, "ids_total", atomic_load(&a->m.ids));
        json_count(&j, "duplicates_total", atomic_load(&a->m.duplicates));
        json_end(&j, '}');
        output_json(&j, stdout);
    } else {
        printf("%s IDs recorded, %s of them had been recorded before",
               grouped_text(a->run_ids, n[0]), grouped_text(a->run_duplicates, n[1]));
        if (a->run_malformed)
            printf(", %s lines held no ID", grouped_text(a->run_malformed, n[2]));
        putchar('\n');
    }
    return a->run_duplicates ? STATUS_FAILED : STATUS_OK;
}

static int run(struct audit *a, const char *path)
{
    char why[200] = "", bound[HOST_PORT_BUF], shown[SAY_TEXT_BUF];
    struct sigaction act = { .sa_handler = on_end };
    struct audit_totals t;
    a->db = audit_db_open(a->db_url, why);
    if (!a->db) {
        const char *at = strchr(a->db_url, '@'); /* without the password */
        return say_trouble(
            "--db %s: %s",
            say_text(at ? at + 1 : a->db_url, strlen(at ? at + 1 : a->db_url), shown), why);
    }
    if (a->db->ops->totals(a->db, &t, &a->last_duplicate) != 0)
        return say_trouble("--db: %s", a->db->why);
    take_totals(a);
    int r = open_source(a, path);
    if (r < 0 && a->metrics && (r = audit_metrics_start(&a->m, a->metrics, bound)) < 0)
        fprintf(stderr, "firn audit: metrics on http://%s/metrics\n", bound);
    if (r >= 0)
        return r;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    r = read_on(a);
    return r >= 0 ? r : finish(a);
}

int cmd_audit(int argc, char **argv)
{
    struct audit *a = calloc(1, sizeof *a);
    int operands, r;
    if (!a)
        return say_trouble("out of memory");
    a->batch = BATCH_DEFAULT;
    a->in.fd = -1;
    r = options_parse(&audit_usage, argc, argv, a, &operands);
    if (r < 0 && operands > 1)
        r = say_trouble(
            "too many files: start one firn audit per file; they may share the database");
    if (r < 0 && !a->db_url)
        r = say_trouble(
            "--db is required: the database that IDs are recorded in, as sqlite:FILE or "
            "postgres://user@host/database");
    if (r < 0 && a->idle_ms && !a->follow_file)
        r = say_trouble("--idle works with --follow only");
    if (r < 0) {
        a->id = calloc(a->batch, sizeof *a->id);
        a->texts = malloc(a->batch * TEXT_ROOM);
        r = a->id && a->texts ? run(a, operands > 0 ? argv[1] : "-") : say_trouble("out of memory");
    }
    audit_metrics_done(&a->m);
    if (a->db)
        a->db->ops->close(a->db);
    follow_close(&a->in);
    free(a->texts);
    free(a->id);
    free(a);
    return output_finish(r);
}
