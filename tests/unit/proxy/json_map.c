/* Bodies with members renamed and dropped; what is no JSON; names that meet. */
#include "proxy/json_map.h"
#include "t.h"

#include <stdio.h>

static char text[4096];
static struct firn_diag why;

static int map(const struct json_map_rule *rules, size_t n, const char *body)
{
    struct buf b;
    buf_init(&b, sizeof text - 1);
    int r = json_map(rules, n, body, strlen(body), &b, &why);
    snprintf(text, sizeof text, "%.*s", (int)b.len, b.p ? b.p : "");
    buf_done(&b);
    return r;
}

static const struct json_map_rule rules[] = {
    { "password", NULL }, { "user.secret", NULL }, { "id", "orderId" }, { "user.name", "fullName" }
};

T_TEST(renames_and_drops)
{
    static const struct {
        const char *body, *want;
    } row[] = {
        { "{}", "{}" },
        { " [ ] ", "[]" },
        { "12.50e-3", "12.50e-3" },
        { "\"id\"", "\"id\"" },
        { "{\"id\":7123456789012345678,\"a\":1}", "{\"orderId\":7123456789012345678,\"a\":1}" },
        { "{\"password\":\"x\"}", "{}" },
        { "{\"a\":1,\"password\":{\"id\":1},\"b\":[1,2]}", "{\"a\":1,\"b\":[1,2]}" },
        { "{\"pass\\u0077ord\":1,\"b\":2}", "{\"b\":2}" },
        { "{\"user\":{\"secret\":1,\"name\":\"\\u00e9\",\"id\":2},\"secret\":3}",
          "{\"user\":{\"fullName\":\"\\u00e9\",\"id\":2},\"secret\":3}" },
        { "[{\"id\":1},{\"id\":2,\"user\":[{\"secret\":1},{\"name\":2}]}]",
          "[{\"orderId\":1},{\"orderId\":2,\"user\":[{},{\"fullName\":2}]}]" },
        { "{ \"a\" : [ 1 , true , null , {} ] }", "{\"a\":[1,true,null,{}]}" },
        { "{\"user.secret\":1}", "{\"user.secret\":1}" },
        { "{\"\":{\"id\":1},\"user.\":{\"id\":1}}", "{\"\":{\"id\":1},\"user.\":{\"id\":1}}" },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        T_EQ(map(rules, T_LEN(rules), row[i].body), 0, "%s: %s", row[i].body, why.text);
        T_STR(text, row[i].want);
    }
}

/* As services bind members that compare names without regard to case. */
T_TEST(drops_in_any_case)
{
    T_EQ(map(rules, T_LEN(rules),
             "{\"Password\":1,\"PASSWORD\":2,\"pa\\u017f\xc5\xbfword\":3,\"x\":4}"),
         0);
    T_STR(text, "{\"x\":4}");
    T_EQ(map(rules, T_LEN(rules), "{\"User\":{\"SECRET\":1,\"Name\":2},\"ID\":3,\"passwor\":4}"),
         0);
    T_STR(text, "{\"User\":{\"Name\":2},\"ID\":3,\"passwor\":4}");
    const struct json_map_rule kelvin[] = { { "key", NULL }, { "KEY", "name" } };
    T_EQ(map(kelvin, 2, "{\"\\u212aey\":1,\"KEY\":2}"), 0, "%s", why.text);
    T_STR(text, "{\"name\":2}");
}

T_TEST(names_that_meet)
{
    T_EQ(map(rules, T_LEN(rules), "{\"orderId\":1,\"id\":2}"), FIRN_EFORMAT);
    T_OK(strstr(why.text, "orderId twice"), "%s", why.text);
    T_EQ(map(rules, T_LEN(rules), "{\"id\":1,\"id\":2}"), FIRN_EFORMAT);
    T_EQ(map(rules, T_LEN(rules), "{\"id\":1,\"x\":{\"orderId\":2}}"), 0);
    /* Two names change places. */
    const struct json_map_rule swap[] = { { "a", "b" }, { "b", "a" } };
    T_EQ(map(swap, 2, "{\"a\":1,\"b\":2}"), 0, "%s", why.text);
    T_STR(text, "{\"b\":1,\"a\":2}");
    /* The place of a member that is dropped. */
    const struct json_map_rule over[] = { { "a", NULL }, { "b", "a" } };
    T_EQ(map(over, 2, "{\"a\":1,\"b\":2}"), 0, "%s", why.text);
    T_STR(text, "{\"a\":2}");
}

T_TEST(no_json)
{
    static const char *const bad[] = { "",           "{",
                                       "{\"a\":}",   "[1,]",
                                       "{\"a\":1}x", "nul",
                                       "{'a':1}",    "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]" };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        why.text[0] = '\0';
        T_EQ(map(rules, T_LEN(rules), bad[i]), FIRN_EFORMAT, "%s", bad[i]);
        T_OK(why.text[0], "%s", bad[i]);
    }
    struct buf b;
    static char large[8192];
    memset(large, '1', sizeof large);
    buf_init(&b, sizeof large / 2);
    T_EQ(json_map(NULL, 0, large, sizeof large, &b, NULL), FIRN_ENOSPC);
    buf_done(&b);
}

T_TEST(rules_that_cannot_be_used)
{
    static const struct json_map_rule bad[] = { { "", NULL },    { ".a", NULL }, { "a.", NULL },
                                                { "a..b", "c" }, { "a", "" },    { NULL, "a" } };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_OK(json_map_wrong(&bad[i], 1), "%zu", i);
    T_OK(json_map_wrong((struct json_map_rule[]){ { "a", NULL }, { "a", "b" } }, 2));
    T_OK(!json_map_wrong(rules, T_LEN(rules)));
}
