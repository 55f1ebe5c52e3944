/* Draws the bits of an ID. */
#include "cli/gen/bits.h"
#include "cli/term.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ROW = 64, GROUP = 8, NOWHERE = BITS_RUNS_MAX };

/* A letter for a run: the first one of its name that is free, else a capital or a digit. */
static char choose(const struct bits *b, size_t i)
{
    char tries[64];
    snprintf(tries, sizeof tries, "%.12s%s", b->run[i].name, "xyzXYZ0123456789");
    for (const char *c = tries; *c; c++)
        if (*c != ' ' && !memchr(b->letter, *c, i))
            return *c;
    return '?';
}

void bits_init(struct bits *b, const struct bits_run *run, size_t runs)
{
    *b = (struct bits){ .run = run, .runs = runs < BITS_RUNS_MAX ? runs : BITS_RUNS_MAX };
    for (size_t i = 0; i < b->runs; i++)
        b->letter[i] = strcmp(run[i].name, "unused") == 0 ? '.' : choose(b, i);
}

const char *bits_colour(size_t i)
{
    return term_hue(i);
}

static size_t run_at(const struct bits *b, unsigned bit)
{
    for (size_t i = 0; i < b->runs; i++)
        if (bit >= b->run[i].bit && bit < b->run[i].bit + b->run[i].bits)
            return i;
    return NOWHERE;
}

static void put_row(const struct bits *b, const uint8_t *bytes, unsigned from, unsigned to,
                    size_t indent, bool coloured)
{
    size_t last = NOWHERE + 1;
    printf("%*s", (int)indent, "");
    for (unsigned bit = from; bit < to; bit++) {
        if (bit > from && bit % GROUP == 0)
            putchar(' ');
        size_t run = run_at(b, bit);
        if (coloured && run != last)
            printf("%s%s", term_style(TERM_PLAIN),
                   run == NOWHERE ? term_style(TERM_DIM) : bits_colour(run));
        last = run;
        if (bytes)
            putchar('0' + (bytes[bit / 8] >> (7 - bit % 8) & 1));
        else
            putchar(run == NOWHERE ? '.' : b->letter[run]);
    }
    if (coloured)
        fputs(term_style(TERM_PLAIN), stdout);
    putchar('\n');
}

void bits_draw(const struct bits *b, const uint8_t *bytes, unsigned n, size_t indent)
{
    unsigned row = ROW;
    size_t screen = term_width();
    while (screen > 0 && row > GROUP && indent + row + row / GROUP - 1 > screen)
        row /= 2;
    for (unsigned from = 0; from < n; from += row) {
        unsigned to = from + row < n ? from + row : n;
        put_row(b, bytes, from, to, indent, term_colour());
        if (bytes && !term_colour())
            put_row(b, NULL, from, to, indent, false);
    }
}
