/*
 * The codecs: one public table for the reader, one private table of rules beside it, row by row.
 * There are two ways to write a value. As a number: digits of the radix, zeros in front up to the
 * width, which is what keeps texts in order. As bytes (RFC 4648: base32hex, base64url): groups of
 * bits from the front, so the last character ends in zero bits; other libraries write these two
 * that way. Where the radix is a power of two both are the same shifts, with a `tail` of zero bits
 * or without. Tested in tests/unit/id/text.c.
 */
#include "firn/text.h"
#include "id/alphabet.h"
#include "id/radix.h"

#include <string.h>

typedef unsigned __int128 u128;

#define DIGITS      "0123456789"
#define UPPER       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER       "abcdefghijklmnopqrstuvwxyz"
#define CROCKFORD   "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
#define CHECKS_ONLY "*~$=U" /* 32..36, in check symbols alone */

static const struct firn_codec codecs[] = {
    /* name, about, alphabet, width64, width128, padded, ordered, any_case, exact, checked */
    { "decimal", "decimal, no zeros in front", DIGITS, 20, 39, 0, 0, 0, 0, 0, 0 },
    { "hex", "hexadecimal", "0123456789abcdef", 16, 32, 1, 1, 1, 0, 0, 0 },
    { "crockford", "Crockford's base32 (reads i and l as 1, o as 0)", CROCKFORD, 13, 26, 1, 1, 1, 0,
      0, 0 },
    { "crockford-check", "Crockford's base32 with its check symbol (value mod 37)", CROCKFORD, 14,
      27, 1, 1, 1, 0, 1, 0 },
    { "base32hex", "RFC 4648 base32hex of the bytes, high byte first, without '='",
      "0123456789ABCDEFGHIJKLMNOPQRSTUV", 13, 26, 1, 1, 1, 1, 0, 0 },
    { "base36", "digits and lower case letters", DIGITS LOWER, 13, 25, 1, 1, 1, 0, 0, 0 },
    { "base58", "Bitcoin's alphabet: no 0, I, O, l",
      "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 11, 22, 1, 1, 0, 0, 0, 0 },
    { "base62", "digits, upper case, lower case", DIGITS UPPER LOWER, 11, 22, 1, 1, 0, 0, 0, 0 },
    { "base64url", "RFC 4648 base64url of the bytes, high byte first, without '='",
      UPPER LOWER DIGITS "-_", 11, 22, 1, 0, 0, 1, 0, 0 },
};

enum { CODECS = sizeof codecs / sizeof codecs[0], DECIMAL = 0 };

/* The digits of `v` in a radix that is no power of two; one function per radix, so that the
 * compiler knows the divisor. */
typedef void write_fn(u128 v, unsigned width, const char *alphabet, char *out);

#define WRITE_FN(radix_, chunk_, digits_, shift_)                                       \
    static void write_##radix_(u128 v, unsigned width, const char *alphabet, char *out) \
    {                                                                                   \
        static const struct radix r = RADIX_INIT(chunk_, digits_, shift_);              \
        for (; width > (digits_); width -= (digits_)) {                                 \
            uint64_t chunk = radix_cut(0, &v, &r);                                      \
            radix_write(chunk, radix_, digits_, alphabet, out + width - (digits_));     \
        }                                                                               \
        radix_write((uint64_t)v, radix_, width, alphabet, out);                         \
    }
WRITE_FN(10, 10000000000000000000u, 19, 0)
WRITE_FN(36, 4738381338321616896u, 12, 1)
WRITE_FN(58, 430804206899405824u, 10, 5)
WRITE_FN(62, 839299365868340224u, 10, 4)

struct rule {
    const uint8_t *digits;    /* character to digit + 1 */
    write_fn *write;          /* NULL: a power of two, see bits */
    uint8_t radix, bits;      /* one of write and bits is set */
    uint8_t tail64, tail128;  /* zero bits behind the value in the last character */
    uint8_t chunk_digits_max; /* radix to that power fits 64 bits */
};

static const struct rule rules[CODECS] = {
    { firn__any_case_digits, write_10, 10, 0, 0, 0, 19 },
    { firn__any_case_digits, NULL, 16, 4, 0, 0, 15 },
    { firn__crockford_digits, NULL, 32, 5, 0, 0, 12 },
    { firn__crockford_digits, NULL, 32, 5, 0, 0, 12 },
    { firn__any_case_digits, NULL, 32, 5, 1, 2, 12 },
    { firn__any_case_digits, write_36, 36, 0, 0, 0, 12 },
    { firn__base58_digits, write_58, 58, 0, 0, 0, 10 },
    { firn__base62_digits, write_62, 62, 0, 0, 0, 10 },
    { firn__base64url_digits, NULL, 64, 6, 2, 4, 10 },
};

/* 2^64 leaves 12 when divided by 37, and the halves are small enough after that. */
static unsigned mod37(u128 v)
{
    return (unsigned)(((uint64_t)(v >> 64) % 37 * 12 + (uint64_t)v % 37) % 37);
}

/* Check symbol to 0..36, anything else to more. */
static unsigned check_value(char c)
{
    static const char extra[] = CHECKS_ONLY;
    for (unsigned i = 0; i < sizeof extra - 1; i++)
        if (c == extra[i])
            return 32 + i;
    return c == 'u' ? 36 : (unsigned)firn__crockford_digits[(unsigned char)c] - 1;
}

static void write_bits(u128 v, unsigned bits, unsigned tail, unsigned width, const char *alphabet,
                       char *out)
{
    const unsigned mask = (1u << bits) - 1;
    out[--width] = alphabet[((unsigned)v << tail) & mask];
    for (v >>= bits - tail; width > 0; v >>= bits)
        out[--width] = alphabet[(unsigned)v & mask];
}

/* Chunks of digits in 64 bits, joined in 128. */
static int read_number(const struct rule *rule, const char *p, size_t len, u128 *out)
{
    u128 v = 0;
    uint64_t bad = 0;
    int over = 0;
    for (size_t i = 0; i < len;) {
        uint64_t chunk = 0, power = 1;
        for (unsigned n = 0; n < rule->chunk_digits_max && i < len; n++, i++) {
            uint64_t digit = alphabet_digit(rule->digits, p[i]);
            bad |= digit >= rule->radix;
            chunk = chunk * rule->radix + digit;
            power *= rule->radix;
        }
        over |= __builtin_mul_overflow(v, (u128)power, &v);
        over |= __builtin_add_overflow(v, (u128)chunk, &v);
    }
    if (bad)
        return FIRN_EFORMAT;
    if (over)
        return FIRN_ERANGE;
    *out = v;
    return 0;
}

/* Bytes: the last character ends in `tail` bits that belong to no byte. The others are fewer than
 * 128 bits, so this cannot overflow. */
static int read_bytes(const struct rule *rule, unsigned tail, const char *p, size_t len, u128 *out)
{
    uint64_t last = alphabet_digit(rule->digits, p[len - 1]);
    u128 v;
    int r = read_number(rule, p, len - 1, &v);
    if (r != 0 || last >= rule->radix || (last & ((1u << tail) - 1)))
        return FIRN_EFORMAT;
    *out = v << (rule->bits - tail) | last >> tail;
    return 0;
}

/* Its place in the table, or CODECS for a pointer to something else. */
static size_t row_of(const struct firn_codec *codec)
{
    for (size_t i = 0; i < CODECS; i++)
        if (codec == &codecs[i])
            return i;
    return CODECS;
}

static int encode(const struct firn_codec *codec, u128 v, unsigned width, int wide, char *out,
                  size_t cap, size_t *out_len)
{
    size_t row = row_of(codec);
    if (row == CODECS || !out)
        return FIRN_EINVAL;
    const struct rule *rule = &rules[row];
    char text[FIRN_CODEC_TEXT_BUF], *start = text;
    unsigned digits = width - codec->checked;
    if (rule->write)
        rule->write(v, digits, codec->alphabet, text);
    else
        write_bits(v, rule->bits, wide ? rule->tail128 : rule->tail64, digits, codec->alphabet,
                   text);
    if (codec->checked)
        text[digits] = (CROCKFORD CHECKS_ONLY)[mod37(v)];
    if (!codec->padded)
        for (; width > 1 && *start == codec->alphabet[0]; width--)
            start++;
    if (cap <= width)
        return FIRN_ENOSPC;
    memcpy(out, start, width);
    out[width] = '\0';
    if (out_len)
        *out_len = width;
    return 0;
}

static int decode(const struct firn_codec *codec, const char *p, size_t len, unsigned width,
                  int wide, u128 *out)
{
    size_t row = row_of(codec);
    if (row == CODECS || !p)
        return FIRN_EINVAL;
    const struct rule *rule = &rules[row];
    if (len <= codec->checked)
        return FIRN_EFORMAT;
    if (codec->padded ? len > width || (codec->exact && len != width)
                      : len > 1 && p[0] == codec->alphabet[0])
        return FIRN_EFORMAT;

    u128 v;
    size_t digits = len - codec->checked;
    unsigned tail = wide ? rule->tail128 : rule->tail64;
    int r = tail ? read_bytes(rule, tail, p, digits, &v) : read_number(rule, p, digits, &v);
    if (codec->checked && (r == 0 || r == FIRN_ERANGE) && check_value(p[digits]) > 36)
        return FIRN_EFORMAT;
    if (r != 0)
        return r;
    if (!wide && v >> 64)
        return FIRN_ERANGE;
    if (codec->checked && check_value(p[digits]) != mod37(v))
        return FIRN_EFORMAT;
    *out = v;
    return 0;
}

const struct firn_codec *firn_codec_list(size_t *n)
{
    if (n)
        *n = CODECS;
    return codecs;
}

const struct firn_codec *firn_codec_find(const char *name, size_t len)
{
    for (size_t i = 0; name && i < CODECS; i++)
        if (strlen(codecs[i].name) == len && memcmp(codecs[i].name, name, len) == 0)
            return &codecs[i];
    return NULL;
}

int firn_codec_encode64(const struct firn_codec *codec, uint64_t v, char *out, size_t cap,
                        size_t *out_len)
{
    if (!codec)
        return FIRN_EINVAL;
    if (codec == &codecs[DECIMAL] && out && cap >= FIRN_U64_TEXT_BUF) {
        size_t len = firn_u64_format(v, out);
        if (out_len)
            *out_len = len;
        return 0;
    }
    return encode(codec, v, codec->width64, 0, out, cap, out_len);
}

int firn_codec_encode128(const struct firn_codec *codec, struct firn_u128 v, char *out, size_t cap,
                         size_t *out_len)
{
    if (!codec)
        return FIRN_EINVAL;
    return encode(codec, (u128)v.hi << 64 | v.lo, codec->width128, 1, out, cap, out_len);
}

int firn_codec_decode64(const struct firn_codec *codec, const char *p, size_t len, uint64_t *out)
{
    if (!codec || !out)
        return FIRN_EINVAL;
    if (codec == &codecs[DECIMAL])
        return firn_u64_parse(p, len, out);
    u128 v;
    int r = decode(codec, p, len, codec->width64, 0, &v);
    if (r == 0)
        *out = (uint64_t)v;
    return r;
}

int firn_codec_decode128(const struct firn_codec *codec, const char *p, size_t len,
                         struct firn_u128 *out)
{
    if (!codec || !out)
        return FIRN_EINVAL;
    u128 v;
    int r = decode(codec, p, len, codec->width128, 1, &v);
    if (r == 0) {
        out->hi = (uint64_t)(v >> 64);
        out->lo = (uint64_t)v;
    }
    return r;
}
