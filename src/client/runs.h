/*
 * runs.h - numbers as arithmetic runs. What a server mints at once counts up in steps: a block of a hundred
 * thousand Snowflake IDs is some dozens of runs, a block of tickets is one. So blocks cost no memory worth
 * speaking of, and to hand a part of one to a thread is to copy three words.
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

/* Write the numbers out; there is room for all. */
void runs_expand(const struct runs *r, uint64_t *out);

void runs_clear(struct runs *r); /* keeps the memory */
void runs_free(struct runs *r);

#endif
