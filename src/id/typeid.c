/* TypeID: the last underscore parts type and UUID, so a type may hold underscores of its own. */
#include "firn/typeid.h"
#include "id/bytes.h"
#include "id/crockford_u128.h"

enum { FIRST_DIGIT_MAX = 7 }; /* 26 digits have 130 bits, a UUID 128 */

static int prefix_ok(const char *p, size_t len)
{
    if (len == 0)
        return 1;
    if (len > FIRN_TYPEID_PREFIX_MAX || p[0] == '_' || p[len - 1] == '_')
        return 0;
    for (size_t i = 0; i < len; i++)
        if (!((p[i] >= 'a' && p[i] <= 'z') || p[i] == '_'))
            return 0;
    return 1;
}

static void fill(struct firn_typeid *out, const char *prefix, size_t len)
{
    memset(out->prefix, 0, sizeof out->prefix);
    if (len > 0)
        memcpy(out->prefix, prefix, len);
}

int firn_typeid_parse(const char *p, size_t len, struct firn_typeid *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    if (len < FIRN_TYPEID_SUFFIX_LEN || len > FIRN_TYPEID_TEXT_MAX)
        return FIRN_EFORMAT;
    size_t prefix_len = len - FIRN_TYPEID_SUFFIX_LEN;
    const char *suffix = p + prefix_len;
    if (prefix_len > 0 && (prefix_len == 1 || p[--prefix_len] != '_'))
        return FIRN_EFORMAT;
    if (!prefix_ok(p, prefix_len))
        return FIRN_EFORMAT;

    unsigned seen = 0;
    unsigned __int128 v = crockford_read(firn__crockford_lower, suffix, FIRN_TYPEID_SUFFIX_LEN,
                                         &seen);
    if (seen > 31)
        return FIRN_EFORMAT;
    if (firn__crockford_lower[(uint8_t)suffix[0]] > FIRST_DIGIT_MAX)
        return FIRN_ERANGE;
    store_be64(out->uuid.b, (uint64_t)(v >> 64));
    store_be64(out->uuid.b + 8, (uint64_t)v);
    fill(out, p, prefix_len);
    return 0;
}

size_t firn_typeid_format(const struct firn_typeid *id, char out[FIRN_TYPEID_TEXT_BUF])
{
    size_t n = strnlen(id->prefix, FIRN_TYPEID_PREFIX_MAX);
    unsigned __int128 v = (unsigned __int128)load_be64(id->uuid.b) << 64 |
                          load_be64(id->uuid.b + 8);
    memcpy(out, id->prefix, n);
    if (n > 0)
        out[n++] = '_';
    crockford_write(FIRN__CROCKFORD_LOWER, v, out + n, FIRN_TYPEID_SUFFIX_LEN);
    n += FIRN_TYPEID_SUFFIX_LEN;
    out[n] = '\0';
    return n;
}

int firn_typeid_from_uuid(const char *prefix, size_t prefix_len, const struct firn_uuid *uuid,
                          struct firn_typeid *out)
{
    if ((!prefix && prefix_len > 0) || !uuid || !out)
        return FIRN_EINVAL;
    if (!prefix_ok(prefix, prefix_len))
        return FIRN_EFORMAT;
    fill(out, prefix, prefix_len);
    out->uuid = *uuid;
    return 0;
}

int firn_typeid_new(const char *prefix, size_t prefix_len, struct firn_uuid_v7_gen *g,
                    uint64_t unix_ms, struct firn_rng *rng, struct firn_typeid *out)
{
    struct firn_uuid uuid;
    if ((!prefix && prefix_len > 0) || !out)
        return FIRN_EINVAL;
    if (!prefix_ok(prefix, prefix_len))
        return FIRN_EFORMAT;
    int r = firn_uuid_v7(g, unix_ms, rng, &uuid);
    return r != 0 ? r : firn_typeid_from_uuid(prefix, prefix_len, &uuid, out);
}

int firn_typeid_cmp(const struct firn_typeid *a, const struct firn_typeid *b)
{
    int by_type = strncmp(a->prefix, b->prefix, FIRN_TYPEID_PREFIX_MAX);
    return by_type != 0 ? by_type : firn_uuid_cmp(&a->uuid, &b->uuid);
}
