/* KSUID. The 160-bit number is split into 7, 10 and 10 base62 digits, each part a 64-bit number. */
#include "firn/ksuid.h"
#include "id/bytes.h"
#include "id/lanes.h"
#include "id/radix.h"
#include "id/rng_take.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { HEAD = 7, PART = 10 };
_Static_assert(HEAD + 2 * PART == FIRN_KSUID_TEXT_LEN, "the cut");

#define RADIX_4         14776336u           /* 62^4 */
#define RADIX_8         218340105584896u    /* 62^8 */
#define RADIX_PART      839299365868340224u /* 62^10 */

#define TAIL_RECIPROCAL 17404254149281049612u /* 2^183 / 62^20, rounded down */

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

/* Characters to digits; what is none is marked in *bad. */
static inline lanes from_base62(lanes c, lanes *bad)
{
    lanes folded = c | 0x20;
    lanes digit = (c > '0' - 1) & (c < '9' + 1);
    lanes letter = (folded > 'a' - 1) & (folded < 'z' + 1);
    lanes lower = letter & (c > 'Z');
    *bad |= ~(digit | letter);
    return (lanes)((lanes_bytes)c - '0' - ((lanes_bytes)letter & ('A' - '9' - 1)) -
                   ((lanes_bytes)lower & ('a' - 'Z' - 1)));
}

/* Two times eight digits, the first in the lowest byte, to numbers: neighbours join, then pairs,
 * then fours. */
static inline lanes_words join_16(lanes digits)
{
#if defined(__SSE2__)
    __m128i d = (__m128i)digits;
    __m128i two = _mm_add_epi16(
        _mm_mullo_epi16(_mm_and_si128(d, _mm_set1_epi16(0xff)), _mm_set1_epi16(62)),
        _mm_srli_epi16(d, 8));
    __m128i four = _mm_madd_epi16(two, _mm_set1_epi32(1 << 16 | 62 * 62));
    return (lanes_words)_mm_add_epi64(_mm_mul_epu32(four, _mm_set1_epi32(RADIX_4)),
                                      _mm_srli_epi64(four, 32));
#else
    lanes_words x = (lanes_words)digits;
    x = (x & 0x00ff00ff00ff00ffu) * 62 + (x >> 8 & 0x00ff00ff00ff00ffu);
    x = (x & 0x0000ffff0000ffffu) * (62 * 62) + (x >> 16 & 0x0000ffff0000ffffu);
    return (x & 0xffffffffu) * RADIX_4 + (x >> 32);
#endif
}

int firn_ksuid_parse(const char *p, size_t len, struct firn_ksuid *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    if (len != FIRN_KSUID_TEXT_LEN)
        return FIRN_EFORMAT;
    uint32_t four;
    uint64_t second;
    memcpy(&four, p, sizeof four);
    memcpy(&second, p + 3, sizeof second);
    lanes bad = { 0 }; /* 3 characters behind zeros, and 8; then two times 8 */
    lanes head = (lanes)(lanes_words){ (uint64_t)four << 40 | 0x3030303030u, second };
    lanes_words h = join_16(from_base62(head, &bad));
    lanes_words t = join_16(from_base62(lanes_load(p + 11), &bad));
    if (lanes_any(bad))
        return FIRN_EFORMAT;
    radix_u128 top = (radix_u128)h[0] * RADIX_8 + h[1];
    radix_u128 low16 = (radix_u128)t[0] * RADIX_8 + t[1];
    /* top, of 66 bits, times 62^16, of 96, in halves of 62^8 that keep every product in 128 bits */
    radix_u128 low = (radix_u128)(uint64_t)top * RADIX_8;
    radix_u128 mid = (radix_u128)(uint64_t)(top >> 64) * RADIX_8 + (uint64_t)(low >> 64);
    radix_u128 sum0 = (radix_u128)(uint64_t)low * RADIX_8 + (uint64_t)low16;
    radix_u128 sum1 = (radix_u128)(uint64_t)mid * RADIX_8 + (uint64_t)(sum0 >> 64) +
                      (uint64_t)(low16 >> 64);
    uint64_t high = (uint64_t)(mid >> 64) * RADIX_8 + (uint64_t)(sum1 >> 64);
    if (high >> 32)
        return FIRN_ERANGE;
    store_be32(out->b, (uint32_t)high);
    store_be64(out->b + 4, (uint64_t)sum1);
    store_be64(out->b + 12, (uint64_t)sum0);
    return 0;
}

#if defined(__SSE2__)

/* Two numbers below 62^8 to eight characters each. Every step splits all fields in two at once;
 * each factor is the reciprocal, rounded up at a width where no field of its step shows the
 * error. */
static inline lanes write_16(uint64_t a, uint64_t b)
{
    uint64_t a4 = a / RADIX_4, b4 = b / RADIX_4;
    __m128i x = _mm_set_epi64x((int64_t)(b4 | (b - b4 * RADIX_4) << 32),
                               (int64_t)(a4 | (a - a4 * RADIX_4) << 32));
    const __m128i by_62_2 = _mm_set1_epi32(17877076); /* 2^36 / 62^2 */
    __m128i even = _mm_srli_epi64(_mm_mul_epu32(x, by_62_2), 36);
    __m128i odd = _mm_srli_epi64(_mm_mul_epu32(_mm_srli_epi64(x, 32), by_62_2), 36);
    __m128i q = _mm_or_si128(even, _mm_slli_epi64(odd, 32));
    __m128i rest = _mm_sub_epi16(x, _mm_mullo_epi16(q, _mm_set1_epi32(62 * 62)));
    x = _mm_or_si128(q, _mm_slli_epi32(rest, 16));
    q = _mm_srli_epi16(_mm_mulhi_epu16(x, _mm_set1_epi16(16913)), 4); /* 2^20 / 62 */
    rest = _mm_sub_epi16(x, _mm_mullo_epi16(q, _mm_set1_epi16(62)));
    lanes v = (lanes)_mm_or_si128(q, _mm_slli_epi16(rest, 8));
    return v + '0' + ((v > 9) & ('A' - '9' - 1)) + ((v > 35) & ('a' - 'Z' - 1));
}

#else

static inline lanes write_16(uint64_t a, uint64_t b)
{
    static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    char text[16];
    radix_write(a, 62, 8, alphabet, text);
    radix_write(b, 62, 8, alphabet, text + 8);
    return lanes_load(text);
}

#endif

void firn_ksuid_format(const struct firn_ksuid *id, char out[FIRN_KSUID_TEXT_BUF])
{
    static const struct radix part = RADIX_INIT(RADIX_PART, PART, 4);
    const radix_u128 tail = (radix_u128)RADIX_PART * RADIX_PART;
    radix_u128 v = (radix_u128)load_be64(id->b + 4) << 64 | load_be64(id->b + 12);
    /* The head from the 64 high bits of 160 and a reciprocal: exact, or one too small. The bits are
     * put together from what firn_ksuid_make() stored at once: a load across would wait. */
    uint64_t top = (uint64_t)load_be32(id->b) << 32 | (uint64_t)(v >> 96), c;
    uint64_t head = (uint64_t)((radix_u128)top * TAIL_RECIPROCAL >> 87);
    v -= head * tail; /* modulo 2^128, which is more than two tails */
    if (__builtin_expect(v >= tail, 0)) {
        head++;
        v -= tail;
    }
    uint64_t b = radix_div_2by1((uint64_t)(v >> 60), (uint64_t)v << 4, &part, &c);
    c >>= 4;
    uint64_t b2 = b / RADIX_8, c2 = c / RADIX_8; /* the parts are 7, 2 + 8 and 2 + 8 digits */
    lanes_words rest = (lanes_words)write_16(head, b2 * (62 * 62) + c2);
    lanes_words eights = (lanes_words)write_16(b - b2 * RADIX_8, c - c2 * RADIX_8);
    uint64_t text = rest[0] >> 8;
    memcpy(out, &text, 8);
    text = rest[1] >> 32;
    memcpy(out + 7, &text, 2);
    text >>= 16;
    memcpy(out + 17, &text, 2);
    lanes_store_halves(out + 9, out + 19, (lanes)eights);
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
