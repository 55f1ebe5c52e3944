/*
 * http_line.h - the strict scanner that requests (http.h) and responses (http_response.h) share.
 * Field lines and chunks as RFC 9112 has them, without the forms that parsers disagree about: bare
 * CR or LF, folded lines, space before a colon, control bytes. Pure; any thread.
 */
#ifndef FIRN_WIRE_HTTP_LINE_H
#define FIRN_WIRE_HTTP_LINE_H

#include "firn/error.h"
#include "wire/buf.h"

#include <sys/types.h>

enum {                  /* bits of http_class */
       HTTP_TOKEN = 1,  /* of a method or field name */
       HTTP_VALUE = 2,  /* of a field value, with space and tab */
       HTTP_TARGET = 4, /* of a request target */
       HTTP_HOST = 8,   /* of Host, or the authority in a target */
};
extern const uint8_t http_class[256] __attribute__((visibility("hidden")));

static inline bool http_is(char c, uint8_t what)
{
    return (http_class[(uint8_t)c] & what) != 0;
}

/* Passes over bytes of a field value, eight at a time while there is no control byte among them. */
static inline const char *http_value_end(const char *q, const char *end)
{
    const uint64_t ones = (uint64_t)-1 / 255;
    while (end - q >= 8) {
        uint64_t v;
        memcpy(&v, q, sizeof v);
        uint64_t below_space = (v - ones * 0x20) & ~v;
        uint64_t del = v ^ ones * 0x7f;
        del = (del - ones) & ~del;
        if ((below_space | del) & ones * 0x80)
            break; /* a control byte, or the tab, or a borrow from one: look closely */
        q += 8;
    }
    while (q < end && http_is(*q, HTTP_VALUE))
        q++;
    return q;
}

/* What is wrong with the line whose name ends at q; NULL: valid so far. */
const char *http_name_trouble(const char *from, const char *q, const char *end);

/* The field line at q. Returns what follows its CR LF, or NULL: then *why is NULL if the line is
 * not whole yet, else a sentence without a full stop. The value comes without the space around
 * it. */
static inline const char *http_field(const char *q, const char *end, struct slice *name,
                                     struct slice *value, const char **why)
{
    const char *from = q;
    *why = NULL;
    while (q < end && http_is(*q, HTTP_TOKEN))
        q++;
    if (q == end)
        return NULL;
    if (*q != ':' || q == from) {
        *why = http_name_trouble(from, q, end);
        return NULL;
    }
    *name = (struct slice){ from, (size_t)(q - from) };
    q++;
    while (q < end && (*q == ' ' || *q == '\t'))
        q++;
    from = q;
    q = http_value_end(q, end);
    if (q == end || (*q == '\r' && q + 1 == end))
        return NULL;
    if (*q != '\r' || q[1] != '\n') {
        *why = *q == '\r' || *q == '\n' ? "a header line does not end with CR LF"
                                        : "a header value holds a control character";
        return NULL;
    }
    const char *last = q;
    while (last > from && (last[-1] == ' ' || last[-1] == '\t'))
        last--;
    *value = (struct slice){ from, (size_t)(last - from) };
    return q + 2;
}

/* Whether what is there may become the empty line that ends a head: with as many fields as may be,
 * nothing else may follow. */
static inline bool http_may_end(const char *q, const char *end)
{
    return q == end || (*q == '\r' && (q + 1 == end || q[1] == '\n'));
}

/* Equality with lower-case `word`; right for tokens, where |0x20 maps nothing else onto a
 * letter. */
static inline bool http_name_is(const char *p, const char *word, size_t len)
{
    unsigned differ = 0;
    for (size_t i = 0; i < len; i++)
        differ |= ((uint8_t)p[i] | 0x20u) ^ (uint8_t)word[i];
    return differ == 0;
}

/* Equality with lower-case `word`, of any bytes. Most are told apart by their lengths. */
bool http_same_word(const char *p, const char *word, size_t len);
static inline bool http_word_is(struct slice s, const char *word)
{
    return s.len == strlen(word) && http_same_word(s.p, word, s.len);
}

/* Without the spaces and tabs around it. */
struct slice http_trim(struct slice s);

/* Takes what stands before the next `mark` off *rest, without the space around it. False at the
 * end, which is where rest->p is NULL: an empty text has one empty part. */
bool http_part(struct slice *rest, char mark, struct slice *part);

/* Whether a comma-separated list, as in Connection, has the lower-case word. */
bool http_lists(struct slice list, const char *word);

/* Decimal digits only, no sign, no space. FIRN_EFORMAT, or FIRN_ERANGE above `max`. */
FIRN_MUSTUSE int http_u64(struct slice s, uint64_t max, uint64_t *out);

enum http_framing { FRAMED_BY_LENGTH, FRAMED_BY_CHUNKS, FRAMED_BY_CLOSE };

struct http_header {
    struct slice name, value; /* the value without the space around it */
};

enum {
    HTTP_FIELDS_MAX = 100,           /* lines of one head, or trailers of one body */
    HTTP_CHUNK_LINE_BYTES_MAX = 256, /* a chunk's size and extensions */
};

struct http_chunk_limits {
    size_t body_max;   /* bytes of data */
    size_t chunks_max; /* bounds the work of looking at an unfinished body again */
};

enum http_chunk_error { HTTP_CHUNK_BAD, HTTP_CHUNK_LONG, HTTP_CHUNK_TRAILERS };

/* A chunked body at the start of p: how many bytes it takes with its trailers, FIRN_EAGAIN or
 * FIRN_EFORMAT (then *why and *error). In the call that succeeds, and in no other, the data is
 * joined at the front of p, *out_len bytes. Trailers must be well formed and must not bear on
 * framing; they are not used. */
FIRN_MUSTUSE ssize_t http_chunks(char *p, size_t len, const struct http_chunk_limits *limits,
                                 size_t *out_len, const char **why, enum http_chunk_error *error);

/* For bodies that are read piece by piece (http_body.h). The line that begins a chunk, at the start
 * of p: how many bytes it takes, FIRN_EAGAIN or FIRN_EFORMAT (then *why). */
FIRN_MUSTUSE ssize_t http_chunk_line(const char *p, size_t len, uint64_t *size, const char **why);

/* The trailers behind the last chunk with the empty line that ends them; the same results. */
FIRN_MUSTUSE ssize_t http_trailers(const char *p, size_t len, const char **why);

#endif
