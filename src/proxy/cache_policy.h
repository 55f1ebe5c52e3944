/*
 * cache_policy.h - may an answer be cached, for how long, and under which key (RFC 9111, as a
 * shared cache). Decides only: nothing is stored here. Pure; any thread.
 *
 * It errs on the side of not storing. A route must ask for caching, an answer must not forbid it,
 * and what may differ between two users is never shared: neither with Authorization or Set-Cookie,
 * nor with a Vary on a header that is not in the key.
 */
#ifndef FIRN_PROXY_CACHE_POLICY_H
#define FIRN_PROXY_CACHE_POLICY_H

#include "wire/buf.h"

enum { CACHE_VARY_MAX = 8, CACHE_KEY_BYTES_MAX = 2048, CACHE_TTL_MAX_S = 30 * 24 * 3600 };

/* The X-Cache header: what the client is told. */
enum cache_outcome { CACHE_HIT, CACHE_MISS, CACHE_BYPASS };
const char *cache_outcome_name(enum cache_outcome o); /* "HIT" */

struct cache_route { /* as configured; texts borrowed */
    bool on;
    uint32_t ttl_s;            /* for answers that do not say how long they are fresh; 0: those
                                  * are not stored, nor are errors (400 and above) */
    uint32_t ttl_max_s;        /* however long they say; 0: CACHE_TTL_MAX_S */
    bool ignore_cache_control; /* ttl_s for all, whatever Cache-Control says but no-store and
                                  * private */
    bool public_with_auth;     /* requests with Authorization get, and give, shared answers */
    bool plain;                /* requests go on without Accept-Encoding, so a Vary on it says
                                  * nothing */
    bool mints;                /* the route hands out IDs: never cached, and configuring `on` for
                                  * it is an error */
    const char *name;          /* first part of the key: "products" */
    const char *const *vary;   /* lower-case header names whose values belong to the key */
    size_t vary_n;             /* at most CACHE_VARY_MAX */
};

/* NULL if the route can be used, else what is wrong with it. */
const char *cache_route_wrong(const struct cache_route *r);

/* What the decisions need of a request; absent slices for headers that are not there. Values of a
 * header that comes several times are joined with ", ". */
struct cache_request {
    struct slice method, path, query; /* the path normalised, still percent-encoded */
    struct slice authorization, cache_control, pragma, range, upgrade;
    struct slice vary[CACHE_VARY_MAX]; /* of route->vary, in its order */
    bool has_body;
};

struct cache_answer {
    unsigned status;
    struct slice cache_control, expires, date, age, vary, set_cookie, content_range, pragma;
};

/* Whether the cache is asked at all. CACHE_BYPASS: neither looked up nor stored. CACHE_HIT: looked
 * up, and stored on a miss. CACHE_MISS: fetched anew and stored (the client sent no-cache or
 * max-age=0). */
enum cache_outcome cache_may_look(const struct cache_route *route, const struct cache_request *q);

/* Whether the client takes an answer that is so old and stays fresh for so long: its max-age and
 * min-fresh. */
bool cache_may_use(const struct cache_route *route, const struct cache_request *q, uint64_t age_s,
                   uint64_t left_s);
/* It wants what is stored, or 504 (only-if-cached). */
bool cache_only(const struct cache_request *q);

/* For how many seconds the answer may be stored; 0: not at all, and *why (may be NULL) is a word
 * for the log. `now_s` in Unix seconds. */
uint32_t cache_may_store(const struct cache_route *route, const struct cache_request *q,
                         const struct cache_answer *a, int64_t now_s, const char **why);

/* Appends the key: "cache:NAME:REST", and for each of route->vary a part with its value. REST is
 * what follows NAME in the path that the service gets: /products/123 gives "cache:products:123" for
 * the route "products". A path that does not begin with the name is in the key as a whole. All
 * parts are encoded (key.h), so different requests have different keys. A route that passes the
 * client's Host on must have "host" in `vary`. */
void cache_key(struct buf *out, const struct cache_route *route, const struct cache_request *q);

/* Seconds since 1970 of an HTTP date in one of its three forms. False: none. */
bool cache_date(struct slice text, int64_t *out_s);

#endif
