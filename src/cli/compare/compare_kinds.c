/*
 * Measures ten kinds of IDs. Kinds that a server issues are requested by the load generator: a few
 * connections, closed loop, as clients would. Kinds that need no server are generated in this
 * process by libfirn. Both are checked, ID by ID. Then a list of each kind's IDs, in the order of
 * generation, is inserted into an index.
 */
#include "cli/compare/compare_kinds.h"
#include "cli/bench/bench_target.h"
#include "cli/compare/compare_index.h"
#include "cli/compare/compare_postgres.h"
#include "cli/http_client.h"
#include "cli/say.h"
#include "firn/mint.h"
#include "firn/read.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_NS UINT64_C(1000000)
enum {
    CONNECTIONS = 9, /* a multiple of three servers */
    WARMUP_MS = 100,
    LONGEST_MS = 3000,
    FETCH_IDS = 5000, /* per request */
    INTERLEAVE = 100, /* multi-master: IDs of one master before the other's turn */
    PROCESS_IDS_MAX = 1 << 20,
    DATABASE_IDS_MAX = 1 << 20,
    URL_BYTES = 400,
};

#define SEQUENCE(name_, mode_, more_) "{\"name\":\"" name_ "\",\"mode\":\"" mode_ "\"" more_ "}"

const struct compare_kind compare_kinds[COMPARE_KINDS] = {
    { .key = "snowflake",
      .needs = "firnd, a store",
      .name = "Snowflake",
      .source = FROM_SERVER,
      .bits = 64,
      .chars = 19,
      .sorts = true },
    { .key = "ticket-gapless",
      .needs = "firnd, a store for each number",
      .name = "Ticket, gapless",
      .source = FROM_SERVER,
      .bits = 64,
      .chars = 19,
      .sequence = { "firn-compare.gapless" },
      .spec = { SEQUENCE("firn-compare.gapless", "gapless", "") },
      .sorts = true },
    { .key = "ticket-range",
      .needs = "firnd, a store",
      .name = "Ticket, range",
      .source = FROM_SERVER,
      .bits = 64,
      .chars = 19,
      .sequence = { "firn-compare.range" },
      .spec = { SEQUENCE("firn-compare.range", "range", "") },
      .sorts = true },
    { .key = "multi-master",
      .needs = "two servers, a step for each",
      .name = "Multi-master",
      .source = FROM_SERVER,
      .bits = 64,
      .chars = 19,
      .sequence = { "firn-compare.odd", "firn-compare.even" },
      .spec = { SEQUENCE("firn-compare.odd", "gapless", ",\"step\":2,\"offset\":1"),
                SEQUENCE("firn-compare.even", "gapless", ",\"step\":2,\"offset\":0") },
      .sorts = true },
    { .key = "redis",
      .needs = "a Redis",
      .name = "Redis counter",
      .source = FROM_COUNTER,
      .bits = 64,
      .chars = 19,
      .sorts = true },
    { .key = "uuidv4",
      .needs = "nothing",
      .name = "UUID v4",
      .source = FROM_PROCESS,
      .bits = 128,
      .chars = 36,
      .mint = "uuidv4" },
    { .key = "uuidv7",
      .needs = "nothing",
      .name = "UUID v7",
      .source = FROM_PROCESS,
      .bits = 128,
      .chars = 36,
      .mint = "uuidv7",
      .sorts = true },
    { .key = "ulid",
      .needs = "nothing",
      .name = "ULID",
      .source = FROM_PROCESS,
      .bits = 128,
      .chars = 26,
      .mint = "ulid",
      .sorts = true },
    { .key = "sonyflake",
      .needs = "a worker number",
      .name = "Sonyflake",
      .source = FROM_PROCESS,
      .bits = 64,
      .chars = 19,
      .mint = "sonyflake",
      .sorts = true },
    { .key = "database",
      .needs = "a database",
      .name = "Database sequence",
      .source = FROM_DATABASE,
      .bits = 64,
      .chars = 19,
      .sorts = true },
};

__attribute__((format(printf, 2, 3))) static bool not_measured(struct compare_row *row,
                                                               const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(row->why_not, sizeof row->why_not, fmt, args);
    va_end(args);
    row->measured = false;
    return false;
}

/* ---- addresses ---- */

struct place {
    char url[URL_BYTES]; /* asked for one ID */
};

/* The address at which server `i` issues the kind; 0: none. */
static unsigned places(const struct compare_world *w, const struct compare_kind *k,
                       struct place out[LOAD_TARGETS_MAX])
{
    unsigned n = 0, servers = w->servers ? w->servers->n : 1;
    for (unsigned i = 0; i < servers; i++) {
        char base[128];
        if (w->servers)
            snprintf(base, sizeof base, "http://%s", w->servers->server[i].home);
        else
            snprintf(base, sizeof base, "%s", k->sequence[0] ? w->ticket : w->snowflake);
        if (!k->sequence[0])
            snprintf(out[n++].url, URL_BYTES, "%s/v1/ids/snowflake", base);
        for (unsigned s = 0; s < 2 && k->sequence[s]; s++) {
            /* Each master has one sequence, if there are masters enough. */
            if (k->sequence[1] && servers > 1 && s != i)
                continue;
            snprintf(out[n++].url, URL_BYTES, "%s/v1/sequences/%s/next", base, k->sequence[s]);
        }
    }
    return n;
}

static bool make_sequences(const struct compare_world *w, struct compare_row *row)
{
    char url[URL_BYTES];
    for (unsigned s = 0; s < 2 && row->kind->sequence[s]; s++) {
        struct http_client c;
        const char *body;
        size_t len;
        if (w->servers)
            snprintf(url, sizeof url, "http://%s/v1/sequences", w->servers->server[0].home);
        else
            snprintf(url, sizeof url, "%s/v1/sequences", w->ticket);
        int r = http_client_init(&c, url);
        c.post = row->kind->spec[s];
        if (r == 0)
            r = http_client_post(&c, &body, &len);
        if (r != 0)
            not_measured(row, "cannot make the sequence %s: %.100s", row->kind->sequence[s], c.why);
        http_client_done(&c);
        if (r != 0)
            return false;
    }
    return true;
}

/* ---- from servers ---- */

static bool run_load(const struct compare_world *w, struct compare_row *row,
                     const struct bench_target *t, unsigned n)
{
    struct load_target load[LOAD_TARGETS_MAX];
    struct load_result *r = calloc(1, sizeof *r);
    struct load_plan plan = {
        .target = load,
        .targets = n,
        .connections = CONNECTIONS,
        .depth = 1,
        .threads = 1,
        .cpu = -1,
        .warmup_ns = WARMUP_MS * MS_NS,
        .run_ns = w->run_ms * MS_NS,
        .check = true,
        .ids_max = PROCESS_IDS_MAX,
        .stop = w->stop,
    };
    if (!r)
        return not_measured(row, "out of memory");
    for (unsigned i = 0; i < n; i++)
        load[i] = t[i].load;
    int error = load_run(&plan, r);
    /* On a busy machine a short run may end before the first answer: then run longer. */
    while (error == 0 && r->requests + r->errors + r->unreadable == 0 &&
           plan.run_ns < LONGEST_MS * MS_NS && !*w->stop) {
        plan.run_ns *= 4;
        error = load_run(&plan, r);
    }
    if (error)
        not_measured(row, "%.100s: %.80s", t[r->failed_target].text, r->why);
    else if (r->requests == 0 && r->errors == 0)
        not_measured(row, "%.100s did not answer in time", t[0].text);
    else if (r->requests == 0 || r->unreadable)
        not_measured(row, "%.100s does not answer with IDs", t[0].text);
    else
        row->measured = true;
    row->per_second = r->elapsed_ns ? (uint64_t)((double)r->requests * 1e9 / (double)r->elapsed_ns)
                                    : 0;
    row->p50_ns = histogram_at(&r->latency, 500000);
    row->p99_ns = histogram_at(&r->latency, 990000);
    row->ids = r->ids;
    row->distinct = r->distinct;
    row->rising = r->falls == 0;
    free(r);
    return row->measured;
}

/* A kind with sequences has them made first, on servers that may be loaded. */
static bool measure_urls(const struct compare_world *w, struct compare_row *row,
                         const struct place *p, unsigned n)
{
    struct bench_target t[LOAD_TARGETS_MAX] = { 0 };
    char why[BENCH_WHY_BUF];
    const struct bench_ask ask = { .remote = w->remote, .why = why };
    bool good = n > 0;
    for (unsigned i = 0; i < n && good; i++)
        if (bench_target_init(&t[i], p[i].url, &ask) >= 0)
            good = not_measured(row, "%s", why);
    good = good && make_sequences(w, row) && run_load(w, row, t, n);
    for (unsigned i = 0; i < n; i++)
        bench_target_done(&t[i]);
    return good;
}

static bool measure_server(const struct compare_world *w, struct compare_row *row)
{
    struct place p[LOAD_TARGETS_MAX];
    unsigned n = places(w, row->kind, p);
    if (!measure_urls(w, row, p, n))
        return false;
    if (w->servers)
        snprintf(row->how, sizeof row->how, "%u of firnd, %d connections",
                 row->kind->sequence[1] ? 2 : w->servers->n, CONNECTIONS);
    else
        snprintf(row->how, sizeof row->how, "firnd, %d connections", CONNECTIONS);
    return true;
}

static bool measure_counter(const struct compare_world *w, struct compare_row *row)
{
    struct place p = { "" };
    if (w->redis) {
        size_t len = strlen(w->redis);
        while (len > 0 && w->redis[len - 1] == '/')
            len--;
        snprintf(p.url, sizeof p.url, "%.*s/INCR/firn-compare", (int)len, w->redis);
        snprintf(row->how, sizeof row->how, "Redis INCR, %d connections", CONNECTIONS);
    } else {
        const char *authority = w->servers ? w->servers->server[0].home
                                           : strstr(w->ticket, "//") + 2;
        snprintf(p.url, sizeof p.url, "redis://%.200s/INCR/firn-compare.incr", authority);
        snprintf(row->how, sizeof row->how, "firnd's INCR, not Redis: --redis URL");
    }
    return measure_urls(w, row, &p, 1);
}

/* ---- in process ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int by_16(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

/* Sorts the list. */
static uint64_t count_distinct(uint8_t *data, size_t n, uint32_t width)
{
    uint64_t distinct = 0;
    qsort(data, n, width, width == sizeof(uint64_t) ? by_value : by_16);
    for (size_t i = 0; i < n; i++)
        distinct += i == 0 || memcmp(data + i * width, data + (i - 1) * width, width) != 0;
    return distinct;
}

static int next_text(struct firn_mint *m, char out[FIRN_MINT_TEXT_BUF], size_t *out_len)
{
    int r;
    while ((r = firn_mint_text(m, out, out_len)) == FIRN_EAGAIN)
        nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    return r;
}

/* Reads one ID of the text into `width` bytes. */
static bool binary(const struct firn_kind *kind, const char *text, size_t len, uint32_t width,
                   uint8_t *out)
{
    struct firn_reading r;
    if (firn_read(kind, text, len, NULL, &r, NULL) != 0)
        return false;
    if (width == sizeof r.number)
        memcpy(out, &r.number, width);
    else
        memcpy(out, r.bytes, width);
    return true;
}

static struct firn_mint *mint_for(const struct compare_kind *k, uint32_t policy, char *why,
                                  size_t size)
{
    const struct firn_kind *kind = firn_kind_find(k->mint, strlen(k->mint));
    struct firn_mint_opts opts = FIRN_MINT_OPTS_INIT;
    struct firn_mint *m = NULL;
    struct firn_diag d = { 0 };
    opts.policy = policy;
    if (firn_mint_new(kind, &opts, &m, &d) != 0)
        snprintf(why, size, "%.*s", (int)size - 1, d.text);
    return m;
}

static bool measure_process(const struct compare_world *w, struct compare_row *row)
{
    enum { TEXT_ROOM = 40, BLOCK = 64 };
    const struct compare_kind *k = row->kind;
    const struct firn_kind *kind = firn_kind_find(k->mint, strlen(k->mint));
    struct firn_mint *m = mint_for(k, 0, row->why_not, sizeof row->why_not);
    struct histogram *h = calloc(1, sizeof *h);
    uint32_t width = k->bits / 8;
    /* Texts first, so that reading them is not timed; a run makes some millions of them. */
    uint64_t run_ns = w->run_ms * MS_NS / 2, start, now, n = 0;
    char *texts = malloc((size_t)PROCESS_IDS_MAX * TEXT_ROOM), text[FIRN_MINT_TEXT_BUF];
    uint8_t *ids = malloc((size_t)PROCESS_IDS_MAX * width);
    size_t len = 0;
    bool good = m && h && texts && ids;
    if (!good && m)
        not_measured(row, "out of memory");
    now = start = mono_ns();
    while (good && now - start < run_ns && n + BLOCK <= PROCESS_IDS_MAX && !*w->stop) {
        uint64_t block = 0;
        /* Slow kinds are timed one by one, fast kinds in blocks: reading a clock costs as much
         * as one ID. */
        do {
            good = next_text(m, text, &len) == 0 && len < TEXT_ROOM;
            if (good)
                memcpy(texts + n++ * TEXT_ROOM, text, len + 1);
        } while (good && ++block < BLOCK && k->bits > 64);
        uint64_t then = now;
        now = mono_ns();
        histogram_add(h, (now - then) / (block ? block : 1), block ? block : 1);
    }
    uint64_t took = now - start;
    row->rising = true;
    for (uint64_t i = 0; i < n && good; i++) {
        const char *t = texts + i * TEXT_ROOM;
        good = binary(kind, t, strlen(t), width, ids + i * width);
        if (i > 0 && (width == 8 ? by_value : by_16)(ids + (i - 1) * width, ids + i * width) >= 0)
            row->rising = false;
    }
    if (good && n > 0) {
        row->measured = true;
        row->per_second = took ? (uint64_t)((double)n * 1e9 / (double)took) : 0;
        row->p50_ns = histogram_at(h, 500000);
        row->p99_ns = histogram_at(h, 990000);
        row->ids = n;
        row->distinct = count_distinct(ids, n, width);
        snprintf(row->how, sizeof row->how, "in process, one thread, as text");
    }
    free(texts);
    free(ids);
    free(h);
    firn_mint_free(m);
    return row->measured;
}

/* ---- database sequences ---- */

static bool measure_database(const struct compare_world *w, struct compare_row *row,
                             struct compare_postgres *pg)
{
    if (!w->postgres)
        return not_measured(row, "give --postgres URL");
    if (!pg)
        return not_measured(row, "%.190s", row->postgres.why_not);
    struct histogram *h = calloc(1, sizeof *h);
    uint64_t *ids = malloc(DATABASE_IDS_MAX * sizeof *ids), n = 0, start = mono_ns();
    char why[200] = "out of memory";
    row->measured = h && ids &&
                    compare_postgres_nextval(pg, w->run_ms, h, ids, DATABASE_IDS_MAX, &n, why) == 0;
    uint64_t took = mono_ns() - start;
    if (row->measured) {
        row->per_second = took ? (uint64_t)((double)n * 1e9 / (double)took) : 0;
        row->p50_ns = histogram_at(h, 500000);
        row->p99_ns = histogram_at(h, 990000);
        row->rising = true;
        for (uint64_t i = 1; i < n; i++)
            row->rising = row->rising && ids[i] > ids[i - 1];
        row->ids = n;
        row->distinct = count_distinct((uint8_t *)ids, n, sizeof *ids);
        snprintf(row->how, sizeof row->how, "PostgreSQL nextval, 1 connection");
    } else {
        not_measured(row, "%.190s", why);
    }
    free(ids);
    free(h);
    return row->measured;
}

/* ---- lists for an index ---- */

struct filling {
    uint64_t *at, *end;
};

static void fill_one(uint64_t id, void *user)
{
    struct filling *f = user;
    if (f->at < f->end)
        *f->at++ = id;
}

/* `n` IDs of an address into `out`, FETCH_IDS per request. */
static bool fetch(const char *one, uint64_t *out, size_t n)
{
    char url[URL_BYTES + 24];
    struct filling f = { out, out + n };
    bool good = true;
    while (f.at < f.end && good) {
        struct http_client c;
        const char *body;
        size_t len, want = (size_t)(f.end - f.at);
        const uint64_t *before = f.at;
        snprintf(url, sizeof url, "%.*s?n=%zu", URL_BYTES - 1, one,
                 want < FETCH_IDS ? want : FETCH_IDS);
        good = http_client_init(&c, url) == 0;
        c.accept = "text/plain";
        good = good && http_client_get(&c, &body, &len) == 0 &&
               id_body_each(ID_BODY_LINES, body, len, fill_one, &f) == 0 && f.at > before;
        http_client_done(&c);
    }
    return good;
}

static bool list_server(const struct compare_world *w, const struct compare_kind *k, uint64_t *out,
                        size_t n)
{
    struct place p[LOAD_TARGETS_MAX];
    unsigned from = places(w, k, p) < 2 || !k->sequence[1] ? 1 : 2;
    uint64_t *half = malloc(n * sizeof *half);
    bool good = half != NULL;
    size_t each = n / from;
    for (unsigned i = 0; i < from && good; i++)
        good = fetch(p[i].url, half + i * each, i + 1 < from ? each : n - i * each);
    for (size_t i = 0, at[2] = { 0, each }; i < n && good; i++) { /* taking turns */
        unsigned who = from == 2 && i / INTERLEAVE % 2 == 1;
        if (from == 2 && at[who] == (who ? n : each))
            who = !who;
        out[i] = half[at[who]++];
    }
    free(half);
    return good;
}

static bool list_ids(const struct compare_world *w, const struct compare_row *row,
                     struct compare_ids *out)
{
    const struct compare_kind *k = row->kind;
    *out = (struct compare_ids){ .width = k->bits / 8, .n = w->rows };
    out->data = calloc(w->rows, out->width);
    if (!out->data)
        return false;
    if (k->source == FROM_SERVER)
        return list_server(w, k, (uint64_t *)(void *)out->data, out->n);
    if (k->source != FROM_PROCESS) { /* a counter counts */
        for (uint64_t i = 0; i < out->n; i++)
            ((uint64_t *)(void *)out->data)[i] = i + 1;
        return true;
    }
    char text[FIRN_MINT_TEXT_BUF], why[160];
    size_t len;
    const struct firn_kind *kind = firn_kind_find(k->mint, strlen(k->mint));
    /* With borrowing: otherwise Sonyflakes would take seconds; the order is the same. */
    struct firn_mint *m = mint_for(k, k->bits == 64 ? FIRN_POLICY_BORROW : 0, why, sizeof why);
    bool good = m != NULL;
    for (size_t i = 0; i < out->n && good; i++)
        good = next_text(m, text, &len) == 0 &&
               binary(kind, text, len, out->width, out->data + i * out->width);
    firn_mint_free(m);
    return good;
}

static void measure_index(const struct compare_world *w, struct compare_row *row,
                          struct compare_postgres *pg)
{
    struct compare_ids ids;
    if (!row->measured && row->kind->source != FROM_DATABASE) {
        snprintf(row->sqlite.why_not, sizeof row->sqlite.why_not, "no IDs");
        return;
    }
    if (list_ids(w, row, &ids)) {
        compare_index_sqlite(&ids, &row->sqlite);
        if (pg)
            compare_postgres_index(pg, &ids, &row->postgres);
    } else {
        snprintf(row->sqlite.why_not, sizeof row->sqlite.why_not, "could not get %" PRIu64 " IDs",
                 w->rows);
    }
    free(ids.data);
}

/* ---- faults ---- */

static void take_outage(const struct compare_probe *p, bool killed, struct compare_row *r)
{
    *(killed ? &r->killed : &r->away) = (struct compare_outage){ p->asked, p->failed, p->gap_ns };
    if (killed)
        r->death = DEATH_MEASURED;
    if (p->distinct < p->ids) { /* must never happen; then the count shows it */
        r->ids += p->ids;
        r->distinct += p->distinct;
    }
}

static void measure_death(const struct compare_world *w, struct compare_row *row)
{
    struct compare_probe probe[COMPARE_PROBES_MAX] = { 0 };
    char path[COMPARE_PROBES_MAX][2][80];
    size_t of[COMPARE_PROBES_MAX];
    unsigned probes = 0;
    for (size_t i = 0; i < COMPARE_KINDS; i++) {
        const struct compare_kind *k = row[i].kind;
        bool ours = w->servers && k->source == FROM_SERVER && row[i].measured;
        row[i].death = k->source == FROM_PROCESS ? DEATH_NO_SERVER : DEATH_NOT_MEASURED;
        snprintf(row[i].death_why_not, sizeof row[i].death_why_not, "%s",
                 k->source != FROM_SERVER ? "the server was not started by firn compare"
                 : !w->servers            ? "use --start, which starts servers that may be killed"
                                          : "this kind was not measured");
        if (!ours || probes == COMPARE_PROBES_MAX)
            continue;
        for (unsigned s = 0; s < 2; s++)
            if (k->sequence[s])
                snprintf(path[probes][s], sizeof path[probes][s], "/v1/sequences/%s/next",
                         k->sequence[s]);
            else
                snprintf(path[probes][s], sizeof path[probes][s], "/v1/ids/snowflake");
        for (unsigned s = 0; s < w->servers->n; s++)
            probe[probes].path[s] = k->sequence[1] ? (s < 2 ? path[probes][s] : NULL)
                                                   : path[probes][0];
        of[probes++] = i;
    }
    for (int fault = FAULT_STORE; fault <= FAULT_KILL && probes > 0; fault++) {
        if (compare_servers_disturb(w->servers, (enum compare_fault)fault, probe, probes) != 0)
            return;
        for (unsigned p = 0; p < probes; p++)
            take_outage(&probe[p], fault == FAULT_KILL, &row[of[p]]);
    }
}

int compare_measure(const struct compare_world *w, struct compare_row row[COMPARE_KINDS])
{
    char why[200] = "";
    struct compare_postgres *pg = w->postgres ? compare_postgres_open(w->postgres, why) : NULL;
    unsigned step = 0;
    int status = STATUS_OK;
    memset(row, 0, COMPARE_KINDS * sizeof *row);
    for (size_t i = 0; i < COMPARE_KINDS && !*w->stop; i++) {
        struct compare_row *r = &row[i];
        r->kind = &compare_kinds[i];
        snprintf(r->postgres.why_not, sizeof r->postgres.why_not, "%.119s", why);
        w->progress(r->kind->name, step++, COMPARE_KINDS + 1);
        switch (r->kind->source) {
        case FROM_SERVER:
            measure_server(w, r);
            break;
        case FROM_COUNTER:
            measure_counter(w, r);
            break;
        case FROM_PROCESS:
            measure_process(w, r);
            break;
        case FROM_DATABASE:
            measure_database(w, r, pg);
            break;
        }
        if (!*w->stop)
            measure_index(w, r, pg);
    }
    for (size_t i = 0; i < COMPARE_KINDS; i++)
        row[i].kind = &compare_kinds[i];
    if (!*w->stop) {
        w->progress("a store that stands still, a server that dies", step, COMPARE_KINDS + 1);
        measure_death(w, row);
    }
    w->progress(NULL, 0, 0);
    compare_postgres_close(pg);
    for (size_t i = 0; i < COMPARE_KINDS; i++)
        if (row[i].distinct < row[i].ids)
            status = say_failed("%s: %" PRIu64 " of %" PRIu64 " IDs came twice", row[i].kind->name,
                                row[i].ids - row[i].distinct, row[i].ids);
    return status;
}
