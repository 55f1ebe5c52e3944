/* The reader of JSON: what it finds, and what it refuses. */
#include "cli/json_scan.c"
#include "t.h"

#include <stdlib.h>

static char seen[4096];

static void note(void *user, const char *path, const char *v, bool quoted)
{
    size_t at = strlen(seen);
    (void)user;
    snprintf(seen + at, sizeof seen - at, "%s=%s%s;", path, quoted ? "'" : "", v);
}

static int scan(const char *text)
{
    seen[0] = '\0';
    return json_scan(text, strlen(text), note, NULL);
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
        T_EQ(scan(cases[i].text), 0, "%s", cases[i].text);
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
        T_EQ(scan(bad[i]), FIRN_EFORMAT, "%s", bad[i]);
}

/* Wherever a text is cut, it is refused, and nothing beyond its end is read. */
T_TEST(every_cut)
{
    static const char text[] = "{\"a\":[1,\"\\u00e9\",{\"b\":false}],\"c\":1.5e3}";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        char *copy = malloc(n ? n : 1);
        memcpy(copy, text, n);
        seen[0] = '\0';
        T_EQ(json_scan(copy, n, note, NULL), FIRN_EFORMAT, "cut at %zu", n);
        free(copy);
    }
}

T_TEST(bounds)
{
    static char text[3 * JSON_SCAN_TEXT_MAX];
    memset(text, 'x', sizeof text);
    text[0] = text[JSON_SCAN_TEXT_MAX + 1] = '"';
    T_EQ(json_scan(text, JSON_SCAN_TEXT_MAX + 2, note, NULL), 0);
    text[JSON_SCAN_TEXT_MAX + 1] = 'x';
    text[JSON_SCAN_TEXT_MAX + 2] = '"';
    T_EQ(json_scan(text, JSON_SCAN_TEXT_MAX + 3, note, NULL), FIRN_EFORMAT);
    int n = snprintf(text, sizeof text, "{\"%0300d\":1}", 0);
    T_EQ(json_scan(text, (size_t)n, note, NULL), FIRN_EFORMAT);
}
