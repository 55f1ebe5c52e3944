/*
 * values.h - values of GraphQL: literals and variables as the types of arguments take them, and
 * members of JSON as the types of fields give them. Pure; any thread.
 */
#ifndef FIRN_PROXY_GRAPHQL_VALUES_H
#define FIRN_PROXY_GRAPHQL_VALUES_H

#include "proxy/graphql/schema.h"

/* The number of a literal or of JSON. False: it is none, or not finite. */
bool gql_number(struct slice text, double *out);

/* Whether a literal is of a type; variables in it are passed over. */
bool gql_literal_fits(const struct gql_value *v, const struct gql_type *t);

/* The value of a variable from JSON. NULL: it is not of the type, and *why says so. */
const struct gql_value *gql_from_json(struct slice json, const struct gql_type *t, struct arena *a,
                                      const char **why);

/* A literal with the variables (a list by name) in their places. NULL: it is a variable without
 * value, there is no memory, or too much was compared. */
const struct gql_value *gql_fill(const struct gql_value *v, const struct gql_value *variables,
                                 struct gql_errors *e);

/* Whether a value that was filled in may stand where a type is expected: only null can be wrong. */
bool gql_null_fits(const struct gql_value *v, const struct gql_type *t);

/* The text of a scalar, as a path or query has it. False: it has none. */
bool gql_as_text(const struct gql_value *v, struct buf *out);

/* JSON of an answer as a scalar or enum: the JSON to give. Absent: *why says what is wrong. */
struct slice gql_leaf(struct slice json, const struct gql_type *t, struct arena *a,
                      const char **why);

/* A literal as the language writes it, for introspection. */
void gql_print(const struct gql_value *v, struct buf *out);

#endif
