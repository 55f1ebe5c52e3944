/* utf8.h - UTF-8: the length of the next character, control characters, encoding. */
#ifndef FIRN_WIRE_UTF8_H
#define FIRN_WIRE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 1..4 bytes, or 0: not UTF-8 here (overlong, a surrogate, above U+10FFFF, truncated). len > 0. */
static inline size_t utf8_next(const char *p, size_t len)
{
    const uint8_t *s = (const uint8_t *)p;
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || len < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

/* Whether the character of n bytes at p, as utf8_next() found it, is a control character: C0, DEL
 * or C1. A terminal may act on it. */
static inline bool utf8_is_control(const char *p, size_t n)
{
    const uint8_t *s = (const uint8_t *)p;
    return n == 1 ? s[0] < 0x20 || s[0] == 0x7f : n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

/* Encodes a code point (no surrogate, at most U+10FFFF); the number of bytes, 1..4. */
static inline size_t utf8_put(uint32_t c, char out[4])
{
    static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

#endif
