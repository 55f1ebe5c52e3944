/*
 * firn compare: ask a Snowflake server and a ticket server in turn, show what they hand out, then what
 * was measured on the way. The first lines are fixed: scripts look for them.
 */
#include "cli/compare.h"
#include "cli/duration.h"
#include "cli/histogram.h"
#include "cli/http_client.h"
#include "cli/id_body.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS_DEFAULT = 10, ROUNDS_MAX = 1000000 }; /* each keeps two texts in memory */

struct compare {
    uint64_t rounds;
    const char *snowflake, *ticket;
    bool json;
};

static const struct opt opts[] = {
    { .name = "rounds",
      .letter = 'n',
      .type = OPT_COUNT,
      .at = offsetof(struct compare, rounds),
      .value = "N",
      .min = 1,
      .max = ROUNDS_MAX,
      .about = "IDs to take from each server (default 10)" },
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
    OPT_JSON(struct compare, json),
    { .name = NULL },
};

const struct usage compare_usage = {
    .name = "compare",
    .examples = "  firn compare                  ten IDs from each server, and how long they took\n"
                "  firn compare --rounds 10k     enough for percentiles that mean something\n"
                "  firn compare --snowflake http://127.0.0.1:9001/generate?kind=ulid\n",
    .synopsis = "firn compare [--rounds N] [--snowflake URL] [--ticket URL] [--json]",
    .about =
        "Takes IDs from a Snowflake server and a ticket server in turn over one kept connection\n"
        "each, and checks that none repeats and each is above the one before. A server that does\n"
        "not answer within 2 s is asked 3 more times, 1 s apart.\n",
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
    const char *cure = "the server's log tells more";
    if (error == FIRN_EIO)
        cure = "is firnd running? `make run` starts it";
    else if (error == FIRN_EFORMAT)
        cure = "is that address firnd's?";
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
            "%s: expected {\"id\":\"...\"}, got '%s': is that address a generator's?",
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

static void put_json(struct side sides[2])
{
    struct json j;
    json_init(&j, stdout);
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
        json_count(&j, "requests", (int64_t)s->n);
        json_count(&j, "per_second", (int64_t)per_second(s));
        json_count(&j, "p50_ns", (int64_t)histogram_at(&s->latency, 500000));
        json_count(&j, "p99_ns", (int64_t)histogram_at(&s->latency, 990000));
        json_count(&j, "distinct", (int64_t)s->distinct);
        json_bool(&j, "rising", s->rising);
        json_end(&j, '}');
    }
    json_end(&j, '}');
    json_done(&j);
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
                     s->rising ? "yes" : "no");
    }
    putchar('\n');
    table_print(&t);
    table_done(&t);
}

static int run(const struct compare *c, struct side sides[2])
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
    }
    if (c->json) {
        put_json(sides);
    } else {
        puts("ID generation completed.");
        put_table(sides);
    }
    for (size_t k = 0; k < 2; k++) {
        struct side *s = &sides[k];
        if (s->distinct < s->n)
            return output_finish(
                say_failed("%s: an ID came twice: is there a cache in between?", s->url));
        if (!s->rising)
            return output_finish(say_failed("%s: an ID was not above the one before: do several "
                                            "servers answer, or a kind that does not sort?",
                                            s->url));
    }
    return output_finish(STATUS_OK);
}

int cmd_compare(int argc, char **argv)
{
    struct compare c = {
        .rounds = ROUNDS_DEFAULT,
        .snowflake = "http://127.0.0.1:9001/generate",
        .ticket = "http://127.0.0.1:9002/generate",
    };
    int operands, r = options_parse(&compare_usage, argc, argv, &c, &operands);
    if (r >= 0)
        return r;
    if (operands > 0)
        return say_trouble("'%s' is one word too many: addresses are given with --snowflake and "
                           "--ticket",
                           argv[1]);
    struct side *sides = calloc(2, sizeof *sides);
    if (!sides)
        return say_trouble("out of memory");
    sides[0].name = "snowflake";
    sides[0].url = c.snowflake;
    sides[1].name = "ticket";
    sides[1].url = c.ticket;
    for (size_t i = 0; i < 2 && r < 0; i++)
        r = side_open(&sides[i], c.rounds);
    if (r < 0)
        r = run(&c, sides);
    for (size_t i = 0; i < 2; i++)
        side_close(&sides[i]);
    free(sides);
    return r;
}
