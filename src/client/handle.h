/* handle.h - struct firn_client, for the files that define public calls. */
#ifndef FIRN_CLIENT_HANDLE_H
#define FIRN_CLIENT_HANDLE_H

#include "client/internal.h"
#include "id/gen_setup.h"

struct firn_client {
    uint64_t serial;                   /* of the handle, never used again in this process */
    _Atomic(struct firn_shared *) gen; /* leased: the generator, on a page that fork() wipes */
    _Atomic(struct core *) core;
    struct client_opts opts;
};

/* The core of this process; a child of fork() makes its own in its first call. */
FIRN_MUSTUSE int handle_core(struct firn_client *f, struct core **out, struct firn_diag *d);

/* A request for the client's kind. FIRN_EINVAL: the key. FIRN_ENOTSUP: the kind is not a number. */
FIRN_MUSTUSE int handle_request(const struct firn_client *f, enum request_kind kind, uint64_t n,
                                const char *key, struct request *out, struct firn_diag *d);

#endif
