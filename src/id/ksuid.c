/*
 * KSUID. The 160-bit number is cut into 7, 10 and 10 base62 digits, each part a 64-bit number. Writing
 * cuts those on into pairs of digits, which fit lanes of 16 bits, and then turns sixteen digits at once
 * into characters.
 */
#include "firn/ksuid.h"
#include "id/alphabet.h"
#include "id/bytes.h"
#include "id/lanes.h"
#include "id/radix.h"
#include "id/rng_take.h"

enum { HEAD = 7, PART = 10 };
_Static_assert(HEAD + 2 * PART == FIRN_KSUID_TEXT_LEN, "the cut");

#define POW2  3844u
#define POW4  14776336u
#define POW8  218340105584896u
#define POW10 839299365868340224u

int firn_ksuid_make(uint64_t unix_ms, struct firn_rng *rng, struct firn_ksuid *out)
{
    if (!rng || !out)
        return FIRN_EINVAL;
    uint64_t s = unix_ms / 1000 - FIRN_KSUID_EPOCH_S; /* wraps to a huge number before the epoch */
    if (s > UINT32_MAX)
        return FIRN_ERANGE;
    store_be32(out->b, (uint32_t)s);
    firn__rng_take(rng, out->b + 4, FIRN_KSUID_PAYLOAD_BYTES);
    return 0;
}

/* `n` digits to a number; what is not a digit sets the top bit of *bad. */
static inline uint64_t read_part(const char *p, int n, uint64_t *bad)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) {
        uint64_t digit = alphabet_digit(firn__base62_digits, p[i]);
        *bad |= digit;
        v = v * 62 + digit;
    }
    return v;
}

int firn_ksuid_parse(const char *p, size_t len, struct firn_ksuid *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    if (len != FIRN_KSUID_TEXT_LEN)
        return FIRN_EFORMAT;
    uint64_t bad = 0;
    uint64_t a = read_part(p, HEAD, &bad);
    uint64_t b = read_part(p + HEAD, PART, &bad);
    uint64_t c = read_part(p + HEAD + PART, PART, &bad);
    if (bad >> 63)
        return FIRN_EFORMAT;

    radix_u128 ab = (radix_u128)a * POW10 + b; /* below 62^17, 102 bits */
    radix_u128 low = (radix_u128)(uint64_t)ab * POW10 + c;
    radix_u128 high = (ab >> 64) * POW10 + (uint64_t)(low >> 64);
    if (high >> 96)
        return FIRN_ERANGE;
    store_be32(out->b, (uint32_t)(high >> 64));
    store_be64(out->b + 4, (uint64_t)high);
    store_be64(out->b + 12, (uint64_t)low);
    return 0;
}

/* Four digits as two pairs, the first in the lower 16 bits. */
static inline uint64_t two_pairs(uint32_t v)
{
    uint32_t first = v / POW2;
    return first | (v - first * POW2) << 16;
}

static inline uint64_t four_pairs(uint64_t v)
{
    uint32_t first = (uint32_t)(v / POW4);
    return two_pairs(first) | two_pairs((uint32_t)(v - (uint64_t)first * POW4)) << 32;
}

/* Eight pairs to sixteen characters. */
static inline lanes pairs_to_text(uint64_t low, uint64_t high)
{
    typedef uint16_t pairs __attribute__((vector_size(16)));
    pairs v = (pairs)(lanes_words){ low, high };
    pairs first = v / 62;
    lanes digits = (lanes)(first | (v - first * 62) << 8);
    return digits + '0' + ((digits > 9) & ('A' - '9' - 1)) + ((digits > 35) & ('a' - 'Z' - 1));
}

void firn_ksuid_format(const struct firn_ksuid *id, char out[FIRN_KSUID_TEXT_BUF])
{
    static const struct radix part = RADIX_INIT(POW10, PART, 4);
    radix_u128 v = (radix_u128)load_be64(id->b + 4) << 64 | load_be64(id->b + 12);
    uint64_t c = radix_cut(load_be32(id->b), &v, &part);
    uint64_t b = radix_cut(0, &v, &part);
    uint64_t a = (uint64_t)v;

    /* a: the first digit and pairs 1..3, b: pairs 4..8, c: pairs 9..13 */
    uint64_t a3 = a / POW4, b2 = b / POW8, c2 = c / POW8, first = a3 / POW2;
    uint64_t pair1_4 = (a3 - first * POW2) | two_pairs((uint32_t)(a - a3 * POW4)) << 16 | b2 << 48;
    uint64_t pair5_8 = four_pairs(b - b2 * POW8);
    uint64_t pair10_13 = four_pairs(c - c2 * POW8);
    out[0] = (char)(first + (first < 10 ? '0' : first < 36 ? 'A' - 10 : 'a' - 36));
    lanes_store(out + 1, pairs_to_text(pair1_4, pair5_8));
    lanes_store(out + 11, pairs_to_text(pair5_8 >> 16 | c2 << 48, pair10_13));
    out[FIRN_KSUID_TEXT_LEN] = '\0';
}

uint64_t firn_ksuid_unix_ms(const struct firn_ksuid *id)
{
    return ((uint64_t)load_be32(id->b) + FIRN_KSUID_EPOCH_S) * 1000;
}

const uint8_t *firn_ksuid_payload(const struct firn_ksuid *id)
{
    return id->b + 4;
}

int firn_ksuid_cmp(const struct firn_ksuid *a, const struct firn_ksuid *b)
{
    return memcmp(a->b, b->b, sizeof a->b);
}
