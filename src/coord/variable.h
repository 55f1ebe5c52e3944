/*
 * variable.h - watched configuration values: the records config/<name>, and the steps of a change.
 * A value is up to VARIABLE_VALUE_MAX bytes of any text, without NUL. Every change raises
 * `revision` by one, so "change it if it still is what I read" is one call. A register is never
 * removed; an empty value is a value. Pure: drive/variable.h makes the calls to the store.
 */
#ifndef FIRN_COORD_VARIABLE_H
#define FIRN_COORD_VARIABLE_H

#include "coord/record.h"

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

size_t variable_encode(const struct variable *v, char out[RECORD_TEXT_MAX]);
FIRN_MUSTUSE int variable_parse(const char *p, size_t len, struct variable *out,
                                struct firn_diag *d);
size_t variable_key(const char *name, size_t len, char out[RECORD_KEY_BUF]);

#define VARIABLE_ANY_REVISION UINT64_MAX

struct variable_write {
    const char *name, *value;
    size_t value_len;
    const char *by;       /* the writer's name; "" is fine */
    uint64_t if_revision; /* the revision to replace; 0: never set; or VARIABLE_ANY_REVISION */
    uint64_t unix_ms;
};

/*
 * One change: read the register, replace it, and read again until the outcome is known. One write
 * is outstanding at a time, each with its own nonce. A write that may have landed can only be the
 * successor of the value that it named; so if that value is gone and its successor is not ours,
 * ours never landed and may be sent again. If even the successor is gone, the outcome stays
 * unknown.
 */
#define VARIABLE_ROUNDS_MAX 16 /* writers that may be faster, one after the other */

struct variable_change {
    const struct variable_write *write; /* borrowed */
    struct variable next;               /* the write under way, and its text */
    char text[RECORD_TEXT_MAX];
    size_t len;
    uint32_t rounds;                        /* writes so far */
    struct nonce mine[VARIABLE_ROUNDS_MAX]; /* and their nonces */
    uint64_t open_revision; /* of the writes whose outcome is unknown; 0: there is none */
};

/* FIRN_EINVAL: a bad name or value. */
FIRN_MUSTUSE int variable_change_init(struct variable_change *c, const struct variable_write *w,
                                      struct firn_diag *d);

/* A fresh read of the register answered `result`. True: replace what was read by c->text, then call
 * variable_change_written(). False: the change is over with *out_result, and *out is the register's
 * content for 0 and FIRN_ECONFLICT. `fresh` is a new nonce for each call. */
FIRN_MUSTUSE bool variable_change_read(struct variable_change *c, int result, const char *p,
                                       size_t len, const struct nonce *fresh, struct variable *out,
                                       int *out_result, struct firn_diag *d);

/* The store's answer to the write. True: read again, after a pause if it was FIRN_EUNKNOWN. */
FIRN_MUSTUSE bool variable_change_written(struct variable_change *c, int result,
                                          struct variable *out, int *out_result);

#endif
