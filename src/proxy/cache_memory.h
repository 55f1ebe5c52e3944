/*
 * cache_memory.h - answers in memory by key, least recently used out first, never more bytes than
 * allowed; and who waits for an answer that is being fetched (coalescing: one fetch for many).
 * Time comes in. One thread at a time: the gateway's loops share a cache under a lock, and have a
 * struct cache_flights each.
 */
#ifndef FIRN_PROXY_CACHE_MEMORY_H
#define FIRN_PROXY_CACHE_MEMORY_H

#include "firn/error.h"
#include "proxy/siphash.h"
#include "wire/buf.h"

/* A value that the cache and those who send it share; it does not change. Any thread. */
struct cache_value {
    _Atomic uint32_t refs;
    size_t len;
    char p[];
};

struct cache_value *cache_value_new(size_t len); /* with one reference; NULL: no memory */
struct cache_value *cache_value_ref(struct cache_value *v);
void cache_value_unref(struct cache_value *v); /* NULL is fine */

struct cache_memory;

struct cache_memory_stats {
    uint64_t bytes, entries; /* now; bytes with what an entry itself takes */
    uint64_t hits, misses, stored, evicted, expired;
};

/* At most `bytes_max` in all; an entry above `entry_max` bytes is not taken. FIRN_ENOMEM. */
FIRN_MUSTUSE int cache_memory_new(size_t bytes_max, size_t entry_max, struct siphash_key key,
                                  struct cache_memory **out);
void cache_memory_free(struct cache_memory *c); /* NULL is fine */

/* The value; borrowed until the next call that changes the cache. NULL: none that is fresh. */
struct cache_value *cache_memory_get(struct cache_memory *c, struct slice key, uint64_t now_ms);

/* Keeps the value (a reference of its own) and a copy of the key for ttl_ms, in the place of what
 * the key had. False: too large, or no memory. */
bool cache_memory_put(struct cache_memory *c, struct slice key, struct cache_value *value,
                      uint64_t ttl_ms, uint64_t now_ms);

/* False: the key was not there. */
bool cache_memory_drop(struct cache_memory *c, struct slice key);
void cache_memory_clear(struct cache_memory *c);

void cache_memory_stats(const struct cache_memory *c, struct cache_memory_stats *out);

/* ---- coalescing ---- */

/* A request that waits is a link in its fetch's list; the caller's struct contains it. */
struct cache_waiter {
    struct cache_waiter *next; /* private */
};

struct cache_flights;

/* At most `flights_max` keys at a time, each with at most `waiters_max` requests. FIRN_ENOMEM. */
FIRN_MUSTUSE int cache_flights_new(uint32_t flights_max, uint32_t waiters_max,
                                   struct siphash_key key, struct cache_flights **out);
void cache_flights_free(struct cache_flights *f);

enum cache_flight {
    FLIGHT_FETCH, /* nobody fetches the key: the caller does, and calls cache_flight_end() */
    FLIGHT_WAIT,  /* `w` waits for the one who does */
    FLIGHT_ALONE, /* a bound is reached: fetch, but for this request alone; no cache_flight_end() */
};
enum cache_flight cache_flight_begin(struct cache_flights *f, struct slice key,
                                     struct cache_waiter *w);

/* The fetch ended, well or not: who waited, in order, or NULL. If the answer may not be shared (it
 * is private, or failed) each of them must fetch for itself. */
struct cache_waiter *cache_flight_end(struct cache_flights *f, struct slice key);

/* A request that waits goes away. False: it does not wait for this key. */
bool cache_flight_leave(struct cache_flights *f, struct slice key, struct cache_waiter *w);

#endif
