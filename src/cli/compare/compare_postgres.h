/*
 * compare_postgres.h - a sequence and an index of PostgreSQL, for firn compare. The objects that it
 * creates (firn_compare_*) are dropped or rolled back. One thread.
 */
#ifndef FIRN_CLI_COMPARE_COMPARE_POSTGRES_H
#define FIRN_CLI_COMPARE_COMPARE_POSTGRES_H

#include "cli/compare/compare_kinds.h"

struct compare_postgres;

/* `url` as libpq takes it. NULL: `why` says what is wrong. */
struct compare_postgres *compare_postgres_open(const char *url, char why[200]);
void compare_postgres_close(struct compare_postgres *p);

/* Call nextval() on one connection for `run_ms`: the duration of each, and the numbers in `ids`,
 * up to `room`. FIRN_EIO: see `why`. */
FIRN_MUSTUSE int compare_postgres_nextval(struct compare_postgres *p, uint64_t run_ms,
                                          struct histogram *latency, uint64_t *ids, uint64_t room,
                                          uint64_t *out_n, char why[200]);

/* Insert rows by primary key (bigint or uuid); the rate, and the size of the index. */
void compare_postgres_index(struct compare_postgres *p, const struct compare_ids *ids,
                            struct compare_index *out);

#endif
