/*
 * The reader of HTTP/1 requests.
 * scan_head() walks the head line by line with the strict scanner of http_line.h and collects the
 * headers that firnd uses. If one of them bears on framing or on the life of the connection, llhttp
 * reads the same bytes too, and both must agree: our scanner is the strict gate, llhttp the second
 * opinion that has met more attacks. A head without such headers (nearly every request for an ID)
 * means "no body, keep alive as the version says" in every parser, so llhttp is not asked.
 * http_parse_slow() always asks; the tests compare the two.
 *
 * Nothing is remembered between calls: a request that arrives in pieces is scanned again from its
 * start. The bounds on head and chunks keep that cheap, and there is no state to get wrong.
 */
#include "wire/http.h"
#include "platform/assert.h"
#include "wire/http_line.h"
#include "wire/http_start.h"

#include <llhttp.h>

static const char *const method_name[] = {
    [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",     [METHOD_POST] = "POST",
    [METHOD_PUT] = "PUT",         [METHOD_DELETE] = "DELETE", [METHOD_PATCH] = "PATCH",
    [METHOD_OPTIONS] = "OPTIONS",
};
enum { METHODS = sizeof method_name / sizeof method_name[0], METHOD_BYTES_MAX = 24 };

const char *http_method_name(enum http_method m)
{
    return method_name[m];
}

bool http_is_method(const char *p, size_t len)
{
    for (int m = 0; m < METHODS; m++)
        if (len == strlen(method_name[m]) && memcmp(p, method_name[m], len) == 0)
            return true;
    return false;
}

static const struct {
    uint16_t status;
    const char *text;
} status_text[] = {
    { 100, "Continue" },
    { 200, "OK" },
    { 201, "Created" },
    { 202, "Accepted" },
    { 204, "No Content" },
    { 301, "Moved Permanently" },
    { 303, "See Other" },
    { 304, "Not Modified" },
    { 307, "Temporary Redirect" },
    { 308, "Permanent Redirect" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 406, "Not Acceptable" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 410, "Gone" },
    { 411, "Length Required" },
    { 412, "Precondition Failed" },
    { 413, "Content Too Large" },
    { 414, "URI Too Long" },
    { 415, "Unsupported Media Type" },
    { 417, "Expectation Failed" },
    { 421, "Misdirected Request" },
    { 422, "Unprocessable Content" },
    { 425, "Too Early" },
    { 428, "Precondition Required" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 502, "Bad Gateway" },
    { 503, "Service Unavailable" },
    { 504, "Gateway Timeout" },
    { 505, "HTTP Version Not Supported" },
    { 507, "Insufficient Storage" },
};

const char *http_status_text(unsigned status)
{
    for (size_t i = 0; i < sizeof status_text / sizeof status_text[0]; i++)
        if (status_text[i].status == status)
            return status_text[i].text;
    return "Unknown";
}

/* What scan_head() finds besides the fields of struct http_request. */
struct head {
    size_t begin, end; /* the head without a leading empty line */
    struct slice target;
    struct slice content_length, transfer_encoding, expect;
    bool framing; /* a header is there that llhttp must judge */
};

static int refuse(struct http_error *err, uint16_t status, const char *reason)
{
    err->status = status;
    err->reason = reason;
    return FIRN_EFORMAT;
}

/* The headers that are used. llhttp checks those with FRAMING too; all but REPEATS may come once.
 * TRACES are hints from whoever passed the request on: a second one makes the first void, not the
 * request. */
enum { FRAMING = 1, REPEATS = 2, IN_HEAD = 4, TRACES = 8 };
struct known {
    const char *name; /* lower case */
    uint8_t len;
    uint8_t flags;
    uint16_t at; /* where the value goes: offset in struct head (IN_HEAD) or struct http_request */
};
#define NAME(text)  text, sizeof text - 1
#define REQ(field)  offsetof(struct http_request, field)
#define HEAD(field) FRAMING | IN_HEAD, offsetof(struct head, field)
static const struct known known[] = {
    { NAME("host"), 0, REQ(host) },
    { NAME("accept"), REPEATS, REQ(accept) },
    { NAME("content-type"), 0, REQ(content_type) },
    { NAME("authorization"), 0, REQ(authorization) },
    { NAME("idempotency-key"), 0, REQ(idempotency_key) },
    { NAME("last-event-id"), 0, REQ(last_event_id) },
    { NAME("if-none-match"), REPEATS, REQ(if_none_match) },
    { NAME("origin"), 0, REQ(origin) },
    { NAME("sec-fetch-site"), 0, REQ(fetch_site) },
    { NAME("traceparent"), TRACES, REQ(traceparent) },
    { NAME("tracestate"), REPEATS, REQ(tracestate) },
    { NAME("x-request-id"), TRACES, REQ(request_id) },
    { NAME("content-length"), HEAD(content_length) },
    { NAME("transfer-encoding"), HEAD(transfer_encoding) },
    { NAME("expect"), HEAD(expect) },
    { NAME("connection"), FRAMING | REPEATS, 0 },
    { NAME("proxy-connection"), FRAMING | REPEATS, 0 },
    { NAME("upgrade"), FRAMING | REPEATS, 0 },
};
#undef NAME
#undef REQ
#undef HEAD
/* Which lengths occur in known[]: most other names are ruled out by one bit. */
#define BIT(n) (1u << (n))
static const uint32_t known_len = BIT(4) | BIT(6) | BIT(7) | BIT(10) | BIT(11) | BIT(12) | BIT(13) |
                                  BIT(14) | BIT(15) | BIT(16) | BIT(17);

static int keep_header(struct slice name, struct slice value, struct http_request *req,
                       struct head *h, struct http_error *err)
{
    if (name.len > 17 || !(known_len >> name.len & 1))
        return 0;
    for (const struct known *k = known; k < known + sizeof known / sizeof known[0]; k++) {
        if (k->len != name.len || !http_name_is(name.p, k->name, name.len))
            continue;
        h->framing |= (k->flags & FRAMING) != 0;
        req->traced |= (k->flags & TRACES) != 0;
        if (k->flags == (FRAMING | REPEATS)) /* Connection and the like: read by llhttp alone */
            return 0;
        struct slice *to = (struct slice *)((k->flags & IN_HEAD ? (char *)h : (char *)req) + k->at);
        if (!to->p)
            *to = value;
        else if (k->flags & TRACES)
            to->len = 0;
        else if (!(k->flags & REPEATS))
            return refuse(err, 400, "a header that may occur once occurs twice");
        return 0;
    }
    return 0;
}

static const char *scan_method(const char *q, const char *end, struct http_request *req,
                               struct http_error *err, int *r)
{
    if (end - q >= 4 && memcmp(q, "GET ", 4) == 0) {
        req->method = METHOD_GET;
        return q + 4;
    }
    const char *from = q;
    *r = FIRN_EAGAIN;
    while (q < end && http_is(*q, HTTP_TOKEN) && q - from <= METHOD_BYTES_MAX)
        q++;
    if (q == end)
        return NULL;
    size_t len = (size_t)(q - from);
    if (*q != ' ' || len == 0) {
        *r = refuse(err, 400,
                    len == 0 && *q == 0x16 ? "this port does not speak TLS"
                                           : "this is neither HTTP nor the Redis protocol");
        return NULL;
    }
    for (int m = 0; m < METHODS; m++)
        if (len == strlen(method_name[m]) && memcmp(from, method_name[m], len) == 0) {
            req->method = (enum http_method)m;
            return q + 1;
        }
    *r = refuse(err, 501, "unknown method");
    return NULL;
}

static bool host_ok(struct slice host)
{
    for (size_t i = 0; i < host.len; i++)
        if (!http_is(host.p[i], HTTP_HOST))
            return false;
    return true;
}

/* 0, FIRN_EAGAIN or FIRN_EFORMAT. `req` and `h` are zeroed by the caller. */
static int scan_head(const char *p, size_t len, struct http_request *req, struct head *h,
                     struct http_error *err)
{
    const char *q = p, *end = p + (len < HTTP_HEAD_BYTES_MAX ? len : HTTP_HEAD_BYTES_MAX),
               *why = NULL;
    int r = FIRN_EAGAIN;
    struct slice authority = { NULL, 0 };
    uint16_t status;
    q = http_start(q, end, &why);
    if (!q)
        return why ? refuse(err, 400, why) : FIRN_EAGAIN;
    h->begin = (size_t)(q - p);
    if (q == end)
        return FIRN_EAGAIN;

    q = scan_method(q, end, req, err, &r);
    if (!q)
        return r;
    const char *from = q;
    while (q < end && http_is(*q, HTTP_TARGET))
        q++;
    h->target = (struct slice){ from, (size_t)(q - from) };
    if (h->target.len > HTTP_TARGET_BYTES_MAX)
        return refuse(err, 414, "the request target is longer than 8 KiB");
    if (q == end)
        return len < HTTP_HEAD_BYTES_MAX ? FIRN_EAGAIN
                                         : refuse(err, 414, "the request target is too long");
    if (*q != ' ' || h->target.len == 0)
        return refuse(err, 400,
                      *q == '\r' || *q == '\n'
                          ? "the request line has no HTTP version"
                          : "the request target holds a character that must be percent-encoded");
    why = http_split_target(h->target, req->method == METHOD_OPTIONS, &req->path, &req->query,
                            &authority);
    if (why)
        return refuse(err, 400, why);
    const char *version = q + 1;
    q = http_version(version, end, &req->minor);
    if (!q) {
        why = http_version_trouble(version, end, &status);
        r = why ? refuse(err, status, why) : FIRN_EAGAIN;
    }

    for (int n = 0; q; n++) {
        if (end - q >= 2 && q[0] == '\r' && q[1] == '\n') {
            h->end = (size_t)(q + 2 - p);
            break;
        }
        if (n == HTTP_HEADERS_MAX && !http_may_end(q, end))
            return refuse(err, 431, "more than 100 headers");
        struct slice name, value;
        q = http_field(q, end, &name, &value, &why);
        if (q && (r = keep_header(name, value, req, h, err)) < 0)
            return r;
        if (!q)
            r = why ? refuse(err, 400, why) : FIRN_EAGAIN;
    }
    if (!q)
        return r == FIRN_EAGAIN && len >= HTTP_HEAD_BYTES_MAX
                   ? refuse(err, 431, "request line and headers are longer than 16 KiB")
                   : r;
    if (!req->host.p && req->minor == 1)
        return refuse(err, 400, "the Host header is missing");
    if (!host_ok(req->host))
        return refuse(err, 400, "the Host header holds a character that is not allowed there");
    if (authority.p)
        req->host = authority;
    return 0;
}

/* How llhttp reads a head. */
struct verdict {
    llhttp_t parser;
    struct slice url;
    bool complete, chunked, has_length, keep_alive;
    uint64_t length;
};

static int on_url(llhttp_t *parser, const char *p, size_t len)
{
    struct verdict *v = parser->data;
    v->url = (struct slice){ p, len };
    return 0;
}

static int on_headers_complete(llhttp_t *parser)
{
    struct verdict *v = parser->data; /* noted here: llhttp forgets them with the message's end */
    v->complete = true;
    v->chunked = (parser->flags & F_CHUNKED) != 0;
    v->has_length = (parser->flags & F_CONTENT_LENGTH) != 0;
    v->length = parser->content_length;
    v->keep_alive = llhttp_should_keep_alive(parser) && !(parser->flags & F_CONNECTION_CLOSE);
    return 0;
}

static const llhttp_settings_t settings = { .on_url = on_url,
                                            .on_headers_complete = on_headers_complete };

static int judge(const char *p, const struct head *h, const struct http_request *req,
                 struct verdict *v, struct http_error *err)
{
    llhttp_init(&v->parser, HTTP_REQUEST, &settings);
    v->parser.data = v;
    llhttp_errno_t e = llhttp_execute(&v->parser, p + h->begin, h->end - h->begin);
    if (e != HPE_OK && e != HPE_PAUSED_UPGRADE) {
        const char *why = llhttp_get_error_reason(&v->parser);
        return refuse(err, 400, why && *why ? why : "the request is malformed");
    }
    if (!v->complete || v->url.p != h->target.p || v->url.len != h->target.len ||
        v->parser.http_major != 1 || v->parser.http_minor != req->minor)
        return refuse(err, 400, "the request is ambiguous");
    return 0;
}

static ssize_t parse_chunked(char *p, size_t len, const struct head *h, struct http_request *req,
                             struct http_error *err)
{
    static const struct http_chunk_limits limits = { HTTP_BODY_BYTES_MAX, HTTP_CHUNKS_MAX };
    static const uint16_t status[] = {
        [HTTP_CHUNK_BAD] = 400, [HTTP_CHUNK_LONG] = 413, [HTTP_CHUNK_TRAILERS] = 431
    };
    const char *why;
    enum http_chunk_error error;
    size_t body_len;
    ssize_t used = http_chunks(p + h->end, len - h->end, &limits, &body_len, &why, &error);
    if (used == FIRN_EAGAIN)
        return len < HTTP_REQUEST_BYTES_MAX ? FIRN_EAGAIN
                                            : refuse(err, 413, "the chunked body is too long");
    if (used < 0)
        return refuse(err, status[error], why);
    req->body = (struct slice){ p + h->end, body_len };
    return (ssize_t)h->end + used;
}

/* A head with framing headers: agrees with llhttp on where the request ends, then looks for its
 * end. */
static ssize_t parse_framed(char *p, size_t len, const struct head *h, struct http_request *req,
                            struct http_error *err)
{
    struct verdict v = { 0 };
    bool coded = h->transfer_encoding.p != NULL;
    if (coded && h->content_length.p)
        return refuse(err, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (coded && req->minor == 0)
        return refuse(err, 400, "HTTP/1.0 has no Transfer-Encoding");
    if (coded && !http_word_is(h->transfer_encoding, "chunked"))
        return refuse(err, 501, "the only supported transfer coding is chunked");
    uint64_t length = 0;
    int r = h->content_length.p ? http_u64(h->content_length, UINT64_MAX, &length) : 0;
    if (r == FIRN_EFORMAT)
        return refuse(err, 400, "Content-Length is not a number");
    if (r == FIRN_ERANGE || length > HTTP_BODY_BYTES_MAX)
        return refuse(err, 413, "the body is longer than 64 KiB");
    r = judge(p, h, req, &v, err);
    if (r < 0)
        return r;
    if (v.chunked != coded || v.length != length || v.has_length != (h->content_length.p != NULL))
        return refuse(err, 400, "the request is ambiguous");
    req->keep_alive = v.keep_alive;

    if (h->expect.p && req->minor == 1) {
        if (!http_word_is(h->expect, "100-continue"))
            return refuse(err, 417, "the only supported expectation is 100-continue");
        req->expect_continue = len == h->end; /* not when the first bytes of the body are there */
    }
    req->in_body = true;
    if (coded)
        return parse_chunked(p, len, h, req, err);
    if (len - h->end < length)
        return FIRN_EAGAIN;
    req->body = (struct slice){ p + h->end, (size_t)length };
    return (ssize_t)(h->end + (size_t)length);
}

static inline ssize_t parse(char *p, size_t len, struct http_request *req, struct http_error *err,
                            bool ask_always)
{
    *req = (struct http_request){ 0 };
    struct head h = { 0 };
    int r = scan_head(p, len, req, &h, err);
    if (r < 0)
        return r;
    firn_assert(h.end > 0 && h.end <= len, "end=%zu of %zu", h.end, len);
    if (h.framing || ask_always)
        return parse_framed(p, len, &h, req, err);
    req->keep_alive = req->minor == 1;
    req->body = (struct slice){ p + h.end, 0 };
    return (ssize_t)h.end;
}

ssize_t http_parse(char *p, size_t len, struct http_request *req, struct http_error *err)
{
    return parse(p, len, req, err, false);
}

size_t http_repeats(const struct http_request *req, size_t max)
{
    if (req->self.len == 0 || req->method != METHOD_GET || !req->keep_alive || req->body.len > 0)
        return 0;
    return slice_repeats(req->self, req->rest, max);
}

/* llhttp's reading of a whole request: where it ends and how long its body is. */
struct whole {
    bool complete;
    size_t body_len;
};

static int on_body(llhttp_t *parser, const char *p, size_t len)
{
    (void)p;
    ((struct whole *)parser->data)->body_len += len;
    return 0;
}

static int on_message_complete(llhttp_t *parser)
{
    ((struct whole *)parser->data)->complete = true;
    return HPE_PAUSED;
}

ssize_t http_parse_slow(char *p, size_t len, struct http_request *req, struct http_error *err)
{
    static const llhttp_settings_t to_the_end = { .on_body = on_body,
                                                  .on_message_complete = on_message_complete };
    struct whole w = { 0 };
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &to_the_end);
    parser.data = &w;
    llhttp_execute(&parser, p, len);
    const char *end = llhttp_get_error_pos(&parser);

    ssize_t used = parse(p, len, req, err, true); /* last: it may join chunks */
    if (used > 0 && (!w.complete || end != p + used || w.body_len != req->body.len))
        return refuse(err, 400, "the request is ambiguous");
    return used;
}
