#include "t.h"

#include "guard.h"
#include "wire/http.h"

static struct slice slice(const char *text)
{
    return (struct slice){ guard_copy(text, strlen(text)), strlen(text) };
}

T_TEST(uri_decode)
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
        T_EQ(http_decode(slice(some[i].in), false, out, sizeof out, &len), some[i].error, "%s",
             some[i].in);
        if (some[i].error) {
            T_EQ(len, 77);
            continue;
        }
        T_STR(out, some[i].plain);
        T_EQ(len, strlen(out));
        T_EQ(http_decode(slice(some[i].in), true, out, sizeof out, &len), 0);
        T_STR(out, some[i].form);
    }
    char none[1];
    T_EQ(http_decode(slice(""), false, none, 0, NULL), FIRN_ENOSPC);
}

T_TEST(uri_path_segments)
{
    static const char *const expect[] = { "v1", "a%2Fb", "", "c", "" };
    struct slice rest = slice("/v1/a%2Fb//c/"), s;
    size_t n = 0;
    for (; http_path_next(&rest, &s); n++)
        T_OK(n < T_LEN(expect) && s.len == strlen(expect[n]) && !memcmp(s.p, expect[n], s.len));
    T_EQ(n, T_LEN(expect));
    rest = slice("*");
    T_OK(!http_path_next(&rest, &s));
    rest = (struct slice){ NULL, 0 };
    T_OK(!http_path_next(&rest, &s));
}

T_TEST(uri_query)
{
    static const struct {
        const char *query, *name;
        int error;
        const char *value;
    } some[] = {
        { "n=5", "n", 0, "5" },
        { "a=1&n=5&b=2", "n", 0, "5" },
        { "&&n=5&", "n", 0, "5" },
        { "n", "n", 0, "" },
        { "n=", "n", 0, "" },
        { "n=a=b", "n", 0, "a=b" },
        { "n=a%26b+c", "n", 0, "a&b c" },
        { "%6e=5", "n", 0, "5" },
        { "nn=5", "n", FIRN_ENOENT, 0 },
        { "", "n", FIRN_ENOENT, 0 },
        { "N=5", "n", FIRN_ENOENT, 0 },
        { "=5", "n", FIRN_ENOENT, 0 },
        { "n=1&n=2", "n", FIRN_EINVAL, 0 },
        { "n=1&%6E=1", "n", FIRN_EINVAL, 0 },
        { "n=%zz", "n", FIRN_EFORMAT, 0 },
        { "%6=5", "n", FIRN_ENOENT, 0 },
        { "n%00=5", "n", FIRN_ENOENT, 0 },
    };
    for (size_t i = 0; i < T_LEN(some); i++) {
        char out[32];
        T_EQ(http_query_get(slice(some[i].query), some[i].name, out, sizeof out, NULL),
             some[i].error, "%s", some[i].query);
        if (!some[i].error)
            T_STR(out, some[i].value, "%s", some[i].query);
    }
    struct slice none = { NULL, 0 }, name, value;
    T_OK(!http_query_next(&none, &name, &value));
}

T_TEST(uri_u64)
{
    uint64_t v = 7;
    T_EQ(http_u64(slice("18446744073709551615"), UINT64_MAX, &v), 0);
    T_OK(v == UINT64_MAX);
    T_EQ(http_u64(slice("007"), 9, &v), 0);
    T_EQ(v, 7);
    T_EQ(http_u64(slice("18446744073709551616"), UINT64_MAX, &v), FIRN_ERANGE);
    T_EQ(http_u64(slice("99999999999999999999999"), UINT64_MAX, &v), FIRN_ERANGE);
    T_EQ(http_u64(slice("11"), 10, &v), FIRN_ERANGE);
    static const char *const bad[] = { "", " 1", "1 ", "+1", "-1", "1.", "0x1", "1e3", "\xd9\xa1" };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(http_u64(slice(bad[i]), 10, &v), FIRN_EFORMAT, "'%s'", bad[i]);
    T_EQ(v, 7);
}

T_TEST(uri_media_types)
{
    static const struct {
        const char *value;
        bool named;
    } some[] = {
        { "text/plain", true },
        { "Text/Plain; charset=utf-8", true },
        { "text/html, text/plain;q=0.5", true },
        { "text/html ,\ttext/plain", true },
        { "text/plain;q=0", false },
        { "text/plain; q=0.000", false },
        { "text/plain; q=0.001", true },
        { "text/*", false },
        { "text/plainx", false },
        { "", false },
        { ",,;", false },
    };
    for (size_t i = 0; i < T_LEN(some); i++)
        T_EQ(http_names_type(slice(some[i].value), "text/plain"), some[i].named, "%s",
             some[i].value);
    T_OK(!http_names_type((struct slice){ NULL, 0 }, "text/plain"));
}
