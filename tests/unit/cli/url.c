#include "cli/url.h"
#include "cli/url.c"
#include "t.h"

T_TEST(reads)
{
    static const struct {
        const char *text, *host, *port, *authority, *target;
    } rows[] = {
        { "http://127.0.0.1:9001/generate", "127.0.0.1", "9001", "127.0.0.1:9001", "/generate" },
        { "http://localhost", "localhost", "80", "localhost:80", "/" },
        { "http://localhost?n=2", "localhost", "80", "localhost:80", "/?n=2" },
        { "http://[::1]:9001/a?b=c&d=%20", "::1", "9001", "[::1]:9001", "/a?b=c&d=%20" },
        { "http://[::1]/", "::1", "80", "[::1]:80", "/" },
        { "http://a-b.c:65535/", "a-b.c", "65535", "a-b.c:65535", "/" },
        { "https://a-b.c/x", "a-b.c", "443", "a-b.c:443", "/x" },
        { "https://[::1]:9000", "::1", "9000", "[::1]:9000", "/" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct url u;
        const char *wrong = url_parse(rows[i].text, &u);
        T_OK(!wrong, "%s: %s", rows[i].text, wrong);
        T_EQ(u.https, rows[i].text[4] == 's', "%s", rows[i].text);
        T_STR(u.host, rows[i].host);
        T_STR(u.port, rows[i].port);
        T_STR(u.authority, rows[i].authority);
        T_STR(u.target, rows[i].target);
    }
}

T_TEST(refuses)
{
    static const char *const bad[] = {
        "",           "127.0.0.1:9001",    "https:///",         "http://",         "http:///x",
        "http://:80", "http://a:0/",       "http://a:65536/",   "http://a:999999", "http://a:/",
        "http://a b", "http://a/b c",      "http://a/#x",       "http://[::1",     "http://[::1]9/",
        "http://u@a", "http://a/\r\nX: y", "http://a/\xc3\xa4", "http://a:-1/",    "http://a:8x/",
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct url u = { .target = "untouched" };
        T_OK(url_parse(bad[i], &u), "%s", bad[i]);
        T_STR(u.target, "untouched");
    }
}

T_TEST(bounds)
{
    char text[4096] = "http://a/";
    struct url u;
    memset(text + 9, 'x', URL_TARGET_MAX - 1);
    T_OK(!url_parse(text, &u));
    T_EQ(strlen(u.target), URL_TARGET_MAX);
    text[9 + URL_TARGET_MAX - 1] = 'x';
    T_OK(url_parse(text, &u));
}

T_TEST(addresses)
{
    struct url u;
    T_OK(!url_parse_address("127.0.0.1:6379", &u));
    T_STR(u.authority, "127.0.0.1:6379");
    T_OK(!url_parse_address("[::1]:6379", &u));
    T_STR(u.host, "::1");
    static const char *const bad[] = { "", "127.0.0.1", "127.0.0.1:", "a:1/x", "::1:6379" };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_OK(url_parse_address(bad[i], &u), "%s", bad[i]);
}
