/*
 * firn compare: requests IDs from a Snowflake server and a ticket server in turn, shows them and
 * the measurements; then measures all kinds side by side. The first lines are fixed: scripts search
 * for them.
 */
#include "cli/commands.h"
#include "cli/compare/compare_page.h"
#include "cli/compare/compare_report.h"
#include "cli/duration.h"
#include "wire/histogram.h"
#include "cli/http_client.h"
#include "cli/id_body.h"
#include "wire/json_write.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROUNDS_DEFAULT = 10,
    ROUNDS_MAX = 1000000, /* each keeps two texts in memory */
    ROWS_DEFAULT = 50000,
    RUN_MS = 500,
    SERVERS = 3,
};

struct compare {
    uint64_t rounds, rows, each_ms;
    const char *snowflake, *ticket, *redis, *postgres, *html;
    bool start, brief, remote, json;

    struct compare_servers servers;
    char snowflake_url[96], ticket_url[96], snowflake_base[300], ticket_base[300];
    struct compare_row row[COMPARE_KINDS];
};

static const struct opt opts[] = {
    { .name = "rounds",
      .letter = 'n',
      .type = OPT_COUNT,
      .at = offsetof(struct compare, rounds),
      .value = "N",
      .min = 1,
      .max = ROUNDS_MAX,
      .about = "number of IDs to request from each server (default 10)" },
    { .name = "snowflake",
      .type = OPT_TEXT,
      .at = offsetof(struct compare, snowflake),
      .value = "URL",
      .about = "the Snowflake server (default http://127.0.0.1:9001/generate)" },
    { .name = "ticket",
      .type = OPT_TEXT,
      .at = offsetof(struct compare, ticket),
      .value = "URL",
      .about = "the ticket server (default http://127.0.0.1:9002/generate)" },
    { .name = "start",
      .at = offsetof(struct compare, start),
      .about =
          "start three servers with a store of their own for this, and kill one during the test" },
    { .name = "brief",
      .at = offsetof(struct compare, brief),
      .about = "only the two servers: no comparison of all kinds" },
    { .name = "redis",
      .type = OPT_TEXT,
      .at = offsetof(struct compare, redis),
      .value = "URL",
      .about = "a Redis to measure (redis://127.0.0.1:6379); otherwise firnd's INCR is measured" },
    { .name = "postgres",
      .type = OPT_TEXT,
      .at = offsetof(struct compare, postgres),
      .value = "URL",
      .about = "a PostgreSQL to measure: its sequences and its index" },
    { .name = "rows",
      .type = OPT_COUNT,
      .at = offsetof(struct compare, rows),
      .value = "N",
      .min = 1000,
      .max = 10000000,
      .about = "number of rows to insert into each index (default 50k)" },
    { .name = "each",
      .type = OPT_TIME,
      .at = offsetof(struct compare, each_ms),
      .value = "TIME",
      .min = 50,
      .max = 600000,
      .about = "duration of the measurement of each kind (default 500ms)" },
    { .name = "html",
      .type = OPT_TEXT,
      .at = offsetof(struct compare, html),
      .value = "FILE",
      .words = "@files",
      .about = "write a page with plots" },
    { .name = "allow-remote",
      .at = offsetof(struct compare, remote),
      .about = "measure servers on other machines, too; they must be yours" },
    OPT_JSON(struct compare, json),
    { .name = NULL },
};

const struct usage compare_usage = {
    .name = "compare",
    .examples =
        "  firn compare                  ten IDs from each server, then all kinds measured\n"
        "  firn compare --start --html report.html       with its own servers, and a page\n"
        "  firn compare --redis redis://127.0.0.1:6379 --postgres postgres://127.0.0.1/db\n"
        "  firn compare --brief --rounds 10k             the two servers alone\n",
    .synopsis = "firn compare [--rounds N] [--snowflake URL] [--ticket URL] [option...]",
    .about =
        "Requests IDs from a Snowflake server and a ticket server in turn over one kept\n"
        "connection each, and checks that none repeats and each is greater than the one before.\n"
        "A server that does not answer within 2 s is asked 3 more times, 1 s apart.\n"
        "\n"
        "Then ten kinds are measured side by side, in about ten seconds: IDs per second,\n"
        "latency, whether all are distinct and rise, how fast they are inserted into an index\n"
        "and how large it gets, and with --start what clients see when a server is killed.\n"
        "Kinds that could not be measured show why. Servers on other machines are measured only\n"
        "with --allow-remote: load on a machine that is not yours is an attack. Sequences called\n"
        "firn-compare.* remain on the ticket server.\n",
    .opts = opts,
};

typedef char id_text[ID_BODY_TEXT_BUF];

struct side {
    const char *name, *url;
    struct http_client client;
    id_text *ids;
    uint64_t n, distinct, busy_ns;
    bool rising;
    struct histogram latency;
};

/* Numbers by value, other texts by their bytes. */
static int id_order(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    bool numbers = strspn(a, "0123456789") == a_len && strspn(b, "0123456789") == b_len;
    if (numbers && a_len != b_len)
        return a_len < b_len ? -1 : 1;
    return strcmp(a, b);
}

static int by_order(const void *a, const void *b)
{
    return id_order(a, b);
}

static int side_open(struct side *s, uint64_t rounds)
{
    char shown[SAY_TEXT_BUF];
    s->rising = true;
    s->ids = calloc(rounds, sizeof *s->ids);
    if (!s->ids)
        return say_trouble("out of memory: ask for fewer --rounds");
    if (http_client_init(&s->client, s->url) != 0)
        return say_trouble("--%s %s: %s", s->name, say_text(s->url, strlen(s->url), shown),
                           s->client.why);
    return -1;
}

static void side_close(struct side *s)
{
    http_client_done(&s->client);
    free(s->ids);
}

static int failed(const struct side *s, int error)
{
    char shown[SAY_TEXT_BUF];
    const char *cure = "see the server's log";
    if (error == FIRN_EIO)
        cure = "check that firnd is running; `make run` starts it";
    else if (error == FIRN_EFORMAT)
        cure = "check that this is the address of a firnd";
    return say_trouble("%s: %s (asked %u times): %s", say_text(s->url, strlen(s->url), shown),
                       s->client.why, s->client.retries + 1, cure);
}

static int side_ask(struct side *s)
{
    const char *body;
    size_t len;
    char shown[SAY_TEXT_BUF], url[SAY_TEXT_BUF];
    int error = http_client_get(&s->client, &body, &len);
    if (error)
        return failed(s, error);
    char *id = s->ids[s->n];
    if (id_body_one(body, len, id) != 0)
        return say_trouble(
            "%s: expected {\"id\":\"...\"}, got '%s': check that this is the address of a "
            "generator",
            say_text(s->url, strlen(s->url), url), say_text(body, len, shown));
    if (s->n > 0 && id_order(s->ids[s->n - 1], id) >= 0)
        s->rising = false;
    s->n++;
    s->busy_ns += s->client.answer_ns;
    histogram_add(&s->latency, s->client.answer_ns, 1);
    return -1;
}

/* Call it last: it sorts. */
static void count_distinct(struct side *s)
{
    qsort(s->ids, s->n, sizeof *s->ids, by_order);
    for (uint64_t i = 0; i < s->n; i++)
        if (i == 0 || strcmp(s->ids[i - 1], s->ids[i]) != 0)
            s->distinct++;
}

static uint64_t per_second(const struct side *s)
{
    return s->busy_ns ? (uint64_t)((double)s->n * 1e9 / (double)s->busy_ns) : 0;
}

static void put_json(struct side sides[2], const struct compare *c)
{
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    for (size_t i = 0; i < 2; i++) {
        struct side *s = &sides[i];
        json_begin(&j, s->name, '{');
        json_text(&j, "url", s->url);
        json_begin(&j, "ids", '[');
        for (uint64_t k = 0; k < s->n; k++)
            json_text(&j, NULL, s->ids[k]);
        json_end(&j, ']');
        count_distinct(s);
        json_count(&j, "requests", s->n);
        json_count(&j, "per_second", per_second(s));
        json_count(&j, "p50_ns", histogram_at(&s->latency, 500000));
        json_count(&j, "p99_ns", histogram_at(&s->latency, 990000));
        json_count(&j, "distinct", s->distinct);
        json_bool(&j, "rising", s->rising);
        json_end(&j, '}');
    }
    if (!c->brief)
        compare_put_json(&j, c->row);
    json_end(&j, '}');
    output_json(&j, stdout);
}

static void put_table(struct side sides[2])
{
    static const char *const header[] = { "SERVER", ">REQUESTS", ">PER SECOND", ">P50",
                                          ">P99",   ">DISTINCT", "RISING",      NULL };
    struct table t;
    char text[DURATION_BUF], count[GROUPED_BUF];
    table_init(&t, 0, header);
    for (size_t i = 0; i < 2; i++) {
        struct side *s = &sides[i];
        count_distinct(s);
        table_add(&t, "%s", s->name);
        table_add(&t, "%s", grouped_text(s->n, count));
        table_add(&t, "%s", grouped_text(per_second(s), count));
        table_add(&t, "%s", duration_text(histogram_at(&s->latency, 500000), text));
        table_add(&t, "%s", duration_text(histogram_at(&s->latency, 990000), text));
        table_add_in(&t, term_style(s->distinct == s->n ? TERM_GOOD : TERM_BAD), "%s",
                     grouped_text(s->distinct, count));
        table_add_in(&t, term_style(s->rising ? TERM_GOOD : TERM_BAD), "%s",
                     s->rising ? "per connection" : "no");
    }
    putchar('\n');
    table_print(&t);
    table_done(&t);
}

/* ---- all kinds ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_)
{
    (void)signal_;
    interrupted = 1;
}

static void show_progress(const char *what, unsigned step, unsigned steps)
{
    enum { CELLS = 24 };
    static const char full[] = "########################", none[] = "........................";
    if (isatty(STDERR_FILENO) != 1)
        return;
    int done = steps ? (int)(step * CELLS / steps) : 0;
    if (what)
        fprintf(stderr, "\r\033[K[%.*s%.*s] measuring %s", done, full, CELLS - done, none, what);
    else
        fputs("\r\033[K", stderr);
    fflush(stderr);
}

/* http://host:port of an address. */
static void base_of(const struct side *s, char out[300])
{
    snprintf(out, 300, "http://%s", s->client.url.authority);
}

static int measure_kinds(struct compare *c, const struct side sides[2])
{
    struct compare_world w = {
        .snowflake = c->snowflake_base,
        .ticket = c->ticket_base,
        .redis = c->redis,
        .postgres = c->postgres,
        .servers = c->start ? &c->servers : NULL,
        .rows = c->rows,
        .run_ms = c->each_ms,
        .remote = c->remote,
        .stop = &interrupted,
        .progress = show_progress,
    };
    base_of(&sides[0], c->snowflake_base);
    base_of(&sides[1], c->ticket_base);
    fflush(stdout); /* the lines above are visible while it measures */
    int status = compare_measure(&w, c->row);
    if (interrupted)
        return say_trouble("interrupted: no comparison");
    int written = c->html ? compare_page(c->html, c->row) : -1;
    return written >= 0 ? written : status;
}

static int run(struct compare *c, struct side sides[2])
{
    if (!c->json)
        puts("Starting ID generation client...\nGenerating IDs from Snowflake and Ticket Server:");
    for (uint64_t i = 0; i < c->rounds; i++) {
        for (size_t k = 0; k < 2; k++) {
            int r = side_ask(&sides[k]);
            if (r >= 0)
                return r;
        }
        if (!c->json)
            printf("Snowflake ID: %s, Ticket ID: %s\n", sides[0].ids[i], sides[1].ids[i]);
        if (output_gone())
            return output_finish(STATUS_OK);
        if (interrupted)
            return output_finish(say_trouble("interrupted"));
    }
    int kinds = STATUS_OK;
    if (!c->json) {
        puts("ID generation completed.");
        put_table(sides);
    }
    if (!c->brief && (kinds = measure_kinds(c, sides)) == STATUS_TROUBLE)
        return output_finish(kinds);
    if (c->json)
        put_json(sides, c);
    else if (!c->brief)
        compare_put_tables(c->row);
    for (size_t k = 0; k < 2; k++) {
        struct side *s = &sides[k];
        if (s->distinct < s->n)
            return output_finish(say_failed(
                "%s: an ID came twice: check for a cache between server and client", s->url));
        if (!s->rising)
            return output_finish(say_failed(
                "%s: an ID was not greater than the one before: check whether several servers "
                "answer, or a kind that does not sort",
                s->url));
    }
    return output_finish(kinds);
}

/* Servers of our own, and their addresses. */
static int start(struct compare *c)
{
    int r = compare_servers_start(&c->servers, SERVERS);
    if (r >= 0)
        return r;
    snprintf(c->snowflake_url, sizeof c->snowflake_url, "http://%s/generate",
             c->servers.server[0].snowflake);
    snprintf(c->ticket_url, sizeof c->ticket_url, "http://%s/generate",
             c->servers.server[0].ticket);
    c->snowflake = c->snowflake_url;
    c->ticket = c->ticket_url;
    return -1;
}

static int check_options(const struct compare *c)
{
    if (c->start && (c->snowflake || c->ticket))
        return say_trouble("--start uses servers of its own: leave out --snowflake and --ticket");
    if (c->brief && (c->html || c->redis || c->postgres))
        return say_trouble("--brief compares no kinds: leave out --html, --redis and --postgres");
    if (c->redis && strncmp(c->redis, "redis://", 8) != 0)
        return say_trouble("--redis: give an address such as redis://127.0.0.1:6379");
    return -1;
}

int cmd_compare(int argc, char **argv)
{
    char shown[SAY_TEXT_BUF];
    struct compare *c = calloc(1, sizeof *c);
    struct side *sides = calloc(2, sizeof *sides);
    struct sigaction act = { .sa_handler = on_interrupt };
    int operands, r;
    if (!c || !sides) {
        r = say_trouble("out of memory");
        goto done;
    }
    c->rounds = ROUNDS_DEFAULT;
    c->rows = ROWS_DEFAULT;
    c->each_ms = RUN_MS;
    r = options_parse(&compare_usage, argc, argv, c, &operands);
    if (r < 0 && operands > 0)
        r = say_trouble("unexpected operand '%s': name addresses with --snowflake and --ticket",
                        say_text(argv[1], strlen(argv[1]), shown));
    if (r < 0)
        r = check_options(c);
    if (r >= 0)
        goto done;
    if (c->start) { /* Ctrl-C must not leave servers and a folder behind */
        sigaction(SIGINT, &act, NULL);
        sigaction(SIGTERM, &act, NULL);
        if ((r = start(c)) >= 0)
            goto done;
    }
    sides[0].name = "snowflake";
    sides[0].url = c->snowflake ? c->snowflake : "http://127.0.0.1:9001/generate";
    sides[1].name = "ticket";
    sides[1].url = c->ticket ? c->ticket : "http://127.0.0.1:9002/generate";
    for (size_t i = 0; i < 2 && r < 0; i++)
        r = side_open(&sides[i], c->rounds);
    if (r < 0)
        r = run(c, sides);
    for (size_t i = 0; i < 2; i++)
        side_close(&sides[i]);
    if (c->start)
        compare_servers_stop(&c->servers);
done:
    free(sides);
    free(c);
    return r;
}
