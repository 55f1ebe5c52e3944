/*
 * runs.h - numbers as arithmetic runs.
 * The numbers that a server mints at once count up in steps: a block of a hundred thousand
 * Snowflake IDs is a few dozen runs, a block of tickets is one. So blocks need little memory, and a
 * slice of one is three words to copy.
 */
#ifndef FIRN_CLIENT_RUNS_H
#define FIRN_CLIENT_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

struct run {
    uint64_t first, step, count;
};

struct runs { /* zeroed: none */
    struct run *v;
    size_t n, cap;
    uint64_t numbers; /* of all runs together */
};

/* FIRN_ENOMEM; then nothing was added. */
FIRN_MUSTUSE int runs_add(struct runs *r, uint64_t number);
FIRN_MUSTUSE int runs_add_run(struct runs *r, struct run run);

/* Writes all numbers to `out`, which has room for them. */
void runs_expand(const struct runs *r, uint64_t *out);

void runs_clear(struct runs *r); /* keeps the memory */
void runs_free(struct runs *r);

#endif
