/* Bodies of HTTP/1 messages, read piece by piece. */
#include "wire/http_body.h"
#include "platform/assert.h"

enum at { AT_SIZE, AT_DATA, AT_DATA_END, AT_TRAILERS };

void http_body_begin(struct http_body *b, enum http_framing framing, uint64_t len)
{
    *b = (struct http_body){ .framing = framing,
                             .left = framing == FRAMED_BY_LENGTH ? len : 0,
                             .at = framing == FRAMED_BY_CHUNKS ? AT_SIZE : AT_DATA };
    b->done = framing == FRAMED_BY_LENGTH && len == 0;
}

static ssize_t refuse(struct http_body *b, const char *why)
{
    b->why = why;
    return FIRN_EFORMAT;
}

/* One step of the chunks: bytes used, 0: more are needed, FIRN_EFORMAT. */
static ssize_t step(struct http_body *b, const char *p, size_t len, struct slice *data)
{
    const char *why = NULL;
    ssize_t n = 0;
    switch ((enum at)b->at) {
    case AT_SIZE:
        n = http_chunk_line(p, len, &b->left, &why);
        if (n > 0)
            b->at = b->left > 0 ? AT_DATA : AT_TRAILERS;
        break;
    case AT_DATA:
        n = (ssize_t)(len < b->left ? len : b->left);
        *data = (struct slice){ p, (size_t)n };
        b->left -= (uint64_t)n;
        if (b->left == 0)
            b->at = AT_DATA_END;
        return n;
    case AT_DATA_END:
        if (memcmp(p, "\r\n", len < 2 ? len : 2) != 0)
            return refuse(b, "a chunk's data does not end with CR LF");
        if (len < 2)
            return 0;
        b->at = AT_SIZE;
        return 2;
    case AT_TRAILERS:
        n = http_trailers(p, len < HTTP_TRAILERS_BYTES_MAX ? len : HTTP_TRAILERS_BYTES_MAX, &why);
        if (n == FIRN_EAGAIN && len >= HTTP_TRAILERS_BYTES_MAX)
            return refuse(b, "the trailers are longer than 8 KiB");
        if (n > 0) {
            b->done = true;
            b->trailers = (struct slice){ p, (size_t)n - 2 };
        }
        break;
    }
    if (n < 0 && n != FIRN_EAGAIN)
        return refuse(b, why);
    return n < 0 ? 0 : n;
}

ssize_t http_body_next(struct http_body *b, const char *p, size_t len, struct slice *data)
{
    *data = (struct slice){ NULL, 0 };
    if (b->done || len == 0)
        return 0;
    if (b->framing != FRAMED_BY_CHUNKS) {
        bool whole = b->framing == FRAMED_BY_LENGTH && len >= b->left;
        size_t n = whole ? (size_t)b->left : len;
        *data = (struct slice){ p, n };
        b->left -= b->framing == FRAMED_BY_LENGTH ? n : 0;
        b->done = whole;
        return (ssize_t)n;
    }
    size_t used = 0;
    while (used < len && !b->done && data->len == 0) {
        ssize_t n = step(b, p + used, len - used, data);
        if (n < 0)
            return n;
        if (n == 0)
            break;
        used += (size_t)n;
    }
    /* The end of a chunk and the next size belong to no data: taken along where they are there. */
    while (used < len && !b->done && data->len > 0 && b->at != AT_DATA) {
        struct slice none = { NULL, 0 };
        ssize_t n = step(b, p + used, len - used, &none);
        if (n < 0)
            return n;
        if (n == 0)
            break;
        used += (size_t)n;
    }
    firn_assert(used <= len, "used=%zu of %zu", used, len);
    return (ssize_t)used;
}
