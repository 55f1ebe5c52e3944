#include "cli/admin/node_body.h"
#include "cli/admin/node_body.c"
#include "t.h"

static int rows;
static struct node_row last;

static void count(void *user, const struct node_row *r)
{
    (void)user;
    rows++;
    last = *r;
}

static int parse(const char *text)
{
    rows = 0;
    return node_body_each(text, strlen(text), count, NULL);
}

T_TEST(answers)
{
    T_EQ(parse("{\"nodes\":[]}\n"), 0);
    T_EQ(rows, 0);
    T_EQ(parse("{\"nodes\":[{\"number\":7,\"name\":\"a\\\"b\",\"kind\":\"firnd\",\"self\":true,"
               "\"later\":null,\"x\":\"y\",\"age_ms\":12} , {\"number\":1023}]}"),
         0);
    T_EQ(rows, 2);
    T_EQ(last.number, 1023);
    T_EQ(parse("{\"nodes\":[{\"number\":7,\"name\":\"a\\\"b\",\"state\":\"up\",\"age_ms\":12}]}"),
         0);
    T_EQ(last.number, 7);
    T_EQ(last.age_ms, 12);
    T_STR(last.name, "a\"b");
    T_STR(last.state, "up");
}

T_TEST(other_things)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"nodes\":[}",
        "{\"nodes\":[{}]}",
        "{\"nodes\":[],\"x\":1}",
        "{\"nodes\":[]} x",
        "{\"nodes\":[{\"number\":-1}]}",
        "{\"nodes\":[{\"number\":1}",
        "{\"nodes\":[{\"number\":1},]}",
        "{\"nodes\":[{\"number\":1,}]}",
        "{\"nodes\":[{\"number\":99999999999999999999}]}",
        "{\"nodes\":[{\"name\":\"a\nb\"}]}",
        "{\"nodes\":[{\"name\":\"a\\nb\"}]}",
        "{\"nodes\":[{\"name\":\"\\u001b[2J\"}]}",
        "{\"nodes\":[{\"name\":\"\033[2J\"}]}",
        "{\"nodes\":[{\"state\":\"a state of more than fifteen letters\"}]}",
    };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(parse(bad[i]), FIRN_EFORMAT, "%s", bad[i]);
    const char *good = "{\"nodes\":[{\"number\":7,\"name\":\"abc\",\"self\":false}]}";
    for (size_t cut = 0; cut < strlen(good); cut++)
        T_EQ(node_body_each(good, cut, count, NULL), FIRN_EFORMAT, "cut at %zu", cut);
}
