/*
 * overlap.h - the rule that fields with the same name in an answer must be the same field with the
 * same arguments (October 2021, 5.3.2). There are only objects, so the rule is simple: two such
 * fields always belong to the same type. Pure; any thread.
 */
#ifndef FIRN_PROXY_GRAPHQL_OVERLAP_H
#define FIRN_PROXY_GRAPHQL_OVERLAP_H

#include "proxy/graphql/ast.h"

/* After everything else was found to be right. `*fields`, in the end, is those of all operations so
 * far; more than GQL_FIELDS_MAX are an error. */
void gql_check_overlap(const struct gql_operation *op, size_t *fields, struct gql_errors *errors);

/* --- fields of several selections together, for plan.c too --- */

struct gql_uses { /* selections whose fields are put together */
    const struct gql_selection *list;
    struct gql_uses *next;
};

struct gql_group { /* fields with the same name in the answer */
    const struct gql_selection *first;
    struct gql_uses *children, **last; /* of all of them */
    struct gql_group *next;
};

struct gql_collector {
    struct gql_errors *errors;
    size_t fields;                     /* that were seen so far */
    unsigned depth;                    /* of selections in selections */
    const struct gql_value *variables; /* for @skip and @include */
    bool all;                          /* those that are skipped, too */
    /* Called for a field whose name is there already; may be NULL. */
    void (*same)(struct gql_collector *c, const struct gql_selection *a,
                 const struct gql_selection *b);
};

/* The groups of the fields, in the order of their first field. NULL: there are none, or too many,
 * which is an error. */
struct gql_group *gql_collect(struct gql_collector *c, const struct gql_uses *uses);

#endif
