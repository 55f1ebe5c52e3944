/*
 * entry.h - one entry of an audit log as clients send it: {"actor":"…","action":"…","detail":{…}}.
 * Stricter than JSON where PostgreSQL is: what this accepts, a text and a jsonb column take. Pure;
 * any thread.
 */
#ifndef FIRN_AUDITLOG_ENTRY_H
#define FIRN_AUDITLOG_ENTRY_H

#include "firn/error.h"
#include "wire/buf.h"

enum {
    ACTOR_BYTES_MAX = 256,
    ACTION_BYTES_MAX = 128,
    USER_BYTES_MAX = 256,
    KEY_BYTES_MAX = 255,
    /* A short numeral would else become a jsonb number of up to 131,072 digits. */
    EXPONENT_MAX = 308,
};

struct entry {
    size_t actor_len, action_len;
    char actor[ACTOR_BYTES_MAX + 1], action[ACTION_BYTES_MAX + 1]; /* UTF-8 */
    struct slice detail; /* JSON, borrowed from what was read; "{}" where it is missing */
};

/* Reads one object. Actor and action must be there, once, and not be empty; other members than
 * these three are refused. FIRN_EFORMAT, FIRN_ENOSPC (too long): diag says what is wrong. */
FIRN_MUSTUSE int entry_read(struct slice json, struct entry *out, struct firn_diag *diag);

/* Takes the next line that is not blank off `*rest`, without its line end. False at the end. */
bool entry_line_next(struct slice *rest, struct slice *line);

/* A user as it stands in a path, percent-encoded. At least one byte, UTF-8, no control characters;
 * FIRN_EFORMAT, FIRN_ENOSPC. */
FIRN_MUSTUSE int entry_user_read(struct slice segment, char out[USER_BYTES_MAX + 1],
                                 size_t *out_len);

/* An Idempotency-Key: 1 to KEY_BYTES_MAX visible ASCII characters. */
bool entry_key_valid(struct slice key);

#endif
