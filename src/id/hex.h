/* hex.h - reads hexadecimal digits. */
#ifndef FIRN_ID_HEX_H
#define FIRN_ID_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0..15, of either case; -1: it is none. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* `n` bytes from twice as many digits, which must be of lower case: one text for each value. */
static inline bool hex_bytes(const char *p, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < 2 * n; i++) {
        int digit = p[i] >= 'A' && p[i] <= 'F' ? -1 : hex_digit(p[i]);
        if (digit < 0)
            return false;
        out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] | digit : digit << 4);
    }
    return true;
}

#endif
