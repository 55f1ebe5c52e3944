/*
 * json_read.h - a small strict reader of JSON (RFC 8259) for request bodies.
 * The caller says what it expects next; anything else is FIRN_EFORMAT with a place and a reason. There
 * is no tree and no memory: values go straight where the caller wants them. Bytes are borrowed while
 * the reader is used; it belongs to one thread.
 *
 *     json_start(&j, p, len, &diag);
 *     json_object(&j)
 *     while ((r = json_member(&j, name, sizeof name)) > 0)  ... one value ...
 *     json_finish(&j)
 */
#ifndef FIRN_WIRE_JSON_READ_H
#define FIRN_WIRE_JSON_READ_H

#include "firn/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 8 };

struct json_reader { /* all private */
    const char *start, *p, *end;
    struct firn_diag *diag; /* may be NULL */
    unsigned depth;
    bool fresh[JSON_DEPTH_MAX]; /* no member of this object was read yet */
};

void json_start(struct json_reader *j, const char *p, size_t len, struct firn_diag *diag);

/* Steps into an object. */
FIRN_MUSTUSE int json_object(struct json_reader *j);

/* 1: `name` is the next member's, with a NUL; read its value next. 0: the object ended. Negative: an
 * error. A name that does not fit is an error too: nobody expects it. */
FIRN_MUSTUSE int json_member(struct json_reader *j, char *name, size_t cap);

/* A string in UTF-8 with a NUL, escapes resolved. \u0000 is refused. FIRN_ENOSPC: longer than cap - 1. */
FIRN_MUSTUSE int json_string(struct json_reader *j, char *out, size_t cap, size_t *out_len);

/* A whole number that is not negative, bare or as a string of digits (as IDs are written, because 2^53
 * is where many readers round). 1.0 and 1e3 are refused. FIRN_ERANGE: 2^64 or more. */
FIRN_MUSTUSE int json_u64(struct json_reader *j, uint64_t *out);

/* After the outermost value: only white space may follow. */
FIRN_MUSTUSE int json_finish(struct json_reader *j);

#endif
