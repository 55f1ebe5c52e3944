/*
 * Execution (October 2021, section 6). Results are made from the outside in: an object's fields as
 * soon as the JSON that has them is there. When all are made they are settled from the inside out,
 * which is where null moves up from fields that must not be null. Tested in
 * tests/unit/proxy/graphql/execute.c and, beside npm graphql, in tests/differential/graphql.
 */
#include "proxy/graphql/execute.h"
#include "proxy/graphql/values.h"
#include "proxy/json_pick.h"
#include "wire/json_write.h"

#include <stdio.h>

enum result_kind { IS_NULL, IS_LEAF, IS_OBJECT, IS_LIST, IS_OPEN };

struct gql_result {
    enum result_kind kind;
    bool told;                   /* an error says why it is null */
    const struct gql_node *node; /* of an element: the list's */
    const struct gql_type *type;
    struct slice json; /* of a leaf */
    const char *error; /* why it is null, or NULL */
    size_t index;      /* of an element */
    bool element;
    struct gql_result *parent, *child, *next;
    struct gql_result *also; /* the next one that waits for the same request */
};

static void complete(struct gql_execution *e, struct gql_result *r, const struct gql_type *t,
                     const struct gql_source *v);

static struct gql_result *result(struct gql_execution *e, struct gql_result *parent,
                                 const struct gql_node *n, const struct gql_type *t)
{
    if (e->values == GQL_VALUES_MAX)
        e->a->failed = true;
    e->values++;
    struct gql_result *r = arena_get(e->a, sizeof *r);
    if (r)
        *r = (struct gql_result){ .node = n, .type = t, .parent = parent };
    return r;
}

static struct slice follow(struct slice json, const struct gql_path *path)
{
    for (size_t i = 0; i < path->n && json.p; i++)
        json = json_pick(json, path->name[i]);
    return json;
}

/* --- requests --- */

struct values { /* of a target */
    struct gql_execution *e;
    const struct gql_node *n;
    const struct gql_source *of;
};

static enum template_value found(bool there)
{
    return there ? TEMPLATE_THERE : TEMPLATE_MISSING;
}

/* A null argument is the client's to leave out; without any other value the request would ask for
 * more than it is meant to. */
static enum template_value put_value(void *user, struct slice name, struct buf *out)
{
    const struct values *v = user;
    char member[TEMPLATE_BYTES_MAX];
    if (name.p[0] == '.') {
        memcpy(member, name.p + 1, name.len - 1);
        member[name.len - 1] = '\0';
        return found(json_as_text(json_pick(v->of->json, member), out));
    }
    if (name.len > 7 && memcmp(name.p, "header:", 7) == 0)
        return found(v->e->header(v->e->user, (struct slice){ name.p + 7, name.len - 7 }, out));
    const struct gql_value *a = v->n->args;
    while (a && !gql_same(a->name, name))
        a = a->next;
    return !a || a->kind == GQL_NULL ? TEMPLATE_ABSENT : found(gql_as_text(a, out));
}

/* What a request answered, at one of the places that wanted it. */
static void arrive(struct gql_execution *e, struct gql_result *r, const struct gql_fetch *f)
{
    const struct gql_field *field = r->node->field;
    const struct gql_source v = { .json = follow(f->json, &field->get->at) };
    r->kind = IS_NULL;
    r->error = f->why;
    if (!f->why)
        complete(e, r, field->type, &v);
}

static struct gql_fetch *fetch_of(struct gql_execution *e, const struct gql_get *get,
                                  struct slice target)
{
    struct gql_fetch *f = e->mints(e->user, get, target) ? NULL : e->fetches;
    while (f && !(f->get->backend == get->backend && gql_same(f->target, target)))
        f = f->next;
    if (f || e->calls == e->limits->calls || !(f = arena_get(e->a, sizeof *f)))
        return f;
    *f = (struct gql_fetch){ .get = get, .target = arena_copy(e->a, target) };
    e->calls++;
    e->open++;
    *e->last = f;
    e->last = &f->next;
    if (!e->next)
        e->next = f;
    return f;
}

static void fetch(struct gql_execution *e, struct gql_result *r, const struct gql_source *of)
{
    const struct gql_get *get = r->node->field->get;
    struct firn_diag why = { 0, "" };
    struct values v = { e, r->node, of };
    struct gql_fetch *f = NULL;
    struct buf b;
    buf_init(&b, 2 * TEMPLATE_TARGET_MAX);
    int error = template_write(&get->target, put_value, &v, &b, &why);
    if (error == 0)
        f = fetch_of(e, get, (struct slice){ b.p, b.len });
    buf_done(&b);
    if (f && f->done) {
        arrive(e, r, f);
    } else if (f) {
        r->kind = IS_OPEN;
        r->also = f->wanted;
        f->wanted = r;
    } else {
        r->error = error == FIRN_ENOENT ? "a value that its request needs is missing"
                   : error ? "a value that its request needs cannot stand in a path, or is too long"
                           : "the query needs more requests to services than are allowed";
    }
}

struct gql_fetch *gql_execute_next(struct gql_execution *e)
{
    struct gql_fetch *f = e->next;
    if (f)
        e->next = f->next;
    return f;
}

bool gql_execute_over(const struct gql_execution *e)
{
    return e->open == 0;
}

/* --- values --- */

/* Every member that is asked for looks through its object once more. */
static void look(struct gql_execution *e, struct slice json)
{
    e->work += json.len;
    e->a->failed |= e->work > GQL_WORK_MAX;
}

static void resolve(struct gql_execution *e, struct gql_result *r, const struct gql_source *of)
{
    const struct gql_node *n = r->node;
    struct gql_source v = { .n = 0 };
    if (n->wrong) {
        r->error = n->wrong;
        return;
    }
    if (n->field == e->s->typename_field) {
        char *text = arena_get(e->a, n->parent->name.len + 3);
        if (text)
            snprintf(text, n->parent->name.len + 3, "\"%.*s\"", (int)n->parent->name.len,
                     n->parent->name.p);
        v.json = (struct slice){ text, n->parent->name.len + 2 };
    } else if (of->meta || n->field == e->s->schema_field || n->field == e->s->type_field) {
        v = gql_introspect(e->s, of, n, e->a);
    } else if (n->field->get) {
        fetch(e, r, of);
        return;
    } else {
        look(e, of->json);
        v.json = follow(of->json, &n->field->from);
    }
    complete(e, r, n->field->type, &v);
}

static void fields(struct gql_execution *e, struct gql_result *r, const struct gql_node *n,
                   const struct gql_source *of)
{
    struct gql_result **at = &r->child;
    for (; n && !e->a->failed; n = n->next) {
        struct gql_result *c = result(e, r, n, n->field->type);
        if (!c)
            return;
        *at = c;
        at = &c->next;
        resolve(e, c, of);
    }
}

static void elements(struct gql_execution *e, struct gql_result *r, const struct gql_type *of,
                     const struct gql_source *v)
{
    struct gql_result **at = &r->child;
    struct gql_source item = { .n = 0 };
    size_t place = 0;
    look(e, v->json);
    for (size_t i = 0; !e->a->failed; i++) {
        if (v->list ? i == v->n : !json_each_element(v->json, &place, &item.json))
            return;
        struct gql_result *c = result(e, r, r->node, of);
        if (!c)
            return;
        c->element = true;
        c->index = i;
        *at = c;
        at = &c->next;
        complete(e, c, of, v->list ? &v->items[i] : &item);
    }
}

static void complete(struct gql_execution *e, struct gql_result *r, const struct gql_type *t,
                     const struct gql_source *v)
{
    const enum json_type type = json_type_of(v->json);
    if (t->kind == GQL_NON_NULL)
        t = t->of;
    if (!v->meta && !v->list && (type == JSON_OTHER || type == JSON_NULL)) {
        r->kind = IS_NULL;
    } else if (t->kind == GQL_LIST) {
        if (!v->list && type != JSON_ARRAY) {
            r->error = "the service's value is no list";
            return;
        }
        r->kind = IS_LIST;
        elements(e, r, t->of, v);
    } else if (t->kind == GQL_OBJECT) {
        r->kind = IS_OBJECT;
        fields(e, r, r->node->child, v);
    } else {
        r->json = gql_leaf(v->json, t, e->a, &r->error);
        r->kind = r->json.p ? IS_LEAF : IS_NULL;
        if (r->json.p)
            r->error = NULL;
    }
}

void gql_execute_answer(struct gql_execution *e, struct gql_fetch *f, struct slice json,
                        const char *why)
{
    struct gql_result *r = f->wanted;
    f->wanted = NULL;
    f->done = true;
    f->json = json;
    f->why = why;
    e->open--;
    while (r) {
        struct gql_result *also = r->also;
        arrive(e, r, f);
        r = also;
    }
}

int gql_execute(struct gql_execution *e, const struct gql_plan *p)
{
    const struct gql_source none = { .n = 0 };
    e->fetches = e->next = NULL;
    e->last = &e->fetches;
    e->calls = e->open = e->values = 0;
    e->work = 0;
    e->root = result(e, NULL, NULL, NULL);
    if (!e->root)
        return -1;
    e->root->kind = IS_OBJECT;
    fields(e, e->root, p->root, &none);
    return e->a->failed ? -1 : 0;
}

/* --- the end --- */

struct ending {
    struct buf *errors;
    size_t n;
    const char *why; /* of requests without an answer */
};

static void write_path(const struct gql_result *r, struct buf *b)
{
    const struct gql_result *way[4 * GQL_NEST_MAX];
    size_t n = 0;
    for (; r && r->node && n < sizeof way / sizeof way[0]; r = r->parent)
        way[n++] = r;
    json_begin(b, "path", '[');
    while (n-- > 0)
        if (way[n]->element)
            json_count(b, NULL, way[n]->index);
        else
            json_bytes(b, NULL, way[n]->node->key.p, way[n]->node->key.len);
    json_end(b, ']');
}

static void write_place(struct gql_place at, struct buf *b)
{
    json_begin(b, "locations", '[');
    json_begin(b, NULL, '{');
    json_count(b, "line", at.line);
    json_count(b, "column", at.column);
    json_end(b, '}');
    json_end(b, ']');
}

static void tell(struct ending *end, struct gql_result *r, const char *why)
{
    r->told = true;
    if (end->n++ >= GQL_PATH_ERRORS_MAX)
        return;
    json_begin(end->errors, NULL, '{');
    json_text(end->errors, "message", why);
    write_place(r->node->place, end->errors);
    write_path(r, end->errors);
    json_end(end->errors, '}');
}

static void settle(struct ending *end, struct gql_result *r)
{
    if (r->kind == IS_OPEN) {
        r->kind = IS_NULL;
        r->error = end->why;
    }
    if (r->error) {
        r->kind = IS_NULL;
        tell(end, r, r->error);
    }
    for (struct gql_result *c = r->kind == IS_NULL ? NULL : r->child; c; c = c->next) {
        settle(end, c);
        if (c->kind != IS_NULL || c->type->kind != GQL_NON_NULL)
            continue;
        if (!c->told)
            tell(end, c, "a value that must not be null is null");
        r->kind = IS_NULL;
        r->told = true;
        return;
    }
}

static void write_result(const struct gql_result *r, struct buf *b)
{
    const bool object = r->kind == IS_OBJECT;
    if (r->kind == IS_NULL) {
        buf_add(b, "null", 4);
    } else if (r->kind == IS_LEAF) {
        buf_add(b, r->json.p, r->json.len);
    } else {
        buf_add_str(b, object ? "{" : "[");
        for (const struct gql_result *c = r->child; c && !b->failed; c = c->next) {
            if (c != r->child)
                buf_add_str(b, ",");
            if (object) {
                buf_add_str(b, "\"");
                buf_add(b, c->node->key.p, c->node->key.len);
                buf_add_str(b, "\":");
            }
            write_result(c, b);
        }
        buf_add_str(b, object ? "}" : "]");
    }
}

size_t gql_execute_write(struct gql_execution *e, const char *why, struct buf *out)
{
    struct buf errors;
    buf_init(&errors, out->max);
    struct ending end = { &errors, 0, why };
    settle(&end, e->root);
    json_begin(out, NULL, '{');
    if (errors.len > 0) {
        json_begin(out, "errors", '[');
        buf_add(out, errors.p, errors.len);
        json_end(out, ']');
    }
    out->failed |= errors.failed;
    buf_done(&errors);
    json_key(out, "data");
    write_result(e->root, out);
    json_end(out, '}');
    return end.n;
}

void gql_write_errors(const struct gql_errors *errors, struct buf *out)
{
    json_begin(out, NULL, '{');
    json_begin(out, "errors", '[');
    for (const struct gql_error *e = errors->first; e; e = e->next) {
        json_begin(out, NULL, '{');
        json_text(out, "message", e->text);
        write_place(e->place, out);
        json_end(out, '}');
    }
    if (!errors->first) {
        json_begin(out, NULL, '{');
        json_text(out, "message", "the query is too large");
        json_end(out, '}');
    }
    json_end(out, ']');
    json_end(out, '}');
}
