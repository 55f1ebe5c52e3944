/* Targets with places for values: which are taken, and what values cannot do. */
#include "proxy/template.h"
#include "t.h"

#include <stdio.h>

static char text[TEMPLATE_TARGET_MAX + 1];
static struct firn_diag why;

struct value {
    const char *name, *is;
};

/* {none} may be left out; {gone} and what is not known may not. */
static enum template_value value(void *user, struct slice name, struct buf *out)
{
    for (const struct value *v = user; v->name; v++)
        if (slice_is(name, v->name)) {
            buf_add_str(out, v->is);
            return TEMPLATE_THERE;
        }
    return slice_is(name, "none") ? TEMPLATE_ABSENT : TEMPLATE_MISSING;
}

static int fill(const char *from, const char *is)
{
    struct value values[] = { { "v", is }, { "header:X-A", "h" }, { NULL, NULL } };
    struct template t;
    struct buf b;
    int e = template_read((struct slice){ from, strlen(from) }, &t, &why);
    if (e)
        return e;
    buf_init(&b, 2 * TEMPLATE_TARGET_MAX);
    e = template_write(&t, value, values, &b, &why);
    snprintf(text, sizeof text, "%.*s", (int)b.len, b.p ? b.p : "");
    buf_done(&b);
    return e;
}

T_TEST(template_fills_in)
{
    static const struct {
        const char *from, *is, *want;
    } row[] = {
        { "/", "", "/" },
        { "/users/{v}", "7", "/users/7" },
        { "/u/{v}/x{v}?a={v}&b={header:X-A}", "1", "/u/1/x1?a=1&b=h" },
        { "/u?a={v}", "a&b=c d/%\xc3\xa9?#", "/u?a=a%26b%3Dc%20d%2F%25%C3%A9%3F%23" },
        { "/u/{v}", "a b?c#d&e=f", "/u/a%20b%3Fc%23d%26e%3Df" },
        { "/u/a{v}", "..", "/u/a.." },
        { "/u?{v}={v}", "k", "/u?k=k" },
        { "/u?a={none}", "", "/u" },
        { "/u?a={none}&b=1", "", "/u?b=1" },
        { "/u?a=1&b={none}", "", "/u?a=1" },
        { "/u?a=1&b={v}{none}&c=2", "x", "/u?a=1&c=2" },
        { "/u?a={v}", "", "/u?a=" },
        { "/u?a=1?b", "", "/u?a=1?b" },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        T_EQ(fill(row[i].from, row[i].is), 0, "%s: %s", row[i].from, why.text);
        T_STR(text, row[i].want);
    }
}

T_TEST(template_values_cannot_leave_their_segment)
{
    static const char *const bad[] = {
        ".", "..", "a/b", "../x", "a\\b", "\r\nX: 1", "a\tb", "\x7f"
    };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(fill("/u/{v}/x", bad[i]), FIRN_EFORMAT, "%s", bad[i]);
    T_EQ(fill("/u/{v}", ".."), FIRN_EFORMAT);
    T_EQ(fill("/u/.{v}", "."), FIRN_EFORMAT);
    T_EQ(fill("/u/{v}", ""), FIRN_ENOENT);
    T_EQ(fill("/u/{none}", ""), FIRN_ENOENT);
    char big[TEMPLATE_TARGET_MAX + 2];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    T_EQ(fill("/u?a={v}&b={v}", big), FIRN_ENOSPC);
    big[TEMPLATE_TARGET_MAX - 10] = '\0';
    T_EQ(fill("/u?a={v}&b={v}", big), FIRN_ENOSPC);
}

/* Else the target asks for more: "/orders", those of every user. */
T_TEST(template_loses_no_filter)
{
    static const char *const bad[] = { "/u?a={gone}",       "/u?b=1&a={gone}", "/u?a={none}{gone}",
                                       "/u?a={gone}&b={v}", "/u?{gone}",       "/{gone}?a=1" };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(fill(bad[i], "1"), FIRN_ENOENT, "%s", bad[i]);
}

T_TEST(template_refuses)
{
    static const char *const bad[] = { "",       "x",    "/a b",      "/{",   "/{}",   "/{a",
                                       "/{a b}", "/a}",  "/\xc3\xa9", "/a#b", "//",    "/a/../b",
                                       "/./a",   "/%zz", "/%2f",      "?a=1", "/{a}{", "/\"" };
    struct template t;
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(template_read((struct slice){ bad[i], strlen(bad[i]) }, &t, &why), FIRN_EFORMAT, "%s",
             bad[i]);
    char many[4 * (TEMPLATE_NAMES_MAX + 1) + 2] = "/";
    for (size_t i = 0; i <= TEMPLATE_NAMES_MAX; i++)
        memcpy(many + 1 + 3 * i, "{a}", 4);
    T_EQ(template_read((struct slice){ many, strlen(many) }, &t, &why), FIRN_EFORMAT);
}
