/* The reader of whole request heads, for proxies. */
#include "wire/http_head.h"
#include "platform/assert.h"
#include "wire/http_start.h"

static int refuse(struct http_error *err, uint16_t status, const char *reason)
{
    err->status = status;
    err->reason = reason;
    return FIRN_EFORMAT;
}

/* Returns what follows the token and its space, or NULL: then *r. */
static const char *read_method(const char *q, const char *end, struct http_head *h,
                               struct http_error *err, int *r)
{
    const char *from = q;
    *r = FIRN_EAGAIN;
    while (q < end && http_is(*q, HTTP_TOKEN) && q - from <= HTTP_METHOD_BYTES_MAX)
        q++;
    if (q == end)
        return NULL;
    h->method = (struct slice){ from, (size_t)(q - from) };
    if (*q != ' ' || h->method.len == 0)
        *r = refuse(err, h->method.len > HTTP_METHOD_BYTES_MAX ? 501 : 400,
                    h->method.len == 0 && *q == 0x16 ? "this port does not speak TLS"
                                                     : "this is not HTTP");
    else if (slice_is(h->method, "CONNECT") || slice_is(h->method, "TRACE"))
        *r = refuse(err, 501, "CONNECT and TRACE are not supported");
    else
        return q + 1;
    return NULL;
}

static const char *read_target(const char *q, const char *end, struct http_head *h,
                               struct slice *authority, struct http_error *err, int *r)
{
    const char *from = q;
    while (q < end && http_is(*q, HTTP_TARGET))
        q++;
    struct slice target = { from, (size_t)(q - from) };
    *r = FIRN_EAGAIN;
    if (target.len > HTTP_TARGET_BYTES_MAX)
        *r = refuse(err, 414, "the request target is longer than 8 KiB");
    else if (q < end && (*q != ' ' || target.len == 0))
        *r = refuse(err, 400,
                    *q == '\r' || *q == '\n'
                        ? "the request line has no HTTP version"
                        : "the request target holds a character that must be percent-encoded");
    else if (q < end) {
        const char *why = http_split_target(target, slice_is(h->method, "OPTIONS"), &h->path,
                                            &h->query, authority);
        *r = why ? refuse(err, 400, why) : 0;
    }
    return *r == 0 ? q + 1 : NULL;
}

/* Fields whose repetition two readers might take differently. */
static const char *const once[] = {
    "host",          "content-length",  "transfer-encoding", "expect", "content-type",
    "authorization", "idempotency-key", "last-event-id",     "origin", "sec-fetch-site",
    "upgrade"
};
enum { ONCE = sizeof once / sizeof once[0], HOST = 0, LENGTH, CODING, EXPECT, UPGRADE = 10 };

/* What the fields say together. `seen`: the values of those in once[]. */
static int judge(struct http_head *h, const struct slice seen[ONCE], struct http_error *err)
{
    bool close = false, keep = h->minor == 1, upgrade = false;
    for (size_t i = 0; i < h->headers; i++) {
        const struct http_header *f = &h->header[i];
        if (http_word_is(f->name, "connection")) {
            close |= http_lists(f->value, "close");
            keep |= http_lists(f->value, "keep-alive");
            upgrade |= http_lists(f->value, "upgrade");
        } else if (http_word_is(f->name, "te")) {
            h->te_trailers |= http_lists(f->value, "trailers");
        }
    }
    h->keep_alive = keep && !close;
    bool coded = seen[CODING].p != NULL, length = seen[LENGTH].p != NULL;
    if (coded && length)
        return refuse(err, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (coded && h->minor == 0)
        return refuse(err, 400, "HTTP/1.0 has no Transfer-Encoding");
    if (coded && !http_word_is(seen[CODING], "chunked"))
        return refuse(err, 501, "the only supported transfer coding is chunked");
    int r = length ? http_u64(seen[LENGTH], INT64_MAX, &h->body_len) : 0;
    if (r < 0)
        return refuse(err, r == FIRN_ERANGE ? 413 : 400, "Content-Length is not a number");
    h->framing = coded ? FRAMED_BY_CHUNKS : FRAMED_BY_LENGTH;
    if (seen[EXPECT].p && h->minor == 1) {
        if (!http_word_is(seen[EXPECT], "100-continue"))
            return refuse(err, 417, "the only supported expectation is 100-continue");
        h->expect_continue = coded || h->body_len > 0;
    }
    h->websocket = upgrade && h->minor == 1 && slice_is(h->method, "GET") && !coded &&
                   h->body_len == 0 && http_word_is(seen[UPGRADE], "websocket");
    for (size_t i = 0; i < seen[HOST].len; i++)
        if (!http_is(seen[HOST].p[i], HTTP_HOST))
            return refuse(err, 400, "the Host header holds a character that is not allowed there");
    if (h->minor == 1 && !seen[HOST].p)
        return refuse(err, 400, "the Host header is missing");
    if (!h->host.p)
        h->host = seen[HOST];
    return 0;
}

static int note_once(struct slice seen[ONCE], const struct http_header *f, struct http_error *err)
{
    for (size_t i = 0; i < ONCE; i++) {
        if (!http_word_is(f->name, once[i]))
            continue;
        if (seen[i].p && i == UPGRADE) { /* a list in two lines: no upgrade that is passed on */
            seen[i] = (struct slice){ "", 0 };
            break;
        }
        if (seen[i].p)
            return refuse(err, 400, "a header that may occur once occurs twice");
        seen[i] = f->value;
        break;
    }
    return 0;
}

ssize_t http_head_read(const char *p, size_t len, struct http_head *h, struct http_error *err)
{
    const char *q = p, *end = p + (len < HTTP_HEAD_BYTES_MAX ? len : HTTP_HEAD_BYTES_MAX),
               *why = NULL;
    struct slice seen[ONCE] = { { NULL, 0 } }, authority = { NULL, 0 };
    int r = FIRN_EAGAIN;
    *h = (struct http_head){ .minor = 0 };
    q = http_start(q, end, &why);
    if (!q)
        return why ? refuse(err, 400, why) : FIRN_EAGAIN;
    q = read_method(q, end, h, err, &r);
    if (q)
        q = read_target(q, end, h, &authority, err, &r);
    const char *version = q;
    q = version ? http_version(version, end, &h->minor) : NULL;
    if (version && !q) {
        uint16_t status;
        why = http_version_trouble(version, end, &status);
        r = why ? refuse(err, status, why) : FIRN_EAGAIN;
    }
    while (q && !(end - q >= 2 && q[0] == '\r' && q[1] == '\n')) {
        struct http_header f;
        if (h->headers == HTTP_FIELDS_MAX && !http_may_end(q, end))
            return refuse(err, 431, "more than 100 headers");
        q = http_field(q, end, &f.name, &f.value, &why);
        if (!q) {
            r = why ? refuse(err, 400, why) : FIRN_EAGAIN;
            break;
        }
        h->header[h->headers++] = f;
        if ((r = note_once(seen, &f, err)) < 0)
            return r;
    }
    if (!q)
        return r == FIRN_EAGAIN && len >= HTTP_HEAD_BYTES_MAX
                   ? refuse(err, 431, "request line and headers are longer than 16 KiB")
                   : r;
    h->host = authority;
    r = judge(h, seen, err);
    return r < 0 ? r : q + 2 - p;
}

static void move(struct slice *s, const char *from, const char *to)
{
    if (s->p)
        s->p = to + (s->p - from);
}

void http_head_moved(struct http_head *h, const char *from, const char *to)
{
    move(&h->method, from, to);
    if (!(h->path.len == 1 && h->path.p[0] == '/')) /* it may be a text of ours */
        move(&h->path, from, to);
    else
        h->path.p = "/";
    move(&h->query, from, to);
    move(&h->host, from, to);
    for (size_t i = 0; i < h->headers; i++) {
        move(&h->header[i].name, from, to);
        move(&h->header[i].value, from, to);
    }
}

struct slice http_head_value(const struct http_head *h, const char *name)
{
    for (size_t i = 0; i < h->headers; i++)
        if (http_word_is(h->header[i].name, name))
            return h->header[i].value;
    return (struct slice){ NULL, 0 };
}
