/* Results of a load run: table, JSON, saved files and their comparison. */
#include "cli/bench/bench_report.h"
#include "cli/duration.h"
#include "wire/json_write.h"
#include "wire/json_read.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t per_second(uint64_t n, uint64_t ns)
{
    return ns ? (uint64_t)((double)n * 1e9 / (double)ns) : 0;
}

static const struct {
    const char *name;
    uint32_t per_million;
} marks[] = {
    { "p50", 500000 },   { "p90", 900000 },    { "p99", 990000 },
    { "p99.9", 999000 }, { "p99.99", 999900 }, { "max", 1000000 },
};
enum { MARKS = sizeof marks / sizeof marks[0] };

/* ---- JSON ---- */

static void put_targets(const struct bench_run *b, struct buf *j)
{
    const struct load_result *r = b->result;
    json_begin(j, "targets", '[');
    for (uint32_t i = 0; i < b->plan->targets; i++) {
        json_begin(j, NULL, '{');
        json_text(j, "target", b->target[i].text);
        if (b->target[i].what[0])
            json_text(j, "command", b->target[i].what);
        json_count(j, "requests", r->share[i].requests);
        json_count(j, "errors", r->share[i].errors);
        json_count(j, "lost", r->share[i].lost);
        json_end(j, '}');
    }
    json_end(j, ']');
}

void bench_put_json(const struct bench_run *b, FILE *out)
{
    const struct load_result *r = b->result;
    const struct load_plan *p = b->plan;
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    json_text(&j, "target", b->target[0].text);
    if (b->target[0].what[0])
        json_text(&j, "command", b->target[0].what);
    if (p->targets > 1)
        put_targets(b, &j);
    json_count(&j, "connections", p->connections);
    json_count(&j, "depth", p->depth);
    json_count(&j, "threads", p->threads);
    if (p->rate)
        json_count(&j, "rate", p->rate);
    json_count(&j, "elapsed_ns", r->elapsed_ns);
    json_count(&j, "requests", r->requests);
    json_count(&j, "per_second", per_second(r->requests, r->elapsed_ns));
    json_count(&j, "errors", r->errors);
    json_count(&j, "lost", r->lost);
    json_count(&j, "unanswered", r->unanswered);
    json_count(&j, "reconnects", r->reconnects);
    json_count(&j, "bytes_in", r->bytes_in);
    json_count(&j, "bytes_out", r->bytes_out);
    json_begin(&j, "latency_ns", '{');
    for (size_t i = 0; i < MARKS; i++)
        json_count(&j, marks[i].name, histogram_at(&r->latency, marks[i].per_million));
    json_end(&j, '}');
    if (r->has_cpu) {
        json_begin(&j, "server", '{');
        json_count(&j, "cpu_ns", r->cpu_ns);
        json_count(&j, "cpu_ns_per_request", r->requests ? r->cpu_ns / r->requests : 0);
        json_count(&j, "rss_bytes", r->rss_bytes);
        json_end(&j, '}');
    }
    if (p->check) {
        json_begin(&j, "check", '{');
        json_count(&j, "ids", r->ids);
        json_count(&j, "distinct", r->distinct);
        json_bool(&j, "rising", r->falls == 0);
        json_count(&j, "unreadable", r->unreadable);
        json_count(&j, "unchecked", r->unchecked);
        json_bool(&j, "exact", r->unchecked == 0 && (r->hashed == 0 || r->distinct == r->ids));
        json_end(&j, '}');
    }
    json_end(&j, '}');
    output_json(&j, out);
}

int bench_save(const struct bench_run *b, const char *path)
{
    char temporary[4096], shown[SAY_TEXT_BUF];
    say_text(path, strlen(path), shown);
    if (snprintf(temporary, sizeof temporary, "%s.tmp%ld", path, (long)getpid()) >=
        (int)sizeof temporary)
        return say_trouble("--save %s: the name is too long", shown);
    FILE *f = fopen(temporary, "we");
    if (!f)
        return say_trouble("--save %s: %s: check the folder and its permissions", shown,
                           strerror(errno));
    bench_put_json(b, f);
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad || rename(temporary, path) != 0) {
        int error = errno;
        unlink(temporary);
        return say_trouble("--save %s: %s", shown, strerror(error));
    }
    return -1;
}

/* ---- the table ---- */

static void put_count(struct table *t, const char *name, uint64_t n, const char *unit)
{
    char text[GROUPED_BUF];
    table_add(t, "%s", name);
    table_add(t, "%s%s", grouped_text(n, text), unit);
}

static void put_duration(struct table *t, const char *name, uint64_t ns)
{
    char text[DURATION_BUF];
    table_add(t, "%s", name);
    table_add(t, "%s", duration_text(ns, text));
}

static void put_ids(struct table *t, const struct load_result *r)
{
    bool same = r->distinct == r->ids;
    char text[GROUPED_BUF];
    put_count(t, "IDs checked", r->ids, "");
    table_add(t, "distinct");
    table_add_in(t, term_style(same ? TERM_GOOD : TERM_BAD), "%s", grouped_text(r->distinct, text));
    if (r->unchecked)
        put_count(t, "IDs not checked", r->unchecked, "");
    table_add(t, "rising");
    table_add(t, "%s", r->falls ? "no" : "yes");
}

static void put_shares(const struct bench_run *b)
{
    static const char *const header[] = { "TARGET", ">REQUESTS", ">ERRORS", ">LOST", NULL };
    struct table t;
    char text[GROUPED_BUF];
    table_init(&t, 0, header);
    for (uint32_t i = 0; i < b->plan->targets; i++) {
        const struct load_share *s = &b->result->share[i];
        table_add(&t, "%s", b->target[i].text);
        table_add(&t, "%s", grouped_text(s->requests, text));
        table_add(&t, "%s", grouped_text(s->errors, text));
        table_add(&t, "%s", grouped_text(s->lost, text));
    }
    putchar('\n');
    table_print(&t);
    table_done(&t);
}

void bench_put_table(const struct bench_run *b)
{
    static const char *const header[] = { "MEASURED", ">VALUE", NULL };
    const struct load_result *r = b->result;
    const struct load_plan *p = b->plan;
    const char *what = b->target[0].what;
    if (what[0] && strchr(b->target[0].text, '/')) /* the address shows it */
        what = "";
    char more[32] = "";
    struct table t;
    if (p->targets > 1)
        snprintf(more, sizeof more, " and %" PRIu32 " more", p->targets - 1);
    printf("%s%s%s%s: %" PRIu32 " %s, depth %" PRIu32 ", %s\n\n", b->target[0].text,
           what[0] ? " " : "", what, more, p->connections, b->calls ? "threads" : "connections",
           p->depth, p->rate ? "open loop" : "closed loop");
    table_init(&t, 0, header);
    put_duration(&t, "time", r->elapsed_ns);
    put_count(&t, "requests", r->requests, "");
    put_count(&t, "rate", per_second(r->requests, r->elapsed_ns), "/s");
    if (p->rate)
        put_count(&t, "requested rate", p->rate, "/s");
    put_count(&t, "errors", r->errors, "");
    put_count(&t, "lost", r->lost, "");
    put_count(&t, "unanswered", r->unanswered, "");
    put_count(&t, "received", r->bytes_in, " B");
    put_count(&t, "sent", r->bytes_out, " B");
    for (size_t i = 0; i < MARKS; i++)
        put_duration(&t, marks[i].name, histogram_at(&r->latency, marks[i].per_million));
    if (r->has_cpu && r->requests) {
        put_duration(&t, "server CPU per request", r->cpu_ns / r->requests);
        put_count(&t, "server memory", r->rss_bytes >> 10, " KiB");
    }
    if (p->check)
        put_ids(&t, r);
    table_print(&t);
    table_done(&t);
    if (p->targets > 1)
        put_shares(b);
}

int bench_verdict(const struct bench_run *b)
{
    const struct load_result *r = b->result;
    const struct load_plan *p = b->plan;
    char shown[SAY_TEXT_BUF];
    int status = STATUS_OK;
    if (p->pid && !r->has_cpu)
        say_warning("no process %" PRIu32 " any more: its CPU time is unknown", p->pid);
    if (r->requests == 0)
        status = say_failed("no request was answered successfully");
    if (r->errors || r->lost || r->unanswered)
        status = say_failed("%" PRIu64 " errors, %" PRIu64 " lost with their connections, %" PRIu64
                            " unanswered",
                            r->errors, r->lost, r->unanswered);
    if (r->sample_len > 0)
        say_warning("one of the errors is: %s", say_text(r->sample, r->sample_len, shown));
    if (!p->check)
        return status;
    if (r->unchecked)
        say_warning("the check is incomplete: memory was full after %" PRIu64 " IDs, and %" PRIu64
                    " later ones were not compared with them",
                    r->ids, r->unchecked);
    if (r->unreadable)
        status = say_failed("%" PRIu64 " answers held no IDs%s", r->unreadable,
                            b->order ? "" : ": give --no-check if this is expected");
    if (r->distinct < r->ids && r->hashed)
        status = say_failed(
            "%" PRIu64 " duplicate IDs, unless two texts have the same 64-bit hash: collect them "
            "with firn gen or curl and check them with firn verify",
            r->ids - r->distinct);
    else if (r->distinct < r->ids)
        status = say_failed("%" PRIu64 " duplicate IDs, for instance %" PRIu64,
                            r->ids - r->distinct, r->repeated);
    if (b->order && r->falls)
        status = say_failed("%" PRIu64 " IDs were not above the previous one on their connection",
                            r->falls);
    return status;
}

/* ---- two runs ---- */

enum { FILE_BYTES_MAX = 1 << 20 };

struct figure {
    const char *path, *name;
    bool time;  /* in ns; otherwise a count */
    int better; /* 1: more is better, -1: less is, 0: neither */
};

static const struct figure figures[] = {
    { "per_second", "rate", false, 1 },
    { "latency_ns.p50", "p50", true, -1 },
    { "latency_ns.p90", "p90", true, -1 },
    { "latency_ns.p99", "p99", true, -1 },
    { "latency_ns.p99.9", "p99.9", true, -1 },
    { "latency_ns.max", "max", true, -1 },
    { "server.cpu_ns_per_request", "server CPU per request", true, -1 },
    { "server.rss_bytes", "server memory", false, -1 },
    { "errors", "errors", false, -1 },
    { "lost", "lost", false, -1 },
    { "unanswered", "unanswered", false, -1 },
};
/* Settings that must be equal for a comparison. */
static const struct figure setup[] = {
    { "connections", "connections", false, 0 },
    { "depth", "depth", false, 0 },
    { "threads", "threads", false, 0 },
    { "rate", "requested rate", false, 0 },
};
enum { FIGURES = sizeof figures / sizeof figures[0], SETUP = sizeof setup / sizeof setup[0] };

struct saved {
    char target[512];
    bool has[FIGURES], has_setup[SETUP];
    double value[FIGURES], setup[SETUP];
};

static void take(const struct figure *f, size_t n, bool *has, double *value, const char *path,
                 const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(path, f[i].path) == 0) {
            has[i] = true;
            value[i] = strtod(text, NULL);
        }
}

static void take_figure(void *user, const char *path, const char *text, bool quoted)
{
    struct saved *s = user;
    if (strcmp(path, "target") == 0)
        snprintf(s->target, sizeof s->target, "%s", text);
    if (quoted)
        return;
    take(figures, FIGURES, s->has, s->value, path, text);
    take(setup, SETUP, s->has_setup, s->setup, path, text);
}

static int saved_read(const char *path, struct saved *out)
{
    char shown[SAY_TEXT_BUF];
    say_text(path, strlen(path), shown);
    FILE *f = fopen(path, "re");
    if (!f)
        return say_trouble("%s: %s: give two files that --save has written", shown,
                           strerror(errno));
    char *text = malloc(FILE_BYTES_MAX);
    size_t len = text ? fread(text, 1, FILE_BYTES_MAX, f) : 0;
    fclose(f);
    *out = (struct saved){ 0 };
    bool good = text && json_each(text, len, take_figure, out) == 0 && out->has[0];
    free(text);
    return good ? -1 : say_trouble("%s: this is not a file of firn bench --save", shown);
}

static void add_value(struct table *t, const struct figure *f, double v)
{
    char text[DURATION_BUF > GROUPED_BUF ? DURATION_BUF : GROUPED_BUF];
    table_add(t, "%s",
              f->time ? duration_text((uint64_t)v, text) : grouped_text((uint64_t)v, text));
}

static void add_ratio(struct table *t, const struct figure *f, double a, double b)
{
    double ratio = b / a;
    if (a <= 0) {
        table_add_in(t, term_style(b > 0 ? TERM_BAD : TERM_PLAIN), "%s", b > 0 ? "more" : "same");
        return;
    }
    bool better = f->better > 0 ? ratio > 1.05 : ratio < 0.95;
    bool worse = f->better > 0 ? ratio < 0.95 : ratio > 1.05;
    table_add_in(t, better || worse ? term_style(better ? TERM_GOOD : TERM_BAD) : "", "%.2f x%s",
                 ratio,
                 better  ? " better"
                 : worse ? " worse"
                         : "");
}

static void compare_json(const struct saved s[2])
{
    struct buf j;
    char text[32];
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    for (size_t i = 0; i < FIGURES; i++)
        if (s[0].has[i] && s[1].has[i]) {
            json_begin(&j, figures[i].path, '{');
            json_signed(&j, "before", (int64_t)s[0].value[i]);
            json_signed(&j, "after", (int64_t)s[1].value[i]);
            if (s[0].value[i] > 0) {
                snprintf(text, sizeof text, "%.4f", s[1].value[i] / s[0].value[i]);
                json_text(&j, "ratio", text);
            } else {
                json_null(&j, "ratio");
            }
            json_end(&j, '}');
        }
    json_end(&j, '}');
    output_json(&j, stdout);
}

int bench_compare(const char *before, const char *after, bool json)
{
    static const char *const header[] = { "FIGURE", ">BEFORE", ">AFTER", "RATIO", NULL };
    struct saved s[2];
    struct table t;
    int r = saved_read(before, &s[0]);
    if (r < 0)
        r = saved_read(after, &s[1]);
    if (r >= 0)
        return r;
    if (strcmp(s[0].target, s[1].target) != 0)
        say_warning("the targets differ: %s and %s", s[0].target, s[1].target);
    for (size_t i = 0; i < SETUP; i++)
        if (s[0].has_setup[i] != s[1].has_setup[i] || s[0].setup[i] < s[1].setup[i] ||
            s[0].setup[i] > s[1].setup[i])
            say_warning("the loads differ: %s %.0f and %.0f", setup[i].name, s[0].setup[i],
                        s[1].setup[i]);
    if (json) {
        compare_json(s);
        return output_finish(STATUS_OK);
    }
    table_init(&t, 0, header);
    for (size_t i = 0; i < FIGURES; i++) {
        if (!s[0].has[i] || !s[1].has[i])
            continue;
        table_add(&t, "%s", figures[i].name);
        add_value(&t, &figures[i], s[0].value[i]);
        add_value(&t, &figures[i], s[1].value[i]);
        add_ratio(&t, &figures[i], s[0].value[i], s[1].value[i]);
    }
    table_print(&t);
    table_done(&t);
    return output_finish(STATUS_OK);
}
