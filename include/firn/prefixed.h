/*
 * firn/prefixed.h - IDs that say what they are of: ord_01ARZ3NDEKTSV4RRFFQ69G5FAV.
 * A prefix stops an order's ID where a user's was meant, and tells people what a log line is about.
 * This splits and joins the text; the rest belongs to its own format's parser.
 * Pure functions: any thread may call them.
 */
#ifndef FIRN_PREFIXED_H
#define FIRN_PREFIXED_H

#include <stddef.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A prefix is a lower case letter, then up to 15 lower case letters and digits. It has no '_', so
 * the first one in a text ends it: the rest may have more (NanoIDs do). */
#define FIRN_PREFIX_LEN_MAX 16

struct firn_prefixed { /* borrows from the text that was split */
    const char *prefix;
    size_t prefix_len;
    const char *rest; /* not empty; visible ASCII only */
    size_t rest_len;
};

/* FIRN_EFORMAT, with the column that breaks the rule. */
FIRN_API FIRN_MUSTUSE int firn_prefix_check(const char *prefix, size_t len, struct firn_diag *diag);

/* FIRN_EFORMAT: no '_', a prefix against the rule, or a rest that is empty or not visible ASCII. */
FIRN_API FIRN_MUSTUSE int firn_prefixed_split(const char *p, size_t len, struct firn_prefixed *out,
                                              struct firn_diag *diag);

/* Split a text whose prefix is known, into the rest alone. FIRN_EFORMAT, besides the reasons above:
 * another prefix stands there. FIRN_EINVAL: `prefix` itself breaks the rule. */
FIRN_API FIRN_MUSTUSE int firn_prefixed_strip(const char *p, size_t len, const char *prefix,
                                              size_t prefix_len, const char **out_rest,
                                              size_t *out_rest_len, struct firn_diag *diag);

/* Write prefix_rest and a NUL to `out`, its length without the NUL to *out_len. FIRN_EFORMAT: as
 * for split. FIRN_ENOSPC: `cap` is less than prefix_len + rest_len + 2. `out` may not overlap the
 * parts. */
FIRN_API FIRN_MUSTUSE int firn_prefixed_join(const char *prefix, size_t prefix_len,
                                             const char *rest, size_t rest_len, char *out,
                                             size_t cap, size_t *out_len, struct firn_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
