/*
 * request_key.h - the key that a client sends so that its retry gets the same IDs: Idempotency-Key
 * over HTTP, KEY in FIRN.NEXT. A key belongs to the token that it came with (or to the name in the
 * client's certificate), so that no client can read the numbers of another by guessing keys; and to
 * the kind or sequence that it is used for: a sequence knows its latest keys from its own record
 * alone, so a key that two sequences shared would collide. For the loop's thread.
 */
#ifndef FIRN_SERVER_REQUEST_KEY_H
#define FIRN_SERVER_REQUEST_KEY_H

#include "drive/keyed.h"
#include "server/app.h"

enum { REQUEST_KEY_MAX = 255, REQUEST_KEY_IDS_MAX = 20 };

/* The arguments that make a request a different one: not the format of the answer. The same over
 * both protocols. */
struct request_args {
    const char *kind; /* NULL: numbers of a sequence */
    struct slice seq, prefix, name_space, name;
    uint64_t n, shard, length;
};

/* The client: its connection, and for HTTP its Authorization. */
struct request_who {
    struct peer *peer;
    struct slice authorization;
};

/* The caller frees it. FIRN_EINVAL: no key, with the text; FIRN_ENOMEM. */
FIRN_MUSTUSE int request_key_new(struct service_ctx *ctx, struct request_who who, struct slice key,
                                 const struct request_args *args, struct keyed **out,
                                 struct firn_diag *d);

/* IDs that were minted for the key, one after the other. FIRN_ENOSPC: one too many to be kept. */
FIRN_MUSTUSE int request_key_add(struct keyed *k, const char *text, size_t len);

/* The next of the IDs that the key stands for; *at begins at 0. False at the end. */
bool request_key_next(const struct keyed *k, size_t *at, struct slice *out);

#endif
