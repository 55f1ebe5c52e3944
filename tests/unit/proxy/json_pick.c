/* Values inside of a JSON text. */
#include "proxy/json_pick.h"
#include "t.h"

#include <stdio.h>

static char shown[256];

static const char *show(struct slice s)
{
    snprintf(shown, sizeof shown, "%.*s", s.p ? (int)s.len : 6, s.p ? s.p : "absent");
    return shown;
}

static struct slice whole(const char *text)
{
    return json_whole(text, strlen(text));
}

T_TEST(json_whole_takes_one_value)
{
    T_STR(show(whole(" {\"a\":1} ")), "{\"a\":1}");
    T_STR(show(whole("12")), "12");
    static const char *const bad[] = { "", " ", "{", "1 2", "{\"a\":}", "[1,]", "nul", "\"\x80\"" };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_STR(show(whole(bad[i])), "absent", "%s", bad[i]);
}

T_TEST(json_pick_by_name_and_place)
{
    struct slice v = whole("{\"a\":{\"b\":[10, {\"c\":\"x\"} ,null]},\"n\":null,\"\\u0061\":2}");
    T_STR(show(json_pick(json_pick(v, "a"), "b")), "[10, {\"c\":\"x\"} ,null]");
    struct slice b = json_pick(json_pick(v, "a"), "b");
    T_STR(show(json_pick(b, "0")), "10");
    T_STR(show(json_pick(json_pick(b, "1"), "c")), "\"x\"");
    T_STR(show(json_pick(b, "2")), "null");
    T_STR(show(json_pick(b, "3")), "absent");
    T_STR(show(json_pick(b, "-1")), "absent");
    T_STR(show(json_pick(b, "9999999999999999999999")), "absent");
    T_STR(show(json_pick(b, "")), "absent");
    T_STR(show(json_pick(v, "n")), "null");
    T_STR(show(json_pick(v, "b")), "absent");
    T_STR(show(json_pick(json_pick(v, "n"), "x")), "absent");
    T_STR(show(json_pick((struct slice){ NULL, 0 }, "x")), "absent");
}

T_TEST(json_each_element_of_arrays)
{
    static const struct {
        const char *text;
        size_t n;
    } row[] = { { "[]", 0 },        { "[ ]", 0 }, { "[1]", 1 }, { "[ 1 , [2,3] ,{}, \"]\" ]", 4 },
                { "{\"a\":1}", 0 }, { "7", 0 } };
    for (size_t i = 0; i < T_LEN(row); i++) {
        size_t place = 0, n = 0;
        struct slice e;
        while (json_each_element(whole(row[i].text), &place, &e))
            n++;
        T_EQ(n, row[i].n, "%s", row[i].text);
    }
}

T_TEST(json_as_text_of_scalars)
{
    static const struct {
        const char *text, *want;
    } row[] = { { "\"a\\u00e9\\n\"", "a\xc3\xa9\n" },
                { "7123456789012345678", "7123456789012345678" },
                { "true", "true" },
                { "null", NULL },
                { "[1]", NULL },
                { "{}", NULL },
                { "\"\"", "" } };
    for (size_t i = 0; i < T_LEN(row); i++) {
        struct buf b;
        buf_init(&b, 100);
        T_EQ(json_as_text(whole(row[i].text), &b), row[i].want != NULL, "%s", row[i].text);
        if (row[i].want)
            T_STR(show((struct slice){ b.p ? b.p : "", b.len }), row[i].want);
        buf_done(&b);
    }
}
