/*
 * plan.h - a validated operation with its variables, as it is executed: fields put together, their
 * arguments filled in, and limits checked before anything is asked. Pure; any thread.
 */
#ifndef FIRN_PROXY_GRAPHQL_PLAN_H
#define FIRN_PROXY_GRAPHQL_PLAN_H

#include "proxy/graphql/schema.h"

enum { GQL_LIST_COST = 10 }; /* elements that a list is taken for, without first or limit */
enum { GQL_GET_COST = 10 };  /* of a field with @get; others cost 1 */

struct gql_limits {
    uint64_t depth; /* of fields in fields; those of introspection do not count */
    uint64_t cost;
    uint64_t calls; /* for execute.h */
    bool introspection;
};

struct gql_node { /* a field of the answer */
    struct slice key;
    const struct gql_type *parent;
    const struct gql_field *field;
    struct gql_value *args; /* constant, with those that have a default */
    const char *wrong;      /* an argument is missing or null; NULL: all is well */
    struct gql_place place;
    struct gql_node *child, *next;
};

struct gql_plan {
    struct gql_node *root;
    uint64_t depth, cost;
};

/* The operation with that name (absent: the only one). NULL: there is none, or it is no query. */
struct gql_operation *gql_choose(struct gql_document *d, struct slice name,
                                 struct gql_errors *errors);

/* `variables`: JSON, an object or null, or absent. -1: errors were added. */
FIRN_MUSTUSE int gql_plan(const struct gql_schema *s, const struct gql_operation *op,
                          struct slice variables, const struct gql_limits *limits,
                          struct gql_plan *out, struct gql_errors *errors);

#endif
