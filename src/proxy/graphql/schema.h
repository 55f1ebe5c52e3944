/*
 * schema.h - a GraphQL schema of objects, enums and scalars, read from SDL. Directives say where
 * values come from:
 *
 *     type Query { user(id: ID!): User @get(service: "users", path: "/users/{id}") }
 *     type User {
 *       id: ID!
 *       name: String @from(path: "profile.display_name")
 *       orders(limit: Int = 5): [Order!]! @get(service: "orders",
 *                                            path: "/orders?user={.id}&limit={limit}", at: "items")
 *     }
 *
 * @get asks a service; {limit} is an argument of the field, {.id} a member of the object that has
 * the field, {header:X-User-ID} a header of the request. @from and `at` are paths inside of JSON.
 * A field without either is the member of its object with its name. Reading is for one thread; a
 * schema that was read is constant.
 */
#ifndef FIRN_PROXY_GRAPHQL_SCHEMA_H
#define FIRN_PROXY_GRAPHQL_SCHEMA_H

#include "proxy/graphql/ast.h"
#include "proxy/template.h"

enum { GQL_SCHEMA_BYTES_MAX = 1024 * 1024, GQL_PATH_MAX = 8 };

enum gql_type_kind { GQL_SCALAR, GQL_OBJECT, GQL_ENUM, GQL_LIST, GQL_NON_NULL };

struct gql_path { /* "items.0.id" */
    size_t n;
    const char *name[GQL_PATH_MAX];
};

struct gql_get {
    struct slice service;
    size_t backend; /* what the schema's reader was told about it */
    struct template target;
    struct gql_path at;
};

struct gql_argument {
    struct slice name, description, deprecated; /* absent: none */
    const struct gql_type *type;
    struct gql_value *preset; /* or NULL */
    struct gql_argument *next;
    struct gql_ref *ref;
    struct gql_place place;
};

struct gql_field {
    struct slice name, description, deprecated;
    struct gql_argument *args;
    const struct gql_type *type;
    const struct gql_get *get; /* or NULL */
    struct gql_path from;      /* in the object; its name where nothing else was said */
    struct gql_field *next;
    struct gql_ref *ref;
    struct gql_place place;
};

struct gql_enum_value {
    struct slice name, description, deprecated;
    struct gql_enum_value *next;
};

enum gql_scalar {
    GQL_CUSTOM,
    GQL_SCALAR_INT,
    GQL_SCALAR_FLOAT,
    GQL_SCALAR_STRING,
    GQL_SCALAR_BOOLEAN,
    GQL_SCALAR_ID
};

struct gql_type {
    enum gql_type_kind kind;
    enum gql_scalar scalar;
    struct slice name, description, specified_by;
    const struct gql_type *of; /* of a list or non-null type */
    struct gql_field *fields;
    struct gql_enum_value *values;
    struct gql_type *next; /* of those with a name */
    struct gql_place place;
};

struct gql_directive_type {
    struct slice name, description;
    struct gql_argument *args;
    struct gql_enum_value *locations;
    struct gql_directive_type *next;
};

struct gql_schema {
    struct arena memory;
    struct slice description;
    struct gql_type *types; /* of the file, then scalars and the types of introspection */
    const struct gql_type *query;
    const struct gql_field *schema_field, *type_field, *typename_field; /* __schema, ... */
    struct gql_directive_type *directives;
};

/* The place of a service in the caller's list, or -1 if there is none. */
typedef int gql_service_fn(void *user, struct slice name);

/* -1: it is wrong, `errors` says where. `text` is copied; the arena of `errors` is the schema's,
 * so both are there until gql_schema_free(). */
FIRN_MUSTUSE int gql_schema_read(const char *text, size_t len, gql_service_fn *service, void *user,
                                 struct gql_schema *out, struct gql_errors *errors);
void gql_schema_free(struct gql_schema *s); /* does nothing to a zeroed one */

const struct gql_type *gql_type_named(const struct gql_schema *s, struct slice name);
/* A type as a variable has it; NULL: there is none, or no memory. */
const struct gql_type *gql_type_of(const struct gql_schema *s, const struct gql_ref *r,
                                   struct arena *a);
const struct gql_field *gql_field_named(const struct gql_type *t, struct slice name);
const struct gql_argument *gql_argument_named(const struct gql_argument *list, struct slice name);

/* Without lists and non-null. */
const struct gql_type *gql_type_inner(const struct gql_type *t);
static inline bool gql_is_leaf(const struct gql_type *t)
{
    enum gql_type_kind k = gql_type_inner(t)->kind;
    return k == GQL_SCALAR || k == GQL_ENUM;
}

/* "[User!]!" for messages. */
const char *gql_type_text(const struct gql_type *t, char out[128]);

/* --- schema_read.c to schema.c --- */
struct gql_parser;
/* Appends the definitions of a text; `own`: of the language itself. */
int gql_schema_add(struct gql_schema *s, const char *text, size_t len, bool own,
                   gql_service_fn *service, void *user, struct gql_errors *errors);

#endif
