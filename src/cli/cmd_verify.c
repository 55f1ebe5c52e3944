/*
 * firn verify: read IDs, one a line, and check them as a whole.
 * Reading is one pass: it counts, finds the smallest and largest, and checks --sorted on the way.
 * --unique and --gapless look at the IDs in ascending order, which a sorter in bounded memory gives
 * (sortfile.h): one for numbers, one for texts. Numbers come before texts where the two meet.
 *
 * A line is known by its ordinal over all files; the file and the line in it are looked up only for
 * the few lines that are reported.
 */
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/lines.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/sortfile.h"
#include "cli/verify_follow.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNIQUE = 1, SORTED = 2, GAPLESS = 4 };

#define MEMORY_DEFAULT_BYTES (UINT64_C(256) << 20)
#define MEMORY_MIN_BYTES     (UINT64_C(1) << 20)
#define MEMORY_MAX_BYTES     (UINT64_C(1) << 40)
enum { SHOWN_DEFAULT = 10, SHOWN_MAX = 10000 }; /* offenders are held in memory until the end */

_Static_assert((int)SORT_TEXT_MAX == (int)LINES_TEXT_MAX, "what is read can be sorted");

struct id {
    uint64_t value;
    uint8_t len; /* of the text; 0: a number */
    char text[LINES_TEXT_MAX];
};

struct offender {
    uint64_t where, other_where; /* the line, and the one that it offends against */
    struct id id, other;
};

struct offenders { /* the first `max` of `count` by line */
    struct offender *list;
    size_t len, max;
    uint64_t count;
};

struct hole {
    uint64_t from, to;
};

struct verify {
    bool unique, sorted, gapless, follow, json;
    const char *memory;
    uint64_t shown_max, idle_ms;

    unsigned checks;
    uint64_t memory_bytes;
    char *const *names;
    size_t names_len;
    uint64_t *first_where; /* per file: the ordinal of its first line */

    struct lines lines;
    struct progress progress;
    struct sortfile numbers, texts;
    uint64_t bytes_done; /* of the files before this one */

    uint64_t lines_read, empty, numbers_len, texts_len, distinct;
    struct id last; /* for --sorted: the ID before; its line is last_where */
    uint64_t last_where;
    uint64_t value_min, value_max;
    struct id text_min, text_max;
    struct offenders repeated, unsorted, malformed;
    struct hole *holes; /* the first shown_max */
    uint64_t holes_len, missing;
};

/* ---- IDs ---- */

/* Eight ASCII digits at once: each byte's high nibble is 3, also after adding 6 to it. */
static inline bool eight_are_digits(uint64_t w)
{
    const uint64_t high = UINT64_C(0xf0f0f0f0f0f0f0f0);
    return ((w & high) | ((w + UINT64_C(0x0606060606060606)) & high) >> 4) ==
           UINT64_C(0x3333333333333333);
}

/* The first digit is in the low byte: pairs, then pairs of pairs, are joined by multiplying. */
static inline uint64_t eight_digits(uint64_t w)
{
    const uint64_t mask = UINT64_C(0x000000ff000000ff);
    w -= UINT64_C(0x3030303030303030);
    w = w * 10 + (w >> 8);
    return ((w & mask) * (100 + (UINT64_C(1000000) << 32)) +
            (w >> 16 & mask) * (1 + (UINT64_C(10000) << 32))) >>
               32 &
           0xffffffff;
}

/* Only the one way to write a number counts: two spellings are two IDs. len > 0. */
static inline bool number_parse(const char *p, size_t len, uint64_t *out)
{
    if (len > 20 || (p[0] == '0' && len > 1))
        return false;
    uint64_t v = 0, w;
    size_t i = 0;
    for (; i + 8 <= len && i < 16; i += 8) {
        memcpy(&w, p + i, sizeof w);
        if (!eight_are_digits(w))
            return false;
        v = v * 100000000 + eight_digits(w);
    }
    for (; i < len; i++) {
        unsigned digit = (unsigned char)p[i] - (unsigned)'0';
        if (digit > 9)
            return false;
        if (i == 19 && (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v)))
            return false;
        if (i < 19)
            v = v * 10 + digit;
    }
    *out = v;
    return true;
}

static void id_set_text(struct id *id, const char *p, size_t len)
{
    id->len = (uint8_t)len;
    memcpy(id->text, p, len);
}

static int bytes_cmp(const char *a, size_t alen, const char *b, size_t blen)
{
    int c = memcmp(a, b, alen < blen ? alen : blen);
    return c != 0 ? c : (alen > blen) - (alen < blen);
}

/* ---- offenders ---- */

static int offenders_init(struct offenders *o, size_t max)
{
    *o = (struct offenders){ .max = max };
    o->list = calloc(max + 1, sizeof *o->list);
    return o->list ? 0 : FIRN_ENOMEM;
}

/* Room for an offender at line `where`, or NULL: it is not among the first. Repeats are found in the
 * order of IDs but shown in the order of lines, so the list is a heap with the last line on top. */
static struct offender *offenders_room(struct offenders *o, uint64_t where)
{
    struct offender *h = o->list;
    size_t i;
    o->count++;
    if (o->len < o->max) {
        i = o->len++;
        for (; i > 0 && h[(i - 1) / 2].where < where; i = (i - 1) / 2)
            h[i] = h[(i - 1) / 2];
    } else {
        if (o->max == 0 || h[0].where < where)
            return NULL;
        i = 0;
        for (size_t kid; (kid = 2 * i + 1) < o->len; i = kid) {
            if (kid + 1 < o->len && h[kid + 1].where > h[kid].where)
                kid++;
            if (h[kid].where < where)
                break;
            h[i] = h[kid];
        }
    }
    h[i].where = where;
    return &h[i];
}

static int by_where(const void *a, const void *b)
{
    const struct offender *x = a, *y = b;
    return (x->where > y->where) - (x->where < y->where);
}

/* ---- reading ---- */

/* --sorted, for an ID that does not rise above v->last. */
static void note_unsorted(struct verify *v, const struct id *id, uint64_t where)
{
    struct offender *o = offenders_room(&v->unsorted, where);
    if (!o)
        return;
    o->id = *id;
    o->other = v->last;
    o->other_where = v->last_where;
}

static inline int take_number(struct verify *v, uint64_t value, uint64_t where, struct firn_diag *d)
{
    bool first = v->numbers_len == 0;
    if (first || value < v->value_min)
        v->value_min = value;
    if (first || value > v->value_max)
        v->value_max = value;
    if (v->checks & SORTED) {
        if (v->last.len > 0 || (!first && value <= v->last.value))
            note_unsorted(v, &(struct id){ .value = value }, where);
        v->last.len = 0;
        v->last.value = value;
        v->last_where = where;
    }
    v->numbers_len++;
    return v->checks & (UNIQUE | GAPLESS) ? sortfile_add_number(&v->numbers, value, where, d) : 0;
}

static int take_text(struct verify *v, const char *p, size_t len, uint64_t where,
                     struct firn_diag *d)
{
    bool first = v->texts_len == 0;
    if (first || bytes_cmp(p, len, v->text_min.text, v->text_min.len) < 0)
        id_set_text(&v->text_min, p, len);
    if (first || bytes_cmp(p, len, v->text_max.text, v->text_max.len) > 0)
        id_set_text(&v->text_max, p, len);
    if (v->checks & SORTED) {
        struct id id = { 0 };
        id_set_text(&id, p, len);
        if (v->last.len > 0 && bytes_cmp(p, len, v->last.text, v->last.len) <= 0)
            note_unsorted(v, &id, where);
        v->last = id;
        v->last_where = where;
    }
    v->texts_len++;
    if (!(v->checks & UNIQUE))
        return 0;
    return sortfile_add_text(&v->texts, p, len, where, d);
}

/* From now on both kinds are there: they share the memory. */
static int share_memory(struct verify *v, struct firn_diag *d)
{
    int r = sortfile_shrink(&v->numbers, v->memory_bytes / 2, d);
    return r != 0 ? r : sortfile_shrink(&v->texts, v->memory_bytes / 2, d);
}

/* All lines of the file that v->lines stands on. Returns an exit status. */
static int read_lines(struct verify *v, const char *name)
{
    struct firn_diag d;
    uint64_t seen_bytes = 0, line = 0, value;
    const char *p;
    size_t len;
    int got;
    while ((got = lines_next(&v->lines, &p, &len)) > 0) {
        uint64_t where = v->lines_read++;
        int r;
        line++;
        if (v->lines.bytes_read != seen_bytes) {
            seen_bytes = v->lines.bytes_read;
            progress_step(&v->progress, v->bytes_done + seen_bytes, v->lines_read);
        }
        if (got == LINES_LONG) {
            offenders_room(&v->malformed, where);
            continue;
        }
        if (len == 0) {
            v->empty++;
            continue;
        }
        bool is_number = number_parse(p, len, &value);
        if (!is_number && v->checks & GAPLESS) {
            progress_clear(&v->progress);
            return say_trouble("%s:%" PRIu64 ": not a decimal number of 64 bits: --gapless needs "
                               "numbers only, leave it out or filter the input",
                               name, line);
        }
        if ((is_number ? v->texts_len > 0 && v->numbers_len == 0
                       : v->numbers_len > 0 && v->texts_len == 0) &&
            (r = share_memory(v, &d)) != 0)
            goto failed;
        r = is_number ? take_number(v, value, where, &d) : take_text(v, p, len, where, &d);
        if (r == 0)
            continue;
    failed:
        progress_clear(&v->progress);
        return say_trouble("%s", d.text);
    }
    v->bytes_done += v->lines.bytes_read;
    if (got == LINES_END)
        return STATUS_OK;
    progress_clear(&v->progress);
    return say_trouble("%s: cannot read on after line %" PRIu64 ": %s", name, line, v->lines.why);
}

static bool is_stdin(const char *name)
{
    return strcmp(name, "-") == 0;
}

static const char *shown_name(const char *name)
{
    return is_stdin(name) ? "(stdin)" : name;
}

/* A file that cannot be read is found before hours are spent on the others. */
static int inputs_check(const struct verify *v, uint64_t *out_bytes)
{
    uint64_t total = 0;
    bool known = true;
    for (size_t i = 0; i < v->names_len; i++) {
        const char *name = v->names[i];
        struct stat st;
        bool in = is_stdin(name);
        if ((in ? fstat(STDIN_FILENO, &st) : stat(name, &st)) != 0 ||
            (!in && access(name, R_OK) != 0))
            return say_trouble("%s: %s: check the name and its permissions", shown_name(name),
                               strerror(errno));
        if (S_ISDIR(st.st_mode))
            return say_trouble("%s: is a folder: name the files in it", shown_name(name));
        known = known && S_ISREG(st.st_mode);
        total += known ? (uint64_t)st.st_size : 0;
    }
    *out_bytes = known ? total : 0;
    return STATUS_OK;
}

static int read_all(struct verify *v)
{
    uint64_t total = 0;
    int status = inputs_check(v, &total);
    if (status != STATUS_OK)
        return status;
    progress_phase(&v->progress, "reading", total);
    for (size_t i = 0; i < v->names_len && status == STATUS_OK; i++) {
        const char *name = v->names[i];
        int fd = is_stdin(name) ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return say_trouble("%s: %s: check the name and its permissions", name, strerror(errno));
        if (isatty(fd) == 1 && isatty(STDERR_FILENO) == 1)
            fputs("firn verify: reading IDs from the terminal; end with Ctrl-D\n", stderr);
        v->first_where[i] = v->lines_read;
        lines_start(&v->lines, fd);
        status = read_lines(v, shown_name(name));
        if (fd != STDIN_FILENO)
            close(fd);
    }
    return status;
}

/* ---- the IDs in order ---- */

static void note_repeated(struct verify *v, const struct sort_item *it, uint64_t first_where)
{
    struct offender *o = offenders_room(&v->repeated, it->where);
    if (!o)
        return;
    o->other_where = first_where;
    o->id = (struct id){ .value = it->value };
    if (it->text)
        id_set_text(&o->id, it->text, it->len);
}

static void note_hole(struct verify *v, uint64_t from, uint64_t to)
{
    if (v->holes_len < v->shown_max)
        v->holes[v->holes_len] = (struct hole){ from, to };
    v->holes_len++;
    v->missing += to - from + 1;
}

static int scan_sorted(struct verify *v, struct sortfile *s, uint64_t *done)
{
    struct firn_diag d;
    struct sort_item it;
    struct id last = { 0 };
    uint64_t first_where = 0, distinct = 0;
    int r = sortfile_finish(s, &d);
    while (r == 0 && (r = sortfile_next(s, &it, &d)) > 0) {
        r = 0;
        if ((++*done & 0xffff) == 0)
            progress_step(&v->progress, *done, *done);
        bool again = distinct > 0 &&
                     (it.text ? it.len == last.len && memcmp(it.text, last.text, it.len) == 0
                              : it.value == last.value);
        if (again) {
            note_repeated(v, &it, first_where);
            continue;
        }
        if (v->checks & GAPLESS && distinct > 0 && it.value - last.value > 1)
            note_hole(v, last.value + 1, it.value - 1);
        distinct++;
        first_where = it.where;
        last.value = it.value;
        if (it.text)
            id_set_text(&last, it.text, it.len);
    }
    v->distinct += distinct;
    sortfile_done(s);
    progress_clear(&v->progress);
    return r == 0 ? STATUS_OK : say_trouble("%s", d.text);
}

static int scan_all(struct verify *v)
{
    uint64_t done = 0;
    progress_phase(&v->progress, "checking", v->numbers_len + v->texts_len);
    int status = scan_sorted(v, &v->numbers, &done);
    return status != STATUS_OK ? status : scan_sorted(v, &v->texts, &done);
}

/* ---- the report ---- */

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
    const char *name = shown_name(v->names[low]);
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
           (!(v->checks & UNIQUE) || v->repeated.count == 0) && v->holes_len == 0;
}

static uint64_t ids_len(const struct verify *v)
{
    return v->numbers_len + v->texts_len;
}

/* Only sorting, or a file that rises throughout, tells how many differ. */
static bool distinct_known(const struct verify *v)
{
    return v->checks & (UNIQUE | GAPLESS) || v->unsorted.count == 0;
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
    if (ids_len(v) > 0)
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
    table_count("IDs", ids_len(v));
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
    if (v->checks & UNIQUE) {
        if ((n = v->repeated.count) == 0)
            printf("%-10s ok\n", "unique");
        else
            printf("%-10s FAILED: %" PRIu64 " repeated ID%s\n", "unique", n, plural(n));
        table_offenders(v, &v->repeated, "first at", false);
    }
    if (v->checks & SORTED) {
        if ((n = v->unsorted.count) == 0)
            printf("%-10s ok\n", "sorted");
        else
            printf("%-10s FAILED: %" PRIu64 " line%s not above the ID before\n", "sorted", n,
                   plural(n));
        table_offenders(v, &v->unsorted, "after", true);
    }
    if (v->checks & GAPLESS) {
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
    if (ids_len(v) > 0)
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
           holds(v) ? "true" : "false", v->lines_read, v->empty, ids_len(v), v->numbers_len,
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
    if (v->checks & UNIQUE) {
        json_check("unique", v->repeated.count);
        json_offenders(v, &v->repeated, "first_", false);
        putchar('}');
    }
    if (v->checks & SORTED) {
        json_check("sorted", v->unsorted.count);
        json_offenders(v, &v->unsorted, "after_", true);
        putchar('}');
    }
    if (v->checks & GAPLESS) {
        json_check("gapless", v->holes_len);
        printf(",\"missing\":\"%" PRIu64 "\",\"first\":[", v->missing);
        for (size_t i = 0; i < v->holes_len && i < v->shown_max; i++)
            printf("%s{\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64 "\"}", i > 0 ? "," : "",
                   v->holes[i].from, v->holes[i].to);
        fputs("]}", stdout);
    }
    fputs("}\n", stdout);
}

static int report(struct verify *v)
{
    struct offenders *lists[] = { &v->repeated, &v->unsorted, &v->malformed };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        qsort(lists[i]->list, lists[i]->len, sizeof *lists[i]->list, by_where);
    if (v->json)
        report_json(v);
    else
        report_table(v);
    if (ids_len(v) == 0 && v->malformed.count == 0)
        fputs("firn verify: note: no IDs in the input\n", stderr);
    return output_finish(holds(v) ? STATUS_OK : STATUS_FAILED);
}

/* ---- the command ---- */

/* Digits and an optional K, M or G (KiB ...). */
static bool size_parse(const char *text, uint64_t *out)
{
    static const char unit[] = "KMG";
    size_t len = strlen(text);
    unsigned shift = 0;
    uint64_t n;
    if (len > 0) {
        char last = text[len - 1] >= 'a' ? (char)(text[len - 1] - 'a' + 'A') : text[len - 1];
        const char *u = last ? strchr(unit, last) : NULL;
        if (u) {
            shift = 10 * (unsigned)(u - unit + 1);
            len--;
        }
    }
    if (len == 0 || !number_parse(text, len, &n) || n > UINT64_MAX >> shift)
        return false;
    *out = n << shift;
    return true;
}

static const struct opt opts[] = {
    { "unique", 'u', OPT_FLAG, offsetof(struct verify, unique), NULL, NULL, 0, 0,
      "no ID occurs twice (the default check)" },
    { "sorted", 's', OPT_FLAG, offsetof(struct verify, sorted), NULL, NULL, 0, 0,
      "every ID is greater than the one before it; needs no memory" },
    { "gapless", 'g', OPT_FLAG, offsetof(struct verify, gapless), NULL, NULL, 0, 0,
      "the numbers, once sorted, leave no hole; numbers only" },
    { "memory", 'm', OPT_TEXT, offsetof(struct verify, memory), "SIZE", NULL, 0, 0,
      "for sorting: 1M or more, with K, M or G (default 256M); what does not fit goes to temporary "
      "files in $TMPDIR" },
    { "max", 'n', OPT_NUMBER, offsetof(struct verify, shown_max), "N", NULL, 0, SHOWN_MAX,
      "show the first N offenders of each check (default 10)" },
    { "follow", 'f', OPT_FLAG, offsetof(struct verify, follow), NULL, NULL, 0, 0,
      "go on while the file grows, as tail -f does, and tell at once; memory bounds how many IDs are "
      "remembered" },
    { "idle", 0, OPT_TIME, offsetof(struct verify, idle_ms), "TIME", NULL, 1, UINT64_C(31536000000),
      "with --follow: end when nothing came for so long" },
    OPT_JSON(struct verify, json),
    { .name = NULL },
};

const struct usage verify_usage = {
    .name = "verify",
    .examples =
        "  firn verify ids.txt                      does any ID occur twice?\n"
        "  firn gen ulid -n 1000000 | firn verify   the same, from a pipe\n"
        "  firn verify --sorted node1.log           does each line rise above the one before?\n"
        "  firn verify --unique --gapless tickets*  are the tickets a run without holes?\n"
        "  firn verify --memory 2G --json big.txt   more room for sorting; facts as JSON\n"
        "  firn verify --follow ids.log             the same while it grows\n",
    .synopsis = "firn verify [--unique] [--sorted] [--gapless] [--memory SIZE] [--max N] [--json]\n"
                "                   [FILE...|-]\n"
                "       firn verify --follow [--unique] [--sorted] [--memory SIZE] [--idle TIME] "
                "[--json] [FILE|-]",
    .about =
        "Checks IDs, one a line; several files are one input; none or - is standard input.\n"
        "Decimal numbers of 64 bits are compared as numbers, everything else as bytes: texts of up "
        "to\n"
        "128 bytes, also +1, 007 and numbers beyond 64 bits. Numbers sort before texts. Empty lines "
        "are\n"
        "skipped, a \\r before the line's end is not part of the ID.\n",
    .operands = "@files",
    .opts = opts,
};

/* -1: go on. Otherwise the exit status. */
static int set_options(struct verify *v)
{
    char shown[SAY_TEXT_BUF];
    v->checks = (v->unique ? UNIQUE : 0u) | (v->sorted ? SORTED : 0u) | (v->gapless ? GAPLESS : 0u);
    if (v->checks == 0)
        v->checks = UNIQUE;
    v->memory_bytes = MEMORY_DEFAULT_BYTES;
    if (v->memory && (!size_parse(v->memory, &v->memory_bytes) ||
                      v->memory_bytes < MEMORY_MIN_BYTES || v->memory_bytes > MEMORY_MAX_BYTES))
        return say_trouble("--memory %s: give a size from 1M to 1024G, such as 512M",
                           say_text(v->memory, strlen(v->memory), shown));
    return -1;
}

static int follow(const struct verify *v)
{
    if (v->checks & GAPLESS)
        return say_trouble("--gapless needs all numbers: check the file without --follow");
    if (v->names_len > 1)
        return say_trouble("--follow takes one file: merge them, or follow each with a firn of its "
                           "own");
    struct verify_follow f = { .path = v->names[0],
                               .unique = v->checks & UNIQUE,
                               .sorted = v->checks & SORTED,
                               .json = v->json,
                               .memory_bytes = v->memory_bytes,
                               .idle_ms = v->idle_ms };
    return verify_follow(&f);
}

int cmd_verify(int argc, char **argv)
{
    static char dash[] = "-";
    static char *const only_stdin[] = { dash };
    struct verify v = { .shown_max = SHOWN_DEFAULT };
    int n, status = options_parse(&verify_usage, argc, argv, &v, &n);
    if (status >= 0 || (status = set_options(&v)) >= 0)
        return status;
    v.names = n > 0 ? argv + 1 : only_stdin;
    v.names_len = n > 0 ? (size_t)n : 1;
    if (v.follow)
        return follow(&v);
    if (v.idle_ms)
        return say_trouble("--idle is for --follow");

    sortfile_init(&v.numbers, SORT_NUMBERS, (size_t)v.memory_bytes);
    sortfile_init(&v.texts, SORT_TEXTS, (size_t)v.memory_bytes);
    progress_init(&v.progress);
    v.first_where = calloc(v.names_len, sizeof *v.first_where);
    v.holes = calloc(v.shown_max + 1, sizeof *v.holes);
    bool memory = lines_init(&v.lines) == 0;
    memory = offenders_init(&v.repeated, v.shown_max) == 0 && memory;
    memory = offenders_init(&v.unsorted, v.shown_max) == 0 && memory;
    memory = offenders_init(&v.malformed, v.shown_max) == 0 && memory;
    if (memory && v.first_where && v.holes) {
        status = read_all(&v);
        progress_clear(&v.progress);
        if (status == STATUS_OK && v.checks & (UNIQUE | GAPLESS))
            status = scan_all(&v);
        else if (status == STATUS_OK)
            v.distinct = ids_len(&v);
        if (status == STATUS_OK)
            status = report(&v);
    } else {
        status = say_trouble("out of memory: lower --max");
    }

    free(v.malformed.list);
    free(v.unsorted.list);
    free(v.repeated.list);
    lines_done(&v.lines);
    free(v.holes);
    free(v.first_where);
    sortfile_done(&v.texts);
    sortfile_done(&v.numbers);
    return status;
}
