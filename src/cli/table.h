/*
 * table.h - rows of text in aligned columns on stdout.
 * Cells are added left to right, row by row; the widths are known when it is printed. On a terminal
 * the last column is wrapped between words. All rows are held in memory. One thread.
 */
#ifndef FIRN_CLI_TABLE_H
#define FIRN_CLI_TABLE_H

#include <stddef.h>

enum { TABLE_COLUMNS_MAX = 8 };

struct table {
    const char *const *header; /* borrowed; a name that begins with '>' aligns its column right */
    size_t columns;
    size_t indent;
    struct table_cell *cell; /* row by row */
    size_t len, room;
};

/* `header` ends with NULL. */
void table_init(struct table *t, size_t indent, const char *const *header);
void table_done(struct table *t);

/* The next cell. Out of memory ends the process. */
__attribute__((format(printf, 2, 3))) void table_add(struct table *t, const char *fmt, ...);
/* The same in a colour of term.h, borrowed. */
__attribute__((format(printf, 3, 4))) void table_add_in(struct table *t, const char *sgr,
                                                        const char *fmt, ...);

/* Print all rows, then remove them. */
void table_print(struct table *t);

#endif
