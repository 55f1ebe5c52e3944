/* KSUID. The 160-bit number is cut into 7, 10 and 10 base62 digits, each part a 64-bit number. */
#include "firn/ksuid.h"
#include "id/alphabet.h"
#include "id/bytes.h"
#include "id/radix.h"
#include "id/rng_take.h"

enum { HEAD = 7, PART = 10 };
_Static_assert(HEAD + 2 * PART == FIRN_KSUID_TEXT_LEN, "the cut");

#define RADIX_PART 839299365868340224u /* 62^10 */

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

    radix_u128 ab = (radix_u128)a * RADIX_PART + b; /* below 62^17, 102 bits */
    radix_u128 low = (radix_u128)(uint64_t)ab * RADIX_PART + c;
    radix_u128 high = (ab >> 64) * RADIX_PART + (uint64_t)(low >> 64);
    if (high >> 96)
        return FIRN_ERANGE;
    store_be32(out->b, (uint32_t)(high >> 64));
    store_be64(out->b + 4, (uint64_t)high);
    store_be64(out->b + 12, (uint64_t)low);
    return 0;
}

void firn_ksuid_format(const struct firn_ksuid *id, char out[FIRN_KSUID_TEXT_BUF])
{
    static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const struct radix part = RADIX_INIT(RADIX_PART, PART, 4);
    radix_u128 v = (radix_u128)load_be64(id->b + 4) << 64 | load_be64(id->b + 12);
    uint64_t c = radix_cut(load_be32(id->b), &v, &part);
    uint64_t b = radix_cut(0, &v, &part);
    radix_write((uint64_t)v, 62, HEAD, alphabet, out);
    radix_write(b, 62, PART, alphabet, out + HEAD);
    radix_write(c, 62, PART, alphabet, out + HEAD + PART);
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
