/*
 * json_scan.h - the scalars of a JSON text, each with the path that leads to it.
 * {"latency":{"p99":7},"ids":["a"]} gives latency.p99 = 7 and ids.0 = a. Strict (RFC 8259), nothing is
 * kept, nesting and lengths are bounded. Pure; may be called from any thread.
 */
#ifndef FIRN_CLI_JSON_SCAN_H
#define FIRN_CLI_JSON_SCAN_H

#include "firn/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { JSON_SCAN_DEPTH_MAX = 16, JSON_SCAN_PATH_MAX = 255, JSON_SCAN_TEXT_MAX = 4095 };

/* `value` ends with a NUL; `string`: it stood in quotes, and its escapes are undone. Numbers, true,
 * false and null come as they were written. */
typedef void json_scan_fn(void *user, const char *path, const char *value, bool string);

/* FIRN_EFORMAT: it is no JSON, or beyond the bounds; `each` may have seen what stands before. */
FIRN_MUSTUSE int json_scan(const char *p, size_t len, json_scan_fn *each, void *user);

#endif
