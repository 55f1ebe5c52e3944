/* Numbers and media types in a request. */
#include "t.h"

#include "guard.h"
#include "wire/http.h"

static struct slice slice(const char *text)
{
    return (struct slice){ guard_copy(text, strlen(text)), strlen(text) };
}

T_TEST(u64)
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

T_TEST(media_types)
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

T_TEST(content_type)
{
    static const struct {
        const char *value;
        bool is;
    } some[] = {
        { "application/json", true },
        { "Application/JSON; charset=utf-8", true },
        { "application/json ;x=,y", true },
        { "text/plain;a=,application/json", false }, /* what a page may send without asking */
        { "text/plain, application/json", false },
        { "application/json, text/plain", false },
        { "application/jsonx", false },
        { "application/json+x", false },
        { ";application/json", false },
        { "", false },
    };
    for (size_t i = 0; i < T_LEN(some); i++)
        T_EQ(http_type_is(slice(some[i].value), "application/json"), some[i].is, "%s",
             some[i].value);
    T_OK(!http_type_is((struct slice){ NULL, 0 }, "application/json"));
}
