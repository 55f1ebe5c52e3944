/* Results of firn compare: tables, and JSON for programs and for the page. */
#include "cli/compare/compare_report.h"
#include "cli/duration.h"
#include "cli/table.h"
#include "cli/term.h"

#include <stdio.h>
#include <string.h>

/* ---- tables ---- */

static void add_verdict(struct table *t, const char *yes, bool expected)
{
    table_add_in(t, term_style(yes || !expected ? TERM_GOOD : TERM_BAD), "%s", yes ? yes : "no");
}

/* In which sense the IDs rose; NULL: they did not. */
static const char *rising_over(const struct compare_row *r)
{
    return !r->rising ? NULL : compare_one_source(r->kind) ? "over all" : "per connection";
}

static void put_figures(const struct compare_row *row)
{
    static const char *const header[] = { "KIND",   ">PER SECOND", ">P50", ">P99", "UNIQUE",
                                          "RISING", "SIZE",        "HOW",  NULL };
    struct table t;
    char text[DURATION_BUF], count[GROUPED_BUF];
    table_init(&t, 0, header);
    for (size_t i = 0; i < COMPARE_KINDS; i++) {
        const struct compare_row *r = &row[i];
        table_add(&t, "%s", r->kind->name);
        if (r->measured) {
            table_add(&t, "%s", grouped_text(r->per_second, count));
            table_add(&t, "%s", duration_text(r->p50_ns, text));
            table_add(&t, "%s", duration_text(r->p99_ns, text));
            add_verdict(&t, r->distinct == r->ids ? "yes" : NULL, true);
            add_verdict(&t, rising_over(r), r->kind->sorts);
        } else {
            for (int k = 0; k < 5; k++)
                table_add(&t, "-");
        }
        table_add(&t, "%u bits, %u chars", r->kind->bits, r->kind->chars);
        if (r->measured)
            table_add(&t, "%s", r->how);
        else
            table_add(&t, "not measured: %s", r->why_not);
    }
    putchar('\n');
    table_print(&t);
    table_done(&t);
}

static void add_index(struct table *t, const struct compare_index *x)
{
    char count[GROUPED_BUF];
    if (!x->measured) {
        table_add(t, "-");
        table_add(t, "-");
        return;
    }
    table_add(t, "%s", grouped_text(x->per_second, count));
    table_add(t, "%.1f", x->rows ? (double)x->bytes / (double)x->rows : 0.0);
}

static const char *outage_text(const struct compare_row *r, const struct compare_outage *o,
                               char *out, size_t size)
{
    char gap[DURATION_BUF];
    if (r->death == DEATH_NO_SERVER)
        snprintf(out, size, "needs no server");
    else if (r->death == DEATH_NOT_MEASURED)
        snprintf(out, size, "not measured");
    else
        snprintf(out, size, "%llu of %llu failed, longest wait %s", (unsigned long long)o->failed,
                 (unsigned long long)o->asked, duration_text(o->gap_ns, gap));
    return out;
}

/* What the kind needs, and what its clients see when a part of that fails. */
static void put_faults(const struct compare_row *row)
{
    static const char *const columns[] = { "KIND", "COMPLEXITY: IT NEEDS",
                                           "AVAILABILITY: STORE STOPS FOR 1.5 S",
                                           "AVAILABILITY: A SERVER DIES", NULL };
    _Static_assert(FAULT_STORE_MS == 1500, "the column says so");
    struct table t;
    char text[200];
    const char *why = NULL;
    table_init(&t, 0, columns);
    for (size_t i = 0; i < COMPARE_KINDS; i++) {
        const struct compare_row *r = &row[i];
        table_add(&t, "%s", r->kind->name);
        table_add(&t, "%s", r->kind->needs);
        table_add(&t, "%s", outage_text(r, &r->away, text, sizeof text));
        table_add(&t, "%s", outage_text(r, &r->killed, text, sizeof text));
        if (r->death == DEATH_NOT_MEASURED && r->kind->source == FROM_SERVER)
            why = r->death_why_not;
    }
    putchar('\n');
    table_print(&t);
    table_done(&t);
    if (why)
        printf("Availability was not measured: %s.\n", why);
    else
        puts("A kind that waits for its store has it as its single point of failure: "
             "give it a\n"
             "store that outlives one machine (etcd, ZooKeeper, or firnds that are a cluster).");
}

static void put_locality(const struct compare_row *row)
{
    static const char *const small[] = { "KIND", ">SQLITE ROWS/S", ">BYTES/ROW", NULL };
    static const char *const large[] = {
        "KIND", ">SQLITE ROWS/S", ">BYTES/ROW", ">POSTGRES ROWS/S", ">INDEX BYTES/ROW", NULL
    };
    struct table t;
    bool postgres = false;
    for (size_t i = 0; i < COMPARE_KINDS; i++)
        postgres = postgres || row[i].postgres.measured;
    table_init(&t, 0, postgres ? large : small);
    for (size_t i = 0; i < COMPARE_KINDS; i++) {
        const struct compare_row *r = &row[i];
        table_add(&t, "%s", r->kind->name);
        add_index(&t, &r->sqlite);
        if (postgres)
            add_index(&t, &r->postgres);
    }
    putchar('\n');
    table_print(&t);
    table_done(&t);
}

void compare_put_tables(const struct compare_row row[COMPARE_KINDS])
{
    put_figures(row);
    put_locality(row);
    put_faults(row);
}

/* ---- JSON ---- */

static void put_index(struct buf *j, const char *key, const struct compare_index *x)
{
    if (!x->measured) {
        json_null(j, key);
        return;
    }
    json_begin(j, key, '{');
    json_count(j, "rows", x->rows);
    json_count(j, "rows_per_second", x->per_second);
    json_count(j, "bytes", x->bytes);
    json_end(j, '}');
}

static void put_outage(struct buf *j, const char *key, const struct compare_row *r,
                       const struct compare_outage *o)
{
    json_begin(j, key, '{');
    json_bool(j, "measured", r->death == DEATH_MEASURED);
    if (r->death == DEATH_MEASURED) {
        json_count(j, "asked", o->asked);
        json_count(j, "failed", o->failed);
        json_count(j, "longest_wait_ns", o->gap_ns);
    } else {
        json_text(j, "why", r->death == DEATH_NO_SERVER ? "needs no server" : r->death_why_not);
    }
    json_end(j, '}');
}

void compare_put_json(struct buf *j, const struct compare_row row[COMPARE_KINDS])
{
    static const char *const sources[] = { "server", "counter", "process", "database" };
    json_begin(j, "kinds", '[');
    for (size_t i = 0; i < COMPARE_KINDS; i++) {
        const struct compare_row *r = &row[i];
        json_begin(j, NULL, '{');
        json_text(j, "kind", r->kind->key);
        json_text(j, "name", r->kind->name);
        json_text(j, "source", sources[r->kind->source]);
        json_bool(j, "sorts", r->kind->sorts);
        json_text(j, "needs", r->kind->needs);
        json_bool(j, "measured", r->measured);
        json_count(j, "bits", r->kind->bits);
        json_count(j, "chars", r->kind->chars);
        if (r->measured) {
            json_text(j, "how", r->how);
            json_count(j, "per_second", r->per_second);
            json_count(j, "p50_ns", r->p50_ns);
            json_count(j, "p99_ns", r->p99_ns);
            json_count(j, "ids", r->ids);
            json_count(j, "distinct", r->distinct);
            json_bool(j, "rising", r->rising);
            if (r->rising)
                json_text(j, "rising_over", rising_over(r));
        } else {
            json_text(j, "why", r->why_not);
        }
        put_index(j, "sqlite", &r->sqlite);
        put_index(j, "postgres", &r->postgres);
        put_outage(j, "when_store_stops", r, &r->away);
        put_outage(j, "when_one_dies", r, &r->killed);
        json_end(j, '}');
    }
    json_end(j, ']');
}
