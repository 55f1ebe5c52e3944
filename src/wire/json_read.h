/*
 * json_read.h - a strict pull reader of JSON (RFC 8259): the only one in the tree.
 * The caller says what it expects next; anything else is FIRN_EFORMAT with a place and a reason.
 * There is no tree and no allocation: values go straight where the caller wants them. The bytes are
 * borrowed while the reader is used; a reader belongs to one thread.
 *
 *     json_start(&j, p, len, &diag);
 *     r = json_object(&j);
 *     while (r == 0 && (r = json_member(&j, name, sizeof name)) > 0)
 *         r = strcmp(name, "count") == 0 ? json_u64(&j, &count) : json_skip(&j);
 *     return r < 0 ? r : json_finish(&j);
 */
#ifndef FIRN_WIRE_JSON_READ_H
#define FIRN_WIRE_JSON_READ_H

#include "firn/error.h"
#include "wire/buf.h"

enum { JSON_DEPTH_MAX = 16, JSON_PATH_MAX = 255, JSON_TEXT_MAX = 4095 };

struct json_reader { /* all private */
    const char *start, *p, *end;
    struct firn_diag *diag; /* may be NULL */
    unsigned depth;
    uint32_t fresh;   /* a bit per depth: no member or element was read yet */
    uint32_t objects; /* a bit per depth: an object, not an array */
};

void json_start(struct json_reader *j, const char *p, size_t len, struct firn_diag *diag);

/* What kind of value is next. JSON_OTHER: the end, or no value. */
enum json_type {
    JSON_OTHER,
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_BOOL,
    JSON_NULL
};
enum json_type json_next(struct json_reader *j);

/* Step into an object or an array. */
FIRN_MUSTUSE int json_object(struct json_reader *j);
FIRN_MUSTUSE int json_array(struct json_reader *j);

/* 1: `name` is that of the next member, with a NUL; read its value next. 0: the object ended.
 * Negative: an error. FIRN_ENOSPC: the name does not fit, so it is none that the caller expects. */
FIRN_MUSTUSE int json_member(struct json_reader *j, char *name, size_t cap);

/* 1: read the next element. 0: the array ended. Negative: an error. */
FIRN_MUSTUSE int json_element(struct json_reader *j);

/* Passes over members until the one called `name` (plain ASCII), whose value is next: 1. The first
 * of two counts. 0: the object ended without it. */
FIRN_MUSTUSE int json_find(struct json_reader *j, const char *name);

/* A string in UTF-8 with a NUL, escapes resolved. \u0000 is refused. FIRN_ENOSPC: longer than
 * cap - 1. */
FIRN_MUSTUSE int json_string(struct json_reader *j, char *out, size_t cap, size_t *out_len);

/* The bytes of a string, borrowed. FIRN_ENOTSUP: it has an escape in it; read it with
 * json_string(), for which the reader still stands in front of it. */
FIRN_MUSTUSE int json_slice(struct json_reader *j, struct slice *out);

/* The characters of a number as it is written, borrowed. */
FIRN_MUSTUSE int json_numeral(struct json_reader *j, struct slice *out);

/* A whole number that is not negative, bare or as a string of digits (as IDs are written, because
 * many readers round above 2^53). 1.0 and 1e3 are refused. FIRN_ERANGE: 2^64 or more. */
FIRN_MUSTUSE int json_u64(struct json_reader *j, uint64_t *out);

FIRN_MUSTUSE int json_boolean(struct json_reader *j, bool *out);

/* Passes over one value of any kind, which must be well-formed. */
FIRN_MUSTUSE int json_skip(struct json_reader *j);

/* After the outermost value: only white space may follow. */
FIRN_MUSTUSE int json_finish(struct json_reader *j);

/* Calls `each` for every scalar of a whole text, with the path that leads to it:
 * {"latency":{"p99":7},"ids":["a"]} gives latency.p99 = 7 and ids.0 = a. `value` ends with a
 * NUL; `string`: it stood in quotes, its escapes are resolved; numbers, true, false and null
 * come as they are written. FIRN_EFORMAT: not JSON, or beyond JSON_PATH_MAX or JSON_TEXT_MAX;
 * `each` may have seen what stands before. */
typedef void json_each_fn(void *user, const char *path, const char *value, bool string);
FIRN_MUSTUSE int json_each(const char *p, size_t len, json_each_fn *each, void *user);

#endif
