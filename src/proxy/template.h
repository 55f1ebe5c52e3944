/*
 * template.h - targets of requests with places for values: "/orders?user={id}&limit={limit}".
 * Values are percent-encoded, so that none of them can begin another segment, parameter or field; a
 * path that a value would turn into another one ("..", an encoded slash) is refused. A parameter of
 * the query without a value is left out; a path needs all of its values. Pure; any thread.
 */
#ifndef FIRN_PROXY_TEMPLATE_H
#define FIRN_PROXY_TEMPLATE_H

#include "firn/error.h"
#include "wire/buf.h"

enum { TEMPLATE_BYTES_MAX = 1024, TEMPLATE_NAMES_MAX = 16, TEMPLATE_TARGET_MAX = 8192 };

struct template
{ /* texts are borrowed from what was read */
    struct slice text;
    size_t n;
    struct slice name[TEMPLATE_NAMES_MAX]; /* what stands in braces, in its order */
};

/* FIRN_EFORMAT: it is no target, or a brace is wrong; `why` says what. */
FIRN_MUSTUSE int template_read(struct slice text, struct template *out, struct firn_diag *why);

/* Appends the value of a name to `out`, as it is. False: it has none. */
typedef bool template_value_fn(void *user, struct slice name, struct buf *out);

/* Appends the target. FIRN_ENOENT: a value of the path is missing; FIRN_EFORMAT: a value cannot
 * stand in a path; FIRN_ENOSPC: it is too long, or there is no memory. */
FIRN_MUSTUSE int template_write(const struct template *t, template_value_fn *value, void *user,
                                struct buf *out, struct firn_diag *why);

#endif
