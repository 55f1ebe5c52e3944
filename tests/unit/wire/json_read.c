/* The JSON reader: values, objects, arrays, every scalar with its path, and what it refuses. */
#include "wire/json_read.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>

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

/* Arrays, borrowed strings, what may be skipped, and members by name. */
T_TEST(arrays_and_members)
{
    static const char text[] = "{\"skip\":{\"a\":[1,{\"b\":null},[[]],\"\\u00e9\"],\"t\":true},"
                               "\"esc\\u0061ped\":0,\"ids\":[\"1\",22 , \"a\\n\"],\"yes\":true}";
    struct json_reader j;
    struct slice s = { NULL, 0 };
    char out[8];
    bool yes = false;
    json_start(&j, text, sizeof text - 1, NULL);
    T_EQ(json_next(&j), JSON_OBJECT);
    T_EQ(json_object(&j), 0);
    T_EQ(json_find(&j, "ids"), 1);
    T_EQ(json_next(&j), JSON_ARRAY);
    T_EQ(json_array(&j), 0);
    T_EQ(json_element(&j), 1);
    T_EQ(json_slice(&j, &s), 0);
    T_OK(s.len == 1 && *s.p == '1');
    T_EQ(json_element(&j), 1);
    T_EQ(json_next(&j), JSON_NUMBER);
    T_EQ(json_numeral(&j, &s), 0);
    T_OK(s.len == 2 && memcmp(s.p, "22", 2) == 0);
    T_EQ(json_element(&j), 1);
    T_EQ(json_slice(&j, &s), FIRN_ENOTSUP);
    T_EQ(json_string(&j, out, sizeof out, NULL), 0);
    T_STR(out, "a\n");
    T_EQ(json_element(&j), 0);
    T_EQ(json_find(&j, "yes"), 1);
    T_EQ(json_boolean(&j, &yes), 0);
    T_OK(yes);
    T_EQ(json_find(&j, "more"), 0);
    T_EQ(json_finish(&j), 0);
}

T_TEST(skip_is_strict)
{
    static const char *const bad[] = { "[1,]", "{\"a\":1,}", "[1 2]", "{\"a\"}",
                                       "nul",  "[\"\\x\"]",  "-",     "[01]",
                                       "]",    "",           "{1:2}" };
    struct json_reader j;
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_diag d = { 0, "" };
        json_start(&j, bad[i], strlen(bad[i]), &d);
        T_EQ(json_skip(&j), FIRN_EFORMAT, "%s", bad[i]);
        T_OK(d.text[0] && d.column > 0, "%s", bad[i]);
    }
    json_start(&j, "[{\"a\":[1,2]}] 7", 15, NULL);
    T_EQ(json_skip(&j), 0);
    T_EQ(json_skip(&j), 0);
    T_EQ(json_finish(&j), 0);
}

/* ---- every scalar with its path ---- */

static char seen[4096];

static void note(void *user, const char *path, const char *v, bool quoted)
{
    size_t at = strlen(seen);
    (void)user;
    snprintf(seen + at, sizeof seen - at, "%s=%s%s;", path, quoted ? "'" : "", v);
}

static int each(const char *text)
{
    seen[0] = '\0';
    return json_each(text, strlen(text), note, NULL);
}

T_TEST(paths_and_values)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "7", "=7;" },
        { " {} ", "" },
        { "{\"a\":{\"b\":1,\"c\":[true,null,\"x\"]},\"d\":-1.5e+3}",
          "a.b=1;a.c.0=true;a.c.1=null;a.c.2='x;d=-1.5e+3;" },
        { "[[1],[],[2,3]]", "0.0=1;2.0=2;2.1=3;" },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"",
          "='\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80;" },
        { "{\"p99.9\":0}", "p99.9=0;" },
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        T_EQ(each(cases[i].text), 0, "%s", cases[i].text);
        T_STR(seen, cases[i].want);
    }
}

T_TEST(refusals)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "tru",
        "nulll",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\ude00\"",
        "\"\\u0000\"",
        "\"\n\"",
        "[1 2]",
        "{} {}",
        "-",
        "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]",
    };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(each(bad[i]), FIRN_EFORMAT, "%s", bad[i]);
}

/* Wherever a text is cut, it is refused, and nothing beyond its end is read. */
T_TEST(every_cut)
{
    static const char text[] = "{\"a\":[1,\"\\u00e9\",{\"b\":false}],\"c\":1.5e3}";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        char *copy = malloc(n ? n : 1);
        memcpy(copy, text, n);
        seen[0] = '\0';
        T_EQ(json_each(copy, n, note, NULL), FIRN_EFORMAT, "cut at %zu", n);
        free(copy);
    }
}

T_TEST(bounds)
{
    static char text[3 * JSON_TEXT_MAX];
    memset(text, 'x', sizeof text);
    text[0] = text[JSON_TEXT_MAX + 1] = '"';
    T_EQ(json_each(text, JSON_TEXT_MAX + 2, note, NULL), 0);
    text[JSON_TEXT_MAX + 1] = 'x';
    text[JSON_TEXT_MAX + 2] = '"';
    T_EQ(json_each(text, JSON_TEXT_MAX + 3, note, NULL), FIRN_EFORMAT);
    int n = snprintf(text, sizeof text, "{\"%0300d\":1}", 0);
    T_EQ(json_each(text, (size_t)n, note, NULL), FIRN_EFORMAT);
}
