/*
 * introspect.h - what a schema says about itself: the values of __schema and __type. Pure; any
 * thread.
 */
#ifndef FIRN_PROXY_GRAPHQL_INTROSPECT_H
#define FIRN_PROXY_GRAPHQL_INTROSPECT_H

#include "proxy/graphql/plan.h"

enum gql_meta {
    GQL_META_NONE,
    GQL_META_SCHEMA,
    GQL_META_TYPE,
    GQL_META_FIELD,
    GQL_META_INPUT,
    GQL_META_VALUE,
    GQL_META_DIRECTIVE
};

struct gql_source {    /* a value that an object's fields, or a list's elements, come from */
    struct slice json; /* absent: null, unless `meta` says otherwise */
    enum gql_meta meta;
    const void *p;            /* what it is about */
    struct gql_source *items; /* of a list; n of them */
    size_t n;
    bool list;
};

/* The value of a field of a source that has `meta`, or of __schema and __type themselves. */
struct gql_source gql_introspect(const struct gql_schema *s, const struct gql_source *of,
                                 const struct gql_node *n, struct arena *a);

#endif
