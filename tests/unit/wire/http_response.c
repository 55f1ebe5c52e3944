/* Responses: heads at every split point, framing, bodies, and what is refused. */
#include "wire/http_response.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>

T_TEST(heads)
{
    static const struct {
        const char *text;
        unsigned status;
        enum http_framing framing;
        size_t body_len;
        bool close;
    } rows[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", 200, FRAMED_BY_LENGTH, 12, false },
        { "HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", 200, FRAMED_BY_LENGTH, 0, false },
        { "HTTP/1.1 200 \r\nA:\r\nContent-Length: 7 \r\n\r\n", 200, FRAMED_BY_LENGTH, 7, false },
        { "HTTP/1.1 503 No\r\nTransfer-Encoding: Chunked\r\n\r\n", 503, FRAMED_BY_CHUNKS, 0,
          false },
        { "HTTP/1.1 200 OK\r\n\r\n", 200, FRAMED_BY_CLOSE, 0, true },
        { "HTTP/1.1 204 No Content\r\n\r\n", 204, FRAMED_BY_LENGTH, 0, false },
        { "HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n", 304, FRAMED_BY_LENGTH, 0, false },
        { "HTTP/1.1 200 OK\r\nConnection: x , Close\r\nContent-Length: 1\r\n\r\n", 200,
          FRAMED_BY_LENGTH, 1, true },
        { "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", 200, FRAMED_BY_LENGTH, 1, true },
        { "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n", 200,
          FRAMED_BY_LENGTH, 1, false },
        { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", 200,
          FRAMED_BY_LENGTH, 3, false },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct http_response h;
        size_t len = strlen(rows[i].text);
        for (size_t cut = 0; cut < len; cut++) { /* at every byte, and never beyond it */
            char *exact = malloc(cut ? cut : 1);
            memcpy(exact, rows[i].text, cut);
            ssize_t n = http_response_head(exact, cut, &h);
            free(exact);
            T_EQ(n, FIRN_EAGAIN, "row %zu cut at %zu", i, cut);
        }
        T_EQ(http_response_head(rows[i].text, len, &h), len, "row %zu", i);
        T_EQ(h.status, rows[i].status, "row %zu", i);
        T_EQ(h.framing, rows[i].framing, "row %zu", i);
        T_EQ(h.body_len, rows[i].body_len, "row %zu", i);
        T_EQ(h.close, rows[i].close, "row %zu", i);
    }
}

T_TEST(heads_refused)
{
    static const char *const bad[] = {
        "\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 2000\r\n\r\n",
        "http/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\n Content-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "HTTP/1.1 200OK\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/1.1 200 O\x01K\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 101 Switching\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct http_response h;
        T_EQ(http_response_head(bad[i], strlen(bad[i]), &h), FIRN_EFORMAT, "%s", bad[i]);
    }
}

T_TEST(endless_head_is_refused)
{
    static char text[HTTP_RESPONSE_HEAD_MAX + 64] = "HTTP/1.1 200 OK\r\nA: ";
    size_t start = strlen(text);
    memset(text + start, 'x', sizeof text - start);
    struct http_response h;
    T_EQ(http_response_head(text, sizeof text, &h), FIRN_EFORMAT);
}

T_TEST(headers_are_kept)
{
    static const char text[] = "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
                               "HTTP/1.1 404 Not Found\r\nA: 1\r\nset-cookie: x=y\r\n"
                               "a:2\r\nContent-Length: 0\r\n\r\n";
    struct http_response h;
    T_EQ(http_response_head(text, sizeof text - 1, &h), sizeof text - 1);
    T_EQ(h.status, 404);
    T_EQ(h.headers, 4);
    T_OK(slice_is(h.reason, "Not Found") && slice_is(h.header[2].name, "a"));
    T_OK(slice_is(http_response_header(&h, "a"), "1"));
    T_OK(slice_is(http_response_header(&h, "set-cookie"), "x=y"));
    T_OK(!http_response_header(&h, "link").p);
    T_EQ(h.interim, strlen("HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"));
}

/* One field more than there may be. */
T_TEST(many_headers_are_refused)
{
    char text[HTTP_FIELDS_MAX * 8 + 64];
    struct http_response h;
    for (int more = 0; more < 2; more++) {
        size_t n = (size_t)snprintf(text, sizeof text, "HTTP/1.1 204 N\r\n");
        for (int i = 0; i < HTTP_FIELDS_MAX + more; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "A: b\r\n");
        n += (size_t)snprintf(text + n, sizeof text - n, "\r\n");
        T_EQ(http_response_head(text, n, &h), more ? FIRN_EFORMAT : (ssize_t)n);
    }
}

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

T_TEST(bodies)
{
    static const struct {
        const char *text, *body;
        bool eof;
    } rows[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", false },
        { "HTTP/1.1 204 No\r\n\r\n", "", false },
        { "HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", true },
        { CHUNKED "0\r\n\r\n", "", false },
        { CHUNKED "5\r\nhello\r\n0\r\n\r\n", "hello", false },
        { CHUNKED "5;a=b\r\nhello\r\n1\r\n!\r\n000\r\nTrailer: x\r\n\r\n", "hello!", false },
        { CHUNKED "A\r\n0123456789\r\na\r\nabcdefghij\r\n0\r\n\r\n", "0123456789abcdefghij",
          false },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        size_t len = strlen(rows[i].text);
        struct http_response h;
        for (size_t cut = 0; cut < len; cut++) {
            char *exact = malloc(cut ? cut : 1);
            memcpy(exact, rows[i].text, cut);
            ssize_t used = http_response_read(exact, cut, false, &h);
            T_OK(memcmp(exact, rows[i].text, cut) == 0, "touched before it was whole");
            free(exact);
            T_EQ(used, FIRN_EAGAIN, "row %zu cut at %zu", i, cut);
        }
        char text[256];
        memcpy(text, rows[i].text, len);
        if (rows[i].eof)
            T_EQ(http_response_read(text, len, false, &h), FIRN_EAGAIN);
        T_EQ(http_response_read(text, len, rows[i].eof, &h), len);
        T_OK(slice_is(h.body, rows[i].body), "row %zu", i);
        memcpy(text, rows[i].text, len);
        memcpy(text + len, "HTTP", 4); /* the next one's bytes are left alone */
        if (!rows[i].eof)
            T_EQ(http_response_read(text, len + 4, false, &h), len);
    }
}

T_TEST(bodies_refused)
{
    static const char *const bad[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 67108865\r\n\r\n",
        CHUNKED "\r\n",
        CHUNKED "g\r\n",
        CHUNKED "5 x",
        CHUNKED "-1\r\n",
        CHUNKED "123456789\r\n",
        CHUNKED "1\r\nab\r\n",
        CHUNKED "1\n",
        CHUNKED "0x1\r\n",
        CHUNKED "ffffffff\r\n",
        CHUNKED "0\r\nContent-Length: 3\r\n\r\n",
        CHUNKED "0\r\nA : b\r\n\r\n",
    };
    struct http_response h;
    for (size_t i = 0; i < T_LEN(bad); i++) {
        char text[300];
        size_t len = strlen(bad[i]);
        memcpy(text, bad[i], len);
        T_EQ(http_response_read(text, len, false, &h), FIRN_EFORMAT, "%s", bad[i]);
    }
    char endless[400] = CHUNKED;
    memset(endless + strlen(endless), '0', sizeof endless - strlen(CHUNKED));
    T_EQ(http_response_read(endless, sizeof endless, false, &h), FIRN_EFORMAT);
}
