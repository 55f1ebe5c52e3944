/*
 * pg_array.h - arrays of PostgreSQL in their binary form, as parameters of unnest(): rows travel as
 * one array for each column. The form is what array_recv() reads. Pure; any thread.
 */
#ifndef FIRN_AUDITLOG_PG_ARRAY_H
#define FIRN_AUDITLOG_PG_ARRAY_H

#include "wire/buf.h"

enum { /* of pg_type; these never change */
       PG_BYTEA = 17,
       PG_INT8 = 20,
       PG_TEXT = 25,
       PG_TIMESTAMPTZ = 1184,
       PG_BYTEA_ARRAY = 1001,
       PG_TEXT_ARRAY = 1009,
       PG_INT8_ARRAY = 1016,
       PG_TIMESTAMPTZ_ARRAY = 1185,
};

/* The head of an array of exactly `n` elements; so many pg_array_...() calls follow. With n 0 the
 * array is empty. */
void pg_array_begin(struct buf *b, uint32_t element_type, size_t n);
void pg_array_bytes(struct buf *b, const void *p, size_t len); /* text, bytea */
void pg_array_null(struct buf *b);
void pg_array_int8(struct buf *b, uint64_t v);
void pg_array_time(struct buf *b, int64_t unix_us);

/* Eight bytes of an answer in binary form: an int8, a timestamptz. */
uint64_t pg_read_int8(const char *p);
int64_t pg_read_time(const char *p);

#endif
