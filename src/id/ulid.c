/*
 * ULID. Text is written and read 40 bits, eight characters, at a time. 26 is no multiple of 8, but
 * its parts are near: the 80 random bits are exactly 16 characters, and the 10 of the time are two
 * groups of eight that overlap in six.
 */
#include "firn/ulid.h"
#include "id/bytes.h"
#include "id/lanes.h"
#include "id/rng_take.h"

#define MASK40 0xffffffffffu

_Static_assert(sizeof(struct firn_ulid_gen) == 32, "ABI: use reserved_ when adding a field");

/* 0123456789ABCDEFGHJKMNPQRSTVWXYZ: seven characters are skipped before A, one each for I, L, O,
 * U. */
static inline lanes to_crockford(lanes v)
{
    return v + '0' + ((v > 9) & ('A' - '9' - 1)) - (v > 17) - (v > 19) - (v > 21) - (v > 26);
}

static inline lanes from_crockford(lanes c, lanes *bad)
{
    lanes upper = c & ~0x20;
    lanes digit = lanes_between(c, '0', '9');
    lanes letter = lanes_between(upper, 'A', 'Z') &
                   ~((upper == 'I') | (upper == 'L') | (upper == 'O') | (upper == 'U'));
    lanes gaps = (upper > 'I') + (upper > 'L') + (upper > 'O') + (upper > 'U');
    lanes_bytes value = (lanes_bytes)upper - ('A' - 10) + (lanes_bytes)gaps;
    *bad |= ~(digit | letter);
    return (digit & (lanes)((lanes_bytes)c - '0')) | (letter & (lanes)value);
}

static inline void store(struct firn_ulid *out, uint64_t hi, uint64_t lo)
{
    store_be64(out->b, hi);
    store_be64(out->b + 8, lo);
}

int firn_ulid_make(uint64_t unix_ms, struct firn_rng *rng, struct firn_ulid *out)
{
    if (!rng || !out)
        return FIRN_EINVAL;
    if (unix_ms > FIRN_ULID_MS_MAX)
        return FIRN_ERANGE;
    lanes_words random = (lanes_words)firn__rng_take_16(
        rng); /* 80 bits of 128: one draw, not two */
    store(out, unix_ms << 16 | (random[0] & 0xffff), random[1]);
    return 0;
}

int firn_ulid_next(struct firn_ulid_gen *g, uint64_t unix_ms, struct firn_rng *rng,
                   struct firn_ulid *out)
{
    if (!g || !rng || !out)
        return FIRN_EINVAL;
    if (unix_ms >= g->fresh_ms_) {
        if (unix_ms > FIRN_ULID_MS_MAX)
            return FIRN_ERANGE;
        lanes_words random = (lanes_words)firn__rng_take_16(rng);
        g->lo_ = random[1];
        g->hi_ = unix_ms << 16 | (random[0] & 0xffff);
        g->fresh_ms_ = unix_ms + 1;
    } else if (++g->lo_ == 0) {
        if ((g->hi_ & 0xffff) == 0xffff) {
            g->lo_--;
            return FIRN_EOVERFLOW;
        }
        g->hi_++;
    }
    store(out, g->hi_, g->lo_);
    return 0;
}

int firn_ulid_fill(struct firn_ulid_gen *g, uint64_t unix_ms, struct firn_rng *rng,
                   struct firn_ulid *ids, size_t n, size_t *out_n)
{
    if (!g || !rng || (!ids && n > 0) || !out_n)
        return FIRN_EINVAL;
    int r = 0;
    size_t done = 0;
    while (done < n && (r = firn_ulid_next(g, unix_ms, rng, &ids[done])) == 0)
        done++;
    if (done == 0 && r)
        return r;
    *out_n = done;
    return 0;
}

int firn_ulid_is_nil(const struct firn_ulid *id)
{
    return (load_be64(id->b) | load_be64(id->b + 8)) == 0;
}

int firn_ulid_parse(const char *p, size_t len, struct firn_ulid *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    if (len != FIRN_ULID_TEXT_LEN)
        return FIRN_EFORMAT;
    lanes bad = { 0 };
    lanes_words time = lanes_gather5(from_crockford(lanes_load_halves(p, p + 2), &bad));
    lanes_words rest = lanes_gather5(from_crockford(lanes_load(p + 10), &bad));
    if (lanes_any(bad))
        return FIRN_EFORMAT;
    if (time[0] >> 38) /* 50 bits of text for 48 of time */
        return FIRN_ERANGE;
    store(out, (time[0] << 10 | (time[1] & 0x3ff)) << 16 | rest[0] >> 24, rest[0] << 40 | rest[1]);
    return 0;
}

void firn_ulid_format(const struct firn_ulid *id, char out[FIRN_ULID_TEXT_BUF])
{
    uint64_t hi = load_be64(id->b), lo = load_be64(id->b + 8), ms = hi >> 16;
    lanes time = to_crockford(lanes_spread5((lanes_words){ ms >> 10, ms & MASK40 }));
    lanes rest = to_crockford(
        lanes_spread5((lanes_words){ (hi & 0xffff) << 24 | lo >> 40, lo & MASK40 }));
    lanes_store_halves(out, out + 2, time);
    lanes_store(out + 10, rest);
    out[FIRN_ULID_TEXT_LEN] = '\0';
}

uint64_t firn_ulid_unix_ms(const struct firn_ulid *id)
{
    return load_be64(id->b) >> 16;
}

const uint8_t *firn_ulid_random(const struct firn_ulid *id)
{
    return id->b + 6;
}

int firn_ulid_cmp(const struct firn_ulid *a, const struct firn_ulid *b)
{
    return memcmp(a->b, b->b, sizeof a->b);
}
