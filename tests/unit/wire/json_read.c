#include "wire/json_read.h"
#include "t.h"

#include <stdio.h>

T_TEST(strings)
{
    static const struct {
        const char *in;
        const char *out; /* NULL: refused */
    } rows[] = {
        { "\"\"", "" },
        { " \t\r\n\"a\"", "a" },
        { "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "a\"\\/\b\f\n\r\t" },
        { "\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac" },
        { "\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80" },
        { "\"\xf0\x9f\x98\x80\"", "\xf0\x9f\x98\x80" },
        { "\"\\ud83d\"", NULL },
        { "\"\\ude00\"", NULL },
        { "\"\\ud83d\\u0041\"", NULL },
        { "\"\\u0000\"", NULL },
        { "\"\\u00g0\"", NULL },
        { "\"\\x41\"", NULL },
        { "\"\\", NULL },
        { "\"\\u12", NULL },
        { "\"a", NULL },
        { "\"a\nb\"", NULL },
        { "\"\xff\"", NULL },
        { "\"\xc0\x80\"", NULL },
        { "\"\xed\xa0\x80\"", NULL },
        { "\"\xf4\x90\x80\x80\"", NULL },
        { "\"\xe2\x82\"", NULL },
        { "'a'", NULL },
        { "a", NULL },
        { "", NULL },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct json_reader j;
        struct firn_diag d = { 0, "" };
        char out[64];
        size_t len;
        json_start(&j, rows[i].in, strlen(rows[i].in), &d);
        int r = json_string(&j, out, sizeof out, &len);
        T_EQ(r == 0, rows[i].out != NULL, "row %zu: %s", i, d.text);
        if (rows[i].out) {
            T_STR(out, rows[i].out);
            T_EQ(json_finish(&j), 0);
        } else {
            T_EQ(r, FIRN_EFORMAT);
            T_OK(d.text[0] && d.column > 0);
        }
    }
}

T_TEST(string_bound)
{
    struct json_reader j;
    char out[4];
    json_start(&j, "\"abc\"", 5, NULL);
    T_EQ(json_string(&j, out, sizeof out, NULL), 0);
    json_start(&j, "\"abcd\"", 6, NULL);
    T_EQ(json_string(&j, out, sizeof out, NULL), FIRN_ENOSPC);
}

T_TEST(numbers)
{
    static const struct {
        const char *in;
        int result;
        uint64_t out;
    } rows[] = {
        { "0", 0, 0 },
        { "42", 0, 42 },
        { "\"42\"", 0, 42 },
        { "18446744073709551615", 0, UINT64_MAX },
        { "\"18446744073709551615\"", 0, UINT64_MAX },
        { "18446744073709551616", FIRN_ERANGE, 0 },
        { "99999999999999999999999999", FIRN_ERANGE, 0 },
        { "01", FIRN_EFORMAT, 0 },
        { "-1", FIRN_EFORMAT, 0 },
        { "+1", FIRN_EFORMAT, 0 },
        { "1.0", FIRN_EFORMAT, 0 },
        { "1e3", FIRN_EFORMAT, 0 },
        { "\"1 \"", FIRN_EFORMAT, 0 },
        { "\"\"", FIRN_EFORMAT, 0 },
        { "\"1", FIRN_EFORMAT, 0 },
        { "true", FIRN_EFORMAT, 0 },
        { "null", FIRN_EFORMAT, 0 },
        { "", FIRN_EFORMAT, 0 },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct json_reader j;
        uint64_t v = 0;
        json_start(&j, rows[i].in, strlen(rows[i].in), NULL);
        T_EQ(json_u64(&j, &v), rows[i].result, "%s", rows[i].in);
        T_EQ(v, rows[i].out, "%s", rows[i].in);
    }
}

/* Reads {"a":number,"b":{...}} to any depth; the sum of the numbers, or an error. */
static int sum(struct json_reader *j, uint64_t *out)
{
    char name[8];
    int r = json_object(j);
    while (r == 0 && (r = json_member(j, name, sizeof name)) > 0) {
        uint64_t v = 0;
        if (strcmp(name, "a") == 0)
            r = json_u64(j, &v);
        else
            r = sum(j, out);
        *out += v;
    }
    return r;
}

T_TEST(objects)
{
    static const struct {
        const char *in;
        int result;
        uint64_t out;
    } rows[] = {
        { "{}", 0, 0 },
        { " { } ", 0, 0 },
        { "{\"a\":1}", 0, 1 },
        { "{\"a\":1,\"a\":2}", 0, 3 },
        { "{\"a\":1,\"b\":{\"a\":5},\"a\":2}", 0, 8 },
        { "{\"b\":{},\"b\":{}}", 0, 0 },
        { "{\"a\":1,}", FIRN_EFORMAT, 1 },
        { "{,\"a\":1}", FIRN_EFORMAT, 0 },
        { "{\"a\":1 \"a\":2}", FIRN_EFORMAT, 1 },
        { "{\"a\" 1}", FIRN_EFORMAT, 0 },
        { "{a:1}", FIRN_EFORMAT, 0 },
        { "{\"a\":1", FIRN_EFORMAT, 1 },
        { "{\"a\":1}}", FIRN_EFORMAT, 1 },
        { "{\"a\":1}x", FIRN_EFORMAT, 1 },
        { "{\"b\":[]}", FIRN_EFORMAT, 0 },
        { "{\"longnames\":1}", FIRN_ENOSPC, 0 },
        { "{\"b\":{\"b\":{\"b\":{\"b\":{\"b\":{\"b\":{\"b\":{\"b\":{}}}}}}}}}", FIRN_EFORMAT, 0 },
        { "[1]", FIRN_EFORMAT, 0 },
        { "", FIRN_EFORMAT, 0 },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct json_reader j;
        struct firn_diag d = { 0, "" };
        uint64_t v = 0;
        json_start(&j, rows[i].in, strlen(rows[i].in), &d);
        int r = sum(&j, &v);
        if (r == 0)
            r = json_finish(&j);
        T_EQ(r, rows[i].result, "%s: %s", rows[i].in, d.text);
        T_EQ(v, rows[i].out, "%s", rows[i].in);
    }
}
