/* Values: JSON as variables and as answers, and literals as they are printed. */
#include "proxy/graphql/values.h"
#include "proxy/graphql/parse.h"
#include "t.h"

#include <stdio.h>

static struct arena memory = { .max = 1 << 20 };

static const struct gql_type *type_of(enum gql_scalar scalar)
{
    static struct gql_type t[6];
    t[scalar] = (struct gql_type){ .kind = GQL_SCALAR, .scalar = scalar };
    return &t[scalar];
}

static const char *leaf(const char *json, const struct gql_type *t)
{
    static char out[128];
    const char *why = "";
    struct slice s = gql_leaf((struct slice){ json, strlen(json) }, t, &memory, &why);
    snprintf(out, sizeof out, "%.*s", s.p ? (int)s.len : 5, s.p ? s.p : "error");
    return out;
}

T_TEST(values_of_answers)
{
    static const struct {
        enum gql_scalar type;
        const char *json, *want;
    } row[] = {
        { GQL_SCALAR_INT, "5", "5" },
        { GQL_SCALAR_INT, "-2147483648", "-2147483648" },
        { GQL_SCALAR_INT, "2147483648", "error" },
        { GQL_SCALAR_INT, "1.5", "error" },
        { GQL_SCALAR_INT, "1.0", "1" },
        { GQL_SCALAR_INT, "1e3", "1000" },
        { GQL_SCALAR_INT, "\"12\"", "12" },
        { GQL_SCALAR_INT, "\"0x10\"", "error" },
        { GQL_SCALAR_INT, "\"\"", "error" },
        { GQL_SCALAR_INT, "true", "1" },
        { GQL_SCALAR_INT, "[1]", "error" },
        { GQL_SCALAR_FLOAT, "1e400", "error" },
        { GQL_SCALAR_FLOAT, "1.50", "1.50" },
        { GQL_SCALAR_FLOAT, "\"2.5\"", "2.5" },
        { GQL_SCALAR_FLOAT, "\"inf\"", "error" },
        { GQL_SCALAR_FLOAT, "\"nan\"", "error" },
        { GQL_SCALAR_STRING, "\"a\\n\"", "\"a\\n\"" },
        { GQL_SCALAR_STRING, "7", "\"7\"" },
        { GQL_SCALAR_STRING, "true", "\"true\"" },
        { GQL_SCALAR_STRING, "{}", "error" },
        { GQL_SCALAR_BOOLEAN, "false", "false" },
        { GQL_SCALAR_BOOLEAN, "2", "true" },
        { GQL_SCALAR_BOOLEAN, "0.0", "false" },
        { GQL_SCALAR_BOOLEAN, "\"true\"", "error" },
        { GQL_SCALAR_ID, "\"a\"", "\"a\"" },
        { GQL_SCALAR_ID, "7123456789012345678", "\"7123456789012345678\"" },
        { GQL_SCALAR_ID, "1.5", "error" },
        { GQL_SCALAR_ID, "true", "error" },
        { GQL_CUSTOM, "{\"a\":[1]}", "{\"a\":[1]}" },
    };
    for (size_t i = 0; i < T_LEN(row); i++)
        T_STR(leaf(row[i].json, type_of(row[i].type)), row[i].want, "%s", row[i].json);
    struct gql_enum_value b = { .name = { "B", 1 } }, a = { .name = { "A", 1 }, .next = &b };
    const struct gql_type e = { .kind = GQL_ENUM, .values = &a };
    T_STR(leaf("\"B\"", &e), "\"B\"");
    T_STR(leaf("\"C\"", &e), "error");
    T_STR(leaf("1", &e), "error");
    arena_done(&memory);
}

T_TEST(values_of_variables)
{
    static const struct {
        enum gql_scalar type;
        const char *json;
        const char *text; /* NULL: it is refused */
    } row[] = {
        { GQL_SCALAR_INT, "1", "1" },        { GQL_SCALAR_INT, "1.5", NULL },
        { GQL_SCALAR_INT, "\"1\"", NULL },   { GQL_SCALAR_FLOAT, "1", "1" },
        { GQL_SCALAR_FLOAT, "\"1\"", NULL }, { GQL_SCALAR_STRING, "\"\\u0041\"", "A" },
        { GQL_SCALAR_STRING, "1", NULL },    { GQL_SCALAR_BOOLEAN, "true", "true" },
        { GQL_SCALAR_BOOLEAN, "1", NULL },   { GQL_SCALAR_ID, "1", "1" },
        { GQL_SCALAR_ID, "\"x\"", "x" },     { GQL_SCALAR_ID, "1.5", NULL },
        { GQL_SCALAR_ID, "{}", NULL },       { GQL_CUSTOM, "1.5", "1.5" },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        const char *why = NULL;
        const struct gql_type *t = type_of(row[i].type), list = { .kind = GQL_LIST, .of = t };
        struct slice json = { row[i].json, strlen(row[i].json) };
        const struct gql_value *v = gql_from_json(json, t, &memory, &why);
        T_OK((v != NULL) == (row[i].text != NULL), "%s", row[i].json);
        T_OK(v ? slice_is(v->text, row[i].text) : why && *why, "%s", row[i].json);
        v = gql_from_json(json, &list, &memory, &why); /* one is a list of one */
        T_OK((v != NULL) == (row[i].text != NULL) && (!v || !v->child->next), "%s", row[i].json);
    }
    arena_done(&memory);
}

T_TEST(values_are_printed)
{
    static const char *const row[] = { "1",
                                       "-1.5e3",
                                       "true",
                                       "null",
                                       "A",
                                       "\"a \\\"b\\\"\"",
                                       "[1, [\"x\", \"y\"], []]",
                                       "{a: 1, b: [\"c\"]}" };
    for (size_t i = 0; i < T_LEN(row); i++) {
        struct gql_errors e = { .a = &memory };
        struct gql_parser p;
        struct buf b;
        char text[128];
        gql_parser_init(&p, row[i], strlen(row[i]), &e);
        struct gql_value *v = gql_parser_value(&p, true);
        T_OK(v && !p.failed);
        buf_init(&b, 1000);
        gql_print(v, &b);
        snprintf(text, sizeof text, "%.*s", (int)b.len, b.p);
        T_STR(text, row[i]);
        buf_done(&b);
    }
    arena_done(&memory);
}
