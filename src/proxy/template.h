/*
 * template.h - targets of requests with places for values: "/orders?user={id}&limit={limit}".
 * Values are percent-encoded, so that none of them can begin another segment, parameter or field; a
 * path that a value would turn into another one ("..", an encoded slash) is refused. A parameter of
 * the query is left out where its value is optional and absent; any other value must be there, so
 * that no filter is lost. Pure; any thread.
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

enum template_value {
    TEMPLATE_MISSING, /* there is none, and the target cannot be written */
    TEMPLATE_ABSENT,  /* the client may leave it out: so is its parameter of the query */
    TEMPLATE_THERE,
};

/* Appends the value of a name to `out`, as it is. */
typedef enum template_value template_value_fn(void *user, struct slice name, struct buf *out);

/* Appends the target. FIRN_ENOENT: a value is missing; FIRN_EFORMAT: a value cannot
 * stand in a path; FIRN_ENOSPC: it is too long, or there is no memory. */
FIRN_MUSTUSE int template_write(const struct template *t, template_value_fn *value, void *user,
                                struct buf *out, struct firn_diag *why);

#endif
