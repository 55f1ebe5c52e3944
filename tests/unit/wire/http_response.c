#include "wire/http_response.h"
#include "wire/http_response.c"
#include "t.h"

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
        struct http_head h;
        size_t len = strlen(rows[i].text);
        for (size_t cut = 0; cut < len; cut++) { /* at every byte, and never beyond it */
            char *exact = malloc(cut ? cut : 1);
            memcpy(exact, rows[i].text, cut);
            ssize_t n = http_answer_head(exact, cut, &h);
            free(exact);
            T_EQ(n, FIRN_EAGAIN, "row %zu cut at %zu", i, cut);
        }
        T_EQ(http_answer_head(rows[i].text, len, &h), len, "row %zu", i);
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
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 67108865\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 101 Switching\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct http_head h;
        T_EQ(http_answer_head(bad[i], strlen(bad[i]), &h), FIRN_EFORMAT, "%s", bad[i]);
    }
}

T_TEST(endless_head_is_refused)
{
    static char text[HTTP_ANSWER_HEAD_MAX + 64] = "HTTP/1.1 200 OK\r\nA: ";
    size_t start = strlen(text);
    memset(text + start, 'x', sizeof text - start);
    struct http_head h;
    T_EQ(http_answer_head(text, sizeof text, &h), FIRN_EFORMAT);
}

T_TEST(chunks)
{
    static const struct {
        const char *text, *body;
    } rows[] = {
        { "0\r\n\r\n", "" },
        { "5\r\nhello\r\n0\r\n\r\n", "hello" },
        { "5;a=b\r\nhello\r\n1\r\n!\r\n000\r\nTrailer: x\r\n\r\n", "hello!" },
        { "A\r\n0123456789\r\na\r\nabcdefghij\r\n0\r\n\r\n", "0123456789abcdefghij" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        size_t len = strlen(rows[i].text), n = 77;
        for (size_t cut = 0; cut < len; cut++) {
            char *exact = malloc(cut ? cut : 1);
            memcpy(exact, rows[i].text, cut);
            ssize_t used = http_answer_chunks(exact, cut, &n);
            T_OK(memcmp(exact, rows[i].text, cut) == 0, "touched before it was whole");
            free(exact);
            T_EQ(used, FIRN_EAGAIN, "row %zu cut at %zu", i, cut);
            T_EQ(n, 77);
        }
        char text[128];
        memcpy(text, rows[i].text, len);
        T_EQ(http_answer_chunks(text, len, &n), len);
        text[n] = '\0';
        T_STR(text, rows[i].body);
    }
}

T_TEST(chunks_refused)
{
    static const char *const bad[] = { "\r\n",   "g\r\n",         "5 x",
                                       "-1\r\n", "123456789\r\n", "1\r\nab\r\n",
                                       "1\n",    "0x1\r\n",       "ffffffff\r\n" };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        char text[300];
        size_t n, len = strlen(bad[i]);
        memcpy(text, bad[i], len);
        ssize_t r = http_answer_chunks(text, len, &n);
        if (strcmp(bad[i], "5 x") == 0)
            T_EQ(r, FIRN_EAGAIN);
        else
            T_EQ(r, FIRN_EFORMAT, "%s", bad[i]);
    }
    char endless[300];
    size_t n;
    memset(endless, '0', sizeof endless);
    T_EQ(http_answer_chunks(endless, sizeof endless, &n), FIRN_EFORMAT);
}
