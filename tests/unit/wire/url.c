/* Addresses and URLs: what is taken apart and how, and what is refused. */
#include "t.h"

#include "guard.h"
#include "wire/url.h"

static struct slice slice(const char *text)
{
    return (struct slice){ guard_copy(text, strlen(text)), strlen(text) };
}

T_TEST(host_and_port)
{
    static const struct {
        const char *text;
        enum host_error error;
        const char *host;
        int port; /* -1: none */
        bool brackets;
    } some[] = {
        { "a", HOST_OK, "a", -1, false },
        { "a:1", HOST_OK, "a", 1, false },
        { "a-b.example:65535", HOST_OK, "a-b.example", 65535, false },
        { "127.0.0.1:0", HOST_OK, "127.0.0.1", 0, false },
        { "a:0080", HOST_OK, "a", 80, false },
        { "[::1]", HOST_OK, "::1", -1, true },
        { "[::1]:9", HOST_OK, "::1", 9, true },
        { "[fe80::1%eth0]:9", HOST_OK, "fe80::1%eth0", 9, true },
        { "::1:9", HOST_COLONS, "::1", 9, false },
        { ":9", HOST_EMPTY, "", 9, false },
        { "", HOST_EMPTY, "", -1, false },
        { "[]:9", HOST_EMPTY, "", 9, true },
        { "[::1", HOST_OPEN_BRACKET, NULL, 0, true },
        { "[", HOST_OPEN_BRACKET, NULL, 0, true },
        { "[::1]9", HOST_AFTER_BRACKET, NULL, 0, true },
        { "[::1]]:9", HOST_AFTER_BRACKET, NULL, 0, true },
        { "a:", HOST_BAD_PORT, NULL, 0, false },
        { ":", HOST_BAD_PORT, NULL, 0, false },
        { "[::1]:", HOST_BAD_PORT, NULL, 0, true },
        { "a:65536", HOST_BAD_PORT, NULL, 0, false },
        { "a:0000000", HOST_BAD_PORT, NULL, 0, false },
        { "a:000080", HOST_BAD_PORT, NULL, 0, false },
        { "a:4294967297", HOST_BAD_PORT, NULL, 0, false },
        { "a:18446744073709551617", HOST_BAD_PORT, NULL, 0, false },
        { "a:-1", HOST_BAD_PORT, NULL, 0, false },
        { "a:+1", HOST_BAD_PORT, NULL, 0, false },
        { "a: 1", HOST_BAD_PORT, NULL, 0, false },
        { "a:1x", HOST_BAD_PORT, NULL, 0, false },
    };
    struct host_port h;
    for (size_t i = 0; i < T_LEN(some); i++) {
        T_EQ(host_port_read(slice(some[i].text), &h), some[i].error, "%s", some[i].text);
        T_EQ(h.brackets, some[i].brackets, "%s", some[i].text);
        if (!some[i].host)
            continue;
        T_STR(h.host, some[i].host);
        T_EQ(h.has_port, some[i].port >= 0, "%s", some[i].text);
        T_EQ(h.port, some[i].port < 0 ? 0 : some[i].port);
    }
    char text[HOST_BYTES_MAX + 4];
    memset(text, 'x', sizeof text);
    T_EQ(host_port_read((struct slice){ text, HOST_BYTES_MAX }, &h), HOST_OK);
    T_EQ(strlen(h.host), HOST_BYTES_MAX);
    T_EQ(host_port_read((struct slice){ text, HOST_BYTES_MAX + 1 }, &h), HOST_LONG);
    T_EQ(host_port_read((struct slice){ NULL, 0 }, &h), HOST_EMPTY);
}

T_TEST(addresses_that_are_logged)
{
    static const char *const good[] = { "a:1", "127.0.0.1:9003", "[::1]:9003", "::1:9003" };
    static const char *const bad[] = { "",      "a",       "a:",     ":1",     "a:0",
                                       "a b:1", "a\"b:1",  "a\\b:1", "a\nb:1", "\xc3\xa4:1",
                                       "[::1]", "a:65536", "[::1:1" };
    struct host_port h;
    for (size_t i = 0; i < T_LEN(good); i++)
        T_OK(host_port_full(good[i], &h), "%s", good[i]);
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_OK(!host_port_full(bad[i], &h), "%s", bad[i]);
}

T_TEST(loopback_hosts)
{
    static const char *const yes[] = { "127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost" };
    static const char *const no[] = { "", "128.0.0.1", "127.0.0.1.example", "::2", "*", "0.0.0.0" };
    for (size_t i = 0; i < T_LEN(yes); i++)
        T_OK(host_is_loopback(yes[i]), "%s", yes[i]);
    for (size_t i = 0; i < T_LEN(no); i++)
        T_OK(!host_is_loopback(no[i]), "%s", no[i]);
}

/* NULL for a part that is not there. */
static void is(struct slice part, const char *expect, const char *url)
{
    T_OK(!part.p == !expect, "%s", url);
    T_OK(!expect || slice_is(part, expect), "%s: '%.*s' is not '%s'", url, (int)part.len, part.p,
         expect);
}

T_TEST(url_parts)
{
    static const struct {
        const char *url, *scheme, *user, *password, *hosts, *target, *path, *query;
    } some[] = {
        { "s://h", "s", NULL, NULL, "h", "", NULL, NULL },
        { "s://", "s", NULL, NULL, "", "", NULL, NULL },
        { "s://u@h:1,[::1]/p/q?a=b&c", "s", "u", NULL, "h:1,[::1]", "/p/q?a=b&c", "p/q", "a=b&c" },
        { "s://u:p@h", "s", "u", "p", "h", "", NULL, NULL },
        { "s://u:a@b:c@h/", "s", "u", "a@b:c", "h", "/", "", NULL },
        { "s://:p@h", "s", "", "p", "h", "", NULL, NULL },
        { "s://h?a@b", "s", NULL, NULL, "h", "?a@b", NULL, "a@b" },
        { "s://h/a@b?c?d", "s", NULL, NULL, "h", "/a@b?c?d", "a@b", "c?d" },
        { "s://h/p#f?x", "s", NULL, NULL, "h", "/p#f?x", "p", NULL },
        { "s://h#f", "s", NULL, NULL, "h", "#f", NULL, NULL },
        { "a+b://h?", "a+b", NULL, NULL, "h", "?", NULL, "" },
    };
    struct url_parts p;
    for (size_t i = 0; i < T_LEN(some); i++) {
        T_OK(url_split(slice(some[i].url), &p), "%s", some[i].url);
        is(p.scheme, some[i].scheme, some[i].url);
        is(p.user, some[i].user, some[i].url);
        is(p.password, some[i].password, some[i].url);
        is(p.hosts, some[i].hosts, some[i].url);
        is(p.target, some[i].target, some[i].url);
        is(p.path, some[i].path, some[i].url);
        is(p.query, some[i].query, some[i].url);
    }
    T_OK(!url_split(slice("host:1"), &p) && !url_split(slice("a:/b"), &p));
    T_OK(!url_split(slice(""), &p) && !url_split((struct slice){ NULL, 0 }, &p));
}

T_TEST(url_hosts)
{
    static const char *const expect[] = { "a:1", "", "[::1]", "" };
    struct slice rest = slice("a:1,,[::1],"), s;
    size_t n = 0;
    for (; url_host_next(&rest, &s); n++)
        T_OK(n < T_LEN(expect) && slice_is(s, expect[n]));
    T_EQ(n, T_LEN(expect));
}

T_TEST(url_decode)
{
    static const struct {
        const char *in;
        int error;
        const char *plain, *form;
    } some[] = {
        { "", 0, "", "" },
        { "abc", 0, "abc", "abc" },
        { "a+b", 0, "a+b", "a b" },
        { "%41%7e%2F%2b", 0, "A~/+", "A~/+" },
        { "%e4%BD%a0", 0, "\xe4\xbd\xa0", "\xe4\xbd\xa0" },
        { "%", FIRN_EFORMAT, 0, 0 },
        { "a%4", FIRN_EFORMAT, 0, 0 },
        { "%4g", FIRN_EFORMAT, 0, 0 },
        { "%g4", FIRN_EFORMAT, 0, 0 },
        { "%%41", FIRN_EFORMAT, 0, 0 },
        { "a%00", FIRN_EFORMAT, 0, 0 },
        { "123456789", FIRN_ENOSPC, 0, 0 },
        { "%31%32%33%34%35%36%37%38%39", FIRN_ENOSPC, 0, 0 },
        { "12345678", 0, "12345678", "12345678" },
    };
    for (size_t i = 0; i < T_LEN(some); i++) {
        char out[9];
        size_t len = 77;
        T_EQ(url_decode(slice(some[i].in), false, out, sizeof out, &len), some[i].error, "%s",
             some[i].in);
        if (some[i].error) {
            T_EQ(len, 77);
            continue;
        }
        T_STR(out, some[i].plain);
        T_EQ(len, strlen(out));
        T_EQ(url_decode(slice(some[i].in), true, out, sizeof out, &len), 0);
        T_STR(out, some[i].form);
    }
    char none[1];
    T_EQ(url_decode(slice(""), false, none, 0, NULL), FIRN_ENOSPC);
}

T_TEST(url_path_segments)
{
    static const char *const expect[] = { "v1", "a%2Fb", "", "c", "" };
    struct slice rest = slice("/v1/a%2Fb//c/"), s;
    size_t n = 0;
    for (; url_path_next(&rest, &s); n++)
        T_OK(n < T_LEN(expect) && s.len == strlen(expect[n]) && !memcmp(s.p, expect[n], s.len));
    T_EQ(n, T_LEN(expect));
    rest = slice("*");
    T_OK(!url_path_next(&rest, &s));
    rest = (struct slice){ NULL, 0 };
    T_OK(!url_path_next(&rest, &s));
}

T_TEST(url_query)
{
    static const struct {
        const char *name, *value; /* value NULL: there is no '=' */
    } expect[] = { { "a", "1" },   { "n", NULL }, { "m", "" },
                   { "k", "a=b" }, { "", "5" },   { "%6e", "%26" } };
    struct slice rest = slice("&&a=1&n&m=&k=a=b&=5&&%6e=%26&"), name, value;
    size_t n = 0;
    for (; url_query_next(&rest, &name, &value); n++) {
        T_OK(n < T_LEN(expect) && slice_is(name, expect[n].name));
        is(value, expect[n].value, expect[n].name);
    }
    T_EQ(n, T_LEN(expect));
    struct slice none = { NULL, 0 }, empty = slice("");
    T_OK(!url_query_next(&none, &name, &value) && !url_query_next(&empty, &name, &value));
}

T_TEST(host_port_written)
{
    char out[HOST_PORT_BUF], longest[HOST_BYTES_MAX + 1];
    struct host_port back;
    T_STR(host_port_write("db.example", 9001, out), "db.example:9001");
    T_STR(host_port_write("::1", 65535, out), "[::1]:65535");
    T_STR(host_port_write("", 9000, out), ":9000");
    memset(longest, ':', HOST_BYTES_MAX);
    longest[HOST_BYTES_MAX] = '\0';
    T_EQ(strlen(host_port_write(longest, 65535, out)), (size_t)HOST_BYTES_MAX + 8);
    T_EQ(host_port_read(slice(host_port_write("fe80::2", 80, out)), &back), HOST_OK);
    T_STR(back.host, "fe80::2");
}
