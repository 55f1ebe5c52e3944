/* The results of `firn verify`, as text and as JSON. */
#include "cli/escape.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/verify/verify.h"

#include <inttypes.h>
#include <stdio.h>

static void put_id(const struct id *id)
{
    if (id->len > 0)
        escape_put(stdout, id->text, id->len);
    else
        printf("%" PRIu64, id->value);
}

/* The file, and its line. */
static const char *find_where(const struct verify *v, uint64_t where, uint64_t *out_line)
{
    size_t low = 0, high = v->names_len; /* the last file that begins at or before `where` */
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (v->first_where[mid] <= where)
            low = mid;
        else
            high = mid;
    }
    *out_line = where - v->first_where[low] + 1;
    return verify_shown_name(v->names[low]);
}

static void put_where(const struct verify *v, uint64_t where)
{
    uint64_t line;
    const char *name = find_where(v, where, &line);
    escape_put(stdout, name, strlen(name));
    printf(":%" PRIu64, line);
}

static bool holds(const struct verify *v)
{
    return v->malformed.count == 0 && v->unsorted.count == 0 &&
           (!(v->checks & VERIFY_UNIQUE) || v->repeated.count == 0) && v->holes_len == 0;
}

/* The number of distinct IDs is known only after sorting, or if every line rises. */
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
        put_id(&id);
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

/* The words between an offender and the line that it conflicts with. */
static void table_offenders(const struct verify *v, const struct offenders *o, const char *between,
                            bool other_id)
{
    for (size_t i = 0; i < o->len; i++) {
        fputs("  ", stdout);
        put_where(v, o->list[i].where);
        if (between) {
            fputs("  ", stdout);
            put_id(&o->list[i].id);
            printf("  %s ", between);
            if (other_id) {
                put_id(&o->list[i].other);
                fputs(" at ", stdout);
            }
            put_where(v, o->list[i].other_where);
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

static void json_any_id(struct buf *j, const char *key, const struct id *id)
{
    if (id->len > 0)
        json_bytes(j, key, id->text, id->len);
    else
        json_id(j, key, id->value);
}

static void json_bound(struct buf *j, const char *key, const struct verify *v, struct id id)
{
    if (verify_ids(v) > 0)
        json_any_id(j, key, &id);
    else
        json_null(j, key);
}

static void json_where(struct buf *j, const struct verify *v, uint64_t where, const char *file_key,
                       const char *line_key)
{
    uint64_t line;
    json_text(j, file_key, find_where(v, where, &line));
    json_count(j, line_key, line);
}

/* The JSON name of the line that an offender conflicts with. */
struct other_keys {
    const char *id, *file, *line;
};

static void json_offenders(struct buf *j, const struct verify *v, const struct offenders *o,
                           const struct other_keys *other)
{
    json_begin(j, "first", '[');
    for (size_t i = 0; i < o->len; i++) {
        const struct offender *x = &o->list[i];
        json_begin(j, NULL, '{');
        json_where(j, v, x->where, "file", "line");
        if (other) {
            json_any_id(j, "id", &x->id);
            if (other->id)
                json_any_id(j, other->id, &x->other);
            json_where(j, v, x->other_where, other->file, other->line);
        }
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void json_check(struct buf *j, const char *key, uint64_t failures)
{
    json_begin(j, key, '{');
    json_bool(j, "ok", failures == 0);
    json_count(j, "count", failures);
}

static void report_json(const struct verify *v)
{
    static const struct other_keys first = { NULL, "first_file", "first_line" },
                                   after = { "after_id", "after_file", "after_line" };
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    json_bool(&j, "ok", holds(v));
    json_count(&j, "lines", v->lines_read);
    json_count(&j, "empty", v->empty);
    json_count(&j, "ids", verify_ids(v));
    json_count(&j, "numbers", v->numbers_len);
    json_count(&j, "texts", v->texts_len);
    if (distinct_known(v))
        json_count(&j, "distinct", v->distinct);
    else
        json_null(&j, "distinct");
    json_bound(&j, "smallest", v, smallest(v));
    json_bound(&j, "largest", v, largest(v));
    json_check(&j, "malformed", v->malformed.count);
    json_offenders(&j, v, &v->malformed, NULL);
    json_end(&j, '}');
    if (v->checks & VERIFY_UNIQUE) {
        json_check(&j, "unique", v->repeated.count);
        json_offenders(&j, v, &v->repeated, &first);
        json_end(&j, '}');
    }
    if (v->checks & VERIFY_SORTED) {
        json_check(&j, "sorted", v->unsorted.count);
        json_offenders(&j, v, &v->unsorted, &after);
        json_end(&j, '}');
    }
    if (v->checks & VERIFY_GAPLESS) {
        json_check(&j, "gapless", v->holes_len);
        json_id(&j, "missing", v->missing);
        json_begin(&j, "first", '[');
        for (size_t i = 0; i < v->holes_len && i < v->shown_max; i++) {
            json_begin(&j, NULL, '{');
            json_id(&j, "from", v->holes[i].from);
            json_id(&j, "to", v->holes[i].to);
            json_end(&j, '}');
        }
        json_end(&j, ']');
        json_end(&j, '}');
    }
    json_end(&j, '}');
    output_json(&j, stdout);
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
