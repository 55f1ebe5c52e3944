/*
 * The page: a title, plots as inline SVG, and every figure in a table below. It loads nothing, runs no
 * script, follows the reader's light or dark setting and prints well. Bars of rates and latencies are
 * logarithmic, because the kinds differ by a factor of ten thousand; their scales say so.
 */
#include "cli/compare/compare_report.h"
#include "cli/duration.h"
#include "cli/say.h"
#include "cli/when.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    WIDTH = 720,
    LEFT = 150,  /* of the plot: names stand left of it */
    RIGHT = 640, /* values stand right of it */
    TOP = 26,    /* the scale stands above it */
    LINE = 30,   /* a row */
    BAR = 16,
};

static const char style[] =
    ":root{color-scheme:light dark;--paper:#f6f8fb;--card:#fff;--ink:#16202c;--soft:#5b6b7d;--line:#dfe6ee;"
    "--server:#2f6fde;--counter:#8a4fd3;--process:#0f9a84;--database:#c9722b;--good:#0f8a5f;--bad:#c93a3a}"
    "@media(prefers-color-scheme:dark){:root{--paper:#0d131b;--card:#151e29;--ink:#e8eef5;--soft:#93a4b7;"
    "--line:#263444;--server:#6ea2ff;--counter:#b98cf5;--process:#3fcfb4;--database:#f0a163;--good:#4cd19c;"
    "--bad:#ff7b7b}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}"
    "main{max-width:64rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}"
    "h1{font-size:1.9rem;line-height:1.2;margin:0 0 .25rem;letter-spacing:-.02em}"
    "h2{font-size:1.1rem;margin:0 0 .1rem}p{margin:.1rem 0 .8rem;color:var(--soft)}"
    ".key{display:flex;flex-wrap:wrap;gap:.4rem 1.2rem;margin:1.2rem 0 1.6rem;font-size:.9rem}"
    ".key span::before{content:'';display:inline-block;width:.75em;height:.75em;border-radius:.2em;"
    "margin-right:.45em;background:var(--c)}"
    "section{background:var(--card);border:1px solid var(--line);border-radius:14px;"
    "padding:1.2rem 1.3rem 1rem;margin:0 0 1.2rem}"
    "svg{display:block;width:100%;height:auto;font:13px system-ui,sans-serif}"
    "svg text{fill:var(--ink)}svg .soft{fill:var(--soft);font-size:11.5px}svg .grid{stroke:var(--line)}svg g .soft{paint-order:stroke;stroke:var(--card);stroke-width:5px}"
    ".server{fill:var(--server)}.counter{fill:var(--counter)}.process{fill:var(--process)}"
    ".database{fill:var(--database)}.pale{opacity:.35}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.88rem;"
    "font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;padding:.45rem .7rem .45rem 0;border-bottom:1px solid var(--line);"
    "vertical-align:top}th{font-weight:600;color:var(--soft);white-space:nowrap}"
    "td.n,th.n{text-align:right;white-space:nowrap}tr:last-child td{border-bottom:0}"
    ".good{color:var(--good)}.bad{color:var(--bad);font-weight:600}.soft{color:var(--soft)}"
    "footer{color:var(--soft);font-size:.85rem}"
    "@media print{body{background:#fff}section{break-inside:avoid}}";

static const char *class_of(const struct compare_row *r)
{
    static const char *const names[] = { "server", "counter", "process", "database" };
    return names[r->kind->source];
}

static void put_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            putc(*text, f);
        }
    }
}

/* ---- plots ---- */

/* log10 to a thousandth, without libm: the scale needs no more. value > 0. */
static double log_10(double value)
{
    double whole = 0, part = 0.5, sum = 0;
    while (value >= 10) {
        value /= 10;
        whole++;
    }
    while (value < 1) {
        value *= 10;
        whole--;
    }
    for (int i = 0; i < 12; i++, part /= 2) {
        value *= value;
        if (value >= 10) {
            value /= 10;
            sum += part;
        }
    }
    return whole + sum;
}

static const char *rate_text(double n, char *out)
{
    static const char *const unit[] = { "", " k", " M", " G" };
    size_t u = 0;
    for (; n >= 999.5 && u < 3; u++)
        n /= 1000;
    snprintf(out, 32, "%.*f%s", n < 9.95 && u > 0 ? 1 : 0, n, unit[u]);
    return out;
}

static const char *time_text(double n, char *out)
{
    return duration_text((uint64_t)n, out);
}

static const char *plain_text(double n, char *out)
{
    snprintf(out, 32, "%.0f", n);
    return out;
}

struct plot {
    const char *title, *about, *unit;
    bool log;
    const char *(*text)(double n, char *out);
    /* The bar's end, and where a pale part of it ends; false: nothing to show. */
    bool (*value)(const struct compare_row *r, double *out, double *out_pale);
};

static bool value_rate(const struct compare_row *r, double *out, double *out_pale)
{
    *out = *out_pale = (double)r->per_second;
    return r->measured && r->per_second > 0;
}

static bool value_latency(const struct compare_row *r, double *out, double *out_pale)
{
    *out = (double)(r->p50_ns ? r->p50_ns : 1);
    *out_pale = (double)(r->p99_ns ? r->p99_ns : 1);
    return r->measured;
}

static bool value_sqlite(const struct compare_row *r, double *out, double *out_pale)
{
    *out = *out_pale = (double)r->sqlite.per_second;
    return r->sqlite.measured;
}

static bool value_sqlite_size(const struct compare_row *r, double *out, double *out_pale)
{
    *out = *out_pale = r->sqlite.rows ? (double)r->sqlite.bytes / (double)r->sqlite.rows : 0;
    return r->sqlite.measured;
}

static bool value_postgres(const struct compare_row *r, double *out, double *out_pale)
{
    *out = *out_pale = (double)r->postgres.per_second;
    return r->postgres.measured;
}

static bool value_postgres_size(const struct compare_row *r, double *out, double *out_pale)
{
    *out = *out_pale = r->postgres.rows ? (double)r->postgres.bytes / (double)r->postgres.rows : 0;
    return r->postgres.measured;
}

static bool value_death(const struct compare_row *r, double *out, double *out_pale)
{
    *out = *out_pale = (double)r->death_gap_ns;
    return r->death == DEATH_MEASURED;
}

static const struct plot plots[] = {
    { "Throughput", "IDs a second; each step of the scale is ten times the one before", "IDs/s",
      true, rate_text, value_rate },
    { "Latency", "of one ID: the median, and paler up to the 99th percentile; a logarithmic scale",
      "", true, time_text, value_latency },
    { "Into an index: SQLite", "rows inserted a second by primary key, with a small cache",
      "rows/s", false, rate_text, value_sqlite },
    { "Size of that table", "bytes a row, of which 100 are payload", "B", false, plain_text,
      value_sqlite_size },
    { "Into an index: PostgreSQL", "rows copied a second by primary key", "rows/s", false,
      rate_text, value_postgres },
    { "Size of that index", "bytes a row", "B", false, plain_text, value_postgres_size },
    { "When one server dies", "the longest that a client waited for an ID, kill -9 in the middle",
      "", true, time_text, value_death },
};

struct scale {
    double low, high; /* in log10 where it is logarithmic */
    bool log;
};

static double at_x(const struct scale *s, double value)
{
    double v = s->log ? log_10(value) : value;
    double part = s->high > s->low ? (v - s->low) / (s->high - s->low) : 1;
    if (part < 0)
        part = 0;
    return LEFT + part * (RIGHT - LEFT);
}

/* A round step, so that a scale up to `high` has three to six of them. */
static double round_step(double high)
{
    double step = 1;
    while (high / step > 6)
        step *= high / step > 60 ? 10 : high / step > 12 ? 5 : 2;
    return step;
}

static struct scale scale_for(const struct plot *p, const struct compare_row *row)
{
    struct scale s = { .log = p->log, .low = p->log ? 18 : 0 };
    for (size_t i = 0; i < COMPARE_KINDS; i++) {
        double a, b;
        if (!p->value(&row[i], &a, &b))
            continue;
        double low = p->log ? log_10(a) : 0, high = p->log ? log_10(b) : b;
        if (low < s.low)
            s.low = low;
        if (high > s.high)
            s.high = high;
    }
    if (p->log) { /* from a power of ten to the next one above all */
        double from = 0, to = 0;
        while (from + 1 <= s.low)
            from++;
        while (to < s.high)
            to++;
        s.low = from > 0 && s.low - from < 0.15 ? from - 1 : from;
        s.high = to;
    } else {
        double step = round_step(s.high), to = step;
        while (to < s.high)
            to += step;
        s.high = to;
    }
    return s;
}

/* Round numbers need no digits behind the point: 1.00 us is 1 us. */
static void trim(char *text)
{
    char *point = strchr(text, '.');
    size_t zeros = point ? strspn(point + 1, "0") : 0;
    if (zeros > 0 && (point[zeros + 1] == ' ' || point[zeros + 1] == '\0'))
        memmove(point, point + zeros + 1, strlen(point + zeros + 1) + 1);
}

static void put_grid(FILE *f, const struct plot *p, const struct scale *s, int bottom)
{
    char text[32];
    double step = s->log ? 1 : round_step(s->high), power = 1;
    for (double i = 1; s->log && i <= s->low; i++)
        power *= 10;
    for (double v = s->low; v <= s->high + step / 2; v += step, power *= 10) {
        double x = at_x(s, s->log ? power : v);
        fprintf(f, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x,
                TOP - 6, bottom);
        fprintf(f, "<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, TOP - 12);
        p->text(s->log ? power : v, text);
        trim(text);
        put_text(f, text);
        fputs("</text>", f);
    }
}

static void put_bar(FILE *f, const char *class, double from, double to, int y)
{
    double width = to - from < 2 ? 2 : to - from;
    fprintf(f, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"4\"/>",
            class, from, y, width, BAR);
}

static void put_plot(FILE *f, const struct plot *p, const struct compare_row *row)
{
    int lines = 0, y = TOP;
    double value, pale;
    char text[64], more[64], class[32];
    for (size_t i = 0; i < COMPARE_KINDS; i++)
        lines += p->value(&row[i], &value, &pale);
    if (lines == 0)
        return;
    struct scale s = scale_for(p, row);
    int bottom = TOP + lines * LINE;
    fprintf(
        f,
        "<section><h2>%s</h2><p>%s</p><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">",
        p->title, p->about, WIDTH + 60, bottom + 6, p->title);
    put_grid(f, p, &s, bottom);
    for (size_t i = 0; i < COMPARE_KINDS; i++) {
        const struct compare_row *r = &row[i];
        if (!p->value(r, &value, &pale))
            continue;
        double x = at_x(&s, value), end = at_x(&s, pale);
        p->text(value, text);
        p->text(pale, more);
        fputs("<g><title>", f);
        put_text(f, r->kind->name);
        fprintf(f, ": %s%s%s %s</title>", text, pale > value ? " to " : "",
                pale > value ? more : "", p->unit);
        fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 12, y + BAR / 2 + 8);
        put_text(f, r->kind->name);
        fputs("</text>", f);
        if (pale > value) {
            snprintf(class, sizeof class, "%s pale", class_of(r));
            put_bar(f, class, LEFT, end, y + 3);
        }
        put_bar(f, class_of(r), LEFT, x, y + 3);
        fprintf(f, "<text class=\"soft\" x=\"%.1f\" y=\"%d\">%s%s%s</text></g>", end + 8,
                y + BAR / 2 + 7, text, pale > value ? " – " : "", pale > value ? more : "");
        y += LINE;
    }
    fputs("</svg></section>\n", f);
}

/* ---- the table ---- */

static void put_cell(FILE *f, bool measured, const char *text)
{
    fputs(measured ? "<td class=\"n\">" : "<td class=\"n soft\">", f);
    put_text(f, measured ? text : "–");
    fputs("</td>", f);
}

static void put_yes_no(FILE *f, bool measured, bool yes, bool wanted)
{
    if (!measured) {
        put_cell(f, false, "");
        return;
    }
    fprintf(f, "<td class=\"%s\">%s</td>",
            yes      ? "good"
            : wanted ? "bad"
                     : "soft",
            yes ? "yes" : "no");
}

static void put_row(FILE *f, const struct compare_row *r)
{
    char text[64];
    fputs("<tr><td>", f);
    put_text(f, r->kind->name);
    fputs("</td>", f);
    put_cell(f, r->measured, grouped_text(r->per_second, text));
    put_cell(f, r->measured, duration_text(r->p50_ns, text));
    put_cell(f, r->measured, duration_text(r->p99_ns, text));
    put_yes_no(f, r->measured, r->distinct == r->ids, true);
    put_yes_no(f, r->measured, r->rising, r->kind->sorts);
    fprintf(f, "<td class=\"n\">%" PRIu32 "</td><td class=\"n\">%" PRIu32 "</td>", r->kind->bits,
            r->kind->chars);
    fputs(r->measured ? "<td>" : "<td class=\"soft\">not measured: ", f);
    put_text(f, r->measured ? r->how : r->why_not);
    fputs("</td><td", f);
    if (r->death == DEATH_MEASURED)
        fprintf(f, ">%" PRIu64 " of %" PRIu64 " asks failed", r->death_failed, r->death_asked);
    else if (r->death == DEATH_NO_SERVER)
        fputs(">needs no server", f);
    else {
        fputs(" class=\"soft\">not measured: ", f);
        put_text(f, r->death_why_not);
    }
    fputs("</td></tr>\n", f);
}

static void put_page(FILE *f, const struct compare_row *row)
{
    char when[WHEN_BUF];
    when_utc(when_now_us() / 1000000 * 1000000, when);
    fprintf(f,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
            "<title>firn compare</title><style>%s</style></head>\n<body><main>"
            "<h1>Ten ways to make an ID</h1><p>Measured by firn compare on %.10s at %.5s UTC.</p>"
            "<div class=\"key\"><span style=\"--c:var(--server)\">asked of firnd</span>"
            "<span style=\"--c:var(--counter)\">asked of a counter</span>"
            "<span style=\"--c:var(--process)\">made in process</span>"
            "<span style=\"--c:var(--database)\">asked of a database</span></div>\n",
            style, when, when + 11);
    for (size_t i = 0; i < sizeof plots / sizeof plots[0]; i++)
        put_plot(f, &plots[i], row);
    fputs(
        "<section><h2>All figures</h2><p>Every ID was compared with all others of its kind; rising "
        "means on each connection.</p><div class=\"scroll\"><table><thead><tr><th>Kind</th>"
        "<th class=\"n\">per second</th><th class=\"n\">p50</th><th class=\"n\">p99</th><th>unique</th>"
        "<th>rising</th><th class=\"n\">bits</th><th class=\"n\">chars</th>"
        "<th>how</th><th>when one server dies</th></tr></thead><tbody>\n",
        f);
    for (size_t i = 0; i < COMPARE_KINDS; i++)
        put_row(f, &row[i]);
    fputs(
        "</tbody></table></div></section>\n<footer>Ratios travel between machines, figures do not. A kind "
        "that is made in process crosses no network: that is its point, and why its bars are long.</footer>"
        "</main></body></html>\n",
        f);
}

int compare_put_html(const char *path, const struct compare_row row[COMPARE_KINDS])
{
    char temporary[4096], shown[SAY_TEXT_BUF];
    say_text(path, strlen(path), shown);
    if (snprintf(temporary, sizeof temporary, "%s.tmp%ld", path, (long)getpid()) >=
        (int)sizeof temporary)
        return say_trouble("--html %s: the name is too long", shown);
    FILE *f = fopen(temporary, "we");
    if (!f)
        return say_trouble("--html %s: %s: check the folder and its permissions", shown,
                           strerror(errno));
    put_page(f, row);
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad || rename(temporary, path) != 0) {
        int error = errno;
        unlink(temporary);
        return say_trouble("--html %s: %s", shown, strerror(error));
    }
    return -1;
}
