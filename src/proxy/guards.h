/*
 * guards.h - what a plan knows about tokens and rates: the keys that tokens are verified with, the
 * rules that requests are counted by, and which of them each route asks for. The links that use
 * them are link_jwt.c and link_limit.c.
 *
 * Made and watched by the main thread; read by all loops. Key files are read again when they
 * change: what a file with an error says is not used, the keys before stay in force.
 */
#ifndef FIRN_PROXY_GUARDS_H
#define FIRN_PROXY_GUARDS_H

#include "proxy/config.h"
#include "proxy/jwt.h"
#include "proxy/limit.h"
#include "proxy/text_file.h"

#include <pthread.h>
#include <stdatomic.h>

struct token_keys { /* constant once read */
    _Atomic uint32_t refs;
    struct jwks set;
};
void token_keys_unref(struct token_keys *k); /* NULL is fine */
/* Whether the token's file can be used. */
FIRN_MUSTUSE int token_keys_check(const struct config_token *c, struct firn_diag *diag);

struct token {
    const struct config_token *conf;
    struct jwt_rules rules;      /* without stats, which are a loop's */
    pthread_mutex_t lock;        /* guards keys and error */
    struct token_keys *keys;     /* in force */
    char error[192];             /* why newer keys are not in force, or "" */
    _Atomic uint64_t generation; /* of the keys */
    struct file_look read, last; /* of the file; by the main thread */
    _Atomic uint64_t key_errors; /* files that were refused */
};

/* The keys in force, with a reference; *out_generation tells them from others. */
struct token_keys *token_keys_take(struct token *t, uint64_t *out_generation);

enum rate_by { RATE_BY_ADDRESS, RATE_BY_HEADER, RATE_BY_USER };

struct rate {
    const struct config_rate *conf;
    struct limit_rule rule;
    uint32_t id; /* in the table of this process: the same as long as the rule is */
    enum rate_by by;
    const char *header; /* RATE_BY_HEADER: lower case */
    char args[LIMIT_SCRIPT_ARGS][LIMIT_ARG_BUF];
    _Atomic uint64_t passed, limited, away; /* away: decided without Redis, which is configured */
};

struct route_guard {
    struct token *token; /* or NULL */
    struct rate *rate[CONFIG_ROUTE_RATES_MAX];
    size_t rates_n, first_n; /* those before the token is looked at come first */
};

struct guards {
    struct token *token; /* in the order of config.tokens */
    struct rate *rate;   /* ... of config.rates */
    struct route_guard *route;
    size_t tokens_n, rates_n;
    char **claim; /* names of headers that clients may not send, in lower case with dashes */
    size_t claims_n;
};

/* `c` is borrowed. Keys whose file has an error are those of `old` (or NULL), if it has the same
 * token with the same file. FIRN_EINVAL: there are none. */
FIRN_MUSTUSE int guards_new(const struct config *c, const struct guards *old, struct guards **out,
                            struct firn_diag *diag);
void guards_free(struct guards *g); /* NULL is fine */

/* By the main thread, now and then: read the key files that have changed. */
void guards_watch(struct guards *g);

#endif
