/*
 * XID. 96 bits are 19 characters and one bit, which the last character carries on top of four
 * zeros: characters 0..15 hold the first 80 bits, 12..19 the last 36 and those zeros.
 */
#include "firn/xid.h"
#include "id/bytes.h"
#include "id/counter24.h"
#include "id/lanes.h"

_Static_assert(sizeof(struct firn_xid_gen) == 24, "ABI: shrink reserved_ when adding a field");

void firn_xid_gen_init(struct firn_xid_gen *g, const uint8_t machine[3], uint16_t pid,
                       uint32_t counter)
{
    memset(g, 0, sizeof *g);
    memcpy(g->machine_, machine, sizeof g->machine_);
    g->pid_ = pid;
    g->counter_ = counter;
    g->left_ = COUNTER24_MAX + 1;
}

int firn_xid_next(struct firn_xid_gen *g, uint64_t unix_ms, struct firn_xid *out)
{
    if (!g || !out)
        return FIRN_EINVAL;
    uint32_t counter;
    int r = counter24_next(unix_ms, &g->second_, &g->left_, &g->counter_, &counter);
    if (r != 0)
        return r;
    uint64_t machine = (uint64_t)g->machine_[0] << 16 | (uint64_t)g->machine_[1] << 8 |
                       g->machine_[2];
    store_be64(out->b, (uint64_t)g->second_ << 32 | machine << 8 | g->pid_ >> 8);
    store_be32(out->b + 8, (uint32_t)g->pid_ << 24 | counter);
    return 0;
}

int firn_xid_parse(const char *p, size_t len, struct firn_xid *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    if (len != FIRN_XID_TEXT_LEN)
        return FIRN_EFORMAT;
    lanes bad = { 0 };
    lanes_words w = lanes_gather5(lanes_from_lower(lanes_load(p), 'v', &bad));
    lanes_words end = lanes_gather5(lanes_from_lower(lanes_load_halves(p + 12, p + 12), 'v', &bad));
    if (lanes_any(bad) || (end[0] & 0xf))
        return FIRN_EFORMAT;
    store_be64(out->b, w[0] << 24 | w[1] >> 16);
    store_be32(out->b + 8, (uint32_t)(end[0] >> 4));
    return 0;
}

void firn_xid_format(const struct firn_xid *id, char out[FIRN_XID_TEXT_BUF])
{
    uint64_t hi = load_be64(id->b), lo = load_be32(id->b + 8);
    uint64_t end = (hi & 0xf) << 36 | lo << 4;
    lanes_words w = { hi >> 24, (hi & 0xffffff) << 16 | lo >> 16 };
    lanes tail = lanes_to_lower(lanes_spread5((lanes_words){ end, end }));
    lanes_store(out, lanes_to_lower(lanes_spread5(w)));
    lanes_store_halves(out + 12, out + 12, tail);
    out[FIRN_XID_TEXT_LEN] = '\0';
}

uint64_t firn_xid_unix_ms(const struct firn_xid *id)
{
    return (uint64_t)load_be32(id->b) * 1000;
}

const uint8_t *firn_xid_machine(const struct firn_xid *id)
{
    return id->b + 4;
}

uint16_t firn_xid_pid(const struct firn_xid *id)
{
    return (uint16_t)(id->b[7] << 8 | id->b[8]);
}

uint32_t firn_xid_counter(const struct firn_xid *id)
{
    return load_be32(id->b + 8) & FIRN_XID_COUNTER_MAX;
}

int firn_xid_cmp(const struct firn_xid *a, const struct firn_xid *b)
{
    return memcmp(a->b, b->b, sizeof a->b);
}
