/*
 * The end of a process whose invariant is broken: one line on stderr, then abort().
 * The line is written by one write(2), so that lines of several threads do not mix.
 */
#include "platform/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 1024 };

static size_t clipped(int written, size_t cap)
{
    return written < 0 ? 0 : (size_t)written < cap ? (size_t)written : cap - 1;
}

void firn__assert_failed(const char *condition, const char *file, int line, const char *function,
                         const char *format, ...)
{
    char text[LINE_BYTES_MAX];
    size_t cap = sizeof(text) - 1; /* the line's end always fits */
    size_t n = clipped(
        snprintf(text, cap, "firn: invariant broken: %s%s", condition, *format ? ": " : ""), cap);
    va_list args;
    va_start(args, format);
    n += clipped(vsnprintf(text + n, cap - n, format, args), cap - n);
    va_end(args);
    n += clipped(snprintf(text + n, cap - n, " (%s:%d, %s)", file, line, function), cap - n);
    text[n++] = '\n';
    if (write(STDERR_FILENO, text, n) < 0) {
        /* there is no other place to say it */
    }
    abort();
}
