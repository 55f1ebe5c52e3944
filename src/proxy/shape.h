/*
 * shape.h - how the JSON answers of a composition's parts become one: lines that say where a value
 * goes and where it comes from.
 *
 *     id = user.id
 *     profile.name = user.name
 *     orders = orders.items {id, total, when = created_at, product = item.product {id, name}}
 *
 * On the left a path in the answer, on the right a part and a path in it; names in braces select
 * members, for each element where the value is an array. What is not there becomes null. Without
 * lines the answer has each part whole, under its name. Pure; any thread.
 */
#ifndef FIRN_PROXY_SHAPE_H
#define FIRN_PROXY_SHAPE_H

#include "proxy/arena.h"
#include "firn/error.h"

enum { SHAPE_LINES_MAX = 64, SHAPE_DEPTH_MAX = 8 };

struct shape_node { /* a member of the answer, or of an object that braces select */
    const char *name;
    const char **path; /* where it comes from, behind the part */
    size_t path_n;
    size_t part;                     /* of a line; SHAPE_INNER: an object that lines make */
    struct shape_node *child, *next; /* members to select, or of the object */
};

#define SHAPE_INNER ((size_t)-1)

/* Adds a line to the members of `root`. Memory comes from `a`. FIRN_EFORMAT with the reason in
 * `why`; FIRN_ENOMEM. */
FIRN_MUSTUSE int shape_add(struct shape_node *root, const char *line, const char *const *parts,
                           size_t parts_n, struct arena *a, struct firn_diag *why);

/* Appends the members of `root` to an object that was begun. values[i]: the JSON of part i, or
 * absent. */
void shape_write(const struct shape_node *root, const struct slice *values, struct buf *out);

#endif
