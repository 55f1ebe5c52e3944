/*
 * crockford_u128.h - Crockford's base 32 of whole numbers: digits count from the right, so 128 bits
 * take 26 digits of which the first is at most 7, and 64 bits take 13 of which the first is at most
 * F. No hyphens, no U. TypeID and TSID share it and differ in case, and in I, L and O.
 */
#ifndef FIRN_ID_CROCKFORD_U128_H
#define FIRN_ID_CROCKFORD_U128_H

#include <stddef.h>
#include <stdint.h>

#define FIRN__CROCKFORD_UPPER "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
#define FIRN__CROCKFORD_LOWER "0123456789abcdefghjkmnpqrstvwxyz"

/* Values of lower case digits; in firn__crockford_any of upper case ones, too, and of I, L and O as
 * 1, 1 and 0; 0xff elsewhere. */
extern const uint8_t firn__crockford_lower[256], firn__crockford_any[256];

/* A character that is no digit sets bits above the low five of `*seen`. High bits may be lost. */
static inline unsigned __int128 crockford_read(const uint8_t value[256], const char *p, size_t len,
                                               unsigned *seen)
{
    unsigned __int128 v = 0;
#pragma GCC unroll 26 /* callers pass a constant: shifts of known width, no loop */
    for (size_t i = 0; i < len; i++) {
        unsigned digit = value[(uint8_t)p[i]];
        *seen |= digit;
        v = v << 5 | digit;
    }
    return v;
}

static inline void crockford_write(const char *digits, unsigned __int128 v, char *out, size_t len)
{
#pragma GCC unroll 26
    for (size_t i = 0; i < len; i++)
        out[len - 1 - i] = digits[(unsigned)(v >> 5 * i) & 31];
}

#endif
