/* The reader of HTTP/1 responses, for the clients: head, framing, body. */
#include "wire/http_response.h"
#include "platform/assert.h"

enum { CHUNKS_MAX = 1 << 20 };

/* "HTTP/1.1 200 OK\r\n". Returns what follows it; NULL: FIRN_EAGAIN or FIRN_EFORMAT in *r. */
static const char *status_line(const char *q, const char *end, struct http_response *out, int *r)
{
    static const char shape[] = "HTTP/1.m sss"; /* m: the minor version; s: a digit of the status */
    size_t have = (size_t)(end - q);
    *r = FIRN_EFORMAT;
    for (size_t i = 0; i < sizeof shape - 1; i++) {
        if (i == have) {
            *r = FIRN_EAGAIN;
            return NULL;
        }
        bool good = shape[i] == 's'   ? q[i] >= (i == 9 ? '1' : '0') && q[i] <= '9'
                    : shape[i] == 'm' ? q[i] == '0' || q[i] == '1'
                                      : q[i] == shape[i];
        if (!good)
            return NULL;
    }
    out->minor = (uint8_t)(q[7] - '0');
    out->status = (unsigned)(q[9] - '0') * 100 + (unsigned)(q[10] - '0') * 10 +
                  (unsigned)(q[11] - '0');
    q += sizeof shape - 1;
    const char *from = q;
    q = http_value_end(q, end);
    if (q > from && *from != ' ')
        return NULL;
    if (q == end || (*q == '\r' && q + 1 == end)) {
        *r = FIRN_EAGAIN;
        return NULL;
    }
    if (*q != '\r' || q[1] != '\n')
        return NULL;
    out->reason = (struct slice){ from + (q > from), (size_t)(q - from - (q > from)) };
    return q + 2;
}

/* How the body is framed, by all headers together. Two framings, or one of them twice, are refused:
 * readers would disagree about where the next response begins. */
static int frame(struct http_response *out)
{
    bool length = false, chunked = false, keep = out->minor == 1;
    for (size_t i = 0; i < out->headers; i++) {
        struct slice name = out->header[i].name, value = out->header[i].value;
        if (http_word_is(name, "content-length")) {
            if (length || http_u64(value, INT64_MAX, &out->body_len) != 0)
                return FIRN_EFORMAT;
            length = true;
        } else if (http_word_is(name, "transfer-encoding")) {
            if (chunked || !http_word_is(value, "chunked"))
                return FIRN_EFORMAT; /* no other coding was asked for */
            chunked = true;
        } else if (http_word_is(name, "connection")) {
            out->close |= http_lists(value, "close");
            keep |= http_lists(value, "keep-alive");
        }
    }
    if (chunked && (length || out->minor == 0))
        return FIRN_EFORMAT;
    out->framing = chunked ? FRAMED_BY_CHUNKS : length ? FRAMED_BY_LENGTH : FRAMED_BY_CLOSE;
    if (out->status < 200 || out->status == 204 || out->status == 304) {
        out->framing = FRAMED_BY_LENGTH; /* these never have a body */
        out->body_len = 0;
    }
    out->close |= !keep || out->framing == FRAMED_BY_CLOSE;
    return 0;
}

static ssize_t one_head(const char *p, size_t len, struct http_response *out)
{
    const char *q = p, *end = p + len, *why = NULL;
    int r;
    out->headers = 0;
    out->body_len = 0;
    out->close = false;
    q = status_line(q, end, out, &r);
    if (!q)
        return r;
    while (!(end - q >= 2 && q[0] == '\r' && q[1] == '\n')) {
        struct http_header h;
        q = http_field(q, end, &h.name, &h.value, &why);
        if (!q)
            return why ? FIRN_EFORMAT : FIRN_EAGAIN;
        if (out->headers == HTTP_FIELDS_MAX)
            return FIRN_EFORMAT;
        out->header[out->headers++] = h;
    }
    r = frame(out);
    return r ? r : q + 2 - p;
}

ssize_t http_response_head(const char *p, size_t len, struct http_response *out)
{
    size_t at = 0, most = len < HTTP_RESPONSE_HEAD_MAX ? len : HTTP_RESPONSE_HEAD_MAX;
    out->interim = 0;
    out->body = (struct slice){ NULL, 0 };
    for (;;) {
        ssize_t n = one_head(p + at, most - at, out);
        if (n < 0)
            out->status = 0;
        if (n == FIRN_EAGAIN && len >= HTTP_RESPONSE_HEAD_MAX)
            return FIRN_EFORMAT;
        if (n < 0)
            return n;
        at += (size_t)n;
        firn_assert(at <= most, "at=%zu of %zu", at, most);
        if (out->status >= 200)
            return (ssize_t)at;
        if (out->status == 101)
            return FIRN_EFORMAT;
        out->interim = at;
    }
}

ssize_t http_response_next(const char *p, size_t len, struct http_response *out)
{
    size_t most = len < HTTP_RESPONSE_HEAD_MAX ? len : HTTP_RESPONSE_HEAD_MAX;
    ssize_t n = one_head(p, most, out);
    out->interim = 0;
    out->body = (struct slice){ NULL, 0 };
    if (n < 0)
        out->status = 0;
    return n == FIRN_EAGAIN && len >= HTTP_RESPONSE_HEAD_MAX ? FIRN_EFORMAT : n;
}

ssize_t http_response_read(char *p, size_t len, bool eof, struct http_response *out)
{
    static const struct http_chunk_limits limits = { HTTP_RESPONSE_BODY_MAX, CHUNKS_MAX };
    ssize_t head = http_response_head(p, len, out);
    if (head < 0)
        return head;
    size_t have = len - (size_t)head, body_len = have;
    ssize_t used = (ssize_t)have;
    const char *why;
    enum http_chunk_error error;
    switch (out->framing) {
    case FRAMED_BY_CHUNKS:
        used = http_chunks(p + head, have, &limits, &body_len, &why, &error);
        if (used < 0)
            return used;
        break;
    case FRAMED_BY_LENGTH:
        if (out->body_len > HTTP_RESPONSE_BODY_MAX)
            return FIRN_EFORMAT;
        if (have < out->body_len)
            return FIRN_EAGAIN;
        body_len = (size_t)out->body_len;
        used = (ssize_t)body_len;
        break;
    case FRAMED_BY_CLOSE:
        if (have > HTTP_RESPONSE_BODY_MAX)
            return FIRN_EFORMAT;
        if (!eof)
            return FIRN_EAGAIN;
        break;
    }
    out->body = (struct slice){ p + head, body_len };
    return head + used;
}

struct slice http_response_header(const struct http_response *r, const char *name)
{
    for (size_t i = 0; i < r->headers; i++)
        if (http_word_is(r->header[i].name, name))
            return r->header[i].value;
    return (struct slice){ NULL, 0 };
}
