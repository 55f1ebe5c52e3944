/*
 * counted.h - a store around a store, which counts its calls by result and how long they took: for
 * metrics. It promises what the inner one does (store.h).
 */
#ifndef FIRN_STORE_COUNTED_H
#define FIRN_STORE_COUNTED_H

#include "store/store.h"
#include "wire/latency.h"

/* Writes of one register or of several in a transaction are one call; wait() is not counted. */
enum store_op { STORE_READ, STORE_WRITE, STORE_SCAN, STORE_OPS_N };
enum store_result {
    STORE_OK,       /* of several registers, each may have had a conflict */
    STORE_ABSENT,   /* there is no such register */
    STORE_CONFLICT, /* it held another value */
    STORE_UNKNOWN,  /* the write may have happened */
    STORE_FAILED,
    STORE_RESULTS_N
};

struct store_counts { /* zeroed at first; the store's thread adds, any thread reads */
    uint64_t calls[STORE_OPS_N][STORE_RESULTS_N];
    struct latency took[STORE_OPS_N];
};

/* `inner` is transferred on success, `counts` borrowed. FIRN_ENOMEM. */
FIRN_MUSTUSE int store_counted_new(struct firn_store *inner, struct store_counts *counts,
                                   struct firn_store **out);

#endif
