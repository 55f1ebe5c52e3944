/*
 * The shard of a user is 5 bits of a hash of tenant and user, FNV-1a with a final mix. Rows are
 * found again by it, so it is frozen: tests/unit/auditlog/shard_map.c has its values.
 */
#include "auditlog/shard_map.h"

int shard_map_deal(size_t databases, struct shard_map *out)
{
    if (databases == 0 || databases > SHARDS)
        return FIRN_ERANGE;
    out->version = 1;
    for (size_t i = 0; i < SHARDS; i++)
        out->database[i] = (uint8_t)(i % databases);
    return 0;
}

static uint64_t add_bytes(uint64_t sum, const void *p, size_t len)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ c[i]) * UINT64_C(1099511628211);
    return sum;
}

uint32_t shard_of_user(struct slice tenant, struct slice user)
{
    uint64_t sum = add_bytes(UINT64_C(14695981039346656037), tenant.p, tenant.len);
    sum = add_bytes(sum, "", 1); /* a NUL is in neither text: it keeps the two apart */
    sum = add_bytes(sum, user.p, user.len);
    sum = (sum ^ sum >> 33) * UINT64_C(0xff51afd7ed558ccd);
    sum = (sum ^ sum >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(sum >> (64 - SHARD_BITS));
}
