/* Shapes of composed answers: lines that are taken, what they write, lines that are refused. */
#include "proxy/shape.h"
#include "proxy/json_pick.h"
#include "t.h"

#include <stdio.h>

static char text[1024];
static struct firn_diag why;

static int shape(const char *const *lines, const char *user, const char *orders)
{
    static const char *const parts[] = { "user", "orders" };
    struct arena a = { .max = 65536 };
    struct shape_node root = { .part = SHAPE_INNER };
    struct buf b;
    int e = 0;
    for (size_t i = 0; e == 0 && lines[i]; i++)
        e = shape_add(&root, lines[i], parts, 2, &a, &why);
    if (e == 0) {
        struct slice v[2] = { json_whole(user, strlen(user)), json_whole(orders, strlen(orders)) };
        buf_init(&b, sizeof text - 1);
        shape_write(&root, v, &b);
        snprintf(text, sizeof text, "%.*s", (int)b.len, b.p ? b.p : "");
        buf_done(&b);
    }
    arena_done(&a);
    return e;
}

#define LINES(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

T_TEST(shape_writes)
{
    static const char user[] = "{\"id\":7,\"name\":\"a\\n\",\"x\":{\"y\":[1,{\"z\":2}]}}";
    static const char orders[] =
        "[{\"id\":1,\"p\":{\"sku\":\"s\",\"t\":0}},{\"id\":2,\"p\":null},3]";
    T_EQ(shape(LINES("id = user.id"), user, orders), 0, "%s", why.text);
    T_STR(text, "\"id\":7");
    T_EQ(shape(LINES("a.b=user.name", "a.c.d = user.x.y.1.z", "o=orders.1.id"), user, orders), 0,
         "%s", why.text);
    T_STR(text, "\"a\":{\"b\":\"a\\n\",\"c\":{\"d\":2}},\"o\":2");
    T_EQ(shape(LINES("o = orders { id , q = p {sku}, none}"), user, orders), 0, "%s", why.text);
    T_STR(text, "\"o\":[{\"id\":1,\"q\":{\"sku\":\"s\"},\"none\":null},"
                "{\"id\":2,\"q\":null,\"none\":null},null]");
    T_EQ(shape(LINES("u = user {id, z = x.y.1.z}", "o = orders"), user, ""), 0, "%s", why.text);
    T_STR(text, "\"u\":{\"id\":7,\"z\":2},\"o\":null");
}

T_TEST(shape_refuses)
{
    static const char *const bad[] = { "",
                                       "id",
                                       "id =",
                                       "= user",
                                       "id = nobody.id",
                                       "id = user.",
                                       "id = user x",
                                       "id = user {",
                                       "id = user {a",
                                       "id = user {a,}",
                                       "id = user {a} x",
                                       "id = user {a, a}",
                                       "a.b.c.d.e.f.g.h.i = user",
                                       "id = user {}",
                                       "a..b = user",
                                       "id = user {a = }",
                                       "'a' = user" };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(shape(LINES(bad[i]), "1", "2"), FIRN_EFORMAT, "%s", bad[i]);
    T_EQ(shape(LINES("a = user", "a = orders"), "1", "2"), FIRN_EFORMAT);
    T_EQ(shape(LINES("a = user", "a.b = orders"), "1", "2"), FIRN_EFORMAT);
    T_EQ(shape(LINES("a.b = user", "a = orders"), "1", "2"), FIRN_EFORMAT);
    T_EQ(shape(LINES("a = user{b{c{d{e{f{g{h{i{j}}}}}}}}}"), "1", "2"), FIRN_EFORMAT);
}
