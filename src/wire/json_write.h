/*
 * json_write.h - writes JSON, value by value, to a struct buf: the only writer in the tree.
 * Commas and escapes are its business: the last byte of the buffer tells whether a comma is due, so
 * there is no state besides the buffer. 64-bit IDs are strings, because JavaScript and jq round
 * numbers above 2^53. `key` is NULL inside arrays and at the top. Any thread.
 */
#ifndef FIRN_WIRE_JSON_WRITE_H
#define FIRN_WIRE_JSON_WRITE_H

#include "wire/buf.h"

/* `bracket` is '{' or '[', for the end '}' or ']'. */
void json_begin(struct buf *b, const char *key, char bracket);
void json_end(struct buf *b, char bracket);

/* A comma where one is due, and `"key":`. A value that the caller writes itself follows. */
void json_key(struct buf *b, const char *key);

/* Strings. Control characters become \u00NN, bytes that are not UTF-8 U+FFFD. */
void json_text(struct buf *b, const char *key, const char *text); /* NULL: null */
void json_bytes(struct buf *b, const char *key, const char *p, size_t len);

void json_bool(struct buf *b, const char *key, bool value);
void json_null(struct buf *b, const char *key);

/* Numbers that every reader keeps exact. */
void json_count(struct buf *b, const char *key, uint64_t n);
void json_signed(struct buf *b, const char *key, int64_t n);

/* A number that may need all 64 bits, as a string. */
void json_id(struct buf *b, const char *key, uint64_t id);

/* "2026-11-16T03:30:00.000Z", from Unix microseconds; null outside the years 1 to 9999. */
void json_time(struct buf *b, const char *key, int64_t unix_us);

#endif
