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
    struct firn_client_opts hooks;
};

/* The core of this process; a child of fork() makes its own in its first call. */
FIRN_MUSTUSE int handle_core(struct firn_client *f, struct core **out, struct firn_diag *d);

struct order {        /* what a call asks for */
    struct request q; /* for one ID of the client's kind */
    void *user;
    uint64_t end_ms; /* its deadline */
    bool here;       /* from a block or the generator, not by a request of its own */
};

/* FIRN_EINVAL: the key, the shard or a name. FIRN_ENOTSUP: the kind is not a number. */
FIRN_MUSTUSE int order_read(const struct firn_client *f, const struct firn_client_ask *a,
                            enum request_kind kind, struct order *out, struct firn_diag *d);

/* The same of a caller's struct of any age. `text`: a text, whatever the ask says. */
FIRN_MUSTUSE int order_take(const struct firn_client *f, const struct firn_client_ask *ask,
                            bool text, struct order *out, struct firn_diag *d);

#endif
