/*
 * path.h - one spelling for each path. A gateway that routes by one reading of a path while the
 * server behind it takes another one lets requests pass its rules; so paths are made canonical
 * before anything looks at them, and the canonical path is what is sent on. Pure; any thread.
 */
#ifndef FIRN_PROXY_PATH_H
#define FIRN_PROXY_PATH_H

#include "firn/error.h"
#include "wire/buf.h"

/* Writes the canonical form of `path` (as in a request: it begins with '/') to `out`, which has
 * room for `cap` bytes; it is never longer than `path`. Percent-encoded letters, digits and -._~
 * are decoded, other hex digits made upper case; slashes that repeat become one; "." and ".."
 * segments, also encoded ones, are resolved. FIRN_EFORMAT and *why: an encoded slash, backslash,
 * NUL or other control byte, '%' without two hex digits, ".." above the root, or "." or ".." with
 * parameters ("..;x"). FIRN_ENOSPC. */
FIRN_MUSTUSE int path_canonical(struct slice path, char *out, size_t cap, size_t *out_len,
                                const char **why);

/* Whether `path` (canonical) is `prefix` or lies below it: "/api" has "/api" and "/api/x", not
 * "/apix". "/" has every path. A '/' at the end of the prefix demands one there. Parameters of a
 * segment do not count, as some servers drop them: "/api;v=1/x" is below "/api". */
bool path_below(struct slice path, struct slice prefix);

/* How many bytes of `path` the prefix takes, with the parameters of its segments; 0: not below. */
size_t path_taken(struct slice path, struct slice prefix);

/* Segment `n` (from 1) without its parameters: of "/tenants/7;v=1/x" the second is "7". Absent: there
 * is none, or it is empty. */
struct slice path_segment(struct slice path, uint32_t n);

/* `path` with `to` in the place of `prefix`, as in a route's rewrite: "/api/products/1", "/api" and
 * "/" give "/products/1". `path` is below `prefix`. FIRN_ENOSPC. */
FIRN_MUSTUSE int path_rewrite(struct slice path, struct slice prefix, struct slice to, char *out,
                              size_t cap, size_t *out_len);

#endif
