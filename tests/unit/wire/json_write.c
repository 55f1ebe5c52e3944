/* The JSON writer: escapes, commas, members of every type. */
#include "wire/json_write.h"
#include "wire/distance.h"
#include "t.h"

#include <stdio.h>

T_TEST(strings_are_escaped)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        { "", "\"\"" },
        { "a\"b\\c", "\"a\\\"b\\\\c\"" },
        { "a\nb\x01", "\"a\\u000ab\\u0001\"" },
        { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
        { "\x7f\xc2\x9b", "\"\\u007f\\u009b\"" },
        { "\xff\xc3", "\"\\ufffd\\ufffd\"" },
        { "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct buf b;
        buf_init(&b, 1000);
        json_text(&b, NULL, rows[i].in);
        buf_add(&b, "", 1);
        T_STR(b.p, rows[i].out);
        buf_done(&b);
    }
}

T_TEST(members)
{
    struct buf b;
    buf_init(&b, 1000);
    json_begin(&b, NULL, '{');
    json_text(&b, "a", "x");
    json_count(&b, "b", 7);
    json_id(&b, "c", UINT64_MAX);
    json_bool(&b, "d", true);
    json_time(&b, "e", 1000);
    json_time(&b, "f", -1);
    json_time(&b, "g", INT64_MAX);
    json_signed(&b, "h", INT64_MIN);
    json_begin(&b, "i", '[');
    json_text(&b, NULL, NULL);
    json_begin(&b, NULL, '[');
    json_end(&b, ']');
    json_begin(&b, NULL, '{');
    json_key(&b, "j");
    json_bytes(&b, NULL, "x", 1);
    json_end(&b, '}');
    json_end(&b, ']');
    json_end(&b, '}');
    buf_add(&b, "", 1);
    T_STR(b.p, "{\"a\":\"x\",\"b\":7,\"c\":\"18446744073709551615\",\"d\":true,"
               "\"e\":\"1970-01-01T00:00:00.001Z\",\"f\":\"1969-12-31T23:59:59.999Z\",\"g\":null,"
               "\"h\":-9223372036854775808,\"i\":[null,[],{\"j\":\"x\"}]}");
    buf_done(&b);
}

T_TEST(distances)
{
    static const struct {
        const char *a, *b;
        size_t d;
    } rows[] = {
        { "", "", 0 },
        { "a", "", 1 },
        { "", "abc", 3 },
        { "abc", "abc", 0 },
        { "abc", "acb", 1 },
        { "abc", "abd", 1 },
        { "kitten", "sitting", 3 },
        { "generate", "genrate", 1 },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        T_EQ(edit_distance(rows[i].a, strlen(rows[i].a), rows[i].b, strlen(rows[i].b)), rows[i].d,
             "%s %s", rows[i].a, rows[i].b);
        T_EQ(edit_distance(rows[i].b, strlen(rows[i].b), rows[i].a, strlen(rows[i].a)), rows[i].d);
    }
    char big[500]; /* bounded, whatever comes */
    memset(big, 'x', sizeof big);
    T_EQ(edit_distance(big, sizeof big, "x", 1), NEAREST_LEN_MAX - 1);
}

/* Runs of plain bytes are copied eight at a time: each byte is written as it is alone, wherever it
 * stands. */
T_TEST(json_write_every_byte_everywhere)
{
    for (int c = 0; c < 0x80; c++)
        for (size_t at = 0; at < 17; at++) {
            char text[17], want[64];
            struct buf one, all;
            buf_init(&one, 100);
            buf_init(&all, 100);
            memset(text, 'x', sizeof text);
            text[at] = (char)c;
            json_bytes(&one, NULL, text + at, 1);
            json_bytes(&all, NULL, text, sizeof text);
            snprintf(want, sizeof want, "\"%.*s%.*s%.*s\"", (int)at, "xxxxxxxxxxxxxxxxx",
                     (int)one.len - 2, one.p + 1, (int)(sizeof text - at - 1), "xxxxxxxxxxxxxxxxx");
            T_EQ(all.len, strlen(want), "byte %d at %zu", c, at);
            T_OK(memcmp(all.p, want, all.len) == 0, "byte %d at %zu", c, at);
            buf_done(&one);
            buf_done(&all);
        }
}
