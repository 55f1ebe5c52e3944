/* HTTP/1 requests: targets, headers, bodies, every split point, and what is refused. */
#include "t.h"

#include "guard.h"
#include "wire/http.h"

#include <stdio.h>

#define H "Host: a\r\n"

static bool slice_eq(struct slice s, const char *text)
{
    return s.p && s.len == strlen(text) && memcmp(s.p, text, s.len) == 0;
}

static ssize_t parse(const char *text, size_t len, struct http_request *req, struct http_error *err)
{
    *err = (struct http_error){ 0, "" };
    return http_parse(guard_copy(text, len), len, req, err);
}

T_TEST(http_runs)
{
    static const struct {
        const char *one;
        size_t times, expect;
    } rows[] = {
        { "GET /a HTTP/1.1\r\nHost: x\r\n\r\n", 5, 4 },
        { "GET /a HTTP/1.1\r\nHost: x\r\n\r\n", 1, 0 },
        { "GET /a HTTP/1.1\r\nHost: x\r\n\r\n", 20, 7 }, /* not more than one wants */
        { "GET /a HTTP/1.0\r\n\r\n", 5, 0 },             /* the connection ends */
        { "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 5, 0 },
        { "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n", 5, 0 },
        { "POST /a HTTP/1.1\r\nHost: x\r\n\r\n", 5, 0 },
        { "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", 5, 0 },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        char text[2048] = "";
        for (size_t k = 0; k < rows[i].times; k++)
            strcat(text, rows[i].one);
        size_t len = strlen(text);
        struct http_request req;
        struct http_error err;
        ssize_t used = http_parse(text, len, &req, &err);
        T_EQ(used, (ssize_t)strlen(rows[i].one));
        T_EQ(http_repeats(&req, 7), 0); /* it is unknown what follows */
        req.self = (struct slice){ text, (size_t)used };
        req.rest = (struct slice){ text + used, len - (size_t)used };
        T_EQ(http_repeats(&req, 7), rows[i].expect, "%s", rows[i].one);
        if (rows[i].expect == 4) { /* the last one is cut, or another */
            req.rest.len--;
            T_EQ(http_repeats(&req, 7), 3);
            req.rest.len++;
            text[len - 5] = 'y';
            T_EQ(http_repeats(&req, 7), 3);
        }
    }
}

T_TEST(http_reads_what_we_need)
{
    static const char text[] =
        "POST /v1/ids/ulid?n=3&x HTTP/1.1\r\nHost: [::1]:9001\r\nACCEPT:\ttext/plain \r\n"
        "Content-Type: application/json\r\nAuthorization: Bearer abc\r\n"
        "Idempotency-Key: k-1\r\nContent-Length: 5\r\nX-Other: caf\xc3\xa9\r\n\r\nhelloGET /";
    struct http_request req;
    struct http_error err;
    T_EQ(parse(text, sizeof text - 1, &req, &err), sizeof text - 1 - 5);
    T_EQ(req.method, METHOD_POST);
    T_EQ(req.minor, 1);
    T_OK(req.keep_alive);
    T_OK(slice_eq(req.path, "/v1/ids/ulid"));
    T_OK(slice_eq(req.query, "n=3&x"));
    T_OK(slice_eq(req.host, "[::1]:9001"));
    T_OK(slice_eq(req.accept, "text/plain"));
    T_OK(slice_eq(req.content_type, "application/json"));
    T_OK(slice_eq(req.authorization, "Bearer abc"));
    T_OK(slice_eq(req.idempotency_key, "k-1"));
    T_OK(slice_eq(req.body, "hello"));
}

/* Hints from whoever passed the request on: they never make it a bad request. */
T_TEST(http_traces)
{
    static const char full[] =
        "GET / HTTP/1.1\r\nHost: a\r\nTraceParent: 00-a-b-01\r\nTracestate: a=1\r\n"
        "tracestate: b=2\r\nX-Request-Id: r 1\r\n\r\n";
    static const char twice[] = "GET / HTTP/1.1\r\nHost: a\r\ntraceparent: 1\r\nX-Request-ID: 2\r\n"
                                "TRACEPARENT: 1\r\nX-REQUEST-ID: 2\r\n\r\n";
    static const char state[] = "GET / HTTP/1.1\r\nHost: a\r\nTracestate: a=1\r\n\r\n";
    struct http_request req;
    struct http_error err;
    T_EQ(parse(full, sizeof full - 1, &req, &err), sizeof full - 1);
    T_OK(req.traced);
    T_OK(slice_eq(req.traceparent, "00-a-b-01"));
    T_OK(slice_eq(req.tracestate, "a=1"), "the newest end of the list");
    T_OK(slice_eq(req.request_id, "r 1"), "whether it is a good one is not asked here");
    T_EQ(parse(twice, sizeof twice - 1, &req, &err), sizeof twice - 1);
    T_OK(req.traced && slice_eq(req.traceparent, "") && slice_eq(req.request_id, ""), "which?");
    T_EQ(parse(state, sizeof state - 1, &req, &err), sizeof state - 1);
    T_OK(!req.traced, "it means nothing alone");
}

T_TEST(http_targets)
{
    static const struct {
        const char *line, *path, *query, *host;
    } some[] = {
        { "GET / HTTP/1.1", "/", NULL, "a" },
        { "GET /?  HTTP/1.1", NULL, NULL, NULL },
        { "GET /a? HTTP/1.1", "/a", "", "a" },
        { "GET /a?b?c HTTP/1.1", "/a", "b?c", "a" },
        { "GET //x HTTP/1.1", "//x", NULL, "a" },
        { "GET http://h:1/p?q HTTP/1.1", "/p", "q", "h:1" },
        { "GET HTTP://h HTTP/1.1", "/", NULL, "h" },
        { "GET https://h?q HTTP/1.1", "/", "q", "h" },
        { "OPTIONS * HTTP/1.1", "*", NULL, "a" },
        { "GET * HTTP/1.1", NULL, NULL, NULL },
        { "GET http:///p HTTP/1.1", NULL, NULL, NULL },
        { "GET http://u@h/p HTTP/1.1", NULL, NULL, NULL },
        { "GET ftp://h/p HTTP/1.1", NULL, NULL, NULL },
        { "GET generate HTTP/1.1", NULL, NULL, NULL },
    };
    for (size_t i = 0; i < T_LEN(some); i++) {
        char text[200];
        struct http_request req;
        struct http_error err;
        int len = snprintf(text, sizeof text, "%s\r\n" H "\r\n", some[i].line);
        ssize_t used = parse(text, (size_t)len, &req, &err);
        if (!some[i].path) {
            T_OK(used == FIRN_EFORMAT && err.status == 400, "%s", some[i].line);
            continue;
        }
        T_EQ(used, len, "%s: %s", some[i].line, err.reason);
        T_OK(slice_eq(req.path, some[i].path), "%s", some[i].line);
        T_OK(some[i].query ? slice_eq(req.query, some[i].query) : !req.query.p, "%s", some[i].line);
        T_OK(slice_eq(req.host, some[i].host), "%s", some[i].line);
    }
}

T_TEST(http_keep_alive)
{
    static const struct {
        const char *text;
        bool keep;
    } some[] = {
        { "GET / HTTP/1.1\r\n" H "\r\n", true },
        { "GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", false },
        { "GET / HTTP/1.1\r\n" H "Connection: x, Close\r\n\r\n", false },
        { "GET / HTTP/1.1\r\n" H "Connection: keep-alive\r\n\r\n", true },
        { "GET / HTTP/1.1\r\n" H "Connection: keep-alive\r\nConnection: close\r\n\r\n", false },
        { "GET / HTTP/1.1\r\n" H "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
          true },
        { "GET / HTTP/1.0\r\n\r\n", false },
        { "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true },
        { "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false },
    };
    for (size_t i = 0; i < T_LEN(some); i++) {
        struct http_request req;
        struct http_error err;
        T_EQ(parse(some[i].text, strlen(some[i].text), &req, &err), strlen(some[i].text), "%s: %s",
             some[i].text, err.reason);
        T_EQ(req.keep_alive, some[i].keep, "%s", some[i].text);
    }
}

#define POST "POST / HTTP/1.1\r\n" H
#define TE   "Transfer-Encoding: chunked\r\n"

T_TEST(http_refuses)
{
    static const struct {
        int status;
        const char *text;
    } bad[] = {
        /* the request line */
        { 400, "\x16\x03\x01\x02" },
        { 400, "\n" },
        { 400, "\rG" },
        { 400, "\r\n\r\n" },
        { 400, " GET / HTTP/1.1\r\n" H "\r\n" },
        { 400, "GET\t/ HTTP/1.1\r\n" H "\r\n" },
        { 400, "GET  / HTTP/1.1\r\n" H "\r\n" },
        { 400, "GET /  HTTP/1.1\r\n" H "\r\n" },
        { 400, "GET / HTTP/1.1 \r\n" H "\r\n" },
        { 400, "GET / HTTP/1.1\n" H "\n" },
        { 400, "GET / HTTP/1.1\r" H "\r\n" },
        { 400, "GET /\r\n\r\n" },
        { 400, "GET /a\tb HTTP/1.1\r\n" H "\r\n" },
        { 400, "GET /a#b HTTP/1.1\r\n" H "\r\n" },
        { 400, "GET /\x7f HTTP/1.1\r\n" H "\r\n" },
        { 400, "GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n" },
        { 400, "GET /{kind} HTTP/1.1\r\n" H "\r\n" },
        { 400, "GET / HTTX/1.1\r\n" H "\r\n" },
        { 400, "GET / http/1.1\r\n" H "\r\n" },
        { 400, "{\"json\":1}" },
        { 400, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" },
        { 501, "get / HTTP/1.1\r\n" H "\r\n" },
        { 501, "BREW /pot HTTP/1.1\r\n" H "\r\n" },
        { 501, "CONNECT a:80 HTTP/1.1\r\n" H "\r\n" },
        { 501, "TRACE / HTTP/1.1\r\n" H "\r\n" },
        { 505, "GET / HTTP/2.0\r\n" H "\r\n" },
        { 505, "GET / HTTP/1.2\r\n" H "\r\n" },
        { 505, "GET / HTTP/0.9\r\n" H "\r\n" },
        { 501, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
        /* headers */
        { 400, "GET / HTTP/1.1\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H H "\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X: 1\r\n folded\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X: 1\r\n\tfolded\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n " H "\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X : 1\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H ": 1\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X: 1\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X: 1\rY: 2\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X: 1\r\n\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X: \x01\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X: 1234567890\x7f\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X\xc3: 1\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "X(y): 1\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "Authorization: a\r\nauthorization: b\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n" H "Idempotency-Key: a\r\nIdempotency-Key: a\r\n\r\n" },
        /* framing */
        { 400, POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" },
        { 400, POST "Content-Length: 5, 5\r\n\r\nhello" },
        { 400, POST "Content-Length: +5\r\n\r\nhello" },
        { 400, POST "Content-Length: -5\r\n\r\nhello" },
        { 400, POST "Content-Length: 0x5\r\n\r\nhello" },
        { 400, POST "Content-Length: 5 5\r\n\r\nhello" },
        { 400, POST "Content-Length:\r\n\r\nhello" },
        { 400, POST "Content-Length : 5\r\n\r\nhello" },
        { 413, POST "Content-Length: 65537\r\n\r\n" },
        { 413, POST "Content-Length: 18446744073709551615\r\n\r\n" },
        { 413, POST "Content-Length: 18446744073709551621\r\n\r\n" },
        { 413, POST "Content-Length: 99999999999999999999999\r\n\r\n" },
        { 400, POST TE "Content-Length: 5\r\n\r\n0\r\n\r\n" },
        { 400, POST "Content-Length: 5\r\n" TE "\r\n0\r\n\r\n" },
        { 400, POST TE TE "\r\n0\r\n\r\n" },
        { 400, "POST / HTTP/1.0\r\n" H TE "\r\n0\r\n\r\n" },
        { 501, POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" },
        { 501, POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" },
        { 501, POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" },
        { 501, POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" },
        { 501, POST "Transfer-Encoding:\r\n\r\n0\r\n\r\n" },
        { 400, POST "Transfer-Encoding:\vchunked\r\n\r\n0\r\n\r\n" },
        { 417, POST "Expect: tea\r\nContent-Length: 1\r\n\r\n" },
        /* chunks */
        { 400, POST TE "\r\nx\r\n" },
        { 400, POST TE "\r\n\r\n" },
        { 400, POST TE "\r\n-1\r\n" },
        { 400, POST TE "\r\n 1\r\na\r\n" },
        { 400, POST TE "\r\n1 \r\na\r\n" },
        { 400, POST TE "\r\n0x1\r\na\r\n" },
        { 400, POST TE "\r\n1\na\r\n" },
        { 400, POST TE "\r\n1;a\nb\r\n" },
        { 400, POST TE "\r\n1\r\nab" },
        { 400, POST TE "\r\n1\r\na\n" },
        { 400, POST TE "\r\n1\r\na\r1" },
        { 400, POST TE "\r\n0\r\n folded: 1\r\n\r\n" },
        { 400, POST TE "\r\n0\r\nX: 1\n\r\n" },
        { 400, POST TE "\r\n0\r\nX\r\n\r\n" },
        { 400, POST TE "\r\n0\r\nContent-Length: 1\r\n\r\n" },
        { 400, POST TE "\r\n0\r\n" TE "\r\n" },
        { 400, POST TE "\r\n1;\r\na\r\n" },
        { 400, POST TE "\r\n1;a=\r\na\r\n" },
        { 400, POST TE "\r\n1;a=\"b\r\na\r\n" },
        { 400, POST TE "\r\n1;a=\"b\"c\r\na\r\n" },
        { 400, POST TE "\r\n1; a\r\na\r\n" },
        { 413, POST TE "\r\n10001\r\n" },
        { 413, POST TE "\r\nffffffffffffffff\r\n" },
        { 413, POST TE "\r\n00000000000000000000000000fffffffff\r\n" },
        { 413, POST TE "\r\n1\r\na\r\n10000\r\n" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct http_request req;
        struct http_error err;
        size_t len = strlen(bad[i].text);
        T_EQ(parse(bad[i].text, len, &req, &err), FIRN_EFORMAT, "%zu: %s", i, bad[i].text);
        T_EQ(err.status, bad[i].status, "%zu: %s: %s", i, bad[i].text, err.reason);
        T_OK(err.reason && *err.reason && !strpbrk(err.reason, "\"\\\r\n"), "goes into JSON as is");
    }
}

T_TEST(http_refuses_nul)
{
    struct http_request req;
    struct http_error err;
    char text[] = "GET /x HTTP/1.1\r\nHost: a\r\nX-Y: zzzz\r\n\r\n";
    for (size_t i = 0; i < sizeof text - 1; i++) {
        char c = text[i];
        text[i] = 0;
        T_EQ(parse(text, sizeof text - 1, &req, &err), FIRN_EFORMAT, "at %zu", i);
        text[i] = c;
    }
}

/* Every request is cut at every place: never anything but "more" before its end. */
T_TEST(http_every_split)
{
    static const char *const whole[] = {
        "GET /generate HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n\r\n",
        "\r\nGET /generate?n=1 HTTP/1.1\r\nHost: a\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n",
        "OPTIONS * HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "GET http://example.com/a?b HTTP/1.1\r\nHost: b\r\n\r\n",
        POST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
        POST TE "\r\n3;ext=\"x y\"\r\nhel\r\n002\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n",
    };
    for (size_t i = 0; i < T_LEN(whole); i++) {
        size_t len = strlen(whole[i]);
        struct http_request req;
        struct http_error err;
        for (size_t cut = 0; cut < len; cut++)
            T_EQ(parse(whole[i], cut, &req, &err), FIRN_EAGAIN, "%zu at %zu: %s", i, cut,
                 err.reason);
        T_EQ(parse(whole[i], len, &req, &err), len, "%zu: %s", i, err.reason);
        if (i >= 4)
            T_OK(slice_eq(req.body, "hello"));
    }
}

T_TEST(http_expect_continue)
{
    struct http_request req;
    struct http_error err;
    static const char text[] = POST "Expect: 100-Continue\r\nContent-Length: 2\r\n\r\nab";
    size_t head = sizeof text - 1 - 2;
    T_EQ(parse(text, head - 1, &req, &err), FIRN_EAGAIN);
    T_OK(!req.expect_continue && !req.in_body);
    T_EQ(parse(text, head, &req, &err), FIRN_EAGAIN);
    T_OK(req.expect_continue && req.in_body);
    T_EQ(parse(text, head + 1, &req, &err), FIRN_EAGAIN);
    T_OK(!req.expect_continue && req.in_body);
    T_EQ(parse(text, head + 2, &req, &err), head + 2);
    static const char old[] =
        "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    T_EQ(parse(old, sizeof old - 1, &req, &err), FIRN_EAGAIN);
    T_OK(!req.expect_continue, "HTTP/1.0 knows no 100");
}

static char big[GUARD_BYTES];

T_TEST(http_limits)
{
    struct http_request req;
    struct http_error err;
    /* A head of exactly the bound is read, one byte more is not. */
    for (int extra = 0; extra <= 1; extra++) {
        int n = snprintf(big, sizeof big, "GET / HTTP/1.1\r\n" H "X: ");
        memset(big + n, 'x', sizeof big - (size_t)n);
        size_t len = HTTP_HEAD_BYTES_MAX + (size_t)extra;
        memcpy(big + len - 4, "\r\n\r\n", 4);
        ssize_t used = parse(big, len, &req, &err);
        T_EQ(used, extra ? FIRN_EFORMAT : (ssize_t)len);
        if (extra)
            T_EQ(err.status, 431);
    }
    int n = snprintf(big, sizeof big, "GET /");
    memset(big + n, 'x', sizeof big - (size_t)n);
    T_EQ(parse(big, 8000, &req, &err), FIRN_EAGAIN);
    T_EQ(parse(big, 20000, &req, &err), FIRN_EFORMAT);
    T_EQ(err.status, 414);

    size_t at = (size_t)snprintf(big, sizeof big, "GET / HTTP/1.1\r\n" H);
    for (int i = 1; i < HTTP_HEADERS_MAX; i++)
        at += (size_t)snprintf(big + at, sizeof big - at, "X: %d\r\n", i);
    memcpy(big + at, "\r\n", 2);
    T_EQ(parse(big, at + 2, &req, &err), at + 2);
    memcpy(big + at, "X: 1\r\n\r\n", 8);
    T_EQ(parse(big, at + 8, &req, &err), FIRN_EFORMAT);
    T_EQ(err.status, 431);

    at = (size_t)snprintf(big, sizeof big, POST "Content-Length: %d\r\n\r\n", HTTP_BODY_BYTES_MAX);
    T_EQ(parse(big, at + HTTP_BODY_BYTES_MAX - 1, &req, &err), FIRN_EAGAIN);
    T_EQ(parse(big, at + HTTP_BODY_BYTES_MAX, &req, &err), at + HTTP_BODY_BYTES_MAX);
    T_EQ(req.body.len, HTTP_BODY_BYTES_MAX);

    at = (size_t)snprintf(big, sizeof big, POST TE "\r\n");
    for (int i = 0; i <= HTTP_CHUNKS_MAX; i++)
        at += (size_t)snprintf(big + at, sizeof big - at, "1\r\nx\r\n");
    memcpy(big + at, "0\r\n\r\n", 5);
    T_EQ(parse(big, at + 5, &req, &err), FIRN_EFORMAT);
    T_EQ(err.status, 413);
    memcpy(big + at - 6, "0\r\n\r\n", 5);
    T_EQ(parse(big, at - 1, &req, &err), at - 1);
    T_EQ(req.body.len, HTTP_CHUNKS_MAX);

    /* Whatever is sent, at the bound of a request there is an end to asking for more. */
    at = (size_t)snprintf(big, sizeof big, POST TE "\r\n");
    while (at < HTTP_REQUEST_BYTES_MAX)
        at += (size_t)snprintf(big + at, sizeof big - at, "1;%0200d\r\nx\r\n", 0);
    T_EQ(parse(big, at, &req, &err), FIRN_EFORMAT);
    T_EQ(err.status, 413);
}

T_TEST(http_chunks_are_joined)
{
    static const char text[] = POST TE
        "\r\n5\r\nhello\r\nA ;q=1\r\n, wide wor\r\n2\r\nld\r\n0\r\n\r\nGET";
    static const char good[] = POST TE
        "\r\n5\r\nhello\r\nA;q=1\r\n, wide wor\r\n2\r\nld\r\n0\r\n\r\nGET";
    struct http_request req;
    struct http_error err;
    T_EQ(parse(text, sizeof text - 1, &req, &err), FIRN_EFORMAT, "space after the size");
    T_EQ(parse(good, sizeof good - 1, &req, &err), sizeof good - 1 - 3);
    T_OK(slice_eq(req.body, "hello, wide world"));
}
