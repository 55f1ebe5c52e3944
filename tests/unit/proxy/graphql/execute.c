/*
 * Queries from their text to their answer, with services that are a table here: which requests are
 * made, in which waves, and limits. tests/differential/graphql compares answers with npm graphql.
 */
#include "proxy/graphql/execute.h"
#include "proxy/graphql/parse.h"
#include "proxy/graphql/validate.h"
#include "t.h"

#include <stdio.h>

static const char sdl[] =
    "scalar JSON\n"
    "type Query { user(id: ID!): User @get(service: \"s\", path: \"/users/{id}\")\n"
    "  users(limit: Int = 2): [User!]! @get(service: \"s\", path: \"/users?limit={limit}\")\n"
    "  me: User @get(service: \"s\", path: \"/users/{header:X-User}\")\n"
    "  new: ID @get(service: \"s\", path: \"/new\")\n"
    "  sized(first: Int, limit: Int, n: Int): [User] @get(service: \"s\", path: \"/sized\")\n"
    "  rows(limit: Int): [[User]] @get(service: \"s\", path: \"/rows\")\n"
    "  find(filter: JSON, n: Int): ID @get(service: \"s\", path: \"/find\") }\n"
    "type User { id: ID! name: String friend: User @get(service: \"s\", path: \"/users/{.friend}\")\n"
    "  friends: [User] @get(service: \"s\", path: \"/users/{.id}/friends\") }\n";

static const struct {
    const char *target, *json;
} pages[] = {
    { "/users/1", "{\"id\":1,\"name\":\"A\",\"friend\":2}" },
    { "/users/2", "{\"id\":2,\"name\":\"B\",\"friend\":1}" },
    { "/users?limit=2", "[{\"id\":1,\"friend\":2},{\"id\":2,\"friend\":2}]" },
    { "/users/1/friends", "[{\"id\":2},{\"id\":3}]" },
    { "/users/2/friends", "[]" },
    { "/new", "\"7\"" },
    { "/users/3/friends", "[null,{\"id\":null}]" },
};

static char asked[4096], answer[65536];
static struct gql_limits limits;

static int service(void *user, struct slice name)
{
    (void)user;
    (void)name;
    return 0;
}

static bool header(void *user, struct slice name, struct buf *out)
{
    (void)user;
    if (!slice_is(name, "X-User"))
        return false;
    buf_add_str(out, "2");
    return true;
}

/* As of a path that mints: "/new". */
static bool mints(void *user, const struct gql_get *get, struct slice target)
{
    (void)user;
    (void)get;
    return slice_is(target, "/new");
}

static void serve(struct gql_execution *e, struct gql_fetch *f)
{
    char target[256];
    snprintf(target, sizeof target, "%.*s", (int)f->target.len, f->target.p);
    strncat(strcat(asked, target), " ", 2);
    for (size_t i = 0; i < T_LEN(pages); i++)
        if (strcmp(pages[i].target, target) == 0) {
            gql_execute_answer(e, f, (struct slice){ pages[i].json, strlen(pages[i].json) }, NULL);
            return;
        }
    gql_execute_answer(e, f, (struct slice){ NULL, 0 }, "gone");
}

/* The answer; `asked` has the targets, waves separated by "| ". */
static const char *run(const char *query, const char *variables)
{
    struct gql_schema s;
    struct gql_errors errors;
    struct gql_document d;
    struct gql_plan plan;
    struct arena memory = { .max = 8 << 20 };
    struct buf out;
    asked[0] = '\0';
    T_EQ(gql_schema_read(sdl, sizeof sdl - 1, service, NULL, &s, &errors), 0);
    errors = (struct gql_errors){ .a = &memory };
    buf_init(&out, sizeof answer - 1);
    struct gql_operation *op = NULL;
    struct slice json = { variables, variables ? strlen(variables) : 0 };
    if (gql_parse(query, strlen(query), &d, &errors) == 0 && gql_validate(&s, &d, &errors) == 0)
        op = gql_choose(&d, (struct slice){ NULL, 0 }, &errors);
    if (!op || gql_plan(&s, op, json, &limits, &plan, &errors) != 0) {
        gql_write_errors(&errors, &out);
    } else {
        struct gql_execution e = {
            .s = &s, .limits = &limits, .a = &memory, .header = header, .mints = mints
        };
        T_EQ(gql_execute(&e, &plan), 0);
        while (!gql_execute_over(&e)) {
            struct gql_fetch *wave[64], *f;
            size_t n = 0;
            while (n < T_LEN(wave) && (f = gql_execute_next(&e)) != NULL)
                wave[n++] = f;
            T_OK(n > 0);
            while (n > 0) /* in another order than they were asked for */
                serve(&e, wave[--n]);
            strcat(asked, "| ");
        }
        gql_execute_write(&e, NULL, &out);
    }
    snprintf(answer, sizeof answer, "%.*s", (int)out.len, out.p);
    buf_done(&out);
    arena_done(&memory);
    gql_schema_free(&s);
    return answer;
}

static void set_limits(void)
{
    limits = (struct gql_limits){ .depth = 10, .cost = 10000, .calls = 100, .introspection = true };
}

T_TEST(execute_asks_once_and_together)
{
    set_limits();
    T_STR(run("{ a: user(id: 1) { name } b: user(id: \"1\") { id } me { name } }", NULL),
          "{\"data\":{\"a\":{\"name\":\"A\"},\"b\":{\"id\":\"1\"},\"me\":{\"name\":\"B\"}}}");
    T_STR(asked, "/users/2 /users/1 | ");
    T_STR(run("{ users { friend { friend { friend { name } } } } }", NULL),
          "{\"data\":{\"users\":[{\"friend\":{\"friend\":{\"friend\":{\"name\":\"B\"}}}},"
          "{\"friend\":{\"friend\":{\"friend\":{\"name\":\"B\"}}}}]}}");
    T_STR(asked, "/users?limit=2 | /users/2 | /users/1 | ");
}

T_TEST(execute_merges_no_minting)
{
    set_limits();
    T_STR(run("{ a: new b: new c: new }", NULL),
          "{\"data\":{\"a\":\"7\",\"b\":\"7\",\"c\":\"7\"}}");
    T_STR(asked, "/new /new /new | ");
    /* One place in the answer is one request, also where the query names it twice. */
    run("{ new new }", NULL);
    T_STR(asked, "/new | ");
    set_limits();
    limits.calls = 2;
    run("{ a: new b: new c: new }", NULL);
    T_STR(asked, "/new /new | ");
}

T_TEST(execute_moves_null_up)
{
    set_limits();
    T_STR(
        run("{ user(id: 3) { id } user2: user(id: 1) { name } }", NULL),
        "{\"errors\":[{\"message\":\"gone\",\"locations\":[{\"line\":1,\"column\":3}],\"path\":[\"user\"]}],"
        "\"data\":{\"user\":null,\"user2\":{\"name\":\"A\"}}}");
    T_STR(
        run("{ user(id: 1) { friends { friends { id } } } }", NULL),
        "{\"errors\":[{\"message\":\"a value that must not be null is null\",\"locations\":[{\"line\":1,"
        "\"column\":37}],\"path\":[\"user\",\"friends\",1,\"friends\",1,\"id\"]}],"
        "\"data\":{\"user\":{\"friends\":[{\"friends\":[]},{\"friends\":[null,null]}]}}}");
    T_OK(strstr(run("{ users(limit: 9) { id } }", NULL), "\"path\":[\"users\"]}],\"data\":null}"),
         "%s", answer);
}

T_TEST(execute_is_limited)
{
    set_limits();
    limits.depth = 3;
    T_OK(strstr(run("{ user(id: 1) { friend { id } } }", NULL), "\"data\""), "%s", answer);
    T_OK(strstr(run("{ user(id: 1) { friend { friend { id } } } }", NULL), "nested deeper than 3"),
         "%s", answer);
    T_STR(asked, "");
    set_limits();
    limits.cost = 111; /* 10 + 1 * (10 + 10 * (1 + ... */
    T_OK(strstr(run("{ user(id: 1) { friends { friend { id } } } }", NULL),
                "the query costs 130, more than 111"),
         "%s", answer);
    T_OK(strstr(run("{ users(limit: 3) { friend { id } } }", NULL), "\"data\""), "%s", answer);
    T_OK(strstr(run("query($n: Int) { users(limit: $n) { friend { id } } }", "{\"n\":50}"),
                "the query costs 560"),
         "%s", answer);
    /* A size of 0 is none, and the larger of two counts: 20 + N * 2. */
    static const struct {
        const char *args, *variables, *cost;
    } sizes[] = {
        { "", "", "costs 40," },
        { "(limit: 0)", "", "costs 40," },
        { "(first: 0, limit: 3)", "", "costs 40," },
        { "(first: 0, limit: 30)", "", "costs 80," },
        { "(first: 1, limit: 50)", "", "costs 120," },
        { "(first: 50, limit: 1)", "", "costs 120," },
        { "(limit: -1)", "", "costs 40," },
        { "(limit: null)", "", "costs 40," },
        { "(first: 1)", "", "costs 22," },
        { "(limit: $n)", "{\"n\":0}", "costs 40," },
        { "(limit: $n)", "{\"n\":1e3}", "costs 2020," },
        { "(limit: $n)", "{\"n\":500.0}", "costs 1020," },
        { "(limit: 2147483647)", "", "costs 4294967314," },
    };
    for (size_t i = 0; i < T_LEN(sizes); i++) {
        char query[160];
        limits.cost = 11;
        snprintf(query, sizeof query, "query($n: Int = 1) { sized%s { id name } find(n: $n) }",
                 sizes[i].args);
        T_OK(strstr(run(query, *sizes[i].variables ? sizes[i].variables : NULL), sizes[i].cost),
             "%s: %s", query, answer);
    }
    T_OK(strstr(run("{ rows(limit: 1) { id } }", NULL), "costs 20,"), "%s", answer);
    set_limits();
    limits.calls = 2;
    T_OK(strstr(run("{ a: user(id: 1) { id } b: user(id: 2) { id } c: user(id: 3) { id } }", NULL),
                "more requests to services than are allowed"),
         "%s", answer);
    T_STR(asked, "/users/2 /users/1 | ");
    set_limits();
    limits.introspection = false;
    T_OK(strstr(run("{ __schema { queryType { name } } }", NULL), "introspection is switched off"),
         "%s", answer);
    T_OK(strstr(run("{ __typename }", NULL), "\"Query\""), "%s", answer);
}

/* A fragment that has the next one twice: 2^n fields, of which few may be looked at. */
T_TEST(execute_stops_bombs)
{
    char query[16384] = "{ user(id: 1) { ...F0 } }";
    set_limits();
    for (int i = 0; i < 30; i++) {
        char f[160];
        snprintf(f, sizeof f, " fragment F%d on User { a: friend { ...F%d } b: friend { ...F%d } }",
                 i, i + 1, i + 1);
        strcat(query, f);
    }
    strcat(query, " fragment F30 on User { id }");
    T_OK(strstr(run(query, NULL), "more than 4000 fields"), "%s", answer);
    T_STR(asked, "");
    /* One behind the other: deeper than may be. */
    strcpy(query, "{ user(id: 1) { ...F0 } }");
    for (int i = 0; i < 140; i++) {
        char f[80];
        snprintf(f, sizeof f, " fragment F%d on User { ...F%d }", i, i + 1);
        strcat(query, f);
    }
    strcat(query, " fragment F140 on User { id }");
    T_OK(strstr(run(query, NULL), "nested deeper than 128"), "%s", answer);
    /* Many operations with the same fragment. */
    strcpy(query, "fragment F on Query { ");
    for (int i = 0; i < 200; i++)
        snprintf(query + strlen(query), 32, "a%d: __typename ", i);
    strcat(query, "}");
    for (int i = 0; i < 220; i++)
        snprintf(query + strlen(query), 32, " query Q%d { ...F }", i);
    T_OK(strstr(run(query, NULL), "more than 4000 fields"), "%s", answer);
    strcpy(
        query,
        "{ __schema { ...S } } fragment S on __Schema { types { ...T } } fragment T on __Type { fields { type {"
        " fields { type { fields { type { fields { type { fields { type { name } } } } } } } } } } }");
    T_OK(strlen(run(query, NULL)) < sizeof answer);
}

static char many[262144];

static void add(const char *format, int from, int to)
{
    size_t len = strlen(many);
    for (int i = from; i != to; i += from < to ? 1 : -1)
        len += (size_t)snprintf(many + len, sizeof many - len, format, i);
}

/* A query in parts: texts, of which those with a %d are there for each number. */
struct part {
    const char *text;
    int from, to;
};

static const char *run_parts(const struct part *p, const char *variables)
{
    many[0] = '\0';
    for (; p->text; p++)
        add(p->text, p->from, p->from == p->to ? p->from + 1 : p->to);
    return run(many, variables);
}

/* Each member is compared with all before it, in each operation again. */
T_TEST(execute_counts_comparisons)
{
    static const struct {
        const char *want;
        struct part part[8];
    } row[] = {
        { "\"data\"", { { "{find(filter:{", 0, 0 }, { "a%d:1 ", 0, 1900 }, { "})}", 0, 0 } } },
        { "compare", { { "{find(filter:{", 0, 0 }, { "a%d:1 ", 0, 2100 }, { "})}", 0, 0 } } },
        { "compare",
          { { "fragment F on Query{find(filter:{", 0, 0 },
            { "a%d:1 ", 0, 500 },
            { "})}", 0, 0 },
            { "query q%d{...F}", 0, 100 } } },
        { "compare",
          { { "fragment F on Query{find(filter:[", 0, 0 },
            { "%d ", 0, 5000 },
            { "])}", 0, 0 },
            { "query q%d{...F}", 0, 1000 } } },
        { "compare", /* names of 1,000 bytes */
          { { "fragment F on Query{find(filter:{", 0, 0 },
            { "a%01000d:1 ", 0, 100 },
            { "})}", 0, 0 },
            { "query q%d{...F}", 0, 50 } } },
        { "\"data\"", /* the same order: once through it */
          { { "{find(filter:{", 0, 0 },
            { "a%d:1 ", 0, 900 },
            { "})find(filter:{", 0, 0 },
            { "a%d:1 ", 0, 900 },
            { "})}", 0, 0 } } },
        { "compare",
          { { "{find(filter:{", 0, 0 },
            { "a%d:1 ", 0, 1300 },
            { "})find(filter:{", 0, 0 },
            { "a%d:1 ", 1299, -1 },
            { "})}", 0, 0 } } },
        { "compare",
          { { "fragment F%d on Query{__typename}", 0, 1100 }, { "query q%d{...F0}", 0, 1800 } } },
    };
    set_limits();
    for (size_t i = 0; i < T_LEN(row); i++)
        T_OK(strstr(run_parts(row[i].part, NULL), row[i].want), "%zu: %s", i, answer);
    /* Variables: each use looks for its own. */
    const struct part uses[] = {
        { "query(", 0, 0 },   { "$v%d:Int ", 0, 1500 }, { "){find(filter:[", 0, 0 },
        { "$v%d ", 0, 1500 }, { "])}", 0, 0 },          { NULL, 0, 0 }
    };
    T_OK(strstr(run_parts(uses, "{}"), "compare"), "%s", answer);
    T_STR(asked, "");
}
