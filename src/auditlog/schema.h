/*
 * schema.h - the tables of the audit log in one database: made and changed by numbered steps, each
 * once. For the commands init and retain, which wait; one thread.
 */
#ifndef FIRN_AUDITLOG_SCHEMA_H
#define FIRN_AUDITLOG_SCHEMA_H

#include <stdint.h>

#include "firn/error.h"

/* The number of the last step. */
long schema_version(void);

struct schema_place {
    size_t database, databases; /* which, from 0, of how many */
};

/* Takes all steps that the database has not taken, in one transaction, and makes the partitions.
 * `*out_from`: the version that was there; 0: none. FIRN_ECONFLICT: it was set up with another
 * place; FIRN_EIO, FIRN_ENOTSUP: `diag` says why. */
FIRN_MUSTUSE int schema_init(const char *url, const struct schema_place *place, uint32_t ahead_days,
                             long *out_from, struct firn_diag *diag);

struct schema_retained {
    uint32_t detached; /* partitions */
    uint64_t keys;     /* removed */
};

/* Makes partitions ahead; detaches those whose last day is more than `keep_days` ago (0: none);
 * removes keys that are older than `keep_s`. */
FIRN_MUSTUSE int schema_retain(const char *url, uint32_t ahead_days, uint32_t keep_days,
                               uint64_t keep_s, struct schema_retained *out,
                               struct firn_diag *diag);

#endif
