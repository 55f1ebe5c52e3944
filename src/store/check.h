/*
 * check.h - checks and comparisons that all engines share. Pure, but for the sleep.
 */
#ifndef FIRN_STORE_CHECK_H
#define FIRN_STORE_CHECK_H

#include "store/store.h"

/* FIRN_EINVAL: the key (or prefix) is longer than `max`. */
FIRN_MUSTUSE int store_check_key(struct firn_slice key, size_t max, struct firn_diag *d);

/* FIRN_EINVAL: more than `max` writes, a key or value is too long, or one writes nothing because
 * it has neither an old value nor a new one. */
FIRN_MUSTUSE int store_check_writes(const struct firn_cas *want, size_t count, size_t max,
                                    struct firn_diag *d);

/* After a read that returned `r`: the register still is as `old` says, where p NULL means
 * absent. */
bool store_unchanged(int r, const struct firn_record *rec, struct firn_slice old);

/* Byte order, in which all engines scan. */
int store_compare(struct firn_slice a, struct firn_slice b);
bool store_begins(struct firn_slice s, struct firn_slice with);

void store_sleep_ms(int64_t ms); /* not at all for 0 and below */

#endif
