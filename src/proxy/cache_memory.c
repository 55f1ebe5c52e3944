/*
 * A hash table of chains and a ring in the order of use. An entry is one allocation with its key
 * behind it, and a reference to its value. The table has a bucket for each KiB that may be used, so
 * chains stay short without ever growing it.
 */
#include "proxy/cache_memory.h"
#include "platform/assert.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct entry *next;          /* in its bucket */
    struct entry *newer, *older; /* in the ring; of the ring's head: oldest, newest */
    uint64_t hash, until_ms;
    struct cache_value *value;
    size_t key_len;
};

struct cache_memory {
    size_t bytes_max, entry_max, buckets; /* a power of two */
    struct siphash_key key;
    struct entry **bucket;
    struct entry ring;
    struct cache_memory_stats stats;
};

struct cache_value *cache_value_new(size_t len)
{
    struct cache_value *v = malloc(sizeof *v + len);
    if (v) {
        atomic_init(&v->refs, 1);
        v->len = len;
    }
    return v;
}

struct cache_value *cache_value_ref(struct cache_value *v)
{
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    return v;
}

void cache_value_unref(struct cache_value *v)
{
    if (v && atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) == 1)
        free(v);
}

/* The key follows the entry in its allocation. */
static char *bytes_of(const struct entry *e)
{
    return (char *)(e + 1);
}

static size_t power_of_two(size_t n, size_t most)
{
    size_t p = 16;
    while (p < n && p < most)
        p *= 2;
    return p;
}

int cache_memory_new(size_t bytes_max, size_t entry_max, struct siphash_key key,
                     struct cache_memory **out)
{
    struct cache_memory *c = calloc(1, sizeof *c);
    if (!c)
        return FIRN_ENOMEM;
    c->bytes_max = bytes_max;
    c->entry_max = entry_max;
    c->key = key;
    c->buckets = power_of_two(bytes_max / 1024, 1 << 20);
    c->bucket = calloc(c->buckets, sizeof(struct entry *));
    if (!c->bucket) {
        free(c);
        return FIRN_ENOMEM;
    }
    c->ring.newer = c->ring.older = &c->ring;
    *out = c;
    return 0;
}

static size_t size_of(const struct entry *e)
{
    return sizeof *e + e->key_len + sizeof *e->value + e->value->len;
}

static void unlink_ring(struct entry *e)
{
    e->newer->older = e->older;
    e->older->newer = e->newer;
}

static void make_newest(struct cache_memory *c, struct entry *e)
{
    e->older = c->ring.older;
    e->newer = &c->ring;
    e->older->newer = e;
    c->ring.older = e;
}

static struct entry **find(struct cache_memory *c, struct slice key, uint64_t hash)
{
    struct entry **p = &c->bucket[hash & (c->buckets - 1)];
    while (*p && !((*p)->hash == hash && (*p)->key_len == key.len &&
                   memcmp(bytes_of(*p), key.p, key.len) == 0))
        p = &(*p)->next;
    return p;
}

static void drop_at(struct cache_memory *c, struct entry **p)
{
    struct entry *e = *p;
    *p = e->next;
    unlink_ring(e);
    c->stats.bytes -= size_of(e);
    c->stats.entries--;
    cache_value_unref(e->value);
    free(e);
}

static void drop_oldest(struct cache_memory *c)
{
    struct entry *e = c->ring.newer, **p = &c->bucket[e->hash & (c->buckets - 1)];
    firn_assert(e != &c->ring, "bytes=%llu", (unsigned long long)c->stats.bytes);
    while (*p != e)
        p = &(*p)->next;
    drop_at(c, p);
}

struct cache_value *cache_memory_get(struct cache_memory *c, struct slice key, uint64_t now_ms)
{
    struct entry **p = find(c, key, siphash(c->key, key.p, key.len));
    if (*p && (*p)->until_ms <= now_ms) {
        drop_at(c, p);
        c->stats.expired++;
        c->stats.misses++;
        return NULL;
    }
    if (!*p) {
        c->stats.misses++;
        return NULL;
    }
    unlink_ring(*p);
    make_newest(c, *p);
    c->stats.hits++;
    return (*p)->value;
}

bool cache_memory_put(struct cache_memory *c, struct slice key, struct cache_value *value,
                      uint64_t ttl_ms, uint64_t now_ms)
{
    size_t size;
    const uint64_t hash = siphash(c->key, key.p, key.len);
    if (__builtin_add_overflow(key.len, value->len, &size) ||
        __builtin_add_overflow(size, sizeof(struct entry) + sizeof *value, &size) ||
        size > c->entry_max || size > c->bytes_max)
        return false;
    struct entry *e = malloc(sizeof *e + key.len), **p = find(c, key, hash);
    if (*p)
        drop_at(c, p); /* also without memory: what is there now is old */
    if (!e)
        return false;
    *e = (struct entry){ .hash = hash,
                         .until_ms = now_ms + ttl_ms,
                         .value = cache_value_ref(value),
                         .key_len = key.len };
    if (key.len)
        memcpy(bytes_of(e), key.p, key.len);
    while (c->stats.bytes + size > c->bytes_max) {
        drop_oldest(c);
        c->stats.evicted++;
    }
    e->next = c->bucket[hash & (c->buckets - 1)];
    c->bucket[hash & (c->buckets - 1)] = e;
    make_newest(c, e);
    c->stats.bytes += size;
    c->stats.entries++;
    c->stats.stored++;
    return true;
}

bool cache_memory_drop(struct cache_memory *c, struct slice key)
{
    struct entry **p = find(c, key, siphash(c->key, key.p, key.len));
    if (!*p)
        return false;
    drop_at(c, p);
    return true;
}

void cache_memory_clear(struct cache_memory *c)
{
    while (c->ring.newer != &c->ring)
        drop_oldest(c);
}

void cache_memory_stats(const struct cache_memory *c, struct cache_memory_stats *out)
{
    *out = c->stats;
}

void cache_memory_free(struct cache_memory *c)
{
    if (!c)
        return;
    cache_memory_clear(c);
    free(c->bucket);
    free(c);
}

/* ---- coalescing ---- */

struct flight {
    struct flight *next;
    struct cache_waiter *first, **last;
    uint32_t waiters;
    uint64_t hash;
    size_t key_len;
    char key[];
};

struct cache_flights {
    uint32_t flights, flights_max, waiters_max;
    size_t buckets;
    struct siphash_key key;
    struct flight **bucket;
};

int cache_flights_new(uint32_t flights_max, uint32_t waiters_max, struct siphash_key key,
                      struct cache_flights **out)
{
    struct cache_flights *f = calloc(1, sizeof *f);
    if (!f)
        return FIRN_ENOMEM;
    *f = (struct cache_flights){ .flights_max = flights_max,
                                 .waiters_max = waiters_max,
                                 .key = key };
    f->buckets = power_of_two(flights_max, 1 << 16);
    f->bucket = calloc(f->buckets, sizeof(struct flight *));
    if (!f->bucket) {
        free(f);
        return FIRN_ENOMEM;
    }
    *out = f;
    return 0;
}

static struct flight **find_flight(struct cache_flights *f, struct slice key, uint64_t hash)
{
    struct flight **p = &f->bucket[hash & (f->buckets - 1)];
    while (*p && !((*p)->hash == hash && (*p)->key_len == key.len &&
                   memcmp((*p)->key, key.p, key.len) == 0))
        p = &(*p)->next;
    return p;
}

enum cache_flight cache_flight_begin(struct cache_flights *f, struct slice key,
                                     struct cache_waiter *w)
{
    const uint64_t hash = siphash(f->key, key.p, key.len);
    struct flight **p = find_flight(f, key, hash), *new;
    if (*p) {
        if ((*p)->waiters == f->waiters_max)
            return FLIGHT_ALONE;
        (*p)->waiters++;
        w->next = NULL;
        *(*p)->last = w;
        (*p)->last = &w->next;
        return FLIGHT_WAIT;
    }
    new = f->flights < f->flights_max ? malloc(sizeof *new + key.len) : NULL;
    if (!new)
        return FLIGHT_ALONE;
    *new = (struct flight){ .hash = hash, .key_len = key.len };
    memcpy(new->key, key.p, key.len);
    new->last = &new->first;
    *p = new; /* the end of its chain */
    f->flights++;
    return FLIGHT_FETCH;
}

struct cache_waiter *cache_flight_end(struct cache_flights *f, struct slice key)
{
    struct flight **p = find_flight(f, key, siphash(f->key, key.p, key.len)), *gone = *p;
    firn_assert(gone != NULL, "a flight ends that did not begin");
    struct cache_waiter *first = gone->first;
    *p = gone->next;
    f->flights--;
    free(gone);
    return first;
}

bool cache_flight_leave(struct cache_flights *f, struct slice key, struct cache_waiter *w)
{
    struct flight *flight = *find_flight(f, key, siphash(f->key, key.p, key.len));
    if (!flight)
        return false;
    for (struct cache_waiter **p = &flight->first; *p; p = &(*p)->next)
        if (*p == w) {
            *p = w->next;
            if (flight->last == &w->next)
                flight->last = p;
            flight->waiters--;
            return true;
        }
    return false;
}

void cache_flights_free(struct cache_flights *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->buckets; i++)
        while (f->bucket[i]) {
            struct flight *next = f->bucket[i]->next;
            free(f->bucket[i]);
            f->bucket[i] = next;
        }
    free(f->bucket);
    free(f);
}
