/* Tokens: kinds, decoded strings, places, and what is none. */
#include "proxy/graphql/lexer.h"
#include "t.h"

#include <stdio.h>

static struct arena memory;
static struct gql_errors errors;

/* All tokens as one text: kind and text, or "error". */
static const char *lex(const char *text)
{
    static char out[1024];
    static const char kinds[] = "$pnifs"; /* by enum gql_token_kind */
    struct gql_lexer l;
    struct gql_token t;
    size_t len = 0;
    arena_done(&memory);
    memory.max = 1 << 20;
    errors = (struct gql_errors){ .a = &memory };
    gql_lexer_init(&l, text, strlen(text), &errors);
    out[0] = '\0';
    do {
        if (gql_lexer_next(&l, &t) != 0)
            return "error";
        len += (size_t)snprintf(out + len, sizeof out - len, "%c%.*s|", kinds[t.kind],
                                (int)t.text.len, t.text.p ? t.text.p : "");
    } while (t.kind != GQL_TOKEN_END);
    return out;
}

T_TEST(lexer_tokens)
{
    static const struct {
        const char *text, *want;
    } row[] = {
        { "", "$|" },
        { " ,\t\n\r\n# x\n\xef\xbb\xbf", "$|" },
        { "{a_1 ...B!$&()=:@[]|}", "p{|na_1|p...|nB|p!|p$|p&|p(|p)|p=|p:|p@|p[|p]|p||p}|$|" },
        { "0 -1 12 1.5 -0.0e-1 1E+9", "i0|i-1|i12|f1.5|f-0.0e-1|f1E+9|$|" },
        { "\"\" \"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "s|sa\"\\/\b\f\n\r\t|$|" },
        { "\"\\u00e9\\uD83D\\uDE00\\u{1F600}\"", "s\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80|$|" },
        { "\"\"\"\"\"\"", "s|$|" },
        { "\"\"\" a \"\"\"", "s a |$|" },
        { "\"\"\"\n    a\n\n      b\n    c\n  \"\"\"", "sa\n\n  b\nc|$|" },
        { "\"\"\"a\r\n  b\r  c\"\"\"", "sa\nb\nc|$|" },
        { "\"\"\"\\\"\"\" \\n \" \"\" \"\"\"", "s\"\"\" \\n \" \"\" |$|" },
        { "\"\"\"\n\t\ta\n\t b\n\"\"\"", "sa\nb|$|" },
    };
    for (size_t i = 0; i < T_LEN(row); i++)
        T_STR(lex(row[i].text), row[i].want, "%s", row[i].text);
    arena_done(&memory);
}

T_TEST(lexer_refuses)
{
    static const char *const bad[] = { "?",
                                       "01",
                                       "1.",
                                       ".5",
                                       "1e",
                                       "-",
                                       "1a",
                                       "1.5.2",
                                       "\"",
                                       "\"a\nb\"",
                                       "\"\\x\"",
                                       "\"\\u12\"",
                                       "\"\\uD800\"",
                                       "\"\\uD800\\u0041\"",
                                       "\"\\uDC00\"",
                                       "\"\\u{}\"",
                                       "\"\\u{110000}\"",
                                       "\"\\u0000\"",
                                       "\"\x80\"",
                                       "\"\"\"",
                                       "\"\"\"a\"\"",
                                       "\"\\",
                                       "\"\\\"",
                                       "\x01",
                                       "\"\x01\"",
                                       "..",
                                       "%" };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        T_STR(lex(bad[i]), "error", "%s", bad[i]);
        T_EQ(errors.n, 1);
    }
    arena_done(&memory);
}

T_TEST(lexer_places)
{
    struct gql_lexer l;
    struct gql_token t;
    static const char text[] = "a\r\n  b \"\"\"\n\n\"\"\" c\rd";
    static const struct gql_place want[] = { { 1, 1 }, { 2, 3 }, { 2, 5 }, { 4, 5 }, { 5, 1 } };
    errors = (struct gql_errors){ .a = &memory };
    gql_lexer_init(&l, text, sizeof text - 1, &errors);
    for (size_t i = 0; i < T_LEN(want); i++) {
        T_EQ(gql_lexer_next(&l, &t), 0);
        T_EQ(t.place.line, want[i].line, "token %zu", i);
        T_EQ(t.place.column, want[i].column, "token %zu", i);
    }
    arena_done(&memory);
}
