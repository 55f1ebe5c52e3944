/*
 * Any bytes as a query, and with a NUL in them as a schema before it: nothing is read beyond its
 * end, errors have places, and what is executed gives JSON with a bounded number of requests.
 */
#include "proxy/graphql/execute.h"
#include "proxy/graphql/parse.h"
#include "proxy/graphql/validate.h"
#include "proxy/json_pick.h"

#include <stdlib.h>
#include <string.h>

static const char shop[] =
    "type Query { user(id: ID! = 1, n: Int, r: Role, f: Float, b: Boolean, s: String, d: Date): User\n"
    "  @get(service: \"s\", path: \"/users/{id}?n={n}&r={r}&f={f}&b={b}&s={s}&d={d}\")\n"
    "  users: [User!]! @get(service: \"s\", path: \"/users\", at: \"items\") }\n"
    "type User { id: ID! name: String age: Int score: Float on: Boolean role: Role at: Date tags: [[String!]]\n"
    "  friend: User @get(service: \"s\", path: \"/users/{.id}\") inner: User }\n"
    "enum Role { ADMIN USER @deprecated } scalar Date\n";

static const char user[] =
    "{\"id\":7,\"name\":\"a\\n\",\"age\":1.5,\"score\":\"2\",\"on\":1,\"role\":\"ADMIN\","
    "\"at\":{\"x\":[]},\"tags\":[[\"a\"],null,[null]],\"inner\":{\"id\":null},"
    "\"items\":[{\"id\":1},{\"id\":\"2\"}]}";

enum { ARENA_MAX = 8 << 20, OUT_MAX = 4 << 20 };

static void check(bool ok)
{
    if (!ok)
        abort();
}

static int service(void *ctx, struct slice name)
{
    (void)ctx;
    return name.len > 40 ? -1 : 0;
}

static bool header(void *ctx, struct slice name, struct buf *out)
{
    (void)ctx;
    buf_add(out, name.p, name.len);
    return name.len % 2;
}

static void check_errors(const struct gql_errors *e)
{
    check(e->n > 0 || e->a->failed);
    for (const struct gql_error *x = e->first; x; x = x->next)
        check(x->text[0] && x->place.line > 0 && x->place.column > 0);
}

static bool mints(void *to, const struct gql_get *get, struct slice target)
{
    (void)to;
    (void)get;
    return target.len % 2 == 0;
}

static void execute(const struct gql_schema *s, const struct gql_plan *p, struct arena *a)
{
    const struct gql_limits limits = { 10, 10000, 20, true };
    struct gql_execution e = {
        .s = s, .limits = &limits, .a = a, .header = header, .mints = mints
    };
    struct gql_fetch *f;
    struct buf out;
    size_t calls = 0;
    if (gql_execute(&e, p) != 0)
        return;
    while ((f = gql_execute_next(&e)) != NULL) {
        check(++calls <= limits.calls && f->target.p[0] == '/');
        if (f->target.len % 7 != 6)
            gql_execute_answer(&e, f, (struct slice){ user, sizeof user - 1 },
                               f->target.len % 5 == 4 ? "no" : NULL);
    }
    if (a->failed)
        return;
    buf_init(&out, OUT_MAX);
    gql_execute_write(&e, "late", &out);
    check(out.failed || json_type_of(json_whole(out.p, out.len)) == JSON_OBJECT || out.len > 0);
    buf_done(&out);
}

static void query(const struct gql_schema *s, const char *p, size_t len)
{
    static const char variables[] = "{\"a\":1,\"b\":[\"x\",null],\"c\":{\"d\":1}}";
    const struct gql_limits limits = { 10, 10000, 20, true };
    struct arena a = { .max = ARENA_MAX };
    struct gql_errors errors = { .a = &a };
    struct gql_document d;
    struct gql_plan plan;
    struct gql_operation *op = NULL;
    if (gql_parse(p, len, &d, &errors) == 0 && gql_validate(s, &d, &errors) == 0)
        op = gql_choose(&d, (struct slice){ NULL, 0 }, &errors);
    if (op && gql_plan(s, op, (struct slice){ variables, sizeof variables - 1 }, &limits, &plan,
                       &errors) == 0)
        execute(s, &plan, &a);
    else
        check_errors(&errors);
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gql_schema own;
    struct gql_schema s;
    struct gql_errors errors;
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const char *p = (const char *)data;
    if (!own.query)
        check(gql_schema_read(shop, sizeof shop - 1, service, NULL, &own, &errors) == 0);
    if (!end) {
        query(&own, p, size);
        return 0;
    }
    size_t len = (size_t)((const char *)end - p);
    if (gql_schema_read(p, len, service, NULL, &s, &errors) == 0)
        query(&s, (const char *)end + 1, size - len - 1);
    else
        check_errors(&errors);
    gql_schema_free(&s);
    return 0;
}
