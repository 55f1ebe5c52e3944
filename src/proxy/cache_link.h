/*
 * cache_link.h - the link `cache`: the gateway's memory, before the Redis that gateways share,
 * before the service.
 *
 *     request ─▶ memory ─▶ does another request fetch this key? it waits for that one
 *                            │ no
 *                            ▼
 *                          Redis ─▶ service ─▶ the answer is kept, and given to those who wait
 *
 * The key in Redis is what operators see and delete: cache:products:123. What it does not say, and
 * an answer may depend on all the same, is the identity (service, scheme, Host, forwarded host): it
 * is a part of the key in memory, which stands in the value, too; a value with another one is a
 * miss. So no Host that a client makes up can put its answer before others.
 */
#ifndef FIRN_PROXY_CACHE_LINK_H
#define FIRN_PROXY_CACHE_LINK_H

#include "proxy/cached.h"
#include "proxy/call.h"

/* The link's functions, for chain.c. */
enum link_result cache_request(struct call *c);
void cache_answer(struct call *c, struct answer *a);
void cache_done(struct call *c);
void cache_metrics(struct app *a, const struct plan *p, struct metrics *m);
void cache_status(struct app *a, const struct plan *p, struct buf *b);

/* Before the loops run, and after them. */
FIRN_MUSTUSE int cache_open(struct app *a, const struct config *c);
void cache_close(struct app *a);

/* --- between cache_link.c, cache_answer.c and cache_stats.c --- */

struct cache { /* of a loop */
    struct cache_flights *flights;
    size_t entry_max, kept; /* bytes: of an answer; of answers that are being fetched */
};

/* In the memory of all loops. What is found has a reference for the caller. */
struct cache_value *cache_find(struct app *a, struct slice key);
void cache_put(struct app *a, struct slice key, struct cache_value *v, uint64_t ttl_ms);

struct redis_look;

struct cache_call {             /* a request on a cached route */
    struct cache_waiter waiter; /* first */
    struct call *c;
    struct cache_request q;
    struct slice if_none_match;
    struct buf key;                  /* in memory: that of Redis, then the identity */
    size_t shared;                   /* bytes of it: of the key in Redis */
    bool stores, only, leads, waits; /* only: what is kept, or 504 */
    struct alarm wait;
    struct redis_look *look;
    struct cache_value *value; /* being sent */
    size_t sent;
    char age[24];

    struct call_filter tee; /* keeps what passes */
    bool keeping;
    unsigned status;
    int64_t stored_ms, fresh_s;
    uint32_t age_s;
    struct buf lines, body;
};

void cache_free(struct cache *s); /* NULL is fine */

uint64_t cache_now_ms(void); /* Unix ms: gateways share it, and tests move it */

static inline struct slice cache_memory_key(const struct cache_call *s)
{
    return (struct slice){ s->key.p, s->key.len };
}

/* Answers with the value, if it may be used for this request. False: it may not. */
bool cache_serve(struct cache_call *s, struct cache_value *v);

/* The fetch that others wait for is over: with an answer for them, or without; `again`: the next of
 * them fetches, otherwise each does for itself. */
void cache_lead_ends(struct cache_call *s, struct cache_value *v, bool again);

/* The fields of a message as cache_policy.h wants them. */
struct slice cache_field(struct call *c, const struct fields *f, const char *name);

#endif
