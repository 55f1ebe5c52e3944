/* Fields of a UUID, and the versions that need no state: 3, 4, 5 and 8. */
#include "firn/uuid.h"
#include "id/bytes.h"
#include "id/md5.h"
#include "id/rng_take.h"
#include "id/sha1.h"
#include "id/uuid_set.h"

enum { TICKS_PER_MS = 10000 };

#define NAMESPACE(last)                                                                         \
    {                                                                                           \
        {                                                                                       \
            0x6b, 0xa7, 0xb8, last, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, \
                0x30, 0xc8                                                                      \
        }                                                                                       \
    }

const struct firn_uuid firn_uuid_nil = { { 0 } };
const struct firn_uuid firn_uuid_max = { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                           0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } };
const struct firn_uuid firn_uuid_ns_dns = NAMESPACE(0x10);
const struct firn_uuid firn_uuid_ns_url = NAMESPACE(0x11);
const struct firn_uuid firn_uuid_ns_oid = NAMESPACE(0x12);
const struct firn_uuid firn_uuid_ns_x500 = NAMESPACE(0x14);

int firn_uuid_cmp(const struct firn_uuid *a, const struct firn_uuid *b)
{
    uint64_t x = load_be64(a->b), y = load_be64(b->b);
    if (x == y) {
        x = load_be64(a->b + 8);
        y = load_be64(b->b + 8);
    }
    return (x > y) - (x < y);
}

int firn_uuid_is_nil(const struct firn_uuid *id)
{
    return (load_be64(id->b) | load_be64(id->b + 8)) == 0;
}

enum firn_uuid_variant firn_uuid_variant(const struct firn_uuid *id)
{
    static const uint8_t by_top_bits[8] = {
        FIRN_UUID_NCS, FIRN_UUID_NCS, FIRN_UUID_NCS,       FIRN_UUID_NCS,
        FIRN_UUID_RFC, FIRN_UUID_RFC, FIRN_UUID_MICROSOFT, FIRN_UUID_FUTURE,
    };
    return (enum firn_uuid_variant)by_top_bits[id->b[8] >> 5];
}

int firn_uuid_version(const struct firn_uuid *id)
{
    return firn_uuid_variant(id) == FIRN_UUID_RFC ? id->b[6] >> 4 : FIRN_ENOTSUP;
}

int firn_uuid_ticks(const struct firn_uuid *id, uint64_t *out_ticks)
{
    if (!id || !out_ticks)
        return FIRN_EINVAL;
    uint64_t high = load_be64(id->b);
    switch (firn_uuid_version(id)) {
    case 1: /* low 32, mid 16, version, high 12 */
        *out_ticks = (high & 0xfff) << 48 | (high >> 16 & 0xffff) << 32 | high >> 32;
        return 0;
    case 6: /* the same 60 bits in order */
        *out_ticks = high >> 16 << 12 | (high & 0xfff);
        return 0;
    case 7:
        *out_ticks = (high >> 16) * TICKS_PER_MS + FIRN_UUID_UNIX_EPOCH_TICKS;
        return 0;
    default:
        return FIRN_ENOTSUP;
    }
}

int firn_uuid_unix_ms(const struct firn_uuid *id, uint64_t *out_ms)
{
    uint64_t ticks;
    if (!out_ms)
        return FIRN_EINVAL;
    int r = firn_uuid_ticks(id, &ticks);
    if (r != 0)
        return r;
    if (ticks < FIRN_UUID_UNIX_EPOCH_TICKS)
        return FIRN_ERANGE;
    *out_ms = (ticks - FIRN_UUID_UNIX_EPOCH_TICKS) / TICKS_PER_MS;
    return 0;
}

static int is_gregorian(const struct firn_uuid *id)
{
    int version = firn_uuid_version(id);
    return version == 1 || version == 6;
}

int firn_uuid_clock_seq(const struct firn_uuid *id, uint16_t *out_seq)
{
    if (!id || !out_seq)
        return FIRN_EINVAL;
    if (!is_gregorian(id))
        return FIRN_ENOTSUP;
    *out_seq = (uint16_t)((id->b[8] & 0x3f) << 8 | id->b[9]);
    return 0;
}

int firn_uuid_node(const struct firn_uuid *id, uint8_t out_node[6])
{
    if (!id || !out_node)
        return FIRN_EINVAL;
    if (!is_gregorian(id))
        return FIRN_ENOTSUP;
    memcpy(out_node, id->b + 10, 6);
    return 0;
}

void firn_uuid_v3(const struct firn_uuid *ns, const void *name, size_t len, struct firn_uuid *out)
{
    uint8_t hash[FIRN__MD5_BYTES];
    firn__md5(ns->b, sizeof ns->b, name, len, hash);
    uuid_set(out, 3, load_be64(hash), load_be64(hash + 8));
}

void firn_uuid_v5(const struct firn_uuid *ns, const void *name, size_t len, struct firn_uuid *out)
{
    uint8_t hash[FIRN__SHA1_BYTES];
    firn__sha1(ns->b, sizeof ns->b, name, len, hash);
    uuid_set(out, 5, load_be64(hash), load_be64(hash + 8));
}

void firn_uuid_v4(struct firn_rng *rng, struct firn_uuid *out)
{
    /* uuid_set() on sixteen bytes as they lie, without turning them into integers: 1 ns less. */
    static const rng_bytes16 keep = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xff,
                                      0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    static const rng_bytes16 set = { 0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 0 };
    rng_bytes16 v = (firn__rng_take_16(rng) & keep) | set;
    memcpy(out->b, &v, sizeof v);
}

void firn_uuid_v4_fill(struct firn_rng *rng, struct firn_uuid *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        firn_uuid_v4(rng, &ids[i]);
}

void firn_uuid_v8(const uint8_t custom[16], struct firn_uuid *out)
{
    uuid_set(out, 8, load_be64(custom), load_be64(custom + 8));
}
