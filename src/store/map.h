/*
 * map.h - the registers in memory: keys in byte order, each with its value. What the memory store
 * is, and what every member of a Raft cluster holds. A change is a compare-and-swap, all of a batch
 * or none where memory is short, so two maps that were given the same changes in the same order are
 * equal. Belongs to one thread.
 */
#ifndef FIRN_STORE_MAP_H
#define FIRN_STORE_MAP_H

#include "store/store.h"

#define MAP_KEY_MAX \
    (STORE_KEY_MAX + 64) /* a key, and a name in front of it that keeps users apart */

struct map_cell {
    size_t key_len, len;
    char bytes[]; /* the key, then the value */
};

struct map {                /* all zero is an empty one */
    struct map_cell **cell; /* by key */
    size_t count, room;
};

void map_done(struct map *m); /* empty again */

/* The first register at or behind `key`; m->count if there is none. *found: it is `key` itself. */
size_t map_find(const struct map *m, struct firn_slice key, bool *found);

static inline struct firn_slice map_key(const struct map *m, size_t i)
{
    return firn_slice(m->cell[i]->bytes, m->cell[i]->key_len);
}

static inline struct firn_slice map_value(const struct map *m, size_t i)
{
    return firn_slice(m->cell[i]->bytes + m->cell[i]->key_len, m->cell[i]->len);
}

/* As firn_store_ops.cas_many. FIRN_EINVAL: a key or value is too long; FIRN_ENOMEM: then nothing
 * changed. */
FIRN_MUSTUSE int map_cas(struct map *m, const struct firn_cas *want, size_t count, int *result);

/* The methods of a store on a map; the caller's lock, if there is one, is held. */
FIRN_MUSTUSE int map_read(const struct map *m, struct firn_slice key, struct firn_record *out);
FIRN_MUSTUSE int map_scan(const struct map *m, struct firn_slice prefix, struct firn_slice after,
                          firn_record_fn *each, void *user);

#endif
