/*
 * Reads lines block by block. A line that crosses the end of a block is moved to the front of the
 * buffer and the next block is read after it. No more than CARRY_MAX bytes ever move: a longer
 * beginning already proves the line too long, so it is dropped, and a file without any newline
 * needs no more memory than another.
 */
#include "cli/verify/lines.h"

#include "firn/error.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { CARRY_MAX = LINES_TEXT_MAX + 1 }; /* a \r that is not part of the text */

int lines_init(struct lines *l)
{
    *l = (struct lines){ .fd = -1, .eof = true };
    l->buf = malloc(CARRY_MAX + LINES_BLOCK_BYTES);
    return l->buf ? 0 : FIRN_ENOMEM;
}

void lines_done(struct lines *l)
{
    free(l->buf);
    l->buf = NULL;
}

void lines_start(struct lines *l, int fd)
{
    l->fd = fd;
    l->eof = false;
    l->at = l->end = 0;
    l->bytes_read = 0;
    l->why = NULL;
}

/* No newline between `at` and `end`. */
int lines__more(struct lines *l, const char **out_p, size_t *out_len)
{
    size_t kept = l->end - l->at;
    bool is_long = false;
    memmove(l->buf, l->buf + l->at, kept <= CARRY_MAX ? kept : 0);
    l->at = 0;
    while (!l->eof) {
        if (kept > CARRY_MAX || is_long) {
            is_long = true;
            kept = 0;
        }
        l->end = kept;
        ssize_t n = read(l->fd, l->buf + kept, LINES_BLOCK_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            l->why = strerror(errno);
            return FIRN_EIO;
        }
        l->eof = n == 0;
        l->bytes_read += (size_t)n;
        l->end = kept + (size_t)n;
        const char *nl = memchr(l->buf + kept, '\n', (size_t)n);
        if (nl) {
            l->at = (size_t)(nl + 1 - l->buf);
            return is_long ? LINES_LONG : lines__cut(l->buf, (size_t)(nl - l->buf), out_p, out_len);
        }
        kept = l->end;
    }
    /* The file ends without a newline: the rest is a line, too. */
    l->at = l->end = 0;
    if (is_long)
        return LINES_LONG;
    return kept > 0 ? lines__cut(l->buf, kept, out_p, out_len) : LINES_END;
}
