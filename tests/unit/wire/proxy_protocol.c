/* The PROXY protocol: both versions at every split, what is refused, and what is written. */
#include "t.h"

#include "wire/proxy_protocol.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define V2 "\r\n\r\n\0\r\nQUIT\n"

static const char *text_of(const struct sockaddr_storage *sa, char out[80])
{
    char host[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
    const bool six = sa->ss_family == AF_INET6;
    inet_ntop(sa->ss_family, six ? (const void *)&in6->sin6_addr : (const void *)&in->sin_addr,
              host, sizeof host);
    snprintf(out, 80, "%s %u", host, ntohs(six ? in6->sin6_port : in->sin_port));
    return out;
}

/* In memory of exactly this size, so that reading past it is noticed. */
static ssize_t read_exact(const char *p, size_t len, struct proxy_header *h)
{
    char *copy = malloc(len ? len : 1);
    memcpy(copy, p, len);
    ssize_t n = proxy_header_read(copy, len, h);
    free(copy);
    return n;
}

#define CASE(text, from, to)            \
    {                                   \
        text, sizeof text - 1, from, to \
    }

T_TEST(proxy_header_at_every_split)
{
    static const struct {
        const char *p;
        size_t len;
        const char *from, *to; /* NULL: not told */
    } cases[] = {
        CASE("PROXY TCP4 10.1.2.3 10.0.0.2 1111 80\r\n", "10.1.2.3 1111", "10.0.0.2 80"),
        CASE("PROXY TCP6 2001:db8::1 ::1 65535 0\r\n", "2001:db8::1 65535", "::1 0"),
        CASE("PROXY UNKNOWN\r\n", NULL, NULL),
        CASE("PROXY UNKNOWN ffff::1 ::2 1 2\r\n", NULL, NULL),
        CASE(V2 "\x21\x11\0\x0c\x0a\x01\x02\x03\x0a\0\0\x02\x04\x57\0\x50", "10.1.2.3 1111",
             "10.0.0.2 80"),
        CASE(V2 "\x21\x11\0\x10\x0a\x01\x02\x03\x0a\0\0\x02\x04\x57\0\x50\x04\0\x01x",
             "10.1.2.3 1111", "10.0.0.2 80"), /* with an extension */
        CASE(V2 "\x20\0\0\0", NULL, NULL),
        CASE(V2 "\x20\x11\0\x02xx", NULL, NULL),
        CASE(V2 "\x21\0\0\x03xyz", NULL, NULL),
        CASE(V2 "\x21\x21\0\x24"
                "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"
                "\0\x01\0\x02",
             "2001:db8::1 1", "::1 2"),
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        struct proxy_header h;
        char text[80];
        for (size_t n = 0; n < cases[i].len; n++)
            T_EQ(read_exact(cases[i].p, n, &h), FIRN_EAGAIN, "case %zu, %zu bytes", i, n);
        T_EQ(read_exact(cases[i].p, cases[i].len, &h), (ssize_t)cases[i].len, "case %zu", i);
        T_EQ(h.told, cases[i].from != NULL, "case %zu", i);
        if (h.told && cases[i].from) {
            T_STR(text_of(&h.from, text), cases[i].from);
            T_STR(text_of(&h.to, text), cases[i].to);
        }
        char more[256]; /* what follows is not touched */
        memcpy(more, cases[i].p, cases[i].len);
        memcpy(more + cases[i].len, "GET /", 5);
        T_EQ(read_exact(more, cases[i].len + 5, &h), (ssize_t)cases[i].len, "case %zu", i);
    }
}

T_TEST(proxy_header_refusals)
{
    static const struct {
        const char *p;
        size_t len;
    } bad[] = {
#define BAD(text) { text, sizeof text - 1 }
        BAD("GET / HTTP/1.1\r\n"),
        BAD("P\r\n"),
        BAD("PROXY TCP4 10.1.2.3 10.0.0.2 1111 80\n"),
        BAD("PROXY TCP4 10.1.2.3 10.0.0.2 1111\r\n"),
        BAD("PROXY TCP4 10.1.2.3 10.0.0.2 1111 80 \r\n"),
        BAD("PROXY TCP4 10.1.2.3 10.0.0.2 1111 80 x\r\n"),
        BAD("PROXY TCP4 10.1.2.3  10.0.0.2 1111 80\r\n"),
        BAD("PROXY TCP4 10.1.2.3 10.0.0.2 01111 80\r\n"),
        BAD("PROXY TCP4 10.1.2.3 10.0.0.2 65536 80\r\n"),
        BAD("PROXY TCP4 10.1.2.3 10.0.0.2 -1 80\r\n"),
        BAD("PROXY TCP4 ::1 ::1 1 80\r\n"),
        BAD("PROXY TCP6 10.1.2.3 ::1 1 80\r\n"),
        BAD("PROXY UDP4 10.1.2.3 10.0.0.2 1 80\r\n"),
        BAD("PROXY \r\n"),
        BAD("PROXY UNKNOWN aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        BAD(V2 "\x11"),
        BAD(V2 "\x22"),
        BAD(V2 "\x21\x41"),
        BAD(V2 "\x21\x13"),
        BAD(V2 "\x21\x11\0\x0b"),
        BAD(V2 "\x21\x21\0\x23"),
        BAD(V2 "\x21\0\xff\xff"),
        BAD("\r\n\r\n\0\r\nQUIX"),
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct proxy_header h;
        T_EQ(read_exact(bad[i].p, bad[i].len, &h), FIRN_EFORMAT, "case %zu: %s", i, bad[i].p);
    }
}

static void set(struct sockaddr_storage *sa, const char *address, uint16_t port)
{
    struct sockaddr_in *in = (struct sockaddr_in *)sa;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;
    memset(sa, 0, sizeof *sa);
    if (inet_pton(AF_INET, address, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
    } else {
        T_EQ(inet_pton(AF_INET6, address, &in6->sin6_addr), 1);
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
    }
}

T_TEST(proxy_header_written_reads_back)
{
    static const struct {
        const char *from, *to, *from_text, *to_text;
        size_t len;
    } cases[] = {
        { "1.2.3.4", "5.6.7.8", "1.2.3.4 1000", "5.6.7.8 2000", 28 },
        { "::1", "fe80::2", "::1 1000", "fe80::2 2000", 52 },
        { "1.2.3.4", "::1", "::ffff:1.2.3.4 1000", "::1 2000", 52 },
    };
    struct proxy_header h;
    char out[PROXY_WRITE_MAX], text[80];
    for (size_t i = 0; i < T_LEN(cases); i++) {
        struct sockaddr_storage from, to;
        set(&from, cases[i].from, 1000);
        set(&to, cases[i].to, 2000);
        size_t n = proxy_header_write((struct sockaddr *)&from, (struct sockaddr *)&to, out);
        T_EQ(n, cases[i].len);
        T_EQ(proxy_header_read(out, n, &h), (ssize_t)n);
        T_STR(text_of(&h.from, text), cases[i].from_text);
        T_STR(text_of(&h.to, text), cases[i].to_text);
    }
    T_EQ(proxy_header_write(NULL, NULL, out), 16);
    T_EQ(proxy_header_read(out, 16, &h), 16);
    T_OK(!h.told);
}
