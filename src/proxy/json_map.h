/*
 * json_map.h - renames and drops the members of a JSON body, as a route declares it.
 * Members are named by their path: "user.password" is the member password of the member user. Arrays
 * are passed through: the rule holds for each of their elements. A rename
 * compares names exactly, a drop without regard to case. Everything else stays as it was,
 * byte for byte but for white space between values. Pure; any thread.
 */
#ifndef FIRN_PROXY_JSON_MAP_H
#define FIRN_PROXY_JSON_MAP_H

#include "firn/error.h"
#include "wire/buf.h"

enum { JSON_MAP_RULES_MAX = 64, JSON_MAP_PATH_MAX = 255 };

struct json_map_rule { /* texts are borrowed */
    const char *path; /* up to JSON_MAP_PATH_MAX bytes, without empty names; a name with a dot in it
                        * cannot be written */
    const char *to;   /* the new name (not a path); NULL: drop the member */
};

/* NULL if the rules can be used, else what is wrong with them. */
const char *json_map_wrong(const struct json_map_rule *rules, size_t n);

/* Appends the body as the rules have it. FIRN_EFORMAT: not JSON, nested deeper than 16, with a name
 * or path above JSON_MAP_PATH_MAX, or an object would get a member twice, by a rename; `d` says
 * why.
 * FIRN_ENOSPC: `out` is full. On error `out` holds nothing of use. */
FIRN_MUSTUSE int json_map(const struct json_map_rule *rules, size_t n, const char *p, size_t len,
                          struct buf *out, struct firn_diag *d);

#endif
