/* query.h - the parameters of a list of entries: limit, before, since, until. Pure; any thread. */
#ifndef FIRN_AUDITLOG_QUERY_H
#define FIRN_AUDITLOG_QUERY_H

#include "firn/error.h"
#include "wire/buf.h"

enum { LIST_LIMIT_MAX = 1000, LIST_LIMIT_PRESET = 100, LIST_AGAIN_BUF = 200 };

struct list_query {
    uint32_t limit;
    bool has_before;
    int64_t since_us, until_us; /* of `at`; the second is exclusive */
    uint64_t from, before;      /* IDs that can have such an `at`; the second is exclusive */
    char again[LIST_AGAIN_BUF]; /* "&since=...&until=...", as they were sent: for the next page */
};

/* FIRN_EFORMAT, FIRN_EINVAL: diag says which parameter is wrong. */
FIRN_MUSTUSE int list_query_read(struct slice query, struct list_query *out,
                                 struct firn_diag *diag);

#endif
