/* Whole request heads: what is kept, what is refused, and that they are read as http.h reads them.
 */
#include "t.h"

#include "wire/http_head.h"

#include <stdio.h>
#include <stdlib.h>

static struct http_head h;
static struct http_error err;

/* From a buffer that ends where the text does, so that a read past it is found. */
static ssize_t read_text(const char *text)
{
    static char *copy;
    size_t n = strlen(text);
    free(copy);
    copy = malloc(n ? n : 1);
    memcpy(copy, text, n);
    return http_head_read(copy, n, &h, &err);
}

#define L "GET /a?b HTTP/1.1\r\nHost: x\r\n"

T_TEST(head_keeps_everything)
{
    static const char text[] =
        "PURGE /p%20q?a=b HTTP/1.1\r\nHost: shop.example:80\r\nx-A:  1 \r\nX-a: 2\r\n"
        "TE: trailers\r\nConnection: x, Close\r\n\r\nrest";
    T_EQ(read_text(text), sizeof text - 1 - 4);
    T_OK(slice_is(h.method, "PURGE") && slice_is(h.path, "/p%20q") && slice_is(h.query, "a=b"));
    T_OK(slice_is(h.host, "shop.example:80") && !h.keep_alive && h.te_trailers);
    T_EQ(h.headers, 5);
    T_OK(slice_is(h.header[1].name, "x-A") && slice_is(h.header[1].value, "1"));
    T_OK(slice_is(http_head_value(&h, "x-a"), "1") && !http_head_value(&h, "x-b").p);
    for (size_t n = 0; n + 4 < sizeof text - 1; n++) {
        char *part = strndup(text, n);
        T_EQ(read_text(part), FIRN_EAGAIN, "%zu bytes", n);
        free(part);
    }
    T_EQ(read_text("\r\nGET http://other.example/x?y HTTP/1.1\r\nHost: a\r\n\r\n"), 52);
    T_OK(slice_is(h.host, "other.example") && slice_is(h.path, "/x") && slice_is(h.query, "y"));
    T_OK(read_text("GET http://o?y HTTP/1.1\r\nHost: a\r\n\r\n") > 0);
    T_OK(slice_is(h.path, "/") && slice_is(h.query, "y"));
    T_OK(read_text("GET / HTTP/1.0\r\n\r\n") > 0 && !h.host.p && !h.keep_alive);
    T_OK(read_text("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n") > 0 && h.keep_alive);
    T_OK(
        read_text(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\nExpect: 100-Continue\r\n\r\n") >
        0);
    T_OK(h.framing == FRAMED_BY_CHUNKS && h.expect_continue);
    T_OK(read_text("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000000\r\n\r\n") > 0);
    T_OK(h.framing == FRAMED_BY_LENGTH && h.body_len == 9000000000u && !h.expect_continue);
    T_OK(read_text(L "Connection: keep-alive, upgrade\r\nUpgrade: WebSocket\r\n\r\n") > 0 &&
         h.websocket);
    T_OK(read_text(L "Upgrade: websocket\r\n\r\n") > 0 && !h.websocket);
    T_OK(read_text(L "Connection: upgrade\r\nUpgrade: h2c\r\n\r\n") > 0 && !h.websocket);
    T_OK(read_text(L "Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\n") >
             0 &&
         !h.websocket);
}

T_TEST(head_refused)
{
    static const struct {
        const char *text;
        unsigned status;
    } bad[] = {
        { "CONNECT a:1 HTTP/1.1\r\n", 501 },
        { "TRACE / HTTP/1.1\r\n", 501 },
        { "AVERYLONGMETHODTHATNOBODYHAS / HTTP/1.1\r\n", 501 },
        { "GET\t/ HTTP/1.1\r\n", 400 },
        { "GET  / HTTP/1.1\r\n", 400 },
        { "GET / HTTP/2.0\r\n", 505 },
        { "GET / HTTP/1.2\r\n", 505 },
        { "GET / http/1.1\r\n", 400 },
        { "GET /\r\n", 400 },
        { "GET /a b HTTP/1.1\r\n", 400 },
        { "GET /\x80 HTTP/1.1\r\n", 400 },
        { "GET /#x HTTP/1.1\r\n", 400 },
        { "GET a HTTP/1.1\r\n", 400 },
        { "GET * HTTP/1.1\r\n", 400 },
        { "GET http:///a HTTP/1.1\r\n", 400 },
        { "GET http://u@h/a HTTP/1.1\r\n", 400 },
        { "GET / HTTP/1.1\nHost: a\n\n", 400 },
        { "GET / HTTP/1.1\r\n\r\n", 400 },
        { "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400 },
        { "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400 },
        { L " folded: 1\r\n\r\n", 400 },
        { L "A : 1\r\n\r\n", 400 },
        { L "A\r\n\r\n", 400 },
        { L ": 1\r\n\r\n", 400 },
        { L "A: b\rc\r\n\r\n", 400 },
        { L "A: b\x01\r\n\r\n", 400 },
        { L "A: b\nC: d\r\n\r\n", 400 },
        { L "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400 },
        { L "Content-Length: 1, 1\r\n\r\n", 400 },
        { L "Content-Length: +1\r\n\r\n", 400 },
        { L "Content-Length: 0x1\r\n\r\n", 400 },
        { L "Content-Length: \r\n\r\n", 400 },
        { L "Content-Length: 99999999999999999999\r\n\r\n", 413 },
        { L "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
        { L "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
        { L "Transfer-Encoding: gzip, chunked\r\n\r\n", 501 },
        { L "Transfer-Encoding: chunked, identity\r\n\r\n", 501 },
        { L "Transfer-Encoding: \x0b"
            "chunked\r\n\r\n",
          400 },
        { L "Transfer-Encoding: xchunked\r\n\r\n", 501 },
        { "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
        { L "Content-Length: 1\r\nExpect: 200-maybe\r\n\r\n", 417 },
        { L "Authorization: a\r\nAuthorization: b\r\n\r\n", 400 },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        T_EQ(read_text(bad[i].text), FIRN_EFORMAT, "%s", bad[i].text);
        T_EQ(err.status, bad[i].status, "%s: %s", bad[i].text, err.reason);
    }
    char *big = malloc(HTTP_HEAD_BYTES_MAX + 100);
    memset(big, 'a', HTTP_HEAD_BYTES_MAX + 100);
    memcpy(big, L "A: ", sizeof L + 2);
    T_EQ(http_head_read(big, HTTP_HEAD_BYTES_MAX + 100, &h, &err), FIRN_EFORMAT);
    T_EQ(err.status, 431);
    memcpy(big, "GET /", 5);
    memset(big + 5, 'a', 100);
    T_EQ(http_head_read(big, HTTP_HEAD_BYTES_MAX + 100, &h, &err), FIRN_EFORMAT);
    T_EQ(err.status, 414);
    free(big);
    char many[8000] = L;
    for (int i = 0; i < HTTP_FIELDS_MAX; i++)
        strcat(many, "A: b\r\n");
    strcat(many, "\r\n");
    T_EQ(read_text(many), FIRN_EFORMAT);
    T_EQ(err.status, 431);
}

/* As many fields as may be, cut anywhere: unfinished until it is whole, for every reader of
 * fields. */
T_TEST(head_of_a_hundred_fields)
{
    char text[2048] = "GET / HTTP/1.1\r\nHost: a\r\n", trailers[2048] = "";
    struct http_request req;
    const char *why;
    for (int i = 1; i < HTTP_FIELDS_MAX; i++)
        strcat(text, "X: y\r\n");
    for (int i = 0; i < HTTP_FIELDS_MAX; i++)
        strcat(trailers, "X: y\r\n");
    strcat(text, "\r\n");
    strcat(trailers, "\r\n");
    ssize_t n = (ssize_t)strlen(text), m = (ssize_t)strlen(trailers);
    for (ssize_t i = 0; i < n; i++) {
        T_EQ(http_head_read(text, (size_t)i, &h, &err), FIRN_EAGAIN, "%zd bytes", i);
        T_EQ(http_parse(text, (size_t)i, &req, &err), FIRN_EAGAIN, "%zd bytes", i);
    }
    for (ssize_t i = 0; i < m; i++)
        T_EQ(http_trailers(trailers, (size_t)i, &why), FIRN_EAGAIN, "%zd bytes", i);
    T_EQ(http_head_read(text, (size_t)n, &h, &err), n);
    T_EQ(http_parse(text, (size_t)n, &req, &err), n);
    T_EQ(http_trailers(trailers, (size_t)m, &why), m);
    strcpy(text + n - 2, "X: y\r\n\r\n");
    T_EQ(http_head_read(text, (size_t)n, &h, &err), FIRN_EFORMAT);
    T_EQ(http_parse(text, (size_t)n, &req, &err), FIRN_EFORMAT);
}

T_TEST(head_moves)
{
    static const char *const texts[] = { L "A: b\r\n\r\n",
                                         "GET http://h HTTP/1.1\r\nHost: x\r\n\r\n",
                                         "GET / HTTP/1.0\r\n\r\n",
                                         "GET http://h?q HTTP/1.1\r\nHost: x\r\n\r\n" };
    for (size_t i = 0; i < T_LEN(texts); i++) {
        size_t n = strlen(texts[i]);
        char *from = strdup(texts[i]), *to = strdup(texts[i]);
        T_EQ(http_head_read(from, n, &h, &err), n);
        http_head_moved(&h, from, to);
        memset(from, '!', n);
        free(from);
        char all[200];
        snprintf(all, sizeof all, "%.*s %.*s %.*s %.*s %zu", (int)h.method.len, h.method.p,
                 (int)h.path.len, h.path.p, (int)h.query.len, h.query.p ? h.query.p : "",
                 (int)h.host.len, h.host.p ? h.host.p : "", h.headers);
        static const char *const want[] = { "GET /a b x 2", "GET /  h 1", "GET /   0",
                                            "GET / q h 1" };
        T_STR(all, want[i]);
        free(to);
    }
}
