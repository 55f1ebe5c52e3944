/* Tables on stdout: column widths, colours, and wrapping of the last column. */
#include "cli/table.h"
#include "cli/say.h"
#include "cli/term.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GAP = 2,
    LAST_MIN = 32,
    BELOW = 4
}; /* a last column narrower than that goes below its row */

struct table_cell {
    char *text;
    const char *sgr;
};

void table_init(struct table *t, size_t indent, const char *const *header)
{
    *t = (struct table){ .header = header, .indent = indent };
    while (header[t->columns])
        t->columns++;
}

static void forget(struct table *t)
{
    for (size_t i = 0; i < t->len; i++)
        free(t->cell[i].text);
    t->len = 0;
}

void table_done(struct table *t)
{
    forget(t);
    free(t->cell);
    t->cell = NULL;
    t->room = 0;
}

static void add(struct table *t, const char *sgr, const char *fmt, va_list args)
{
    if (t->len == t->room) {
        t->room = t->room ? 2 * t->room : 64;
        t->cell = realloc(t->cell, t->room * sizeof *t->cell);
    }
    if (!t->cell || vasprintf(&t->cell[t->len].text, fmt, args) < 0)
        exit(say_trouble("out of memory"));
    t->cell[t->len++].sgr = sgr;
}

void table_add(struct table *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(t, "", fmt, args);
    va_end(args);
}

void table_add_in(struct table *t, const char *sgr, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(t, sgr, fmt, args);
    va_end(args);
}

/* Width on the screen: counts the bytes of UTF-8 that begin a character. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* How much of `text` goes into a line of `room` columns: up to the last blank that fits. */
static size_t line_len(const char *text, size_t room)
{
    size_t len = strlen(text), cut = 0;
    if (width_of(text) <= room)
        return len;
    for (size_t i = 0; i <= room && i < len; i++)
        if (text[i] == ' ')
            cut = i;
    return cut ? cut : len; /* a word longer than the line stays whole */
}

/* Broken between words at the end of the screen, each line beginning at `indent`. */
static void put_wrapped(const char *text, size_t indent, size_t screen)
{
    while (screen > indent) {
        size_t n = line_len(text, screen - indent);
        fwrite(text, 1, n, stdout);
        text += n;
        while (*text == ' ')
            text++;
        if (!*text)
            return;
        printf("\n%*s", (int)indent, "");
    }
    fputs(text, stdout);
}

/* `screen` 0: unlimited width. `below`: the last cell is printed on a line of its own. */
static void put_row(const struct table *t, const struct table_cell *cell, const size_t *width,
                    size_t screen, bool below)
{
    size_t at = t->indent;
    printf("%*s", (int)t->indent, "");
    for (size_t c = 0; c < t->columns; c++) {
        const char *text = cell[c].text;
        size_t pad = width[c] - width_of(text);
        bool right = t->header[c][0] == '>', last = c + 1 == t->columns;
        if (last && below) {
            at = t->indent + BELOW;
            printf("\n%*s", (int)at, "");
        } else if (c > 0) {
            printf("%*s", GAP, "");
        }
        if (right)
            printf("%*s", (int)pad, "");
        fputs(cell[c].sgr, stdout);
        if (last && !right)
            put_wrapped(text, at, screen);
        else
            fputs(text, stdout);
        if (*cell[c].sgr)
            fputs(term_style(TERM_PLAIN), stdout);
        if (!right && !last)
            printf("%*s", (int)pad, "");
        at += width[c] + GAP;
    }
    putchar('\n');
}

void table_print(struct table *t)
{
    size_t width[TABLE_COLUMNS_MAX] = { 0 };
    struct table_cell head[TABLE_COLUMNS_MAX];
    for (size_t c = 0; c < t->columns; c++) {
        const char *name = t->header[c] + (t->header[c][0] == '>');
        head[c] = (struct table_cell){ (char *)(uintptr_t)name, term_style(TERM_BOLD) };
        width[c] = width_of(name);
        for (size_t i = c; i < t->len; i += t->columns)
            if (width_of(t->cell[i].text) > width[c])
                width[c] = width_of(t->cell[i].text);
    }
    size_t screen = term_width(), last = t->columns - 1, before = t->indent;
    for (size_t c = 0; c < last; c++)
        before += width[c] + GAP;
    bool below = screen > 0 && before + width[last] > screen && before + LAST_MIN > screen;
    put_row(t, head, width, screen, below);
    for (size_t i = 0; i + t->columns <= t->len; i += t->columns)
        put_row(t, t->cell + i, width, screen, below);
    forget(t);
}
