/*
 * lines.h - reads the lines of a file, plain or gzip, a mebibyte per read(2).
 * One reader serves one thread; it can be pointed at one file after the other.
 */
#ifndef FIRN_CLI_VERIFY_LINES_H
#define FIRN_CLI_VERIFY_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    LINES_BLOCK_BYTES = 1 << 20,
    LINES_TEXT_MAX = 128, /* the longest text of an ID that firn compares */
};

enum lines_result {
    LINES_END = 0,
    LINES_LINE = 1, /* without its \n or \r\n; may be empty */
    LINES_LONG = 2, /* more than LINES_TEXT_MAX bytes: skipped, no text is given */
    /* negative: a FIRN_E... code, and `why` says what the system answered */
};

struct gunzip;

struct lines {
    int fd;
    struct gunzip *gunzip; /* NULL: the file is plain */
    bool eof;
    char *buf; /* room for the beginning of a line, then for a block */
    size_t at, end;
    uint64_t bytes_read; /* of the file that is open, as it lies there: moves once per block */
    const char *why;     /* borrowed; set on error */
};

/* FIRN_ENOMEM if there is no memory for the buffer. */
int lines_init(struct lines *l);
void lines_done(struct lines *l);

/* Start on `fd`, borrowed until the next lines_start() or lines_done(). */
void lines_start(struct lines *l, int fd);

int lines__more(struct lines *l, const char **out_p, size_t *out_len);

static inline int lines__cut(const char *p, size_t len, const char **out_p, size_t *out_len)
{
    if (len > 0 && p[len - 1] == '\r')
        len--;
    if (__builtin_expect(len > LINES_TEXT_MAX, 0))
        return LINES_LONG;
    *out_p = p;
    *out_len = len;
    return LINES_LINE;
}

/* The next line, valid until the next call. Inline: this runs once per ID. */
static inline int lines_next(struct lines *l, const char **out_p, size_t *out_len)
{
    const char *p = l->buf + l->at;
    const char *nl = memchr(p, '\n', l->end - l->at);
    if (__builtin_expect(nl == NULL, 0))
        return lines__more(l, out_p, out_len);
    l->at = (size_t)(nl + 1 - l->buf);
    return lines__cut(p, (size_t)(nl - p), out_p, out_len);
}

#endif
