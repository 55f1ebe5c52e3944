/*
 * variable.h - blocking calls on configuration values (coord/variable.h).
 * For the thread that owns the store.
 */
#ifndef FIRN_DRIVE_VARIABLE_H
#define FIRN_DRIVE_VARIABLE_H

#include "coord/variable.h"
#include "store/store.h"

/* FIRN_ENOENT: never set. FIRN_EFORMAT: the register's content is no variable. */
FIRN_MUSTUSE int variable_get(struct firn_store *store, const char *name, struct variable *out,
                              struct firn_diag *d);

/*
 * FIRN_ECONFLICT: it has another revision, which is in *out. FIRN_EUNKNOWN: the store did not say
 * whether it was written, or it was, or was not, and has been changed since. FIRN_EINVAL: too long,
 * a NUL, or a bad name. On 0, *out is what was written.
 */
FIRN_MUSTUSE int variable_set(struct firn_store *store, const struct variable_write *w,
                              struct variable *out, struct firn_diag *d);

/* Wait up to `timeout_ms` for a revision other than `known`'s (NULL: any revision). FIRN_EAGAIN:
 * the time is over. Values that were set and replaced in between are not seen. */
FIRN_MUSTUSE int variable_wait(struct firn_store *store, const char *name,
                               const struct variable *known, uint32_t timeout_ms,
                               struct variable *out, struct firn_diag *d);

#endif
