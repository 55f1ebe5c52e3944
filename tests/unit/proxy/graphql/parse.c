/* Documents: what they become, and bounds of nesting, words and memory. */
#include "proxy/graphql/parse.h"
#include "t.h"

#include <stdlib.h>

static struct arena memory;
static struct gql_errors errors;
static struct gql_document document;

static int parse(const char *text)
{
    arena_done(&memory);
    memory.max = 4 << 20;
    errors = (struct gql_errors){ .a = &memory };
    return gql_parse(text, strlen(text), &document, &errors);
}

T_TEST(parse_document)
{
    T_EQ(
        parse("query Q($a: [Int!]! = [1, 2] @x) @y { b: c(d: {e: $a, f: [E, null]}) @z(g: 1) { h } "
              "...F ... on T { i } ... { j } } fragment F on U { k } { l }"),
        0);
    const struct gql_operation *o = document.operations;
    T_OK(slice_is(o->name, "Q") && o->kind == GQL_QUERY && o->next && !o->next->next);
    T_OK(o->variables->ref->kind == GQL_REF_NON_NULL &&
         o->variables->ref->of->kind == GQL_REF_LIST);
    T_OK(o->variables->preset->kind == GQL_LIST_VALUE && slice_is(o->directives->name, "y"));
    const struct gql_selection *s = o->child;
    T_OK(slice_is(s->key, "b") && slice_is(s->name, "c") && slice_is(s->child->name, "h"));
    T_OK(s->args->kind == GQL_OBJECT_VALUE && s->args->child->kind == GQL_VARIABLE);
    T_OK(s->args->child->next->child->kind == GQL_ENUM_VALUE);
    T_EQ(s->place.column, 39);
    s = s->next;
    T_OK(s->kind == GQL_SPREAD && slice_is(s->name, "F"));
    T_OK(s->next->kind == GQL_INLINE && slice_is(s->next->name, "T") && !s->next->next->name.p);
    T_OK(slice_is(document.fragments->on, "U"));
    arena_done(&memory);
}

T_TEST(parse_refuses)
{
    static const char *const bad[] = { "",
                                       "{",
                                       "{}",
                                       "{ a",
                                       "{ a( }",
                                       "{ a() }",
                                       "{ a(b) }",
                                       "{ a(b:) }",
                                       "{ a: }",
                                       "{ ... }",
                                       "{ ...on }",
                                       "query",
                                       "query Q",
                                       "query Q( { a }",
                                       "query Q() { a }",
                                       "query Q(a: Int) { a }",
                                       "query Q($a Int) { a }",
                                       "query Q($a: ) { a }",
                                       "query Q($a: [Int) { a }",
                                       "query Q($a: Int = $b) { a }",
                                       "fragment on on T { a }",
                                       "fragment F { a }",
                                       "fragment F on { a }",
                                       "{ a @ }",
                                       "{ a } }",
                                       "type T { a: Int }",
                                       "{ a(b: [1) }",
                                       "{ a(b: {c: }) }",
                                       "{ a(b: !) }",
                                       "nothing" };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        T_EQ(parse(bad[i]), -1, "%s", bad[i]);
        T_EQ(errors.n, 1, "%s", bad[i]);
        T_OK(errors.first->place.line == 1 && errors.first->place.column > 0);
    }
    arena_done(&memory);
}

/* `n` times `open`, then `close`. */
static int nested(const char *begin, const char *open, const char *close, size_t n, const char *end)
{
    size_t a = strlen(open), b = strlen(close), len = 0;
    char *text = malloc(strlen(begin) + n * (a + b) + strlen(end) + 1);
    T_OK(text);
    len = strlen(strcpy(text, begin));
    for (size_t i = 0; i < n; i++, len += a)
        memcpy(text + len, open, a);
    for (size_t i = 0; i < n; i++, len += b)
        memcpy(text + len, close, b);
    memcpy(text + len, end, strlen(end) + 1);
    int r = parse(text);
    free(text);
    return r;
}

T_TEST(parse_is_bounded)
{
    T_EQ(nested("", "{a", "}", GQL_DEPTH_MAX, ""), 0);
    T_EQ(nested("", "{a", "}", 5000, ""), -1);
    T_EQ(nested("{a(b:", "[", "]", 5000, ")}"), -1);
    T_EQ(nested("{a(b:", "{c:", "}", 5000, ")}"), -1);
    T_EQ(nested("query($a:", "[", "]", 5000, "){a}"), -1);
    T_EQ(nested("", "{...", "}", 5000, ""), -1);
    T_EQ(nested("{a", " a", "", GQL_TOKENS_MAX, "}"), -1);
    T_EQ(nested("{a", " a", "", GQL_TOKENS_MAX - 10, "}"), 0);
    arena_done(&memory);
}
