/* What `firn verify` found, for people and for programs. */
#include "cli/escape.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/verify/verify.h"

#include <inttypes.h>
#include <stdio.h>

static void put_bytes(const char *p, size_t len, bool json)
{
    escape_put(stdout, p, len, json);
}

static void put_id(const struct id *id, bool json)
{
    if (json)
        putchar('"'); /* a number too: 64 bits do not survive JavaScript */
    if (id->len > 0)
        put_bytes(id->text, id->len, json);
    else
        printf("%" PRIu64, id->value);
    if (json)
        putchar('"');
}

/* The file and the line in it: file:line, or two members of a JSON object. */
static void put_where(const struct verify *v, uint64_t where, const char *json_prefix)
{
    size_t low = 0, high = v->names_len; /* the last file that begins at or before `where` */
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (v->first_where[mid] <= where)
            low = mid;
        else
            high = mid;
    }
    const char *name = verify_shown_name(v->names[low]);
    uint64_t line = where - v->first_where[low] + 1;
    if (json_prefix)
        printf("\"%sfile\":\"", json_prefix);
    put_bytes(name, strlen(name), json_prefix != NULL);
    if (json_prefix)
        printf("\",\"%sline\":%" PRIu64, json_prefix, line);
    else
        printf(":%" PRIu64, line);
}

static bool holds(const struct verify *v)
{
    return v->malformed.count == 0 && v->unsorted.count == 0 &&
           (!(v->checks & VERIFY_UNIQUE) || v->repeated.count == 0) && v->holes_len == 0;
}

/* Only sorting, or a file that rises throughout, tells how many differ. */
static bool distinct_known(const struct verify *v)
{
    return v->checks & (VERIFY_UNIQUE | VERIFY_GAPLESS) || v->unsorted.count == 0;
}

static struct id smallest(const struct verify *v)
{
    return v->numbers_len > 0 ? (struct id){ .value = v->value_min } : v->text_min;
}

static struct id largest(const struct verify *v)
{
    return v->texts_len > 0 ? v->text_max : (struct id){ .value = v->value_max };
}

static void table_id(const char *label, const struct verify *v, struct id id)
{
    printf("%-10s ", label);
    if (verify_ids(v) > 0)
        put_id(&id, false);
    else
        putchar('-');
    putchar('\n');
}

static void table_count(const char *label, uint64_t n)
{
    printf("%-10s %" PRIu64 "\n", label, n);
}

static void table_more(uint64_t count, uint64_t shown)
{
    if (count > shown)
        printf("  ... and %" PRIu64 " more\n", count - shown);
}

/* What stands between an offender and the line that it offends against. */
static void table_offenders(const struct verify *v, const struct offenders *o, const char *between,
                            bool other_id)
{
    for (size_t i = 0; i < o->len; i++) {
        fputs("  ", stdout);
        put_where(v, o->list[i].where, NULL);
        if (between) {
            fputs("  ", stdout);
            put_id(&o->list[i].id, false);
            printf("  %s ", between);
            if (other_id) {
                put_id(&o->list[i].other, false);
                fputs(" at ", stdout);
            }
            put_where(v, o->list[i].other_where, NULL);
        }
        putchar('\n');
    }
    table_more(o->count, o->len);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void report_table(const struct verify *v)
{
    table_count("lines", v->lines_read);
    if (v->empty > 0)
        table_count("empty", v->empty);
    table_count("IDs", verify_ids(v));
    if (v->numbers_len > 0 && v->texts_len > 0)
        printf("%-10s %" PRIu64 " number%s and %" PRIu64 " text%s\n", "mixed", v->numbers_len,
               plural(v->numbers_len), v->texts_len, plural(v->texts_len));
    if (distinct_known(v))
        table_count("distinct", v->distinct);
    else
        printf("%-10s unknown (add --unique)\n", "distinct");
    table_id("smallest", v, smallest(v));
    table_id("largest", v, largest(v));

    uint64_t n;
    if ((n = v->malformed.count) > 0) {
        printf("%-10s %" PRIu64 " line%s longer than %d bytes\n", "malformed", n, plural(n),
               LINES_TEXT_MAX);
        table_offenders(v, &v->malformed, NULL, false);
    }
    if (v->checks & VERIFY_UNIQUE) {
        if ((n = v->repeated.count) == 0)
            printf("%-10s ok\n", "unique");
        else
            printf("%-10s FAILED: %" PRIu64 " repeated ID%s\n", "unique", n, plural(n));
        table_offenders(v, &v->repeated, "first at", false);
    }
    if (v->checks & VERIFY_SORTED) {
        if ((n = v->unsorted.count) == 0)
            printf("%-10s ok\n", "sorted");
        else
            printf("%-10s FAILED: %" PRIu64 " line%s not above the ID before\n", "sorted", n,
                   plural(n));
        table_offenders(v, &v->unsorted, "after", true);
    }
    if (v->checks & VERIFY_GAPLESS) {
        if ((n = v->holes_len) == 0)
            printf("%-10s ok\n", "gapless");
        else
            printf("%-10s FAILED: %" PRIu64 " hole%s, %" PRIu64 " number%s missing\n", "gapless", n,
                   plural(n), v->missing, plural(v->missing));
        size_t shown = n < v->shown_max ? (size_t)n : v->shown_max;
        for (size_t i = 0; i < shown; i++) {
            const struct hole *h = &v->holes[i];
            if (h->from == h->to)
                printf("  %" PRIu64 "\n", h->from);
            else
                printf("  %" PRIu64 "-%" PRIu64 "  (%" PRIu64 ")\n", h->from, h->to,
                       h->to - h->from + 1);
        }
        table_more(n, shown);
    }
}

static void json_id(const char *name, const struct verify *v, struct id id)
{
    printf(",\"%s\":", name);
    if (verify_ids(v) > 0)
        put_id(&id, true);
    else
        fputs("null", stdout);
}

static void json_offenders(const struct verify *v, const struct offenders *o, const char *other,
                           bool other_id)
{
    fputs(",\"first\":[", stdout);
    for (size_t i = 0; i < o->len; i++) {
        fputs(i > 0 ? ",{" : "{", stdout);
        put_where(v, o->list[i].where, "");
        if (other) {
            fputs(",\"id\":", stdout);
            put_id(&o->list[i].id, true);
            if (other_id) {
                printf(",\"%sid\":", other);
                put_id(&o->list[i].other, true);
            }
            putchar(',');
            put_where(v, o->list[i].other_where, other);
        }
        putchar('}');
    }
    putchar(']');
}

static void json_check(const char *name, uint64_t failures)
{
    printf(",\"%s\":{\"ok\":%s,\"count\":%" PRIu64, name, failures == 0 ? "true" : "false",
           failures);
}

static void report_json(const struct verify *v)
{
    printf("{\"ok\":%s,\"lines\":%" PRIu64 ",\"empty\":%" PRIu64 ",\"ids\":%" PRIu64
           ",\"numbers\":%" PRIu64 ",\"texts\":%" PRIu64 ",\"distinct\":",
           holds(v) ? "true" : "false", v->lines_read, v->empty, verify_ids(v), v->numbers_len,
           v->texts_len);
    if (distinct_known(v))
        printf("%" PRIu64, v->distinct);
    else
        fputs("null", stdout);
    json_id("smallest", v, smallest(v));
    json_id("largest", v, largest(v));
    json_check("malformed", v->malformed.count);
    json_offenders(v, &v->malformed, NULL, false);
    putchar('}');
    if (v->checks & VERIFY_UNIQUE) {
        json_check("unique", v->repeated.count);
        json_offenders(v, &v->repeated, "first_", false);
        putchar('}');
    }
    if (v->checks & VERIFY_SORTED) {
        json_check("sorted", v->unsorted.count);
        json_offenders(v, &v->unsorted, "after_", true);
        putchar('}');
    }
    if (v->checks & VERIFY_GAPLESS) {
        json_check("gapless", v->holes_len);
        printf(",\"missing\":\"%" PRIu64 "\",\"first\":[", v->missing);
        for (size_t i = 0; i < v->holes_len && i < v->shown_max; i++)
            printf("%s{\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64 "\"}", i > 0 ? "," : "",
                   v->holes[i].from, v->holes[i].to);
        fputs("]}", stdout);
    }
    fputs("}\n", stdout);
}

int verify_report(struct verify *v)
{
    struct offenders *lists[] = { &v->repeated, &v->unsorted, &v->malformed };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        offenders_sort(lists[i]);
    if (v->json)
        report_json(v);
    else
        report_table(v);
    if (verify_ids(v) == 0 && v->malformed.count == 0)
        fputs("firn verify: note: no IDs in the input\n", stderr);
    return output_finish(holds(v) ? STATUS_OK : STATUS_FAILED);
}
