/*
 * ast.h - what GraphQL documents and schemas are made of. Nodes live in an arena, texts borrow from
 * the source or from the arena. Lists are linked by `next`, in the order of the source.
 */
#ifndef FIRN_PROXY_GRAPHQL_AST_H
#define FIRN_PROXY_GRAPHQL_AST_H

#include "firn/error.h"
#include "proxy/arena.h"

enum {
    GQL_TOKENS_MAX = 20000,     /* of a document; a query of a person has a few hundred */
    GQL_DEPTH_MAX = 64,         /* of brackets in brackets: bounds every recursion */
    GQL_NEST_MAX = 128,         /* of fields and fragments in each other, with what fragments add */
    GQL_ERRORS_MAX = 64,        /* that an answer tells; the rest is left out */
    GQL_COMPARES_MAX = 2000000, /* of names, for a document: some 10 ms */
};

struct gql_place { /* from 1 */
    unsigned line, column;
};

struct gql_error {
    const char *text;
    struct gql_place place;
    struct gql_error *next;
};

struct gql_errors {
    struct arena *a;
    struct gql_error *first, *last;
    size_t n;
    size_t compares; /* names that were compared so far; gql_may_compare() */
};

/* Counts n comparisons with a name, long ones more than once. False: there were more than
 * GQL_COMPARES_MAX, which is an error; the caller goes no further. */
bool gql_may_compare(struct gql_errors *e, size_t n, struct slice name, struct gql_place at);

/* Always returns -1, so that a check can end with it. */
__attribute__((format(printf, 3, 4))) int gql_blame(struct gql_errors *e, struct gql_place at,
                                                    const char *fmt, ...);

enum gql_value_kind {
    GQL_VARIABLE,
    GQL_INT,
    GQL_FLOAT,
    GQL_STRING,
    GQL_BOOLEAN,
    GQL_NULL,
    GQL_ENUM_VALUE,
    GQL_LIST_VALUE,
    GQL_OBJECT_VALUE,
};

struct gql_value { /* also an argument, or a member of an object: with its name */
    enum gql_value_kind kind;
    struct slice name, text; /* text: of a scalar, decoded; the name of a variable */
    struct gql_value *child, *next;
    struct gql_place place;
};

enum gql_ref_kind { GQL_REF_NAMED, GQL_REF_LIST, GQL_REF_NON_NULL };

struct gql_ref { /* a type as it is written: [User!]! */
    enum gql_ref_kind kind;
    struct slice name;
    struct gql_ref *of;
    struct gql_place place;
};

struct gql_directive {
    struct slice name;
    struct gql_value *args;
    struct gql_directive *next;
    struct gql_place place;
};

struct gql_fragment;
struct gql_field;
struct gql_type;

enum gql_selection_kind { GQL_FIELD, GQL_SPREAD, GQL_INLINE };

struct gql_selection {
    enum gql_selection_kind kind;
    struct slice key, name; /* key: the alias or the name; name: of the field or fragment, or of
                             * an inline fragment's type (absent: none) */
    struct gql_value *args;
    struct gql_directive *directives;
    struct gql_selection *child, *next;
    struct gql_place place;

    /* by validate.c */
    struct gql_fragment *fragment;
    const struct gql_field *field; /* NULL: it is not known */
    const struct gql_type *parent;
};

struct gql_variable {
    struct slice name;
    struct gql_ref *ref;
    struct gql_value *preset; /* or NULL */
    struct gql_directive *directives;
    struct gql_variable *next;
    struct gql_place place;
    const struct gql_type *type; /* by validate.c */
    bool used;
};

enum gql_operation_kind { GQL_QUERY, GQL_MUTATION, GQL_SUBSCRIPTION };

struct gql_operation {
    enum gql_operation_kind kind;
    struct slice name; /* absent: none */
    struct gql_variable *variables;
    struct gql_directive *directives;
    struct gql_selection *child;
    struct gql_operation *next;
    struct gql_place place;
};

struct gql_fragment {
    struct slice name, on;
    struct gql_directive *directives;
    struct gql_selection *child;
    struct gql_fragment *next;
    struct gql_place place;
    unsigned seen; /* the operation whose check came by last, from 1 */
    bool open;     /* it is being checked: seen again it is a cycle */
};

struct gql_document {
    struct gql_operation *operations;
    struct gql_fragment *fragments;
};

static inline bool gql_same(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/* The value called `name` in a list, or NULL. */
const struct gql_value *gql_named(const struct gql_value *list, const char *name);

#endif
