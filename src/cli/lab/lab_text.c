/* A trace as a sequence diagram on a terminal. */
#include "cli/lab/lab_text.h"
#include "cli/table.h"
#include "cli/term.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEFT = 9,   /* room for the time */
    RIGHT = 24, /* room after the last column */
    WIDTH_OF_PIPE = 100,
    WIDTH_MAX = 120,
    GAP_MIN = 10,
    ROW_MAX = LEFT + LAB_PARTIES_MAX * WIDTH_MAX + LAB_LABEL_BUF + 8,
};

/* One line. A cell is a character of text, or a line segment, drawn with the characters that the
 * terminal supports. */
enum stroke { TEXT, LIFELINE, GONE, LINE, RIGHT_TIP, LEFT_TIP, BREAK, DOT, RULE };

struct row {
    char text[ROW_MAX];
    unsigned char stroke[ROW_MAX];
    const char *style[ROW_MAX];
};

struct page {
    const struct lab_trace *trace;
    size_t width, gap;
    bool unicode;
};

/* ---- rows ---- */

static size_t column(const struct page *p, int party)
{
    return LEFT + 2 + (size_t)party * p->gap;
}

static void put(struct row *r, size_t x, char c, enum stroke stroke, const char *style)
{
    if (x >= ROW_MAX)
        return;
    r->text[x] = c;
    r->stroke[x] = (unsigned char)stroke;
    r->style[x] = style;
}

static void put_text(struct row *r, size_t x, const char *text, const char *style)
{
    for (; *text; text++, x++)
        put(r, x, *text, TEXT, style);
}

/* With the lifelines as they are after the step. */
static void row_init(const struct page *p, struct row *r, const struct lab_step *s)
{
    for (size_t x = 0; x < ROW_MAX; x++)
        put(r, x, ' ', TEXT, "");
    for (int i = 0; i < (int)p->trace->parties; i++) {
        bool gone = strcmp(s->cell[i][0], "down") == 0 || strcmp(s->cell[i][0], "dead") == 0;
        put(r, column(p, i), '|', gone ? GONE : LIFELINE, term_style(TERM_DIM));
    }
}

static void row_print(const struct page *p, const struct row *r)
{
    static const char *const ascii[] = {
        [LIFELINE] = "|", [GONE] = ":",  [LINE] = "-", [RIGHT_TIP] = ">",
        [LEFT_TIP] = "<", [BREAK] = "x", [DOT] = "*",  [RULE] = "="
    };
    static const char *const fine[] = {
        [LIFELINE] = "\u2502", [GONE] = "\u250a",  [LINE] = "\u2500", [RIGHT_TIP] = "\u25b6",
        [LEFT_TIP] = "\u25c0", [BREAK] = "\u2717", [DOT] = "\u25cf",  [RULE] = "\u2550"
    };
    size_t end = ROW_MAX;
    const char *style = "";
    while (end > 0 && r->text[end - 1] == ' ' && r->stroke[end - 1] == TEXT)
        end--;
    for (size_t x = 0; x < end; x++) {
        if (strcmp(r->style[x], style) != 0) {
            if (*style)
                fputs(term_style(TERM_PLAIN), stdout);
            style = r->style[x];
            fputs(style, stdout);
        }
        if (r->stroke[x] == TEXT)
            putchar(r->text[x]);
        else
            fputs((p->unicode ? fine : ascii)[r->stroke[x]], stdout);
    }
    if (*style)
        fputs(term_style(TERM_PLAIN), stdout);
    putchar('\n');
}

/* ---- steps ---- */

static const char *style_of(const struct lab_step *s)
{
    static const char *const good[] = { "commit",  "answer", "leader", "leads",  "decided",
                                        "learned", "apply",  "heal",   "restart" };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (strcmp(s->event, good[i]) == 0)
            return term_style(TERM_GOOD);
    return s->kind == LAB_LOST || s->kind == LAB_FAULT ? term_style(TERM_BAD) : "";
}

static void put_time(struct row *r, const struct lab_step *s)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%" PRIu64 " ms", s->at_ms);
    put_text(r, n < LEFT - 1 ? (size_t)(LEFT - 1 - n) : 0, text, term_style(TERM_DIM));
}

/* Whether this chapter has the same text already. */
static bool said(const struct lab_trace *t, size_t i)
{
    for (size_t k = i; k-- > 0 && t->step[k].kind != LAB_CHAPTER;)
        if (strcmp(t->step[k].why, t->step[i].why) == 0)
            return true;
    return false;
}

/* Words of the caption, broken at the width. */
static void print_why(const struct page *p, const char *why)
{
    size_t x = 0;
    fputs(term_style(TERM_DIM), stdout);
    while (*why) {
        size_t n = strcspn(why, " ");
        if (x > 0 && x + 1 + n > p->width) {
            putchar('\n');
            x = 0;
        }
        x += (size_t)printf("%*s%.*s", x == 0 ? LEFT + 2 : 1, "", (int)n, why);
        why += n + strspn(why + n, " ");
    }
    fputs(term_style(TERM_PLAIN), stdout);
    putchar('\n');
}

static void print_names(const struct page *p, const struct lab_step *s)
{
    struct row r;
    row_init(p, &r, s);
    for (int i = 0; i < (int)p->trace->parties; i++) {
        const char *name = p->trace->party[i];
        size_t x = column(p, i), half = strlen(name) / 2;
        put_text(&r, x - half, name, term_style(TERM_BOLD));
    }
    row_print(p, &r);
}

static void print_rule(const struct page *p, const struct lab_step *s)
{
    struct row r;
    char text[LAB_LABEL_BUF + 8];
    row_init(p, &r, s);
    if (s->kind == LAB_CHAPTER) {
        for (size_t x = 0; x < p->width; x++)
            put(&r, x, ' ', RULE, term_style(TERM_DIM));
        snprintf(text, sizeof text, " %s ", s->label);
        put_text(&r, LEFT - 1, text, term_style(TERM_BOLD));
    } else {
        put_time(&r, s);
        snprintf(text, sizeof text, "... %s", s->label);
        put_text(&r, column(p, 0) + 2, text, term_style(TERM_DIM));
    }
    row_print(p, &r);
}

/* A label that would run over the edge moves to the left. */
static size_t fit(const struct page *p, size_t x, size_t len)
{
    if (x + len <= p->width)
        return x;
    return len + LEFT < p->width ? p->width - len : LEFT;
}

static void print_note(const struct page *p, const struct lab_step *s)
{
    struct row r;
    size_t x = column(p, s->from), len = strlen(s->label);
    row_init(p, &r, s);
    put_time(&r, s);
    if (x + 2 + len <= p->width)
        put_text(&r, x + 2, s->label, style_of(s));
    else if (x > LEFT + len + 1) /* on the other side */
        put_text(&r, x - 1 - len, s->label, style_of(s));
    else
        put_text(&r, fit(p, x + 2, len), s->label, style_of(s));
    put(&r, x, '*', DOT, style_of(s));
    row_print(p, &r);
}

/* A step about two parties: a line between them. */
static void print_link(const struct page *p, const struct lab_step *s)
{
    struct row r;
    size_t from = column(p, s->from), to = column(p, s->to);
    row_init(p, &r, s);
    put_text(&r, fit(p, from + 2, strlen(s->label)), s->label, style_of(s));
    row_print(p, &r);
    row_init(p, &r, s);
    put_time(&r, s);
    for (size_t x = from + 1; x < to; x++)
        put(&r, x, '-', LINE, style_of(s));
    put(&r, from, '*', DOT, style_of(s));
    put(&r, to, '*', DOT, style_of(s));
    if (strcmp(s->event, "cut") == 0)
        put(&r, from + (to - from) / 2, 'x', BREAK, style_of(s));
    row_print(p, &r);
}

static void print_arrow(const struct page *p, const struct lab_step *s)
{
    struct row r;
    size_t from = column(p, s->from), to = column(p, s->to);
    size_t low = from < to ? from : to, high = from < to ? to : from;
    const char *style = s->kind == LAB_LOST ? term_style(TERM_BAD) : term_hue((size_t)s->from);
    row_init(p, &r, s);
    put_text(&r, fit(p, low + 2, strlen(s->label)), s->label, style_of(s));
    row_print(p, &r);
    row_init(p, &r, s);
    put_time(&r, s);
    for (size_t x = low + 1; x < high; x++)
        put(&r, x, '-', LINE, style);
    if (s->kind == LAB_LOST) {
        size_t middle = low + (high - low) / 2;
        for (size_t x = from < to ? middle : low + 1; x < (from < to ? high : middle); x++)
            if (r.stroke[x] == LINE)
                put(&r, x, ' ', TEXT, "");
        put(&r, middle, 'x', BREAK, style);
    } else {
        put(&r, from < to ? high - 1 : low + 1, '>', from < to ? RIGHT_TIP : LEFT_TIP, style);
    }
    row_print(p, &r);
}

static void print_step(const struct page *p, size_t i)
{
    const struct lab_step *s = &p->trace->step[i];
    switch (s->kind) {
    case LAB_CHAPTER:
        if (i > 0)
            putchar('\n');
        print_rule(p, s);
        print_why(p, s->why);
        print_names(p, s);
        return;
    case LAB_QUIET:
        print_rule(p, s);
        break;
    case LAB_NOTE:
    case LAB_FAULT:
        if (s->from == s->to)
            print_note(p, s);
        else
            print_link(p, s);
        break;
    case LAB_MESSAGE:
    case LAB_LOST:
        print_arrow(p, s);
        break;
    }
    if (!said(p->trace, i))
        print_why(p, s->why);
}

static void print_state(const struct lab_trace *t, size_t i)
{
    const char *header[LAB_FIELDS_MAX + 2] = { "" };
    struct table table;
    for (unsigned f = 0; f < t->fields; f++)
        header[f + 1] = t->field[f];
    table_init(&table, LEFT + 2, header);
    for (unsigned k = 0; k < t->parties; k++) {
        bool any = false;
        for (unsigned f = 0; f < t->fields; f++)
            any = any || t->step[i].cell[k][f][0];
        if (!any)
            continue;
        table_add(&table, "%s", t->party[k]);
        for (unsigned f = 0; f < t->fields; f++)
            table_add(&table, "%s", t->step[i].cell[k][f]);
    }
    table_print(&table);
    table_done(&table);
}

/* ---- all of it ---- */

static bool says_utf8(void)
{
    static const char *const variable[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof variable / sizeof variable[0]; i++) {
        const char *v = getenv(variable[i]);
        if (v && *v)
            return strstr(v, "UTF-8") || strstr(v, "utf8") || strstr(v, "UTF8");
    }
    return false;
}

static struct page page_of(const struct lab_trace *t)
{
    size_t width = term_width();
    struct page p = { .trace = t, .unicode = says_utf8() };
    p.width = width == 0 ? WIDTH_OF_PIPE : width > WIDTH_MAX ? WIDTH_MAX : width;
    size_t room = p.width > LEFT + RIGHT ? p.width - LEFT - RIGHT : 0;
    p.gap = room / (t->parties > 1 ? t->parties - 1 : 1);
    if (p.gap < GAP_MIN)
        p.gap = GAP_MIN;
    return p;
}

static void print_title(const struct lab_trace *t)
{
    printf("%s%s%s\n\n", term_style(TERM_BOLD), t->title, term_style(TERM_PLAIN));
}

void lab_text(const struct lab_trace *t)
{
    struct page p = page_of(t);
    print_title(t);
    for (size_t i = 0; i < t->steps; i++)
        print_step(&p, i);
    putchar('\n');
    print_state(t, t->steps - 1);
}

void lab_text_play(const struct lab_trace *t)
{
    struct page p = page_of(t);
    char *line = NULL;
    size_t room = 0;
    bool all = false;
    print_title(t);
    printf("%zu steps. Enter: the next; s: the state of all; a: all the rest; q: quit.\n\n",
           t->steps);
    for (size_t i = 0; i < t->steps; i++) {
        print_step(&p, i);
        while (!all && i + 1 < t->steps) {
            printf("%s[%zu of %zu]%s ", term_style(TERM_DIM), i + 1, t->steps,
                   term_style(TERM_PLAIN));
            fflush(stdout);
            if (getline(&line, &room, stdin) < 0 || line[0] == 'q') {
                free(line);
                return;
            }
            all = line[0] == 'a';
            if (line[0] != 's')
                break;
            print_state(t, i);
        }
    }
    free(line);
    putchar('\n');
    print_state(t, t->steps - 1);
}
