/*
 * Reads lines block by block. A line that crosses the end of a block is moved to the front of the
 * buffer and the next block is read after it. No more than CARRY_MAX bytes ever move: a longer
 * beginning already proves the line too long, so it is dropped, and a file without any newline
 * needs no more memory than another.
 */
#include "cli/verify/lines.h"
#include "cli/verify/gunzip.h"

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
    gunzip_free(l->gunzip);
    l->gunzip = NULL;
    free(l->buf);
    l->buf = NULL;
}

void lines_start(struct lines *l, int fd)
{
    gunzip_free(l->gunzip);
    l->gunzip = NULL;
    l->fd = fd;
    l->eof = false;
    l->at = l->end = 0;
    l->bytes_read = 0;
    l->why = NULL;
}

/* The next bytes of the file, into LINES_BLOCK_BYTES at `p`. The first ones tell whether it is
 * gzip: no ID begins with those two bytes. A pipe may give less than two of them at first. */
static ssize_t read_block(struct lines *l, char *p)
{
    ssize_t n = 0;
    if (!l->gunzip) {
        size_t want = l->bytes_read == 0 ? 2 : 1, got = 0;
        do {
            n = read(l->fd, p + got, LINES_BLOCK_BYTES - got);
            if (n > 0)
                got += (size_t)n;
        } while (n < 0 ? errno == EINTR : n > 0 && got < want);
        if (n < 0) {
            l->why = strerror(errno);
            return -1;
        }
        bool first = l->bytes_read == 0;
        l->bytes_read += got;
        if (!first || !gunzip_is(p, got))
            return (ssize_t)got;
        l->gunzip = gunzip_new(l->fd, p, got);
        if (!l->gunzip) {
            l->why = "out of memory";
            return -1;
        }
    }
    n = gunzip_read(l->gunzip, p, LINES_BLOCK_BYTES, &l->why);
    l->bytes_read = gunzip_bytes(l->gunzip);
    return n;
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
        ssize_t n = read_block(l, l->buf + kept);
        if (n < 0)
            return FIRN_EIO;
        l->eof = n == 0;
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
