/* The short cut of http_parse() takes nothing that llhttp refuses, and reads it the same way. */
#include "t.h"

#include "guard.h"
#include "wire/http.h"

#include <stdio.h>

enum { TEXT_MAX = 1024 };

static const char *const seeds[] = {
    "GET /generate HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n\r\n",
    "GET /generate?n=10&kind=ulid HTTP/1.1\r\nHost: a\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n",
    "HEAD http://h:80/x?y HTTP/1.1\r\nHost: a\r\nIdempotency-Key: 1\r\nX-Empty:\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nTraceparent: 00-1-2-01\r\nTracestate: a=1\r\nX-Request-ID: 1\r\n\r\n",
    "POST /v1/sequences HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a;d=\"e f\";b=c\r\n{}\r\n00\r\nX: 1\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\nUpgrade: x\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n",
};

/* Bytes and words that parsers disagree about. */
static const char *const spice[] = {
    "\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    ":",
    "\0",
    "\x0b",
    "\x7f",
    "\x80",
    "Content-Length: 1\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "HTTP/1.1",
    ",",
    "0",
    "%00",
    ";",
    "=",
    "\"",
    "\\",
    "#",
};

static size_t mutate(char *text, size_t len, size_t cap)
{
    uint64_t times = 1 + t_random_below(3);
    for (uint64_t i = 0; i < times; i++) {
        size_t at = (size_t)t_random_below(len + 1);
        const char *s = spice[t_random_below(T_LEN(spice))];
        size_t n = *s ? strlen(s) : 1;
        switch (t_random_below(4)) {
        case 0: /* change a byte */
            if (at < len)
                text[at] = (char)t_random_below(256);
            break;
        case 1: /* take some away */
            if (at < len) {
                size_t gone = 1 + (size_t)t_random_below(len - at < 4 ? len - at : 4);
                memmove(text + at, text + at + gone, len - at - gone);
                len -= gone;
            }
            break;
        case 2: /* flip the case or the lowest bit */
            if (at < len)
                text[at] ^= t_random_below(2) ? 0x20 : 1;
            break;
        default: /* put something in */
            if (len + n <= cap) {
                memmove(text + at + n, text + at, len - at);
                memcpy(text + at, s, n);
                len += n;
            }
        }
    }
    return len;
}

static bool same(struct slice a, struct slice b, const char *base_a, const char *base_b)
{
    if (!a.p || !b.p)
        return !a.p == !b.p;
    /* "/" of an absolute target without a path is not in the text */
    bool inside = a.p >= base_a && a.p <= base_a + TEXT_MAX;
    return a.len == b.len && (inside ? a.p - base_a == b.p - base_b : memcmp(a.p, b.p, a.len) == 0);
}

T_TEST(http_short_cut_agrees_with_llhttp)
{
    uint64_t accepted = 0, rounds = t_scale(2000000);
    for (uint64_t i = 0; i < rounds; i++) {
        char text[TEXT_MAX], copy[TEXT_MAX];
        const char *seed = seeds[t_random_below(T_LEN(seeds))];
        size_t len = strlen(seed);
        memcpy(text, seed, len);
        len = mutate(text, len, sizeof text);
        memcpy(copy, text, len);

        struct http_request a, b;
        struct http_error ea = { 0, "" }, eb = { 0, "" };
        ssize_t fast = http_parse(text, len, &a, &ea);
        ssize_t slow = http_parse_slow(copy, len, &b, &eb);
        T_EQ(fast, slow, "%s / %s: %.*s", ea.reason, eb.reason, (int)len, copy);
        if (fast <= 0)
            continue;
        accepted++;
        T_OK(a.method == b.method && a.minor == b.minor && a.keep_alive == b.keep_alive &&
                 same(a.path, b.path, text, copy) && same(a.query, b.query, text, copy) &&
                 same(a.host, b.host, text, copy) && same(a.body, b.body, text, copy) &&
                 same(a.accept, b.accept, text, copy),
             "%.*s", (int)len, copy);
    }
    T_OK(accepted > rounds / 20, "%" PRIu64 " of %" PRIu64 " were requests", accepted, rounds);
}
