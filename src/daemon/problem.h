/*
 * problem.h - HTTP errors as application/problem+json (RFC 9457): the kind of an error, whose type
 * is stable, and a detail for people. A program lists its kinds in a table of its own.
 */
#ifndef FIRN_DAEMON_PROBLEM_H
#define FIRN_DAEMON_PROBLEM_H

#include "wire/buf.h"

struct problem_kind {
    uint16_t status;
    const char *type, *title; /* the type: "urn:firn:problem:no-such-kind" */
};

/* The header lines of the answer, `more` at their end; 503 asks the client to retry in a second. */
enum { PROBLEM_FIELDS_BUF = 512 };
void problem_fields(const struct problem_kind *k, const char *more, char out[PROBLEM_FIELDS_BUF]);

/* The body. */
void problem_write(struct buf *b, const struct problem_kind *k, const char *detail);

#endif
