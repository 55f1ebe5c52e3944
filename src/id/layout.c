/*
 * What can be done with a layout: compose, decompose, time arithmetic, and the rules that make one
 * sound. The text form is in layout_text.c, the table of presets in layout_presets.c.
 */
#include "firn/layout.h"
#include "id/diag.h"

#define EPOCH_MAX_MS INT64_C(253402300799999) /* the end of the year 9999: what the text can say */

static uint64_t low_mask(unsigned width)
{
    return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

static uint64_t field_mask(struct firn_bits b)
{
    return b.width ? low_mask(b.width) << b.shift : 0;
}

const char *firn_field_name(enum firn_field f)
{
    static const char *const names[FIRN_FIELDS] = { "time", "dc", "node", "shard", "seq" };
    return (unsigned)f < FIRN_FIELDS ? names[f] : "?";
}

uint64_t firn_layout_mask(const struct firn_layout *l)
{
    uint64_t mask = 0;
    for (int f = 0; f < FIRN_FIELDS; f++)
        mask |= field_mask(l->field[f]);
    return mask;
}

/* The width of dc, node or shard that is the identity. */
static unsigned identity_width(const struct firn_layout *l)
{
    unsigned width = l->field[FIRN_FIELD_DC].width + l->field[FIRN_FIELD_NODE].width;
    return width ? width : l->field[FIRN_FIELD_SHARD].width;
}

static int check_fields(const struct firn_layout *l, struct firn_diag *diag)
{
    uint64_t seen = 0;
    for (int f = 0; f < FIRN_FIELDS; f++) {
        struct firn_bits b = l->field[f];
        if (b.width > 64 || b.shift + b.width > 64)
            return firn__diag(diag, FIRN_ERANGE, 0, "field %s does not fit into 64 bits",
                              firn_field_name((enum firn_field)f));
        if (seen & field_mask(b))
            return firn__diag(diag, FIRN_ERANGE, 0, "field %s overlaps another field",
                              firn_field_name((enum firn_field)f));
        seen |= field_mask(b);
    }
    return 0;
}

int firn_layout_check(const struct firn_layout *l, int64_t now_unix_ms, struct firn_diag *diag)
{
    if (!l)
        return FIRN_EINVAL;
    int r = check_fields(l, diag);
    if (r)
        return r;
    if (l->field[FIRN_FIELD_TIME].width == 0)
        return firn__diag(diag, FIRN_ERANGE, 0,
                          "there is no time field: add one such as time:41@1ms");
    if (l->tick_us < 1 || l->tick_us > 1000000)
        return firn__diag(diag, FIRN_ERANGE, 0, "the tick must be between 1us and 1s");
    unsigned identity = identity_width(l);
    if (identity == 0 && !(l->flags & FIRN_LAYOUT_DECODE_ONLY))
        return firn__diag(diag, FIRN_ERANGE, 0,
                          "there is no identity: add node, dc or shard, or say ;decode-only");
    if (identity > 32)
        return firn__diag(diag, FIRN_ERANGE, 0, "the identity has %u bits, 32 is the most",
                          identity);
    if (firn_layout_mask(l) >> 63 && !(l->flags & FIRN_LAYOUT_UNSIGNED))
        return firn__diag(
            diag, FIRN_ERANGE, 0,
            "bit 63 is used, so IDs turn negative as int64: keep it unused or say ;unsigned");
    if (l->epoch_ms < 0 || l->epoch_ms > EPOCH_MAX_MS)
        return firn__diag(diag, FIRN_ERANGE, 0, "the epoch must lie in the years 1970 to 9999");
    if (now_unix_ms > 0 && l->epoch_ms > now_unix_ms)
        return firn__diag(diag, FIRN_ERANGE, 0, "the epoch lies in the future");
    return 0;
}

int firn_layout_compose(const struct firn_layout *l, const struct firn_parts *parts,
                        uint64_t *out_id, struct firn_diag *diag)
{
    if (!l || !parts || !out_id)
        return FIRN_EINVAL;
    uint64_t id = 0;
    for (int f = 0; f < FIRN_FIELDS; f++) {
        struct firn_bits b = l->field[f];
        uint64_t value = parts->field[f];
        if (value == 0)
            continue;
        const char *name = firn_field_name((enum firn_field)f);
        if (b.width == 0)
            return firn__diag(diag, FIRN_ERANGE, 0, "the layout has no field %s", name);
        if (value > low_mask(b.width))
            return firn__diag(diag, FIRN_ERANGE, 0, "%s %llu is above %llu, the most in %u bits",
                              name, (unsigned long long)value,
                              (unsigned long long)low_mask(b.width), b.width);
        id |= value << b.shift;
    }
    *out_id = id;
    return 0;
}

int firn_layout_decompose(const struct firn_layout *l, uint64_t id, struct firn_parts *out)
{
    if (!l || !out)
        return FIRN_EINVAL;
    if (id & ~firn_layout_mask(l))
        return FIRN_ERANGE;
    for (int f = 0; f < FIRN_FIELDS; f++) {
        struct firn_bits b = l->field[f];
        out->field[f] = b.width ? id >> b.shift & low_mask(b.width) : 0;
    }
    return 0;
}

uint64_t firn_layout_slots(const struct firn_layout *l)
{
    unsigned width = identity_width(l);
    return width ? UINT64_C(1) << width : 0;
}

uint64_t firn_layout_slot_bits(const struct firn_layout *l, uint64_t slot)
{
    struct firn_bits dc = l->field[FIRN_FIELD_DC], node = l->field[FIRN_FIELD_NODE];
    if (dc.width + node.width == 0) {
        struct firn_bits shard = l->field[FIRN_FIELD_SHARD];
        return shard.width ? (slot & low_mask(shard.width)) << shard.shift : 0;
    }
    uint64_t bits = node.width ? (slot & low_mask(node.width)) << node.shift : 0;
    return bits | (dc.width ? (slot >> node.width & low_mask(dc.width)) << dc.shift : 0);
}

uint64_t firn_layout_ticks(const struct firn_layout *l, int64_t unix_us)
{
    __int128 since = (__int128)unix_us - (__int128)l->epoch_ms * 1000;
    return since < 0 ? 0 : (uint64_t)(since / l->tick_us);
}

int64_t firn_layout_unix_us(const struct firn_layout *l, uint64_t tick)
{
    __int128 us = (__int128)l->epoch_ms * 1000 + (__int128)tick * l->tick_us;
    return us > INT64_MAX ? INT64_MAX : (int64_t)us;
}

int64_t firn_layout_end_us(const struct firn_layout *l)
{
    __int128 ticks = (__int128)1 << l->field[FIRN_FIELD_TIME].width;
    __int128 us = (__int128)l->epoch_ms * 1000 + ticks * l->tick_us;
    return us > INT64_MAX ? INT64_MAX : (int64_t)us;
}

int firn_layout_sortable(const struct firn_layout *l)
{
    struct firn_bits time = l->field[FIRN_FIELD_TIME];
    return firn_layout_mask(l) >> time.shift == low_mask(time.width);
}

/* The range of values that IDs stamped from `now` on can have. */
static void value_range(const struct firn_layout *l, int64_t now_unix_us, uint64_t *lo,
                        uint64_t *hi)
{
    *hi = firn_layout_mask(l);
    *lo = firn_layout_sortable(l)
              ? firn_layout_ticks(l, now_unix_us) << l->field[FIRN_FIELD_TIME].shift
              : 0;
}

/* The smallest value >= v in which no bit of `forbidden` is set; 0 if there is none. */
static uint64_t next_without(uint64_t v, uint64_t forbidden)
{
    while (v & forbidden) {
        int high = 63 - __builtin_clzll(v & forbidden);
        if (high == 63)
            return 0;
        /* Carry above the offending bit; everything below becomes 0. */
        v = ((v >> (high + 1)) + 1) << (high + 1);
        if (v == 0)
            return 0;
    }
    return v;
}

int firn_layout_collide(const struct firn_layout *a, const struct firn_layout *b,
                        int64_t now_unix_us, uint64_t *out_id)
{
    if (now_unix_us >= firn_layout_end_us(a) || now_unix_us >= firn_layout_end_us(b))
        return 0; /* one of them issues nothing any more */
    uint64_t lo_a, hi_a, lo_b, hi_b;
    value_range(a, now_unix_us, &lo_a, &hi_a);
    value_range(b, now_unix_us, &lo_b, &hi_b);
    uint64_t lo = lo_a > lo_b ? lo_a : lo_b, hi = hi_a < hi_b ? hi_a : hi_b;
    uint64_t v = next_without(lo ? lo : 1, ~(firn_layout_mask(a) & firn_layout_mask(b)));
    if (v == 0 || v > hi)
        return 0;
    *out_id = v;
    return 1;
}
