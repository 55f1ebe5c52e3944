/* Introspection. Tested beside npm graphql in tests/differential/graphql. */
#include "proxy/graphql/introspect.h"
#include "proxy/graphql/values.h"
#include "wire/json_write.h"

enum { PRINTED_MAX = 64 * 1024 };

struct asked { /* a field that is asked for */
    const struct gql_schema *s;
    const struct gql_node *n;
    struct arena *a;
};

static struct gql_source json_of(struct slice text)
{
    return (struct gql_source){ .json = text };
}

static struct gql_source text(const struct asked *q, struct slice t)
{
    struct buf b;
    if (!t.p)
        return (struct gql_source){ .n = 0 };
    buf_init(&b, 8 * t.len + 2);
    json_bytes(&b, NULL, t.p, t.len);
    struct slice out = arena_copy(q->a, (struct slice){ b.p, b.len });
    buf_done(&b);
    return json_of(out);
}

static struct gql_source yes(bool value)
{
    return json_of(value ? (struct slice){ "true", 4 } : (struct slice){ "false", 5 });
}

static struct gql_source about(enum gql_meta meta, const void *p)
{
    return (struct gql_source){ .meta = p ? meta : GQL_META_NONE, .p = p };
}

/* Room for n elements, n of them 0. */
static struct gql_source list_of(const struct asked *q, size_t n)
{
    struct gql_source l = { .list = true };
    l.items = arena_get(q->a, (n + 1) * sizeof *l.items);
    return l;
}

static void push(struct gql_source *l, struct gql_source item)
{
    if (l->items)
        l->items[l->n++] = item;
}

static bool with_deprecated(const struct asked *q)
{
    const struct gql_value *v = gql_named(q->n->args, "includeDeprecated");
    return v && slice_is(v->text, "true");
}

static bool is(const struct asked *q, const char *name)
{
    return slice_is(q->n->field->name, name);
}

/* Lists of things that have names and may be deprecated. */
#define PUSH_ALL(q, out, meta_, type_, first_)              \
    do {                                                    \
        size_t count_ = 0;                                  \
        for (const type_ *x_ = (first_); x_; x_ = x_->next) \
            count_++;                                       \
        out = list_of(q, count_);                           \
        for (const type_ *x_ = (first_); x_; x_ = x_->next) \
            if (!x_->deprecated.p || with_deprecated(q))    \
                push(&out, about(meta_, x_));               \
    } while (0)

static struct gql_source of_named(const struct asked *q, struct slice name,
                                  struct slice description, struct slice deprecated)
{
    if (is(q, "name"))
        return text(q, name);
    if (is(q, "description"))
        return text(q, description);
    return is(q, "isDeprecated") ? yes(deprecated.p != NULL) : text(q, deprecated);
}

static struct gql_source of_schema(const struct asked *q)
{
    struct gql_source out = { .n = 0 };
    size_t count = 0;
    if (is(q, "description"))
        return text(q, q->s->description);
    if (is(q, "queryType"))
        return about(GQL_META_TYPE, q->s->query);
    if (is(q, "types")) {
        for (const struct gql_type *t = q->s->types; t; t = t->next)
            count++;
        out = list_of(q, count);
        for (const struct gql_type *t = q->s->types; t; t = t->next)
            push(&out, about(GQL_META_TYPE, t));
    } else if (is(q, "directives")) {
        for (const struct gql_directive_type *d = q->s->directives; d; d = d->next)
            count++;
        out = list_of(q, count);
        for (const struct gql_directive_type *d = q->s->directives; d; d = d->next)
            push(&out, about(GQL_META_DIRECTIVE, d));
    }
    return out;
}

static struct gql_source of_type(const struct asked *q, const struct gql_type *t)
{
    static const char *const kinds[] = { [GQL_SCALAR] = "SCALAR",
                                         [GQL_OBJECT] = "OBJECT",
                                         [GQL_ENUM] = "ENUM",
                                         [GQL_LIST] = "LIST",
                                         [GQL_NON_NULL] = "NON_NULL" };
    struct gql_source out = { .n = 0 };
    if (is(q, "kind"))
        return text(q, (struct slice){ kinds[t->kind], strlen(kinds[t->kind]) });
    if (is(q, "name"))
        return text(q, t->name);
    if (is(q, "description"))
        return text(q, t->description);
    if (is(q, "specifiedByURL"))
        return text(q, t->specified_by);
    if (is(q, "ofType"))
        return about(GQL_META_TYPE, t->of);
    if (is(q, "fields") && t->kind == GQL_OBJECT)
        PUSH_ALL(q, out, GQL_META_FIELD, struct gql_field, t->fields);
    else if (is(q, "interfaces") && t->kind == GQL_OBJECT)
        out = list_of(q, 0);
    else if (is(q, "enumValues") && t->kind == GQL_ENUM)
        PUSH_ALL(q, out, GQL_META_VALUE, struct gql_enum_value, t->values);
    return out;
}

static struct gql_source of_field(const struct asked *q, const struct gql_field *f)
{
    struct gql_source out;
    if (is(q, "type"))
        return about(GQL_META_TYPE, f->type);
    if (!is(q, "args"))
        return of_named(q, f->name, f->description, f->deprecated);
    PUSH_ALL(q, out, GQL_META_INPUT, struct gql_argument, f->args);
    return out;
}

static struct gql_source of_input(const struct asked *q, const struct gql_argument *i)
{
    struct buf b;
    if (is(q, "type"))
        return about(GQL_META_TYPE, i->type);
    if (!is(q, "defaultValue"))
        return of_named(q, i->name, i->description, i->deprecated);
    if (!i->preset)
        return (struct gql_source){ .n = 0 };
    buf_init(&b, PRINTED_MAX);
    gql_print(i->preset, &b);
    struct gql_source out = text(q, (struct slice){ b.p, b.len });
    buf_done(&b);
    return out;
}

static struct gql_source of_directive(const struct asked *q, const struct gql_directive_type *d)
{
    struct gql_source out = { .n = 0 };
    size_t count = 0;
    if (is(q, "name"))
        return text(q, d->name);
    if (is(q, "description"))
        return text(q, d->description);
    if (is(q, "isRepeatable"))
        return yes(false);
    if (is(q, "args")) {
        PUSH_ALL(q, out, GQL_META_INPUT, struct gql_argument, d->args);
        return out;
    }
    for (const struct gql_enum_value *l = d->locations; l; l = l->next)
        count++;
    out = list_of(q, count);
    for (const struct gql_enum_value *l = d->locations; l; l = l->next)
        push(&out, text(q, l->name));
    return out;
}

struct gql_source gql_introspect(const struct gql_schema *s, const struct gql_source *of,
                                 const struct gql_node *n, struct arena *a)
{
    const struct asked q = { s, n, a };
    switch (of->meta) {
    case GQL_META_SCHEMA:
        return of_schema(&q);
    case GQL_META_TYPE:
        return of_type(&q, of->p);
    case GQL_META_FIELD:
        return of_field(&q, of->p);
    case GQL_META_INPUT:
        return of_input(&q, of->p);
    case GQL_META_VALUE: {
        const struct gql_enum_value *v = of->p;
        return of_named(&q, v->name, v->description, v->deprecated);
    }
    case GQL_META_DIRECTIVE:
        return of_directive(&q, of->p);
    case GQL_META_NONE:
        break;
    }
    if (n->field == s->schema_field)
        return about(GQL_META_SCHEMA, s);
    const struct gql_value *name = gql_named(n->args, "name");
    return about(GQL_META_TYPE, name ? gql_type_named(s, name->text) : NULL);
}
