/* Splits: exact shares by turns, the same part for the same key, cookies. */
#include "t.h"

#include "proxy/split.h"

#include <stdio.h>
#include <string.h>

static char v1[] = "v1", v2[] = "v2", name[] = "r";
static struct config_split_part parts[] = { { v1, 90 }, { v2, 10 } };
static const struct config_route route = { .name = name, .split = { parts, 2 } };

T_TEST(split_is_exact)
{
    struct split *s = split_new(&route, NULL);
    unsigned n[2] = { 0, 0 };
    for (int i = 0; i < 10000; i++)
        n[split_choose(s, NULL, 0)]++;
    T_EQ(n[0], 9000);
    T_EQ(n[1], 1000);
    T_EQ(s->requests[1], 1000);
    struct split *next = split_new(&route, s);
    T_EQ(next->requests[0], 9000);
    split_free(next);
    split_free(s);
}

T_TEST(split_is_sticky)
{
    struct split *s = split_new(&route, NULL);
    unsigned n[2] = { 0, 0 };
    char key[32];
    for (int i = 0; i < 20000; i++) {
        int len = snprintf(key, sizeof key, "user-%d", i);
        size_t first = split_choose(s, key, (size_t)len);
        T_EQ(split_choose(s, key, (size_t)len), first);
        n[first]++;
    }
    T_OK(n[1] > 1700 && n[1] < 2300, "%u of 20000", n[1]);
    split_free(s);
}

T_TEST(split_cookies)
{
    static const struct {
        const char *header, *value; /* NULL: absent */
    } cases[] = {
        { "a=1", "1" },        { "b=2; a=1", "1" }, { "b=2;a=1;c", "1" }, { "aa=2; a=", "" },
        { "ba=2; a=3", "3" },  { "a", NULL },       { "", NULL },         { "b=a=1", NULL },
        { "; ;a=x y", "x y" }, { "A=1", NULL },
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        struct slice v = split_cookie((struct slice){ cases[i].header, strlen(cases[i].header) },
                                      "a");
        T_EQ(v.p != NULL, cases[i].value != NULL, "%s", cases[i].header);
        if (v.p && cases[i].value)
            T_OK(v.len == strlen(cases[i].value) && memcmp(v.p, cases[i].value, v.len) == 0, "%s",
                 cases[i].header);
    }
}
