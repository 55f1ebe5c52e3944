/*
 * ULID. Text is written and read 40 bits, eight characters, at a time. 26 is no multiple of 8, but
 * its parts are near: the 80 random bits are exactly 16 characters, and the 10 of the time are two
 * groups of eight that overlap in six. There is a path for every machine and one for SSSE3.
 */
#include "firn/ulid.h"
#include "id/bytes.h"
#include "id/lanes.h"
#include "id/rng_take.h"
#include "id/ssse3.h"
#include "id/ulid_text.h"

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

/* One store of all 16 bytes: a reader that soon loads them at once would wait for two. */
static inline void store(struct firn_ulid *out, uint64_t hi, uint64_t lo)
{
    lanes_words bytes = { __builtin_bswap64(hi), __builtin_bswap64(lo) };
    memcpy(out->b, &bytes, sizeof bytes);
}

struct random80 {
    uint64_t low;
    uint16_t high;
};

/* One draw of ten bytes, kept in registers. */
static inline struct random80 take_80(struct firn_rng *rng)
{
    struct random80 v;
    uint8_t *from = firn__rng_begin(rng, 10);
    if (__builtin_expect(from != NULL, 1)) {
        memcpy(&v.low, from, 8);
        memcpy(&v.high, from + 8, 2);
        memset(from, 0, 10);
        if (__builtin_expect(firn__rng_end(rng, 10), 1))
            return v;
    }
    v.low = firn__entropy_u64();
    v.high = (uint16_t)firn__entropy_u64();
    return v;
}

int firn_ulid_make(uint64_t unix_ms, struct firn_rng *rng, struct firn_ulid *out)
{
    if (!rng || !out)
        return FIRN_EINVAL;
    if (unix_ms > FIRN_ULID_MS_MAX)
        return FIRN_ERANGE;
    struct random80 random = take_80(rng);
    /* As they lie, with the time in front. */
    lanes_words v = { __builtin_bswap64(unix_ms << 16) | (uint64_t)random.high << 48, random.low };
    memcpy(out->b, &v, sizeof v);
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
        struct random80 random = take_80(rng);
        g->lo_ = random.low;
        g->hi_ = unix_ms << 16 | random.high;
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

/* The digits of the time, in two groups that overlap, and of the rest, as four numbers of 40
 * bits. */
static inline int join(lanes_words time, lanes_words rest, struct firn_ulid *out)
{
    if (time[0] >> 38) /* 50 bits of text for 48 of time */
        return FIRN_ERANGE;
    store(out, (time[0] << 10 | (time[1] & 0x3ff)) << 16 | rest[0] >> 24, rest[0] << 40 | rest[1]);
    return 0;
}

int firn__ulid_parse_portable(const char *p, struct firn_ulid *out)
{
    lanes bad = { 0 };
    lanes_words time = lanes_gather5(from_crockford(lanes_load_halves(p, p + 2), &bad));
    lanes_words rest = lanes_gather5(from_crockford(lanes_load(p + 10), &bad));
    if (lanes_any(bad))
        return FIRN_EFORMAT;
    return join(time, rest, out);
}

void firn__ulid_format_portable(const struct firn_ulid *id, char *out)
{
    uint64_t hi = load_be64(id->b), lo = load_be64(id->b + 8), ms = hi >> 16;
    lanes time = to_crockford(lanes_spread5((lanes_words){ ms >> 10, ms & MASK40 }));
    lanes rest = to_crockford(
        lanes_spread5((lanes_words){ (hi & 0xffff) << 24 | lo >> 40, lo & MASK40 }));
    lanes_store_halves(out, out + 2, time);
    lanes_store(out + 10, rest);
}

#if defined(__x86_64__)

/* Values with SSSE3_FOUND; A to O and P to Z stand in the columns of ASCII, in either case. */
SSSE3_INLINE __m128i digits_ssse3(__m128i c)
{
    enum { F = SSSE3_FOUND };
    const __m128i row_0 = _mm_setr_epi8(F, F + 1, F + 2, F + 3, F + 4, F + 5, F + 6, F + 7, F + 8,
                                        F + 9, 0, 0, 0, 0, 0, 0);
    const __m128i row_a = _mm_setr_epi8(0, F + 10, F + 11, F + 12, F + 13, F + 14, F + 15, F + 16,
                                        F + 17, 0, F + 18, F + 19, 0, F + 20, F + 21, 0);
    const __m128i row_p = _mm_setr_epi8(F + 22, F + 23, F + 24, F + 25, F + 26, 0, F + 27, F + 28,
                                        F + 29, F + 30, F + 31, 0, 0, 0, 0, 0);
    __m128i upper = _mm_and_si128(c, _mm_set1_epi8((char)0xdf));
    return _mm_or_si128(ssse3_row(c, '0', row_0),
                        _mm_or_si128(ssse3_row(upper, '@', row_a), ssse3_row(upper, 'P', row_p)));
}

/* Digits to two numbers of 40 bits: neighbours join, then pairs, then fours. */
SSSE3_INLINE lanes_words gather_ssse3(__m128i v)
{
    __m128i two = _mm_maddubs_epi16(_mm_and_si128(v, _mm_set1_epi8(31)), _mm_set1_epi16(0x0120));
    __m128i four = _mm_madd_epi16(two, _mm_set1_epi32(1 << 16 | 1 << 10));
    return (lanes_words)_mm_or_si128(_mm_srli_epi64(_mm_slli_epi64(four, 32), 12),
                                     _mm_srli_epi64(four, 32));
}

SSSE3 static int parse_ssse3(const char *p, struct firn_ulid *out)
{
    __m128i time = digits_ssse3((__m128i)lanes_load_halves(p, p + 2));
    __m128i rest = digits_ssse3((__m128i)lanes_load(p + 10));
    if (!ssse3_all_found(_mm_and_si128(time, rest)))
        return FIRN_EFORMAT;
    return join(gather_ssse3(time), gather_ssse3(rest), out);
}

/* Digit k is 5 bits from bit 5k - 2 on, so it lies in two bytes next to each other. AT counts from
 * eight bits before the ULID, which are zero. */
#define AT(k)    (5 * (k) + 6)
#define FIRST(k) (char)(AT(k) < 8 ? -1 : AT(k) / 8 - 1)
#define NEXT(k)  (char)(AT(k) / 8 > 15 ? -1 : AT(k) / 8)
#define PAIR(k)  NEXT(k), FIRST(k)
#define LEFT(k)  (short)(1 << (5 + AT(k) % 8)) /* times this, the digit ends at bit 16 */

#define PAIRS_8(k)                                                                         \
    PAIR(k), PAIR(k + 1), PAIR(k + 2), PAIR(k + 3), PAIR(k + 4), PAIR(k + 5), PAIR(k + 6), \
        PAIR(k + 7)
#define LEFT_8(k)                                                                          \
    LEFT(k), LEFT(k + 1), LEFT(k + 2), LEFT(k + 3), LEFT(k + 4), LEFT(k + 5), LEFT(k + 6), \
        LEFT(k + 7)
#define DIGITS_8(id, k)                                                            \
    _mm_and_si128(_mm_mulhi_epu16(_mm_shuffle_epi8(id, _mm_setr_epi8(PAIRS_8(k))), \
                                  _mm_setr_epi16(LEFT_8(k))),                      \
                  _mm_set1_epi16(31))

SSSE3 static void format_ssse3(const struct firn_ulid *id, char *out)
{
    const __m128i first = _mm_setr_epi8('0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B',
                                        'C', 'D', 'E', 'F');
    const __m128i last = _mm_setr_epi8('G', 'H', 'J', 'K', 'M', 'N', 'P', 'Q', 'R', 'S', 'T', 'V',
                                       'W', 'X', 'Y', 'Z');
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)id->b);
    __m128i a = _mm_packus_epi16(DIGITS_8(v, 0), DIGITS_8(v, 8));
    __m128i b = _mm_packus_epi16(DIGITS_8(v, 16), DIGITS_8(v, 18)); /* 26 is no multiple of 8 */
    lanes_store(out, (lanes)ssse3_chars(a, first, last));
    lanes_store_halves(out + 16, out + 18, (lanes)ssse3_chars(b, first, last));
}

#else

static int parse_ssse3(const char *p, struct firn_ulid *out)
{
    return firn__ulid_parse_portable(p, out);
}

static void format_ssse3(const struct firn_ulid *id, char *out)
{
    firn__ulid_format_portable(id, out);
}

#endif

int firn_ulid_parse(const char *p, size_t len, struct firn_ulid *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    if (len != FIRN_ULID_TEXT_LEN)
        return FIRN_EFORMAT;
    return HAS_SSSE3() ? parse_ssse3(p, out) : firn__ulid_parse_portable(p, out);
}

void firn_ulid_format(const struct firn_ulid *id, char out[FIRN_ULID_TEXT_BUF])
{
    if (HAS_SSSE3())
        format_ssse3(id, out);
    else
        firn__ulid_format_portable(id, out);
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
