/*
 * validate.h - whether a document may be executed: the rules of section 5 (October 2021). Fills in
 * what selections and variables mean. Pure; any thread.
 */
#ifndef FIRN_PROXY_GRAPHQL_VALIDATE_H
#define FIRN_PROXY_GRAPHQL_VALIDATE_H

#include "proxy/graphql/schema.h"

enum {
    GQL_FIELDS_MAX = 4000,  /* of all operations, with those of their fragments */
    GQL_VISITS_MAX = 40000, /* of selections: each operation looks at its fragments once more */
};

/* -1: no; the errors were added. */
FIRN_MUSTUSE int gql_validate(const struct gql_schema *s, struct gql_document *d,
                              struct gql_errors *errors);

/* The field of a type, or of every type; NULL: there is none. */
const struct gql_field *gql_field_of(const struct gql_schema *s, const struct gql_type *parent,
                                     struct slice name);

#endif
