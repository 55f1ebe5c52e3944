/*
 * The request side of the Redis protocol: an array of bulk strings
 * ("*2\r\n$4\r\nINCR\r\n$1\r\na\r\n") or a line of words. Lengths are believed only up to their
 * bounds, and nothing is allocated for them, so a request that announces gigabytes costs nothing.
 * Arrays do not nest. Like http.c nothing is remembered between calls; an unfinished request is
 * read again from its start, which RESP_ARGS_MAX keeps cheap: bulk strings are skipped over, not
 * read.
 */
#include "wire/resp.h"
#include "firn/text.h"
#include "id/hex.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

enum { NUMBER_BYTES_MAX = 20 }; /* of a length line: it must not cost a search for its end */

__attribute__((format(printf, 2, 3))) static int refuse(char err[RESP_ERROR_BUF], const char *fmt,
                                                        ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(err, RESP_ERROR_BUF, fmt, args);
    va_end(args);
    return FIRN_EFORMAT;
}

/* A length and its CRLF at q: the first byte after it, or NULL with FIRN_EAGAIN or FIRN_EFORMAT in
 * *r. One digit, what most lengths have, takes the short way. */
static inline char *read_length(char *q, const char *end, int64_t *out, int *r)
{
    if (end - q >= 3 && (unsigned)(q[0] - '0') <= 9 && q[1] == '\r' && q[2] == '\n') {
        *out = q[0] - '0';
        return q + 3;
    }
    char *from = q;
    int64_t v = 0;
    bool minus = q < end && *q == '-';
    if (minus)
        q++;
    *r = FIRN_EFORMAT;
    for (; q < end && (unsigned)(*q - '0') <= 9; q++) {
        if (q - from >= NUMBER_BYTES_MAX)
            return NULL;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *q - '0', &v))
            return NULL;
    }
    if (q < end && (*q != '\r' || q - from == (minus ? 1 : 0)))
        return NULL;
    if (q + 1 < end && q[1] != '\n')
        return NULL;
    *r = FIRN_EAGAIN;
    if (end - q < 2)
        return NULL;
    *out = minus ? -v : v;
    return q + 2;
}

static ssize_t parse_array(char *p, size_t len, struct resp_request *req, char *err)
{
    char *q = p + 1;
    const char *end = p + len;
    int64_t argc, size;
    int r;
    q = read_length(q, end, &argc, &r);
    if (!q)
        return r == FIRN_EAGAIN ? r : refuse(err, "Protocol error: invalid multibulk length");
    if (argc > RESP_ARGS_MAX)
        return refuse(err, "Protocol error: invalid multibulk length");
    for (int64_t i = 0; i < argc; i++) { /* a negative count is an empty request, as in Redis */
        if (q == end)
            return FIRN_EAGAIN;
        if (*q != '$')
            return refuse(err, "Protocol error: expected '$', got '%c'",
                          *q >= 0x20 && *q < 0x7f ? *q : '?');
        q = read_length(q + 1, end, &size, &r);
        if (!q && r == FIRN_EAGAIN)
            return r;
        if (!q || size < 0 || size > RESP_BULK_BYTES_MAX)
            return refuse(err, "Protocol error: invalid bulk length");
        if ((q - p) + size + 2 > RESP_REQUEST_BYTES_MAX)
            return refuse(err, "Protocol error: too big request");
        int64_t have = end - q;
        if (have > size && q[size] != '\r')
            return refuse(err, "Protocol error: expected CRLF after a bulk string");
        if (have < size + 2)
            return FIRN_EAGAIN;
        if (q[size + 1] != '\n')
            return refuse(err, "Protocol error: expected CRLF after a bulk string");
        req->argv[i] = (struct slice){ q, (size_t)size };
        q += size + 2;
    }
    req->argc = argc > 0 ? (size_t)argc : 0;
    return q - p;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* One escape of a "quoted" word at q, after the backslash; returns what follows it. */
static const char *unescape(const char *q, const char *end, char *out)
{
    static const char from[] = "nrtba", to[] = "\n\r\t\b\a";
    if (end - q >= 3 && *q == 'x' && hex_digit(q[1]) >= 0 && hex_digit(q[2]) >= 0) {
        *out = (char)(hex_digit(q[1]) << 4 | hex_digit(q[2]));
        return q + 3;
    }
    const char *known = memchr(from, *q, sizeof from - 1);
    *out = known ? to[known - from] : *q;
    return q + 1;
}

/* One word at q, written to `to` (never past q). NULL when quotes do not match. */
static const char *read_word(const char *q, const char *end, char *to, struct slice *word)
{
    char quote = 0;
    word->p = to;
    while (q < end && (quote || !is_space(*q))) {
        if (quote && *q == quote) { /* a closing quote must end the word */
            q++;
            if (q < end && !is_space(*q))
                return NULL;
            quote = 0;
            break;
        }
        if (!quote && (*q == '"' || *q == '\'')) {
            quote = *q++;
        } else if (quote == '"' && *q == '\\' && q + 1 < end) {
            q = unescape(q + 1, end, to++);
        } else if (quote == '\'' && *q == '\\' && q + 1 < end && q[1] == '\'') {
            *to++ = '\'';
            q += 2;
        } else {
            *to++ = *q++;
        }
    }
    word->len = (size_t)(to - word->p);
    return quote ? NULL : q;
}

static ssize_t parse_inline(char *p, size_t len, struct resp_request *req, char *err)
{
    char *newline = memchr(p, '\n', len < RESP_INLINE_BYTES_MAX ? len : RESP_INLINE_BYTES_MAX);
    if (!newline)
        return len < RESP_INLINE_BYTES_MAX ? FIRN_EAGAIN
                                           : refuse(err, "Protocol error: too big inline request");
    const char *q = p, *end = newline > p && newline[-1] == '\r' ? newline - 1 : newline;
    char *to = p;
    size_t argc = 0;
    for (;; argc++) {
        while (q < end && is_space(*q))
            q++;
        if (q == end)
            break;
        if (argc == RESP_ARGS_MAX)
            return refuse(err, "Protocol error: too many words in request");
        q = read_word(q, end, to, &req->argv[argc]);
        if (!q)
            return refuse(err, "Protocol error: unbalanced quotes in request");
        to += req->argv[argc].len;
    }
    req->argc = argc;
    return newline + 1 - p;
}

ssize_t resp_parse(char *p, size_t len, struct resp_request *req, char err[RESP_ERROR_BUF])
{
    req->argc = 0;
    if (len == 0)
        return FIRN_EAGAIN;
    return *p == '*' ? parse_array(p, len, req, err) : parse_inline(p, len, req, err);
}

size_t resp_repeats(const struct resp_request *req, size_t max)
{
    if (req->self.len == 0 || req->self.p[0] != '*')
        return 0; /* an inline command may have been unescaped in place */
    return slice_repeats(req->self, req->rest, max);
}

bool resp_is(const struct resp_request *req, size_t i, const char *word)
{
    return i < req->argc && req->argv[i].len == strlen(word) &&
           strncasecmp(req->argv[i].p, word, req->argv[i].len) == 0;
}

int resp_i64(struct slice arg, int64_t *out)
{
    bool minus = arg.len > 0 && arg.p[0] == '-';
    size_t i = minus;
    if (arg.len == i || (arg.p[i] == '0' && arg.len > 1)) /* "", "-", "-0", "007" */
        return FIRN_EFORMAT;
    uint64_t v = 0;
    bool over = false;
    for (; i < arg.len; i++) {
        unsigned d = (unsigned)(uint8_t)arg.p[i] - '0';
        if (d > 9)
            return FIRN_EFORMAT;
        over |= __builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, d, &v);
    }
    if (over || v > (uint64_t)INT64_MAX + minus)
        return FIRN_ERANGE;
    *out = minus ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

/* Type, number, CRLF. */
static void add_number(struct buf *b, char kind, int64_t v)
{
    char *start = buf_room(b, 2 + FIRN_U64_TEXT_BUF + 2), *to = start;
    if (!to)
        return;
    *to++ = kind;
    if (v < 0)
        *to++ = '-';
    to += firn_u64_format(v < 0 ? 0 - (uint64_t)v : (uint64_t)v, to);
    memcpy(to, "\r\n", 2);
    buf_commit(b, (size_t)(to - start) + 2);
}

static void add_line(struct buf *b, char kind, const char *text)
{
    size_t len = strlen(text);
    char *to = buf_room(b, 1 + len + 2);
    if (!to)
        return;
    *to++ = kind;
    for (size_t i = 0; i < len; i++)
        *to++ = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
    memcpy(to, "\r\n", 2);
    buf_commit(b, 1 + len + 2);
}

void resp_simple(struct buf *b, const char *text)
{
    add_line(b, '+', text);
}

void resp_error(struct buf *b, const char *text)
{
    add_line(b, '-', text);
}

void resp_errorf(struct buf *b, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    add_line(b, '-', text);
}

void resp_int(struct buf *b, int64_t v)
{
    add_number(b, ':', v);
}

void resp_bulk(struct buf *b, const void *p, size_t len)
{
    char *start = buf_room(b, 1 + FIRN_U64_TEXT_BUF + 2 + len + 2), *to = start;
    if (!to)
        return;
    *to++ = '$';
    to += firn_u64_format(len, to);
    memcpy(to, "\r\n", 2);
    memcpy(to + 2, p, len);
    memcpy(to + 2 + len, "\r\n", 2);
    buf_commit(b, (size_t)(to - start) + 2 + len + 2);
}

void resp_bulk_str(struct buf *b, const char *text)
{
    resp_bulk(b, text, strlen(text));
}

void resp_array(struct buf *b, size_t n)
{
    add_number(b, '*', (int64_t)n);
}

void resp_map(struct buf *b, int proto, size_t n)
{
    add_number(b, proto >= 3 ? '%' : '*', (int64_t)(proto >= 3 ? n : 2 * n));
}

void resp_set(struct buf *b, int proto, size_t n)
{
    add_number(b, proto >= 3 ? '~' : '*', (int64_t)n);
}

void resp_null(struct buf *b, int proto)
{
    buf_add_str(b, proto >= 3 ? "_\r\n" : "$-1\r\n");
}

void resp_verbatim(struct buf *b, int proto, const char format[3], const void *p, size_t len)
{
    if (proto < 3) {
        resp_bulk(b, p, len);
        return;
    }
    add_number(b, '=', (int64_t)len + 4);
    buf_add(b, format, 3);
    buf_add(b, ":", 1);
    buf_add(b, p, len);
    buf_add(b, "\r\n", 2);
}
