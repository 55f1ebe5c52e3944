/* MongoDB's ObjectID: 96 bits, three groups of 32 bits and eight hex digits. */
#include "firn/objectid.h"
#include "id/bytes.h"
#include "id/counter24.h"
#include "id/lanes.h"
#include "id/rng_take.h"

_Static_assert(sizeof(struct firn_objectid_gen) == 24, "ABI: use reserved_ when adding a field");

void firn_objectid_gen_init(struct firn_objectid_gen *g, struct firn_rng *rng)
{
    memset(g, 0, sizeof *g);
    firn__rng_take(rng, &g->random_, sizeof g->random_);
    g->random_ &= 0xffffffffffu;
    firn__rng_take(rng, &g->counter_, sizeof g->counter_);
    g->left_ = COUNTER24_MAX + 1;
}

int firn_objectid_next(struct firn_objectid_gen *g, uint64_t unix_ms, struct firn_objectid *out)
{
    if (!g || !out)
        return FIRN_EINVAL;
    uint32_t counter;
    int r = counter24_next(unix_ms, &g->second_, &g->left_, &g->counter_, &counter);
    if (r != 0)
        return r;
    store_be64(out->b, (uint64_t)g->second_ << 32 | g->random_ >> 8);
    store_be32(out->b + 8, (uint32_t)g->random_ << 24 | counter);
    return 0;
}

/* Upper case letters to lower; nothing else may change, or '\x10' would pass for '0'. */
static inline lanes fold(lanes c)
{
    return c | (lanes_between(c, 'A', 'F') & 0x20);
}

int firn_objectid_parse(const char *p, size_t len, struct firn_objectid *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    if (len != FIRN_OBJECTID_TEXT_LEN)
        return FIRN_EFORMAT;
    lanes bad = { 0 };
    lanes_words w = lanes_gather4(lanes_from_lower(fold(lanes_load(p)), 'f', &bad));
    lanes_words end = lanes_gather4(
        lanes_from_lower(fold(lanes_load_halves(p + 16, p + 16)), 'f', &bad));
    if (lanes_any(bad))
        return FIRN_EFORMAT;
    store_be64(out->b, w[0] << 32 | w[1]);
    store_be32(out->b + 8, (uint32_t)end[0]);
    return 0;
}

void firn_objectid_format(const struct firn_objectid *id, char out[FIRN_OBJECTID_TEXT_BUF])
{
    uint64_t hi = load_be64(id->b), lo = load_be32(id->b + 8);
    lanes tail = lanes_to_lower(lanes_spread4((lanes_words){ lo, lo }));
    lanes_store(out, lanes_to_lower(lanes_spread4((lanes_words){ hi >> 32, hi & 0xffffffffu })));
    lanes_store_halves(out + 16, out + 16, tail);
    out[FIRN_OBJECTID_TEXT_LEN] = '\0';
}

uint64_t firn_objectid_unix_ms(const struct firn_objectid *id)
{
    return (uint64_t)load_be32(id->b) * 1000;
}

const uint8_t *firn_objectid_random(const struct firn_objectid *id)
{
    return id->b + 4;
}

uint32_t firn_objectid_counter(const struct firn_objectid *id)
{
    return load_be32(id->b + 8) & FIRN_OBJECTID_COUNTER_MAX;
}

int firn_objectid_cmp(const struct firn_objectid *a, const struct firn_objectid *b)
{
    return memcmp(a->b, b->b, sizeof a->b);
}
