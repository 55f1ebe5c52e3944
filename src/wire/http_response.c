#include "wire/http_response.h"

#include <string.h>
#include <strings.h>

enum { CHUNK_LINE_MAX = 256, CHUNK_DIGITS_MAX = 8 };

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK": its status, or 0. */
static unsigned status_line(const char *p, size_t len, bool *out_old)
{
    if (len < 12 || memcmp(p, "HTTP/1.", 7) != 0 || !digit(p[7]) || p[8] != ' ' || !digit(p[9]) ||
        !digit(p[10]) || !digit(p[11]) || (len > 12 && p[12] != ' '))
        return 0;
    *out_old = p[7] == '0';
    unsigned status = (unsigned)(p[9] - '0') * 100 + (unsigned)(p[10] - '0') * 10 +
                      (unsigned)(p[11] - '0');
    return status >= 100 ? status : 0;
}

static bool is(const char *p, size_t len, const char *word)
{
    return len == strlen(word) && strncasecmp(p, word, len) == 0;
}

/* One of the words of a comma-separated list. */
static bool has(const char *p, size_t len, const char *word)
{
    for (const char *end = p + len; p < end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *next = comma ? comma + 1 : end, *last = comma ? comma : end;
        while (p < last && (*p == ' ' || *p == '\t'))
            p++;
        while (last > p && (last[-1] == ' ' || last[-1] == '\t'))
            last--;
        if (is(p, (size_t)(last - p), word))
            return true;
        p = next;
    }
    return false;
}

struct reading {
    struct http_head head;
    bool length, chunked, keep;
};

static int length_value(const char *p, size_t len, struct reading *r)
{
    size_t n = 0;
    if (len == 0 || len > 10 || r->length)
        return FIRN_EFORMAT;
    for (size_t i = 0; i < len; i++) {
        if (!digit(p[i]))
            return FIRN_EFORMAT;
        n = 10 * n + (size_t)(p[i] - '0');
    }
    if (n > HTTP_ANSWER_BODY_MAX)
        return FIRN_EFORMAT;
    r->length = true;
    r->head.body_len = n;
    return 0;
}

static int header(const char *p, size_t len, struct reading *r)
{
    const char *colon = memchr(p, ':', len);
    if (!colon || colon == p || colon[-1] == ' ' || colon[-1] == '\t' || p[0] == ' ' ||
        p[0] == '\t')
        return FIRN_EFORMAT;
    size_t name_len = (size_t)(colon - p);
    const char *value = colon + 1, *end = p + len;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    size_t value_len = (size_t)(end - value);
    if (is(p, name_len, "content-length"))
        return length_value(value, value_len, r);
    if (is(p, name_len, "transfer-encoding")) {
        if (!is(value, value_len, "chunked") || r->chunked)
            return FIRN_EFORMAT; /* no other coding was asked for */
        r->chunked = true;
    } else if (is(p, name_len, "connection")) {
        r->head.close = r->head.close || has(value, value_len, "close");
        r->keep = r->keep || has(value, value_len, "keep-alive");
    }
    return 0;
}

/* The line at `p` without its CRLF: its length, FIRN_EAGAIN or FIRN_EFORMAT. */
static ssize_t line(const char *p, size_t len)
{
    const char *nl = memchr(p, '\n', len);
    if (!nl)
        return FIRN_EAGAIN;
    if (nl == p || nl[-1] != '\r' || memchr(p, '\r', (size_t)(nl - p)) != nl - 1)
        return FIRN_EFORMAT;
    return nl - p - 1;
}

static ssize_t one_head(const char *p, size_t len, struct http_head *out)
{
    struct reading r = { .head = { .close = false } };
    bool old = false;
    size_t at = 0;
    for (bool first = true;; first = false) {
        ssize_t n = line(p + at, len - at);
        if (n < 0)
            return n;
        if (first)
            r.head.status = status_line(p, (size_t)n, &old);
        if (r.head.status == 0)
            return FIRN_EFORMAT;
        if (!first && n > 0 && header(p + at, (size_t)n, &r) != 0)
            return FIRN_EFORMAT;
        at += (size_t)n + 2;
        if (!first && n == 0)
            break;
    }
    if (r.chunked && (r.length || old))
        return FIRN_EFORMAT; /* two framings: whose answer would follow? */
    if (old && !r.keep)
        r.head.close = true;
    r.head.framing = r.chunked ? FRAMED_BY_CHUNKS : r.length ? FRAMED_BY_LENGTH : FRAMED_BY_CLOSE;
    if (r.head.status < 200 || r.head.status == 204 || r.head.status == 304) {
        r.head.framing = FRAMED_BY_LENGTH; /* these never have a body */
        r.head.body_len = 0;
    }
    if (r.head.framing == FRAMED_BY_CLOSE)
        r.head.close = true;
    *out = r.head;
    return (ssize_t)at;
}

ssize_t http_answer_head(const char *p, size_t len, struct http_head *out)
{
    struct http_head head;
    size_t at = 0;
    for (;;) {
        ssize_t n = one_head(p + at, len - at, &head);
        if (n == FIRN_EAGAIN && len > HTTP_ANSWER_HEAD_MAX)
            return FIRN_EFORMAT;
        if (n < 0)
            return n;
        at += (size_t)n;
        if (at > HTTP_ANSWER_HEAD_MAX || head.status == 101) /* nobody asked to switch */
            return FIRN_EFORMAT;
        if (head.status >= 200)
            break;
    }
    *out = head;
    return (ssize_t)at;
}

/* The size in a chunk's first line; extensions are passed over. */
static int chunk_size(const char *p, size_t len, size_t *out)
{
    size_t n = 0, i = 0;
    for (; i < len; i++) {
        char c = (char)(p[i] | 0x20);
        if (digit(p[i]))
            n = n << 4 | (size_t)(p[i] - '0');
        else if (c >= 'a' && c <= 'f')
            n = n << 4 | (size_t)(c - 'a' + 10);
        else
            break;
        if (i + 1 > CHUNK_DIGITS_MAX)
            return FIRN_EFORMAT;
    }
    if (i == 0 || (i < len && p[i] != ';' && p[i] != ' ' && p[i] != '\t'))
        return FIRN_EFORMAT;
    *out = n;
    return 0;
}

ssize_t http_answer_chunks(char *p, size_t len, size_t *out_len)
{
    for (int pass = 0;; pass++) { /* first look whether all of it is there, then join */
        size_t at = 0, joined = 0, size;
        for (;;) {
            ssize_t n = line(p + at, len - at);
            if (n > CHUNK_LINE_MAX || (n == FIRN_EAGAIN && len - at > CHUNK_LINE_MAX))
                return FIRN_EFORMAT;
            if (n < 0)
                return n;
            if (chunk_size(p + at, (size_t)n, &size) != 0 || size > HTTP_ANSWER_BODY_MAX - joined)
                return FIRN_EFORMAT;
            at += (size_t)n + 2;
            if (size == 0)
                break;
            if (len - at < size + 2)
                return FIRN_EAGAIN;
            if (p[at + size] != '\r' || p[at + size + 1] != '\n')
                return FIRN_EFORMAT;
            if (pass == 1)
                memmove(p + joined, p + at, size);
            joined += size;
            at += size + 2;
        }
        for (size_t trailers = at;;) {
            ssize_t n = line(p + at, len - at);
            if (at - trailers > HTTP_ANSWER_HEAD_MAX)
                return FIRN_EFORMAT;
            if (n < 0)
                return n;
            at += (size_t)n + 2;
            if (n == 0)
                break;
        }
        if (pass == 1) {
            *out_len = joined;
            return (ssize_t)at;
        }
    }
}
