/*
 * What the definitions of a schema say about each other: types that are named are there, values fit
 * them, and everything that can be asked for comes from somewhere. Also the definitions of the
 * language itself. Tested in tests/unit/proxy/graphql/schema.c.
 */
#include "proxy/graphql/schema.h"
#include "proxy/graphql/values.h"

#include <stdio.h>

/* October 2021, 4.2, and what the reference implementation has beside it. */
static const char own_types[] =
    "scalar Int scalar Float scalar String scalar Boolean scalar ID\n"
    "type __Schema { description: String types: [__Type!]! queryType: __Type! mutationType: __Type"
    " subscriptionType: __Type directives: [__Directive!]! }\n"
    "type __Type { kind: __TypeKind! name: String description: String specifiedByURL: String"
    " fields(includeDeprecated: Boolean = false): [__Field!] interfaces: [__Type!]"
    " possibleTypes: [__Type!] enumValues(includeDeprecated: Boolean = false): [__EnumValue!]"
    " inputFields(includeDeprecated: Boolean = false): [__InputValue!] ofType: __Type"
    " isOneOf: Boolean }\n"
    "type __Field { name: String! description: String"
    " args(includeDeprecated: Boolean = false): [__InputValue!]! type: __Type!"
    " isDeprecated: Boolean! deprecationReason: String }\n"
    "type __InputValue { name: String! description: String type: __Type! defaultValue: String"
    " isDeprecated: Boolean! deprecationReason: String }\n"
    "type __EnumValue { name: String! description: String isDeprecated: Boolean!"
    " deprecationReason: String }\n"
    "type __Directive { name: String! description: String isRepeatable: Boolean!"
    " locations: [__DirectiveLocation!]! args(includeDeprecated: Boolean = false):"
    " [__InputValue!]! }\n"
    "enum __TypeKind { SCALAR OBJECT INTERFACE UNION ENUM INPUT_OBJECT LIST NON_NULL }\n"
    "enum __DirectiveLocation { QUERY MUTATION SUBSCRIPTION FIELD FRAGMENT_DEFINITION"
    " FRAGMENT_SPREAD INLINE_FRAGMENT VARIABLE_DEFINITION SCHEMA SCALAR OBJECT FIELD_DEFINITION"
    " ARGUMENT_DEFINITION INTERFACE UNION ENUM ENUM_VALUE INPUT_OBJECT INPUT_FIELD_DEFINITION }\n"
    "type __Root { __schema: __Schema! __type(name: String!): __Type __typename: String! }\n"
    "directive @include(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT\n"
    "directive @skip(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT\n"
    "directive @deprecated(reason: String = \"No longer supported\") on FIELD_DEFINITION"
    " | ARGUMENT_DEFINITION | INPUT_FIELD_DEFINITION | ENUM_VALUE\n"
    "directive @specifiedBy(url: String!) on SCALAR\n";

const struct gql_type *gql_type_named(const struct gql_schema *s, struct slice name)
{
    const struct gql_type *t = s->types;
    while (t && !gql_same(t->name, name))
        t = t->next;
    return t;
}

const struct gql_type *gql_type_of(const struct gql_schema *s, const struct gql_ref *r,
                                   struct arena *a)
{
    if (!r)
        return NULL;
    if (r->kind == GQL_REF_NAMED)
        return gql_type_named(s, r->name);
    const struct gql_type *of = gql_type_of(s, r->of, a);
    struct gql_type *t = of ? arena_get(a, sizeof *t) : NULL;
    if (!t)
        return NULL;
    t->kind = r->kind == GQL_REF_LIST ? GQL_LIST : GQL_NON_NULL;
    t->of = of;
    return t;
}

const struct gql_field *gql_field_named(const struct gql_type *t, struct slice name)
{
    const struct gql_field *f = t->fields;
    while (f && !gql_same(f->name, name))
        f = f->next;
    return f;
}

const struct gql_argument *gql_argument_named(const struct gql_argument *list, struct slice name)
{
    while (list && !gql_same(list->name, name))
        list = list->next;
    return list;
}

const struct gql_type *gql_type_inner(const struct gql_type *t)
{
    while (t->kind == GQL_LIST || t->kind == GQL_NON_NULL)
        t = t->of;
    return t;
}

const char *gql_type_text(const struct gql_type *t, char out[128])
{
    char inner[128];
    if (t->kind == GQL_LIST)
        snprintf(out, 128, "[%.120s]", gql_type_text(t->of, inner));
    else if (t->kind == GQL_NON_NULL)
        snprintf(out, 128, "%.120s!", gql_type_text(t->of, inner));
    else
        snprintf(out, 128, "%.*s", (int)(t->name.len > 80 ? 80 : t->name.len), t->name.p);
    return out;
}

/* --- reading --- */

static const struct gql_type *resolve(struct gql_schema *s, const struct gql_ref *r,
                                      struct gql_errors *e)
{
    const struct gql_type *t = gql_type_of(s, r, e->a);
    while (r && r->of)
        r = r->of;
    if (!t && r)
        gql_blame(e, r->place, "there is no type '%.*s'", (int)r->name.len, r->name.p);
    return t;
}

static void bind_arguments(struct gql_schema *s, struct gql_argument *a, struct gql_errors *e)
{
    for (; a; a = a->next) {
        char text[128];
        a->type = resolve(s, a->ref, e);
        if (!a->type)
            continue;
        if (!gql_is_leaf(a->type))
            gql_blame(e, a->place, "'%.*s': an argument is a scalar, an enum or a list of them",
                      (int)a->name.len, a->name.p);
        else if (a->preset && !gql_literal_fits(a->preset, a->type))
            gql_blame(e, a->preset->place, "'%.*s': the default is no %s", (int)a->name.len,
                      a->name.p, gql_type_text(a->type, text));
    }
}

static void check_get(const struct gql_field *f, struct gql_errors *e)
{
    for (size_t i = 0; f->get && i < f->get->target.n; i++) {
        const struct gql_argument *a = gql_argument_named(f->args, f->get->target.name[i]);
        const struct gql_type *t = a ? a->type : NULL;
        if (t && t->kind == GQL_NON_NULL)
            t = t->of;
        if (t && t->kind == GQL_LIST)
            gql_blame(e, a->place, "'%.*s': a list cannot stand in a path", (int)a->name.len,
                      a->name.p);
    }
}

static void bind_types(struct gql_schema *s, struct gql_errors *e)
{
    for (struct gql_type *t = s->types; t; t = t->next)
        for (struct gql_field *f = t->fields; f; f = f->next) {
            f->type = resolve(s, f->ref, e);
            bind_arguments(s, f->args, e);
            check_get(f, e);
            if (t == s->query && !f->get)
                gql_blame(e, f->place, "'%.*s': a field of the query type needs @get",
                          (int)f->name.len, f->name.p);
        }
    for (struct gql_directive_type *d = s->directives; d; d = d->next)
        bind_arguments(s, d->args, e);
}

static void find_query(struct gql_schema *s, struct gql_errors *e)
{
    struct slice name = s->query ? s->query->name : (struct slice){ "Query", 5 };
    struct gql_place at = s->query ? s->query->place : (struct gql_place){ 1, 1 };
    s->query = gql_type_named(s, name);
    if (!s->query || s->query->kind != GQL_OBJECT)
        gql_blame(e, at, "the schema needs type %.*s, with the fields that can be asked for",
                  (int)name.len, name.p);
}

static void mark_scalars(struct gql_schema *s)
{
    static const char *const names[] = { [GQL_SCALAR_INT] = "Int",
                                         [GQL_SCALAR_FLOAT] = "Float",
                                         [GQL_SCALAR_STRING] = "String",
                                         [GQL_SCALAR_BOOLEAN] = "Boolean",
                                         [GQL_SCALAR_ID] = "ID" };
    for (struct gql_type *t = s->types; t; t = t->next)
        for (size_t i = 1; i < sizeof names / sizeof names[0]; i++)
            if (t->kind == GQL_SCALAR && slice_is(t->name, names[i]))
                t->scalar = (enum gql_scalar)i;
}

/* Takes __Root, which has the fields that every query has, off the types. */
static void take_root(struct gql_schema *s)
{
    struct gql_type **at = &s->types;
    while (*at && !slice_is((*at)->name, "__Root"))
        at = &(*at)->next;
    if (!*at)
        return;
    const struct gql_field *f = (*at)->fields;
    s->schema_field = f;
    s->type_field = f->next;
    s->typename_field = f->next->next;
    *at = (*at)->next;
}

int gql_schema_read(const char *text, size_t len, gql_service_fn *service, void *user,
                    struct gql_schema *out, struct gql_errors *errors)
{
    *out = (struct gql_schema){ .memory = { .max = 16 * GQL_SCHEMA_BYTES_MAX } };
    *errors = (struct gql_errors){ .a = &out->memory };
    struct slice kept = arena_copy(&out->memory, (struct slice){ text, len });
    if (len > GQL_SCHEMA_BYTES_MAX || !kept.p)
        return gql_blame(errors, (struct gql_place){ 1, 1 }, "the schema is too large");
    if (gql_schema_add(out, kept.p, kept.len, false, service, user, errors) != 0)
        return -1;
    find_query(out, errors);
    if (gql_schema_add(out, own_types, sizeof own_types - 1, true, service, user, errors) != 0)
        return -1;
    mark_scalars(out);
    bind_types(out, errors);
    take_root(out);
    return errors->n || out->memory.failed ? -1 : 0;
}

void gql_schema_free(struct gql_schema *s)
{
    arena_done(&s->memory);
}
