/* Bodies read piece by piece: every way to cut them gives the same data, and no malformed chunk
 * passes. */
#include "t.h"

#include "wire/http_body.h"

#include <stdlib.h>

/* Reads `in`, of which at most `step` new bytes are shown at a time, as a connection would. */
static int read_all(enum http_framing framing, uint64_t len, const char *in, size_t n, size_t step,
                    char *out, size_t *out_len, size_t *used)
{
    struct http_body b;
    size_t at = 0, end = 0;
    http_body_begin(&b, framing, len);
    *out_len = 0;
    while (!b.done && at < n) {
        end = end + step < n ? end + step : n;
        char *exact = malloc(end - at + 1); /* so that a read past the end is found */
        memcpy(exact, in + at, end - at);
        struct slice data;
        ssize_t r = http_body_next(&b, exact, end - at, &data);
        if (r < 0) {
            free(exact);
            T_OK(b.why != NULL);
            return (int)r;
        }
        memcpy(out + *out_len, data.p ? data.p : "", data.len);
        *out_len += data.len;
        free(exact);
        at += (size_t)r;
        if (r == 0 && end == n)
            break;
    }
    *used = at;
    return b.done ? 1 : 0;
}

T_TEST(body_chunks_cut_anywhere)
{
    static const char in[] =
        "5\r\nhello\r\n1;a=\"b;c\"\r\n \r\n00006;x\r\nworld!\r\n0\r\nA: b\r\nC:d\r\n\r\nGET";
    for (size_t step = 1; step < sizeof in; step++) {
        char out[64];
        size_t len, used;
        T_EQ(read_all(FRAMED_BY_CHUNKS, 0, in, sizeof in - 1, step, out, &len, &used), 1, "%zu",
             step);
        T_OK(len == 12 && memcmp(out, "hello world!", 12) == 0, "step %zu: %.*s", step, (int)len,
             out);
        T_EQ(used, sizeof in - 1 - 3, "step %zu", step);
    }
    struct http_body b;
    struct slice data;
    http_body_begin(&b, FRAMED_BY_CHUNKS, 0);
    T_EQ(http_body_next(&b, "0\r\nA: b\r\n\r\n", 11, &data), 11);
    T_OK(b.done && slice_is(b.trailers, "A: b\r\n"));
    T_EQ(http_body_next(&b, "x", 1, &data), 0);
}

T_TEST(body_counted_and_open)
{
    char out[64];
    size_t len, used;
    for (size_t step = 1; step < 8; step++) {
        T_EQ(read_all(FRAMED_BY_LENGTH, 5, "helloGET", 8, step, out, &len, &used), 1);
        T_OK(len == 5 && used == 5);
        T_EQ(read_all(FRAMED_BY_LENGTH, 9, "helloGET", 8, step, out, &len, &used), 0);
        T_EQ(read_all(FRAMED_BY_CLOSE, 0, "helloGET", 8, step, out, &len, &used), 0);
        T_OK(len == 8);
    }
    struct http_body b;
    http_body_begin(&b, FRAMED_BY_LENGTH, 0);
    T_OK(b.done);
}

T_TEST(body_chunks_refused)
{
    static const char *const bad[] = {
        "g\r\n",
        "\r\n",
        "-1\r\n",
        "+1\r\na\r\n",
        "0x1\r\na\r\n",
        " 1\r\na\r\n",
        "1 \r\na\r\n",
        "1\na\r\n",
        "1\r\nab\r\n",
        "1\r\na\n",
        "1\r\na\rx",
        "1;\r\na\r\n",
        "1;a=\"\n\r\na",
        "ffffffffffffffff\r\n",
        "10000000000000001\r\na\r\n",
        "0000000010000000000000000\r\n\r\n",
        "0\r\nContent-Length: 5\r\n\r\n",
        "0\r\n a: b\r\n\r\n",
        "0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "0\r\nA b\r\n\r\n",
        "0\r\nA: \x01\r\n\r\n",
        "1\r\na\r\n\r\n",
    };
    for (size_t i = 0; i < T_LEN(bad); i++)
        for (size_t step = 1; step < 20; step += 6) {
            char out[64];
            size_t len, used;
            T_EQ(read_all(FRAMED_BY_CHUNKS, 0, bad[i], strlen(bad[i]), step, out, &len, &used),
                 FIRN_EFORMAT, "'%s' by %zu", bad[i], step);
        }
    /* Trailers are bounded, also those that never end. */
    size_t n = HTTP_TRAILERS_BYTES_MAX + 100, len, used;
    char *in = malloc(n), out[1];
    memset(in, 'a', n);
    memcpy(in, "0\r\nA: ", 6);
    T_EQ(read_all(FRAMED_BY_CHUNKS, 0, in, n, 1000, out, &len, &used), FIRN_EFORMAT);
    free(in);
}
