#include "cli/id_body.h"
#include "cli/id_body.c"
#include "t.h"

#include <stdlib.h>

struct seen {
    uint64_t id[8];
    size_t n;
};

static void see(uint64_t id, void *user)
{
    struct seen *s = user;
    if (s->n < T_LEN(s->id))
        s->id[s->n] = id;
    s->n++;
}

T_TEST(one_id)
{
    static const struct {
        const char *body, *id;
    } rows[] = {
        { "{\"id\":\"123\"}", "123" },
        { "{\"id\":123}\n", "123" },
        { " { \"id\" : \"01ARZ3NDEKTSV4RRFFQ69G5FAV\" } \r\n", "01ARZ3NDEKTSV4RRFFQ69G5FAV" },
        { "{\"id\":18446744073709551615}", "18446744073709551615" },
        { "{\"id\":0}", "0" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        char out[ID_BODY_TEXT_BUF];
        T_EQ(id_body_one(rows[i].body, strlen(rows[i].body), out), 0, "%s", rows[i].body);
        T_STR(out, rows[i].id);
    }
}

T_TEST(one_id_refused)
{
    static const char *const bad[] = {
        "",
        "{}",
        "123",
        "\"123\"",
        "{\"id\":}",
        "{\"id\":\"\"}",
        "{\"id\":null}",
        "{\"id\":-1}",
        "{\"id\":1.5}",
        "{\"id\":1e3}",
        "{\"id\":01}",
        "{\"id\":18446744073709551616}",
        "{\"id\":\"1\",\"x\":2}",
        "{\"ID\":\"1\"}",
        "{\"id\":\"1\"}x",
        "{\"id\":\"1\"",
        "{\"id\":\"1",
        "{\"id\":\"\\u0031\"}",
        "{\"id\":\"a\nb\"}",
        "{\"id\":\"\xc3\xa4\"}",
        "{\"ids\":[\"1\"]}",
        "[{\"id\":\"1\"}]",
        "{\"id\":\"12345678901234567890123456789012345678901234567890123456789012345\"}",
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        char out[ID_BODY_TEXT_BUF] = "untouched";
        T_EQ(id_body_one(bad[i], strlen(bad[i]), out), FIRN_EFORMAT, "%s", bad[i]);
        T_STR(out, "untouched");
    }
}

T_TEST(many_ids)
{
    static const char be[] = "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3";
    static const struct {
        enum id_body_form form;
        const char *body;
        size_t len;
    } rows[] = {
        { ID_BODY_JSON, "{\"ids\":[\"1\",\"2\",\"3\"]}", 0 },
        { ID_BODY_JSON, "{ \"ids\": [1, 2 ,3 ] }\n", 0 },
        { ID_BODY_LINES, "1\n2\n3\n", 0 },
        { ID_BODY_BYTES, be, 24 },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct seen s = { .n = 0 };
        size_t len = rows[i].len ? rows[i].len : strlen(rows[i].body);
        T_EQ(id_body_each(rows[i].form, rows[i].body, len, see, &s), 0, "row %zu", i);
        T_EQ(s.n, 3);
        T_OK(s.id[0] == 1 && s.id[1] == 2 && s.id[2] == 3);
    }
}

T_TEST(many_ids_refused)
{
    static const struct {
        enum id_body_form form;
        const char *body;
    } rows[] = {
        { ID_BODY_JSON, "{\"ids\":[]}" },
        { ID_BODY_JSON, "{\"ids\":[1,]}" },
        { ID_BODY_JSON, "{\"ids\":[1" },
        { ID_BODY_JSON, "{\"ids\":[\"x\"]}" },
        { ID_BODY_JSON, "{\"ids\":1}" },
        { ID_BODY_JSON, "{\"id\":\"ulid\"}" },
        { ID_BODY_LINES, "" },
        { ID_BODY_LINES, "1\n2" },
        { ID_BODY_LINES, "1\n\n" },
        { ID_BODY_LINES, "1\r\n" },
        { ID_BODY_BYTES, "1234567" },
        { ID_BODY_BYTES, "" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct seen s = { .n = 0 };
        T_EQ(id_body_each(rows[i].form, rows[i].body, strlen(rows[i].body), see, &s), FIRN_EFORMAT,
             "%s", rows[i].body);
    }
}

T_TEST(resp)
{
    static const struct {
        const char *text;
        uint64_t count, last;
        bool error, other;
    } rows[] = {
        { ":1\r\n", 1, 1, false, false },
        { ":18446744073709551615\r\n", 1, UINT64_MAX, false, false },
        { ":-5\r\n", 0, 0, false, true },
        { "$3\r\n123\r\n", 1, 123, false, false },
        { "$-1\r\n", 0, 0, false, true },
        { "+OK\r\n", 0, 0, false, true },
        { "-ERR no\r\n", 0, 0, true, false },
        { "*2\r\n$1\r\n7\r\n:8\r\n", 2, 8, false, false },
        { "*-1\r\n", 0, 0, false, false },
        { "*0\r\n", 0, 0, false, false },
        { "%1\r\n+id\r\n:9\r\n", 1, 9, false, true },
        { "*2\r\n*1\r\n:1\r\n*1\r\n:2\r\n", 2, 2, false, false },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct resp_answer a;
        struct seen s = { .n = 0 };
        size_t len = strlen(rows[i].text);
        for (size_t cut = 0; cut < len; cut++) {
            char *exact = malloc(cut ? cut : 1);
            memcpy(exact, rows[i].text, cut);
            ssize_t n = id_body_resp(exact, cut, see, &s, &a);
            free(exact);
            T_EQ(n, FIRN_EAGAIN, "row %zu cut at %zu", i, cut);
            T_EQ(s.n, 0);
        }
        T_EQ(id_body_resp(rows[i].text, len, see, &s, &a), len, "row %zu", i);
        T_EQ(a.count, rows[i].count);
        T_EQ(s.n, rows[i].count);
        T_EQ(a.error, rows[i].error, "row %zu", i);
        T_EQ(a.other, rows[i].other, "row %zu", i);
        T_OK(s.n == 0 || s.id[s.n - 1] == rows[i].last, "row %zu", i);
        T_EQ(id_body_resp(rows[i].text, len, NULL, NULL, &a), len);
    }
}

T_TEST(resp_refused)
{
    static const char *const bad[] = { "x\r\n",         ":1\n",
                                       "\r\n",          "$x\r\n",
                                       "$-2\r\n",       "$1\r\nabc",
                                       "*99999999\r\n", "$99999999999\r\n",
                                       "*1\r\n?1\r\n",  "HTTP/1.1 4\r\n" };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct resp_answer a;
        T_EQ(id_body_resp(bad[i], strlen(bad[i]), NULL, NULL, &a), FIRN_EFORMAT, "%s", bad[i]);
    }
}
