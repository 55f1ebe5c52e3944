/*
 * pace.h - decisions of a writer: when the next commit may begin, what still fits into a batch, how
 * long a database that failed is left alone. Pure; any thread.
 */
#ifndef FIRN_AUDITLOG_PACE_H
#define FIRN_AUDITLOG_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch_limits {
    size_t rows, bytes; /* of one commit */
};

/* Whether a request of so many rows and bytes joins a batch that has `rows` and `bytes`. The first
 * one always does: a request is never divided. */
bool batch_fits(const struct batch_limits *l, size_t rows, size_t bytes, size_t more_rows,
                size_t more_bytes);

/* How long to wait before the next commit begins, so that two begin at least `every_ns` apart.
 * `last_ns`: when the last one began; 0: there was none. */
uint64_t pace_wait_ns(uint64_t last_ns, uint64_t every_ns, uint64_t now_ns);

/* The pause before attempt number `failures` + 1 to reach a database: doubles from 50 ms to 1 s. */
uint32_t pace_backoff_ms(uint32_t failures);

#endif
