/* number.h - decimal numbers of 64 bits, eight digits at a time: a file of IDs has very many.
 * Pure. */
#ifndef FIRN_CLI_VERIFY_NUMBER_H
#define FIRN_CLI_VERIFY_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Eight ASCII digits at once: each byte's high nibble is 3, also after adding 6 to it. */
static inline bool eight_are_digits(uint64_t w)
{
    const uint64_t high = UINT64_C(0xf0f0f0f0f0f0f0f0);
    return ((w & high) | ((w + UINT64_C(0x0606060606060606)) & high) >> 4) ==
           UINT64_C(0x3333333333333333);
}

/* The first digit is in the low byte: pairs, then pairs of pairs, are joined by multiplying. */
static inline uint64_t eight_digits(uint64_t w)
{
    const uint64_t mask = UINT64_C(0x000000ff000000ff);
    w -= UINT64_C(0x3030303030303030);
    w = w * 10 + (w >> 8);
    return ((w & mask) * (100 + (UINT64_C(1000000) << 32)) +
            (w >> 16 & mask) * (1 + (UINT64_C(10000) << 32))) >>
               32 &
           0xffffffff;
}

/* Only the one way to write a number counts: two spellings are two IDs. len > 0. */
static inline bool number_parse(const char *p, size_t len, uint64_t *out)
{
    if (len > 20 || (p[0] == '0' && len > 1))
        return false;
    uint64_t v = 0, w;
    size_t i = 0;
    for (; i + 8 <= len && i < 16; i += 8) {
        memcpy(&w, p + i, sizeof w);
        if (!eight_are_digits(w))
            return false;
        v = v * 100000000 + eight_digits(w);
    }
    for (; i < len; i++) {
        unsigned digit = (unsigned char)p[i] - (unsigned)'0';
        if (digit > 9)
            return false;
        if (i == 19 && (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v)))
            return false;
        if (i < 19)
            v = v * 10 + digit;
    }
    *out = v;
    return true;
}

#endif
