/* The strict scanner of HTTP/1 field lines and chunks. */
#include "wire/http_line.h"
#include "id/hex.h"
#include "platform/assert.h"
#include "wire/http_start.h"

#define ALNUM (HTTP_TOKEN | HTTP_VALUE | HTTP_TARGET | HTTP_HOST)
const uint8_t http_class[256] = {
    ['\t'] = HTTP_VALUE,
    [' '] = HTTP_VALUE,
    ['!'] = ALNUM,
    ['"'] = HTTP_VALUE,
    ['#'] = HTTP_TOKEN | HTTP_VALUE,
    ['$'] = ALNUM,
    ['%'] = ALNUM,
    ['&'] = ALNUM,
    ['\''] = ALNUM,
    ['('] = HTTP_VALUE | HTTP_TARGET | HTTP_HOST,
    [')'] = HTTP_VALUE | HTTP_TARGET | HTTP_HOST,
    ['*'] = ALNUM,
    ['+'] = ALNUM,
    [','] = HTTP_VALUE | HTTP_TARGET | HTTP_HOST,
    ['-'] = ALNUM,
    ['.'] = ALNUM,
    ['/'] = HTTP_VALUE | HTTP_TARGET,
    ['0' ... '9'] = ALNUM,
    [':'] = HTTP_VALUE | HTTP_TARGET | HTTP_HOST,
    [';'] = HTTP_VALUE | HTTP_TARGET | HTTP_HOST,
    ['<'] = HTTP_VALUE,
    ['='] = HTTP_VALUE | HTTP_TARGET | HTTP_HOST,
    ['>'] = HTTP_VALUE,
    ['?'] = HTTP_VALUE | HTTP_TARGET,
    ['@'] = HTTP_VALUE | HTTP_TARGET,
    ['A' ... 'Z'] = ALNUM,
    ['['] = HTTP_VALUE | HTTP_TARGET | HTTP_HOST,
    ['\\'] = HTTP_VALUE,
    [']'] = HTTP_VALUE | HTTP_TARGET | HTTP_HOST,
    ['^'] = HTTP_TOKEN | HTTP_VALUE,
    ['_'] = ALNUM,
    ['`'] = HTTP_TOKEN | HTTP_VALUE,
    ['a' ... 'z'] = ALNUM,
    ['{'] = HTTP_VALUE,
    ['|'] = HTTP_TOKEN | HTTP_VALUE,
    ['}'] = HTTP_VALUE,
    ['~'] = ALNUM,
    [0x80 ... 0xff] = HTTP_VALUE,
};
#undef ALNUM

const char *http_name_trouble(const char *from, const char *q, const char *end)
{
    if (*q == ':')
        return "a header has no name";
    if (*q == ' ' || *q == '\t')
        return q == from ? "folded header lines are obsolete and not accepted"
                         : "there is space between a header name and its colon";
    if (*q == '\n' || (*q == '\r' && q + 1 < end))
        return "a header line has no colon, or does not end with CR LF";
    return *q == '\r' ? NULL : "a header name holds a character that is not allowed there";
}

bool http_same_word(const char *p, const char *word, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = p[i];
        if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != word[i])
            return false;
    }
    return true;
}

struct slice http_trim(struct slice s)
{
    while (s.len > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (struct slice){ s.p + 1, s.len - 1 };
    while (s.len > 0 && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
        s.len--;
    return s;
}

bool http_part(struct slice *rest, char mark, struct slice *part)
{
    if (!rest->p)
        return false;
    const char *at = rest->len ? memchr(rest->p, mark, rest->len) : NULL;
    size_t n = at ? (size_t)(at - rest->p) : rest->len;
    *part = http_trim((struct slice){ rest->p, n });
    *rest = at ? (struct slice){ at + 1, rest->len - n - 1 } : (struct slice){ NULL, 0 };
    return true;
}

bool http_lists(struct slice list, const char *word)
{
    struct slice part;
    while (http_part(&list, ',', &part))
        if (http_word_is(part, word))
            return true;
    return false;
}

int http_u64(struct slice s, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    bool over = false;
    if (s.len == 0)
        return FIRN_EFORMAT;
    for (size_t i = 0; i < s.len; i++) {
        unsigned d = (unsigned)(uint8_t)s.p[i] - '0';
        if (d > 9)
            return FIRN_EFORMAT;
        over |= __builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, d, &v);
    }
    if (over || v > max)
        return FIRN_ERANGE;
    *out = v;
    return 0;
}

struct slice http_split_absolute(struct slice target, struct slice *authority, const char **why)
{
    const struct slice none = { NULL, 0 };
    size_t at = 0;
    *authority = none;
    if (target.len >= 7 && http_word_is((struct slice){ target.p, 7 }, "http://"))
        at = 7;
    else if (target.len >= 8 && http_word_is((struct slice){ target.p, 8 }, "https://"))
        at = 8;
    *why = at ? "the request target has no valid host"
              : "the request target begins neither with '/' nor with http://";
    const char *q = target.p + at, *from = q, *end = target.p + target.len;
    while (at && q < end && http_is(*q, HTTP_HOST))
        q++;
    if (q == from || (q < end && *q != '/' && *q != '?'))
        return none;
    *authority = (struct slice){ from, (size_t)(q - from) };
    return q < end ? (struct slice){ q, (size_t)(end - q) } : (struct slice){ "/", 1 };
}

const char *http_version_trouble(const char *q, const char *end, uint16_t *status)
{
    static const char expect[] = "HTTP/1.", other[] = "only HTTP/1.0 and HTTP/1.1 are supported";
    size_t have = (size_t)(end - q);
    *status = 400;
    if (memcmp(q, expect, have < 7 ? have : 7) != 0) {
        if (have < 6 || memcmp(q, expect, 5) != 0 || q[5] < '0' || q[5] > '9')
            return "the request line does not end with an HTTP version";
        *status = 505;
        return other;
    }
    if (have >= 8 && q[7] != '0' && q[7] != '1') {
        *status = 505;
        return other;
    }
    return have > 8 && memcmp(q + 8, "\r\n", have - 8 < 2 ? have - 8 : 2) != 0
               ? "the request line does not end with CR LF"
               : NULL;
}

/* ---- chunks ---- */

struct walk {
    const char *q, *end;
    const char *why; /* NULL with FIRN_EAGAIN */
    enum http_chunk_error error;
};

static int refuse(struct walk *w, enum http_chunk_error error, const char *why)
{
    w->error = error;
    w->why = why;
    return FIRN_EFORMAT;
}

static const char *token_end(const char *q, const char *end)
{
    while (q < end && http_is(*q, HTTP_TOKEN))
        q++;
    return q;
}

/* Extensions of a chunk (";name" or ";name=value", the value perhaps quoted) are passed over, as
 * RFC 9112 wants, but read properly: parsers that did not disagreed about where the line ends.
 * Returns what follows them, `end` when they may go on there, NULL when they are malformed. */
static const char *extensions_end(const char *q, const char *end)
{
    while (q < end && *q == ';') {
        const char *from = ++q;
        q = token_end(q, end);
        if (q == from && q < end)
            return NULL;
        if (q == end || *q != '=')
            continue;
        from = ++q;
        bool quoted = q < end && *q == '"';
        if (!quoted) {
            q = token_end(q, end);
        } else {
            q++;
            while (q < end && http_is(*q, HTTP_VALUE) && *q != '"' && *q != '\\')
                q++;
            if (q < end && *q++ != '"')
                return NULL;
        }
        if (q == from && q < end)
            return NULL;
        if (!quoted)
            break; /* llhttp takes nothing behind a plain value, so neither do we */
    }
    return q;
}

/* The line "1a;extension\r\n". */
static int size_line(struct walk *w, uint64_t max, uint64_t *size)
{
    const char *q = w->q, *from = q, *end = w->end;
    uint64_t v = 0;
    for (; q < end && hex_digit(*q) >= 0; q++) {
        bool over = v > UINT64_MAX >> 4; /* 17 digits must not come round to a small number */
        v = v << 4 | (unsigned)hex_digit(*q);
        if (over || v > max)
            return refuse(w, HTTP_CHUNK_LONG, "the body is too long");
    }
    if (q == end && q - from < HTTP_CHUNK_LINE_BYTES_MAX)
        return FIRN_EAGAIN;
    if (q == from || q == end || (*q != '\r' && *q != ';'))
        return refuse(w, HTTP_CHUNK_BAD, "a chunk's size is not a hexadecimal number");
    q = extensions_end(q, end);
    if (q && q - from > HTTP_CHUNK_LINE_BYTES_MAX)
        return refuse(w, HTTP_CHUNK_BAD, "a chunk's extension is too long");
    if (q && (q == end || (*q == '\r' && q + 1 == end)))
        return FIRN_EAGAIN;
    if (!q || *q != '\r' || q[1] != '\n')
        return refuse(w, HTTP_CHUNK_BAD, "a chunk's size or extension is malformed");
    *size = v;
    w->q = q + 2;
    return 0;
}

static bool bears_on_framing(struct slice name)
{
    static const char *const names[] = { "content-length", "transfer-encoding", "expect",
                                         "connection",     "proxy-connection",  "upgrade" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (http_word_is(name, names[i]))
            return true;
    return false;
}

static int trailers(struct walk *w)
{
    for (int n = 0;; n++) {
        struct slice name, value;
        if (w->end - w->q >= 2 && w->q[0] == '\r' && w->q[1] == '\n') {
            w->q += 2;
            return 0;
        }
        if (n == HTTP_FIELDS_MAX && !http_may_end(w->q, w->end))
            return refuse(w, HTTP_CHUNK_TRAILERS, "more than 100 trailers");
        const char *why, *next = http_field(w->q, w->end, &name, &value, &why);
        if (!next)
            return why ? refuse(w, HTTP_CHUNK_BAD, why) : FIRN_EAGAIN;
        if (bears_on_framing(name))
            return refuse(w, HTTP_CHUNK_BAD,
                          "a trailer bears on framing, which was settled before it");
        w->q = next;
    }
}

/* With `to` the data is joined there; it may be where the body begins. */
static int walk_chunks(struct walk *w, const struct http_chunk_limits *limits, char *to,
                       size_t *out_len)
{
    size_t total = 0;
    for (size_t n = 0;; n++) {
        uint64_t size;
        if (n > limits->chunks_max)
            return refuse(w, HTTP_CHUNK_LONG, "the body comes in too many chunks");
        int r = size_line(w, limits->body_max - total, &size);
        if (r)
            return r;
        if (size == 0)
            break;
        size_t have = (size_t)(w->end - w->q), after = have > size ? have - size : 0;
        if (memcmp(w->q + (have - after), "\r\n", after < 2 ? after : 2) != 0)
            return refuse(w, HTTP_CHUNK_BAD, "a chunk's data does not end with CR LF");
        if (after < 2)
            return FIRN_EAGAIN;
        if (to) {
            firn_assert(to + total <= w->q, "total=%zu", total);
            memmove(to + total, w->q, size);
        }
        total += size;
        w->q += size + 2;
    }
    *out_len = total;
    return trailers(w);
}

ssize_t http_chunks(char *p, size_t len, const struct http_chunk_limits *limits, size_t *out_len,
                    const char **why, enum http_chunk_error *error)
{
    struct walk w = { .q = p, .end = p + len };
    size_t n;
    int r = walk_chunks(&w, limits, NULL, &n); /* first look whether all of it is there */
    *why = w.why;
    *error = w.error;
    if (r < 0)
        return r;
    size_t used = (size_t)(w.q - p);
    w = (struct walk){ .q = p, .end = p + used };
    r = walk_chunks(&w, limits, p, out_len);
    firn_assert(r == 0 && *out_len == n && n <= used, "joined=%zu of %zu", *out_len, n);
    return (ssize_t)used;
}

ssize_t http_chunk_line(const char *p, size_t len, uint64_t *size, const char **why)
{
    struct walk w = { .q = p, .end = p + len };
    int r = size_line(&w, INT64_MAX, size);
    *why = w.why;
    return r < 0 ? r : w.q - p;
}

ssize_t http_trailers(const char *p, size_t len, const char **why)
{
    struct walk w = { .q = p, .end = p + len };
    int r = trailers(&w);
    *why = w.why;
    return r < 0 ? r : w.q - p;
}
