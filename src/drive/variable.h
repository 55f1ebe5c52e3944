/*
 * variable.h - watched configuration values: the records config/<name>, and blocking calls on them.
 * A value is up to VARIABLE_VALUE_MAX bytes of any text, without NUL. Every change counts `revision` up
 * by one, so "change it if it still is what I read" is one call. A register is never removed; an empty
 * value is one too. The calls are for the thread that owns the store.
 */
#ifndef FIRN_DRIVE_VARIABLE_H
#define FIRN_DRIVE_VARIABLE_H

#include "coord/record.h"
#include "store/store.h"

#define VARIABLE_VALUE_MAX  768
#define VARIABLE_PREFIX     "config/"
#define VARIABLE_PREFIX_LEN 7

struct variable {
    uint64_t revision; /* 1, 2, ... */
    uint64_t at;       /* the writer's Unix ms, for people */
    char by[RECORD_NAME_MAX + 1];
    struct nonce req;
    uint64_t length;
    char value[VARIABLE_VALUE_MAX + 1]; /* with NUL */
};

size_t variable_encode(const struct variable *s, char out[RECORD_TEXT_MAX]);
FIRN_MUSTUSE int variable_parse(const char *p, size_t len, struct variable *out,
                                struct firn_diag *d);
size_t variable_key(const char *name, size_t len, char out[RECORD_KEY_BUF]);

/* FIRN_ENOENT: never set. FIRN_EFORMAT: what stands there is no variable. */
FIRN_MUSTUSE int variable_get(struct firn_store *store, const char *name, struct variable *out,
                              struct firn_diag *d);

#define VARIABLE_ANY_REVISION UINT64_MAX

struct variable_write {
    const char *name, *value;
    size_t value_len;
    const char *by;       /* who writes; "" is fine */
    uint64_t if_revision; /* it must have this one; 0: never been set; or VARIABLE_ANY_REVISION */
    uint64_t unix_ms;
};

/*
 * FIRN_ECONFLICT: it has another revision; *out is what it is. FIRN_EUNKNOWN: the store did not say
 * whether it was written, or it was, or was not, and has been changed since. FIRN_EINVAL: too long, a NUL,
 * or a bad name. On 0, *out is what was written.
 */
FIRN_MUSTUSE int variable_set(struct firn_store *store, const struct variable_write *w,
                              struct variable *out, struct firn_diag *d);

/* Wait up to `timeout_ms` for a revision other than `known`'s (NULL: none is known; then any there is).
 * FIRN_EAGAIN: the time is over. Values that came and went in between are not seen. */
FIRN_MUSTUSE int variable_wait(struct firn_store *store, const char *name,
                               const struct variable *known, uint32_t timeout_ms,
                               struct variable *out, struct firn_diag *d);

#endif
