/* Schemas: what SDL becomes, and what is refused, with its place. */
#include "proxy/graphql/schema.h"
#include "t.h"

#include <stdio.h>

static struct gql_schema schema;
static struct gql_errors errors;

static int service(void *user, struct slice name)
{
    (void)user;
    return slice_is(name, "s") ? 3 : -1;
}

static int read_sdl(const char *text)
{
    gql_schema_free(&schema);
    return gql_schema_read(text, strlen(text), service, NULL, &schema, &errors);
}

static struct slice of(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

#define ROOT "type Query { a: Int @get(service: \"s\", path: \"/a\") }\n"

T_TEST(schema_is_read)
{
    char text[128];
    T_EQ(read_sdl(
             "directive @get(service: String!, path: String!, at: String) on FIELD_DEFINITION\n"
             "\"About it\" schema { query: Root }\n"
             "type Root { \"\"\"\n  of it\n\"\"\" u(id: ID!, n: [Int!] = 1, e: E = A): [U!]!\n"
             "  @get(service: \"s\", path: \"/u/{id}?e={e}&h={header:X-A}\", at: \"x.0\") }\n"
             "type U { a: String @from(path: \"b.c\") u: U @get(service: \"s\", path: \"/{.id}\")\n"
             "  old: Int @deprecated(reason: \"r\") }\n"
             "enum E { A, B @deprecated }\n"
             "scalar D @specifiedBy(url: \"x:y\")"),
         0, "%s", errors.first ? errors.first->text : "");
    T_OK(slice_is(schema.description, "About it") && slice_is(schema.query->name, "Root"));
    const struct gql_field *u = gql_field_named(schema.query, of("u"));
    T_OK(slice_is(u->description, "of it"));
    T_STR(gql_type_text(u->type, text), "[U!]!");
    T_EQ(u->get->backend, 3);
    T_EQ(u->get->target.n, 3);
    T_OK(u->get->at.n == 2 && strcmp(u->get->at.name[1], "0") == 0);
    const struct gql_type *type = gql_type_named(&schema, of("U"));
    T_STR(gql_field_named(type, of("a"))->from.name[1], "c");
    T_STR(gql_field_named(type, of("old"))->from.name[0], "old");
    T_OK(slice_is(gql_field_named(type, of("old"))->deprecated, "r"));
    T_OK(slice_is(gql_type_named(&schema, of("D"))->specified_by, "x:y"));
    T_OK(gql_type_named(&schema, of("Int"))->scalar == GQL_SCALAR_INT);
    T_OK(gql_type_named(&schema, of("__Type")) && !gql_type_named(&schema, of("__Root")));
    gql_schema_free(&schema);
}

T_TEST(schema_refuses)
{
    static const struct {
        const char *text, *says;
        unsigned line, column;
    } row[] = {
        { "", "needs type Query", 1, 1 },
        { "schema { query: X }", "needs type X", 1, 10 },
        { ROOT "type Query { a: Int }", "there are two types 'Query'", 2, 6 },
        { ROOT "type T { a: Nobody }", "there is no type 'Nobody'", 2, 13 },
        { ROOT "type T { a: Int a: Int }", "there are two fields 'a'", 2, 17 },
        { ROOT "type T { a(b: Int, b: Int): Int }", "there are two arguments 'b'", 2, 20 },
        { ROOT "type T { a(b: T): Int }", "an argument is a scalar", 2, 12 },
        { ROOT "type T { a(b: Int = \"x\"): Int }", "the default is no Int", 2, 21 },
        { ROOT "type T { }", "a type needs a field: 'T'", 2, 6 },
        { ROOT "type __T { a: Int }", "names that begin with __", 2, 6 },
        { ROOT "interface I { a: Int }", "interfaces are not supported", 2, 1 },
        { ROOT "type T implements I { a: Int }", "interfaces are not supported", 2, 8 },
        { ROOT "union U = Query", "unions are not supported", 2, 1 },
        { ROOT "input I { a: Int }", "input types are not supported", 2, 1 },
        { ROOT "extend type Query { b: Int }", "extensions are not supported", 2, 1 },
        { ROOT "schema { mutation: Query }", "reads only: remove 'mutation'", 2, 10 },
        { ROOT "enum E { A A }", "there are two values 'A'", 2, 12 },
        { ROOT "enum E { true }", "an enum cannot have the value 'true'", 2, 10 },
        { ROOT "directive @other on FIELD", "knows @get and @from", 2, 12 },
        { ROOT "type T { a: Int @other }", "has no meaning here: @ 'other'", 2, 17 },
        { "type Query { a: Int }", "a field of the query type needs @get", 1, 14 },
        { "type Query { a: Int @get(service: \"x\", path: \"/\") }", "there is no service 'x'", 1,
          21 },
        { "type Query { a: Int @get(service: \"s\") }", "@get needs a string as its path", 1, 21 },
        { "type Query { a: Int @get(service: \"s\", path: \"/{b}\") }", "{b} is no argument", 1,
          21 },
        { "type Query { a: Int @get(service: \"s\", path: \"/../b\") }", "path: ", 1, 21 },
        { "type Query { a: Int @get(service: \"s\", path: \"/\", for: 1) }",
          "has no argument 'for'", 1, 51 },
        { "type Query { a(b: [Int]): Int @get(service: \"s\", path: \"/{b}\") }",
          "a list cannot stand", 1, 16 },
        { "type Query { a: Int @get(service: \"s\", path: \"/\") @from(path: \"b\") }", "not both",
          1, 14 },
        { "type Query { a: Int @get(service: \"s\", path: \"/\", at: \"a..b\") }",
          "a path is up to", 1, 21 },
        { "type Query { a: Int", "a name is expected here, not the end", 1, 20 },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        T_EQ(read_sdl(row[i].text), -1, "%s", row[i].text);
        const struct gql_error *e = errors.first;
        T_OK(e && strstr(e->text, row[i].says), "%s: %s", row[i].text, e ? e->text : "");
        T_EQ(e->place.line, row[i].line, "%s: %s", row[i].text, e->text);
        T_EQ(e->place.column, row[i].column, "%s: %s", row[i].text, e->text);
    }
    gql_schema_free(&schema);
}
