/*
 * UUIDs as text. Both ways run on vectors of sixteen bytes in the compilers' own vector types: on
 * x86-64 they become SSE2, which every such machine has, elsewhere what is there. Reading has a
 * second path for SSSE3. Tested in tests/unit/id/uuid.c.
 */
#include "firn/uuid.h"
#include "id/bytes.h"
#include "id/ssse3.h"
#include "id/uuid_text.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint16_t words8 __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

enum { HEX_LEN = 32 };

static inline uint32_t load32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Two digits in 16 bits to one byte in their low half; `*ok` loses bits where one is no digit. */
static inline words8 hex_pairs(bytes16 c, bytes16 *ok)
{
    bytes16 digit = c - '0', letter = (c | 0x20) - 'a';
    bytes16 is_digit = (bytes16)(digit < 10), is_letter = (bytes16)(letter < 6);
    *ok &= is_digit | is_letter;
    words8 nibbles = (words8)((digit & is_digit) | ((letter + 10) & is_letter));
    return (nibbles << 4 | nibbles >> 8) & 0xff; /* the first character is the low byte */
}

static inline int hex_to_uuid(halves first, halves second, struct firn_uuid *out)
{
    bytes16 ok = ~(bytes16){ 0 };
    bytes16 a = (bytes16)hex_pairs((bytes16)first, &ok);
    bytes16 b = (bytes16)hex_pairs((bytes16)second, &ok);
    halves all = (halves)ok;
    if ((all[0] & all[1]) != UINT64_MAX)
        return FIRN_EFORMAT;
    a = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    memcpy(out->b, &a, sizeof out->b);
    return 0;
}

int firn__uuid_parse_portable(const char *p, struct firn_uuid *out)
{
    if (p[8] != '-' || p[13] != '-' || p[18] != '-' || p[23] != '-')
        return FIRN_EFORMAT;
    halves first = { load64(p), load32(p + 9) | (uint64_t)load32(p + 14) << 32 };
    halves second = { load32(p + 19) | (uint64_t)load32(p + 24) << 32, load64(p + 28) };
    return hex_to_uuid(first, second, out);
}

#if defined(__x86_64__)

SSSE3_INLINE __m128i load_ssse3(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Values with SSSE3_FOUND. */
SSSE3_INLINE __m128i digits_ssse3(__m128i c)
{
    enum { F = SSSE3_FOUND };
    const __m128i row_0 = _mm_setr_epi8(F, F + 1, F + 2, F + 3, F + 4, F + 5, F + 6, F + 7, F + 8,
                                        F + 9, 0, 0, 0, 0, 0, 0);
    const __m128i row_a = _mm_setr_epi8(0, F + 10, F + 11, F + 12, F + 13, F + 14, F + 15, 0, 0, 0,
                                        0, 0, 0, 0, 0, 0);
    __m128i upper = _mm_and_si128(c, _mm_set1_epi8((char)0xdf));
    return _mm_or_si128(ssse3_row(c, '0', row_0), ssse3_row(upper, '@', row_a));
}

SSSE3_INLINE __m128i bytes_ssse3(__m128i digits)
{
    return _mm_maddubs_epi16(_mm_and_si128(digits, _mm_set1_epi8(15)), _mm_set1_epi16(0x0110));
}

/* Characters 0-15, 8-23 and 20-35; all four hyphens are in the middle one. */
SSSE3 static int parse_ssse3(const char *p, struct firn_uuid *out)
{
    enum { HYPHENS = 1 | 1 << 5 | 1 << 10 | 1 << 15 };
    __m128i a = load_ssse3(p), b = load_ssse3(p + 8), c = load_ssse3(p + 20);
    int hyphens = _mm_movemask_epi8(_mm_cmpeq_epi8(b, _mm_set1_epi8('-')));
    __m128i first = _mm_or_si128(
        _mm_shuffle_epi8(a, _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, -1, -1)),
        _mm_shuffle_epi8(
            b, _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 8, 9)));
    __m128i second = _mm_or_si128(
        _mm_shuffle_epi8(
            b, _mm_setr_epi8(11, 12, 13, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1)),
        _mm_shuffle_epi8(c,
                         _mm_setr_epi8(-1, -1, -1, -1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
    first = digits_ssse3(first);
    second = digits_ssse3(second);
    if ((hyphens & HYPHENS) != HYPHENS || !ssse3_all_found(_mm_and_si128(first, second)))
        return FIRN_EFORMAT;
    __m128i v = _mm_packus_epi16(bytes_ssse3(first), bytes_ssse3(second));
    memcpy(out->b, &v, sizeof out->b);
    return 0;
}

#else

static int parse_ssse3(const char *p, struct firn_uuid *out)
{
    return firn__uuid_parse_portable(p, out);
}

#endif

int firn_uuid_parse(const char *p, size_t len, struct firn_uuid *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    if (len != FIRN_UUID_TEXT_LEN)
        return FIRN_EFORMAT;
    return HAS_SSSE3() ? parse_ssse3(p, out) : firn__uuid_parse_portable(p, out);
}

static int has_urn(const char *p)
{
    static const char urn[] = "urn:uuid:"; /* RFC 8141: scheme and namespace in any case */
    for (size_t i = 0; i < sizeof urn - 1; i++)
        if ((p[i] >= 'A' && p[i] <= 'Z' ? p[i] | 0x20 : p[i]) != urn[i])
            return 0;
    return 1;
}

int firn_uuid_parse_any(const char *p, size_t len, struct firn_uuid *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    switch (len) {
    case HEX_LEN:
        return hex_to_uuid((halves){ load64(p), load64(p + 8) },
                           (halves){ load64(p + 16), load64(p + 24) }, out);
    case FIRN_UUID_TEXT_LEN + 2:
        if (p[0] != '{' || p[FIRN_UUID_TEXT_LEN + 1] != '}')
            return FIRN_EFORMAT;
        return firn_uuid_parse(p + 1, FIRN_UUID_TEXT_LEN, out);
    case FIRN_UUID_TEXT_LEN + 9:
        if (!has_urn(p))
            return FIRN_EFORMAT;
        return firn_uuid_parse(p + 9, FIRN_UUID_TEXT_LEN, out);
    default:
        return firn_uuid_parse(p, len, out);
    }
}

static inline bytes16 hex_digits(bytes16 nibbles)
{
    return nibbles + '0' + ((bytes16)(nibbles > 9) & ('a' - '0' - 10));
}

void firn_uuid_format(const struct firn_uuid *id, char out[FIRN_UUID_TEXT_BUF])
{
    bytes16 v;
    memcpy(&v, id->b, sizeof v);
    bytes16 high = v >> 4, low = v & 0x0f;
    halves first = (halves)hex_digits(
        __builtin_shufflevector(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
    halves second = (halves)hex_digits(__builtin_shufflevector(high, low, 8, 24, 9, 25, 10, 26, 11,
                                                               27, 12, 28, 13, 29, 14, 30, 15, 31));

    uint64_t group = first[0];
    memcpy(out, &group, 8);
    out[8] = '-';
    group = first[1];
    memcpy(out + 9, &group, 4);
    out[13] = '-';
    group >>= 32;
    memcpy(out + 14, &group, 4);
    out[18] = '-';
    group = second[0];
    memcpy(out + 19, &group, 4);
    out[23] = '-';
    group >>= 32;
    memcpy(out + 24, &group, 4);
    group = second[1];
    memcpy(out + 28, &group, 8);
    out[36] = '\0';
}
