/*
 * guard.h - permissions and rates: bearer tokens with scopes, and a rate for each client.
 *
 * One struct guard for the process. The settings are in a table that never changes; a reload
 * replaces it by a new one. Each loop has a struct guard_view, which keeps a reference to the table
 * that it saw last and checks before each use for a newer one: no lock, no shared counter. A view
 * belongs to its loop's thread; guard_reload() may be called by any.
 */
#ifndef FIRN_SERVER_GUARD_H
#define FIRN_SERVER_GUARD_H

#include "firn/error.h"
#include "net/service.h"
#include "server/config.h"

#include <stdatomic.h>

struct guard;
struct guard_table;

/* Settings are copied. FIRN_ENOMEM. */
FIRN_MUSTUSE int guard_new(const struct config *c, struct guard **out);

/* After the last view. NULL is fine. */
void guard_free(struct guard *g);

/* Use these settings from now on. A RESP connection whose token is not among them loses it.
 * FIRN_ENOMEM: everything stays as it was. */
FIRN_MUSTUSE int guard_reload(struct guard *g, const struct config *c);

struct service_ctx;

struct guard_view { /* all private */
    struct guard *guard;
    struct guard_table *table;
    const _Atomic uint64_t *version;
    uint64_t seen;
    bool active;     /* there are tokens or a rate */
    bool paid;       /* the request in hand was counted when it was handed over first */
    uint64_t client; /* that was checked last, in the rates */
    void *digest;    /* EVP_MD_CTX */
    void *sha256;    /* EVP_MD: looking it up for every request would cost more than the hash */
};

FIRN_MUSTUSE int guard_view_init(struct guard_view *v, struct guard *g);
void guard_view_done(struct guard_view *v); /* a zeroed one is fine */
void guard_refresh(struct guard_view *v);   /* for guard_on() */

/* Whether anything is guarded; a zeroed view guards nothing. The only cost when it is off. */
static inline bool guard_on(struct guard_view *v)
{
    if (v->version && atomic_load_explicit(v->version, memory_order_acquire) != v->seen)
        guard_refresh(v);
    return v->active;
}

enum guard_what {
    GUARD_MINT_KIND, /* an ID of the kind `name`, other than a ticket */
    GUARD_SEQUENCE,  /* numbers of the sequence `name`, or a look at it */
    GUARD_ADMIN,     /* create the sequence `name` */
    GUARD_OPERATE,   /* change the cluster; `name` is in a token's list of sequences */
    GUARD_DELETE,    /* the same for deleting the sequence `name`, and the token says admin */
    GUARD_LIST,      /* see which sequences there are: any token will do */
};

enum guard_reason {
    GUARD_FINE,
    GUARD_NO_TOKEN,
    GUARD_BAD_TOKEN,
    GUARD_NOT_ALLOWED,
    GUARD_NOT_LOCAL, /* to administer without tokens: not this machine nor one of auth.admins */
    GUARD_NOT_ADMIN, /* to delete: the token does not say so */
    GUARD_TOO_FAST
};

struct guard_refusal {
    enum guard_reason reason;
    uint32_t retry_after_s; /* GUARD_TOO_FAST: at least 1 */
    const char *token;      /* GUARD_NOT_ALLOWED: its name; good until the view's next use */
};

/* Whether `peer` may do that now. An HTTP request shows its token in Authorization (absent: no
 * token; present but not understood: refused, whatever was shown before), a RESP connection in its
 * last AUTH. Each call is one request against the client's rate; the client is the token, else the
 * certificate's name, else the address. GUARD_OPERATE passes with a token, a certificate in
 * auth.admins, or, where there are no tokens, from this machine. FIRN_EAUTH: *why. */
FIRN_MUSTUSE int guard_check_at(struct guard_view *v, struct peer *peer, struct slice authorization,
                                enum guard_what what, struct slice name, uint64_t now_ns,
                                struct guard_refusal *why);

/* A request for n IDs costs as much as n requests for one: what the last check did not count. */
void guard_charge(struct service_ctx *ctx, uint64_t n);

/* Key of the client for shares, not 0: its token, else its certificate's name, else its network. */
uint64_t guard_client(struct service_ctx *ctx, struct peer *peer, struct slice authorization);

/* RESP's AUTH: from now on the connection has this token, or none. `user` is absent, "default" or
 * the token's name. FIRN_ENOTSUP: there are no tokens in the settings. FIRN_EAUTH: *why. */
FIRN_MUSTUSE int guard_auth_at(struct guard_view *v, struct peer *peer, struct slice user,
                               struct slice token, uint64_t now_ns, struct guard_refusal *why);

/* The same, with the time of CLOCK_MONOTONIC. */
FIRN_MUSTUSE int guard_check(struct service_ctx *ctx, struct peer *peer, struct slice authorization,
                             enum guard_what what, struct slice name, struct guard_refusal *why);
FIRN_MUSTUSE int guard_auth(struct service_ctx *ctx, struct peer *peer, struct slice user,
                            struct slice token, struct guard_refusal *why);

/* For struct service: a RESP connection without a token does not idle, where there are tokens. */
bool guard_may_idle(struct service_ctx *ctx, const struct peer *peer);

/* The peer's name: that of its token, or the one in its certificate if there are no tokens
 * (*out_sort says which: 't' or 'c'); else NULL and '-'. Good until the view's next use. */
const char *guard_who(struct service_ctx *ctx, struct peer *peer, struct slice authorization,
                      char *out_sort);

/* Where the peer's token has a limit for the sequences below the entry that lets it use `name`: the
 * limit, and the entry without its '*' in `out`. 0: no limit. */
enum { GUARD_SCOPE_BUF = 129 };
uint64_t guard_scope(struct service_ctx *ctx, struct peer *peer, struct slice authorization,
                     struct slice name, char out[GUARD_SCOPE_BUF]);

/* Answer a refusal, and log it. `name` is what was asked for. */
void guard_refuse_http(struct reply *r, const struct guard_refusal *why, struct slice name);
void guard_refuse_resp(struct reply *r, const struct guard_refusal *why, struct slice name);

#endif
