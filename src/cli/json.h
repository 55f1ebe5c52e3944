/*
 * json.h - write JSON, value by value, to a stream.
 * Commas and escapes are its business; 64-bit IDs are strings, because JavaScript and jq round
 * numbers above 2^53. `key` is NULL inside arrays and at the top. One thread.
 */
#ifndef FIRN_CLI_JSON_H
#define FIRN_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_OUT_DEPTH_MAX = 8 };

struct json {
    FILE *out; /* borrowed */
    unsigned depth;
    bool more[JSON_OUT_DEPTH_MAX]; /* per depth: something stands there already */
};

void json_init(struct json *j, FILE *out);

/* `bracket` is '{' or '[', for the end '}' or ']'. */
void json_begin(struct json *j, const char *key, char bracket);
void json_end(struct json *j, char bracket);

void json_text(struct json *j, const char *key, const char *text); /* NULL: null */
void json_bytes(struct json *j, const char *key, const char *p, size_t len);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
/* A count, small enough for every reader. */
void json_count(struct json *j, const char *key, int64_t n);
/* A number that may need all 64 bits. */
void json_id(struct json *j, const char *key, uint64_t id);

/* The end of a document: a newline. */
void json_done(struct json *j);

#endif
