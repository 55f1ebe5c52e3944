/* Entries: what is taken, and what JSON, a text or a jsonb column does not allow. */
#include "t.h"

#include "auditlog/entry.h"

#include <stdio.h>

static struct firn_diag diag;

static int read_it(const char *json, struct entry *e)
{
    diag.text[0] = '\0';
    return entry_read((struct slice){ json, strlen(json) }, e, &diag);
}

T_TEST(entry_takes)
{
    struct entry e;
    T_EQ(read_it("{\"actor\":\"a\",\"action\":\"b\"}", &e), 0);
    T_STR(e.actor, "a");
    T_STR(e.action, "b");
    T_OK(slice_is(e.detail, "{}"));
    T_EQ(read_it(" { \"detail\" : {\"x\":[1,{\"y\":\"\\\"e9\"}]} , \"action\":\"\\u00e9\","
                 "\"actor\":\"caf\xc3\xa9\"}\n",
                 &e),
         0, "%s", diag.text);
    T_OK(slice_is(e.detail, "{\"x\":[1,{\"y\":\"\\\"e9\"}]}"));
    T_STR(e.action, "\xc3\xa9");
    T_EQ(e.actor_len, 5);
}

T_TEST(entry_refuses)
{
    static const char *const bad[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"actor\":\"a\"}",
        "{\"action\":\"a\"}",
        "{\"actor\":\"\",\"action\":\"b\"}",
        "{\"actor\":1,\"action\":\"b\"}",
        "{\"actor\":\"a\\n\",\"action\":\"b\"}",
        "{\"actor\":\"a\\u0000\",\"action\":\"b\"}",
        "{\"actor\":\"a\xff\",\"action\":\"b\"}",
        "{\"actor\":\"a\",\"actor\":\"a\",\"action\":\"b\"}",
        "{\"actor\":\"a\",\"action\":\"b\",\"x\":1}",
        "{\"actor\":\"a\",\"action\":\"b\",\"a member with quite a long name, longer than any\":1}",
        "{\"actor\":\"a\",\"action\":\"b\"} x",
        "{\"actor\":\"a\",\"action\":\"b\",\"detail\":[]}",
        "{\"actor\":\"a\",\"action\":\"b\",\"detail\":null}",
        "{\"actor\":\"a\",\"action\":\"b\",\"detail\":{\"x\":\"\\u0000\"}}",
        "{\"actor\":\"a\",\"action\":\"b\",\"detail\":{\"x\":\"\\ud800\"}}",
        "{\"actor\":\"a\",\"action\":\"b\",\"detail\":{\"x\":1e309}}",
        "{\"actor\":\"a\",\"action\":\"b\",\"detail\":{\"x\":1E-99999999999999999999}}",
        "{\"actor\":\"a\",\"action\":\"b\",\"detail\":{\"x\":1e+309}}",
        "{\"actor\":\"a\",\"action\":\"b\",\"detail\":{\"x\":01}}",
    };
    struct entry e;
    for (size_t i = 0; i < T_LEN(bad); i++) {
        T_OK(read_it(bad[i], &e) < 0, "%s", bad[i]);
        T_OK(diag.text[0], "%s", bad[i]);
    }
}

T_TEST(entry_numbers_and_texts_that_look_like_them)
{
    static const char *const good[] = { "1e308",     "1E+308",        "1e-308",  "-0.5e10",
                                        "\"1e999\"", "\"\\\\1e999\"", "\"e999\"" };
    char json[200];
    struct entry e;
    for (size_t i = 0; i < T_LEN(good); i++) {
        snprintf(json, sizeof json, "{\"actor\":\"a\",\"action\":\"b\",\"detail\":{\"x\":%s}}",
                 good[i]);
        T_EQ(read_it(json, &e), 0, "%s: %s", json, diag.text);
    }
}

T_TEST(entry_lengths)
{
    char json[1000], name[400];
    struct entry e;
    memset(name, 'n', sizeof name);
    for (size_t len = ACTOR_BYTES_MAX - 1; len <= ACTOR_BYTES_MAX + 1; len++) {
        snprintf(json, sizeof json, "{\"actor\":\"%.*s\",\"action\":\"b\"}", (int)len, name);
        T_EQ(read_it(json, &e), len <= ACTOR_BYTES_MAX ? 0 : FIRN_ENOSPC, "%zu", len);
    }
    for (size_t len = ACTION_BYTES_MAX - 1; len <= ACTION_BYTES_MAX + 1; len++) {
        snprintf(json, sizeof json, "{\"actor\":\"a\",\"action\":\"%.*s\"}", (int)len, name);
        T_EQ(read_it(json, &e), len <= ACTION_BYTES_MAX ? 0 : FIRN_ENOSPC, "%zu", len);
    }
}

T_TEST(entry_lines)
{
    static const char text[] = "\n a\r\n\r\n  \nb\n\n c d\r\n e";
    static const char *const want[] = { " a", "b", " c d", " e" };
    struct slice rest = { text, sizeof text - 1 }, line;
    for (size_t i = 0; i < T_LEN(want); i++) {
        T_OK(entry_line_next(&rest, &line));
        T_OK(slice_is(line, want[i]), "%zu: '%.*s'", i, (int)line.len, line.p);
    }
    T_OK(!entry_line_next(&rest, &line));
    rest = (struct slice){ NULL, 0 };
    T_OK(!entry_line_next(&rest, &line));
}

static int user(const char *segment, char *out)
{
    size_t len;
    return entry_user_read((struct slice){ segment, strlen(segment) }, out, &len);
}

T_TEST(entry_user)
{
    char out[USER_BYTES_MAX + 1], long_name[USER_BYTES_MAX + 2];
    T_EQ(user("a%2Fb%20%C3%A9+", out), 0);
    T_STR(out, "a/b \xc3\xa9+");
    static const char *const bad[] = { "", "%00", "%0a", "%", "%zz", "%ff", "%c2%80" };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(user(bad[i], out), FIRN_EFORMAT, "%s", bad[i]);
    memset(long_name, 'x', sizeof long_name);
    long_name[USER_BYTES_MAX + 1] = '\0';
    T_EQ(user(long_name, out), FIRN_ENOSPC);
    long_name[USER_BYTES_MAX] = '\0';
    T_EQ(user(long_name, out), 0);
}

T_TEST(entry_key)
{
    char key[KEY_BYTES_MAX + 1];
    memset(key, 'k', sizeof key);
    T_OK(entry_key_valid((struct slice){ key, KEY_BYTES_MAX }));
    T_OK(!entry_key_valid((struct slice){ key, KEY_BYTES_MAX + 1 }));
    T_OK(!entry_key_valid((struct slice){ key, 0 }));
    T_OK(!entry_key_valid((struct slice){ "a b", 3 }));
    T_OK(!entry_key_valid((struct slice){ "\xc3\xa9", 2 }));
}
