/*
 * radix.h - digits of long numbers in a radix that is no power of two.
 * A number is split into chunks of as many digits as 64 bits hold, by division with a reciprocal
 * computed by the compiler (Moeller and Granlund, "Improved division by invariant integers",
 * algorithm 4): two multiplications instead of a division instruction that takes ten times as long.
 */
#ifndef FIRN_ID_RADIX_H
#define FIRN_ID_RADIX_H

#include <stdint.h>

typedef unsigned __int128 radix_u128;

struct radix {
    uint64_t divisor;    /* radix^digits, shifted left until its top bit is set */
    uint64_t reciprocal; /* (2^128 - 1) / divisor - 2^64 */
    unsigned shift;
    unsigned digits; /* in a chunk */
};

#define RADIX_INIT(chunk, digits, shift)                                                           \
    {                                                                                              \
        (uint64_t)(chunk) << (shift), (uint64_t)(~(radix_u128)0 / ((uint64_t)(chunk) << (shift))), \
            shift, digits                                                                          \
    }

/* (high, low) / divisor for high < divisor; the remainder goes to *rest. */
static inline uint64_t radix_div_2by1(uint64_t high, uint64_t low, const struct radix *r,
                                      uint64_t *rest)
{
    radix_u128 q = (radix_u128)r->reciprocal * high + (((radix_u128)high << 64) | low);
    uint64_t quotient = (uint64_t)(q >> 64) + 1;
    uint64_t left = low - quotient * r->divisor;
    uint64_t over = left > (uint64_t)q ? ~(uint64_t)0 : 0; /* as often as not: no branch */
    quotient += over;
    left += over & r->divisor;
    if (__builtin_expect(left >= r->divisor, 0)) {
        quotient++;
        left -= r->divisor;
    }
    *rest = left;
    return quotient;
}

/* Cut the lowest chunk off the number top * 2^128 + *v, for a `top` below radix^digits: `*v`
 * becomes the rest of the number, the answer is the chunk. */
static inline uint64_t radix_cut(uint64_t top, radix_u128 *v, const struct radix *r)
{
    radix_u128 high = (((radix_u128)top << 64) | (uint64_t)(*v >> 64)) << r->shift;
    uint64_t low = (uint64_t)*v, rest;
    uint64_t n2 = (uint64_t)(high >> 64);
    uint64_t n1 = (uint64_t)high | (low >> 1) >> (63 - r->shift);
    uint64_t n0 = low << r->shift;
    uint64_t q1 = 0;
    if (n2 == 0 && n1 < r->divisor)
        rest = n1;
    else
        q1 = radix_div_2by1(n2, n1, r, &rest);
    uint64_t q0 = radix_div_2by1(rest, n0, r, &rest);
    *v = (radix_u128)q1 << 64 | q0;
    return rest >> r->shift;
}

/* Five digits of v < radix^5, as a fixed-point fraction: v / radix^4 with 56 bits behind the point
 * has the first digit before it, and each multiplication by the radix moves up the next. The
 * fraction is too large by less than v / 2^56, which after four multiplications is still less than
 * one digit for every radix up to 62 (62^9 < 2^56). */
static inline __attribute__((always_inline)) void radix_write5(uint32_t v, unsigned radix,
                                                               const char *alphabet, char *out)
{
    const uint64_t one = (uint64_t)1 << 56;
    uint64_t f = v * (one / (radix * radix * radix * radix) + 1);
    for (int i = 0; i < 5; i++, f = (f & (one - 1)) * radix)
        out[i] = alphabet[f >> 56];
}

/* Write `n` digits of `v`. With a constant radix the divisions become multiplications, and runs of
 * five do not wait for one another. */
static inline __attribute__((always_inline)) void radix_write(uint64_t v, unsigned radix,
                                                              unsigned n, const char *alphabet,
                                                              char *out)
{
    const uint32_t run = radix * radix * radix * radix * radix; /* 62^5 is below 2^30 */
    for (; n >= 5; v /= run)
        radix_write5((uint32_t)(v % run), radix, alphabet, out + (n -= 5));
    for (; n > 0; v /= radix)
        out[--n] = alphabet[v % radix];
}

#endif
