/*
 * Decimal numbers, eight digits at a time inside one 64-bit word: the first digit is the lowest
 * byte, as it lies in memory on a little-endian machine. Tested in tests/unit/id/text.c.
 */
#include "firn/text.h"
#include "id/bytes.h"

#define EACH_BYTE(b) (0x0101010101010101u * (b))

enum { E4 = 10000, E8 = 100000000 };

/* Below 10^8 to eight digits as bytes 0..9: halves, then quarters, then single digits, the quotient
 * of each field by a multiplication wide enough for it, all fields of a step at once. */
static inline uint64_t digits_of(uint32_t v)
{
    uint64_t q4 = v / E4;
    uint64_t x4 = q4 | (v - q4 * E4) << 32;
    uint64_t q2 = (x4 * 10486 >> 20) & 0x0000007f0000007f; /* x / 100 for x < 10^4 */
    uint64_t x2 = q2 | (x4 - q2 * 100) << 16;
    uint64_t q1 = (x2 * 103 >> 10) & 0x000f000f000f000f; /* x / 10 for x < 100 */
    return q1 | (x2 - q1 * 10) << 8;
}

static inline void store_digits(char *out, uint64_t digits)
{
    digits |= EACH_BYTE('0');
    memcpy(out, &digits, sizeof digits);
}

/* Two numbers below 10^8 to sixteen characters: the same steps in the 16-bit lanes of a vector,
 * where a division by a constant is a multiplication that keeps the high half. */
static inline void store_16(char *out, uint32_t high, uint32_t low)
{
    typedef uint16_t vec16 __attribute__((vector_size(16)));
    typedef uint32_t vec32 __attribute__((vector_size(16)));
    typedef uint64_t vec64 __attribute__((vector_size(16)));
    uint64_t high4 = high / E4, low4 = low / E4;
    vec16 v = (vec16)(vec64){ high4 | (high - high4 * E4) << 32, low4 | (low - low4 * E4) << 32 };
    vec16 q = v / 100;
    v = (vec16)((vec32)q | (vec32)(v - q * 100) << 16);
    q = v / 10;
    v = (q | (v - q * 10) << 8) + 0x3030;
    memcpy(out, &v, sizeof v);
}

/* Below 10^4, without zeros in front. Writes four bytes, answers how many count. */
static inline size_t store_head4(char *out, uint32_t v)
{
    uint32_t q2 = v / 100;
    uint32_t x2 = q2 | (v - q2 * 100) << 16;
    uint32_t q1 = (x2 * 103 >> 10) & 0x000f000f;
    uint32_t digits = q1 | (x2 - q1 * 10) << 8;
    unsigned zeros = (unsigned)__builtin_ctz(digits) / 8;
    digits = (digits | 0x30303030) >> 8 * zeros;
    memcpy(out, &digits, sizeof digits);
    return 4 - zeros;
}

/* A number below 10^8 without zeros in front. Writes eight bytes, answers how many count. */
static inline size_t store_head(char *out, uint32_t v)
{
    uint64_t digits = digits_of(v);
    unsigned zeros = (unsigned)__builtin_ctzll(digits | 1ull << 56) / 8; /* "0" keeps its zero */
    digits = (digits | EACH_BYTE('0')) >> 8 * zeros;
    memcpy(out, &digits, sizeof digits);
    return 8 - zeros;
}

size_t firn_u64_format(uint64_t v, char out[FIRN_U64_TEXT_BUF])
{
    size_t n;
    if (v < E8) {
        n = store_head(out, (uint32_t)v);
    } else if (v < (uint64_t)E8 * E8) {
        n = store_head(out, (uint32_t)(v / E8));
        store_digits(out + n, digits_of((uint32_t)(v % E8)));
        n += 8;
    } else {
        uint64_t high = v / E8, top = high / E8; /* at most 1844 */
        n = store_head4(out, (uint32_t)top);
        store_16(out + n, (uint32_t)(high - top * E8), (uint32_t)(v - high * E8));
        n += 16;
    }
    out[n] = '\0';
    return n;
}

/* Not zero if a byte of `text` is no digit: it must be 0x30..0x3f, and stay so when 6 is added. A
 * carry out of a byte needs a byte above 0xf9, which is found by itself. */
static inline uint64_t not_digits(uint64_t text)
{
    return ((text & EACH_BYTE(0xf0)) ^ EACH_BYTE('0')) |
           (((text + EACH_BYTE(6)) & EACH_BYTE(0xf0)) ^ EACH_BYTE('0'));
}

static inline uint64_t value_of(uint64_t text)
{
    text &= EACH_BYTE(0x0f);
    text = (text * 10 + (text >> 8)) & 0x00ff00ff00ff00ff;
    text = (text * 100 + (text >> 16)) & 0x0000ffff0000ffff;
    return (text * E4 + (text >> 32)) & 0xffffffff;
}

static inline uint64_t load8(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* The first `len` characters, 1..7 of them, moved to the word's end behind zeros. Reads only those
 * `len`: overlapping loads give the same bytes twice. */
static inline uint64_t load_short(const char *p, size_t len)
{
    uint64_t text = 0;
    if (len >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + len - 4, 4);
        text = first | (uint64_t)last << 8 * (len - 4);
    } else {
        text = (uint64_t)(unsigned char)p[0] |
               (uint64_t)(unsigned char)p[len / 2] << 8 * (len / 2) |
               (uint64_t)(unsigned char)p[len - 1] << 8 * (len - 1);
    }
    return text << 8 * (8 - len) | EACH_BYTE('0') >> 8 * len;
}

/* More than 20 digits: too large, if they are digits. */
static int parse_long(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] < '0' || p[i] > '9')
            return FIRN_EFORMAT;
    return FIRN_ERANGE;
}

int firn_u64_parse(const char *p, size_t len, uint64_t *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    if (len == 0 || (p[0] == '0' && len > 1))
        return FIRN_EFORMAT;
    if (len > 20)
        return parse_long(p, len);

    uint64_t head, bad, v;
    int over = 0;
    size_t first = len % 8; /* then whole words follow */
    if (len < 8) {
        head = load_short(p, len);
        bad = not_digits(head);
        v = value_of(head);
    } else {
        bad = v = 0;
        if (first != 0) {
            head = load8(p) << 8 * (8 - first) | EACH_BYTE('0') >> 8 * first;
            bad = not_digits(head);
            v = value_of(head);
        }
        uint64_t word = load8(p + first);
        bad |= not_digits(word);
        v = v * E8 + value_of(word);
        if (len >= 16) {
            word = load8(p + first + 8);
            bad |= not_digits(word);
            over = __builtin_mul_overflow(v, (uint64_t)E8, &v);
            over |= __builtin_add_overflow(v, value_of(word), &v);
        }
    }
    if (bad)
        return FIRN_EFORMAT;
    if (over)
        return FIRN_ERANGE;
    *out = v;
    return 0;
}
