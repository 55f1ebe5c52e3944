/*
 * shard_map.h - which of the 32 logical shards a user belongs to, and which database a shard is in.
 * The first never changes: it is a part of the data, as the shard stands in every ID. The second is
 * a plain value with a version, written with each row; a map of a later version moves shards
 * between databases. Pure; any thread.
 */
#ifndef FIRN_AUDITLOG_SHARD_MAP_H
#define FIRN_AUDITLOG_SHARD_MAP_H

#include "firn/error.h"
#include "wire/buf.h"

enum { SHARD_BITS = 5, SHARDS = 1 << SHARD_BITS };

struct shard_map { /* a plain value: copy it freely */
    uint64_t version;
    uint8_t database[SHARDS]; /* index of the shard's database */
};

/* Version 1: shards 0, 1, 2 ... are dealt to `databases` in turn. FIRN_ERANGE: none, or more
 * databases than there are shards. */
FIRN_MUSTUSE int shard_map_deal(size_t databases, struct shard_map *out);

static inline uint32_t shard_map_database(const struct shard_map *m, uint32_t shard)
{
    return m->database[shard % SHARDS];
}

/* The shard of a user: the same on every machine and in every version of the program. */
uint32_t shard_of_user(struct slice tenant, struct slice user);

#endif
