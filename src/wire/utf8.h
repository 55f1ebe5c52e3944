/* utf8.h - how long the next character of a text is. */
#ifndef FIRN_WIRE_UTF8_H
#define FIRN_WIRE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* 1..4 bytes, or 0: not UTF-8 here (too long a form, a surrogate, above U+10FFFF, cut off). len > 0. */
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

#endif
