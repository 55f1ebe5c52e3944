/*
 * json_write.h - the pieces of JSON that answers are made of. Appends to a struct buf; any thread.
 */
#ifndef FIRN_WIRE_JSON_WRITE_H
#define FIRN_WIRE_JSON_WRITE_H

#include "wire/buf.h"

/* A quoted string. Bytes that are not UTF-8 become U+FFFD: they come from requests. */
void json_add_string(struct buf *b, const char *p, size_t len);
void json_add_str(struct buf *b, const char *s);

/* `"name":`, with a comma in front unless an object or array begins here. */
void json_add_name(struct buf *b, const char *name);

/* Members: a string, a number, a number that may be beyond 2^53 (as a string), true or false. */
void json_add_member(struct buf *b, const char *name, const char *value);
void json_add_number(struct buf *b, const char *name, uint64_t value);
void json_add_big(struct buf *b, const char *name, uint64_t value);
void json_add_bool(struct buf *b, const char *name, bool value);

/* `"name":"2026-11-16T03:30:00.000Z"`, from Unix microseconds; null outside the years 1 to 9999. */
void json_add_time(struct buf *b, const char *name, int64_t unix_us);

/* A comma unless an object or array begins here. */
void json_add_comma(struct buf *b);

#endif
