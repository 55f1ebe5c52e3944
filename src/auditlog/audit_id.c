/* The fields of a row's ID. Tested in tests/unit/auditlog/audit_id.c, against firn/layout.h. */
#include "auditlog/audit_id.h"
#include "id/civil.h"
#include "wire/http_line.h"

enum { SHARD_SHIFT = 17, TIME_SHIFT = 22, TIME_BITS = 41 };

#define EPOCH_MS     INT64_C(1609459200000) /* 2021-01-01 */
#define PLAUSIBLE_MS (INT64_C(24) * 3600 * 1000)

uint32_t audit_id_shard(uint64_t id)
{
    return (uint32_t)(id >> SHARD_SHIFT) % SHARDS;
}

int64_t audit_id_unix_ms(uint64_t id)
{
    return EPOCH_MS + (int64_t)(id >> TIME_SHIFT);
}

uint64_t audit_id_floor(int64_t unix_ms)
{
    if (unix_ms <= EPOCH_MS)
        return 0;
    uint64_t ticks = (uint64_t)(unix_ms - EPOCH_MS);
    return ticks >> TIME_BITS ? AUDIT_ID_MAX : ticks << TIME_SHIFT;
}

bool audit_id_plausible(uint64_t id, uint32_t shard, int64_t now_unix_ms)
{
    int64_t off = audit_id_unix_ms(id) - now_unix_ms;
    return id <= AUDIT_ID_MAX && audit_id_shard(id) == shard && off < PLAUSIBLE_MS &&
           off > -PLAUSIBLE_MS;
}

int audit_id_read(struct slice text, uint64_t *out)
{
    uint64_t id;
    int r = text.len > 0 && text.p ? http_u64(text, AUDIT_ID_MAX, &id) : FIRN_EFORMAT;
    if (r == 0 && id == 0)
        r = FIRN_ERANGE;
    if (r == 0)
        *out = id;
    return r;
}

uint64_t legacy_id(int64_t unix_ms)
{
    int64_t s = unix_ms / 1000;
    int64_t days = firn__unix_to_days(s);
    struct firn__date d = firn__date_from_days(days);
    uint64_t left = (uint64_t)(s - days * FIRN__DAY_S);
    uint64_t n = (uint64_t)d.year * 10000 + d.month * 100 + d.day;
    n = n * 1000000 + left / 3600 * 10000 + left / 60 % 60 * 100 + left % 60;
    return n * 1000 + (uint64_t)(unix_ms % 1000);
}
