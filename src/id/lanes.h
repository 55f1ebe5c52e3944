/*
 * lanes.h - sixteen digits at once, one in each byte of a vector, the first digit in the lowest
 * byte as it lies in memory. Comparing gives -1 where true, so adding a comparison subtracts 1
 * there: that is how an alphabet with gaps becomes a few additions instead of a table.
 * Only operators that gcc and clang lower to plain SSE2 or NEON: no shuffles, which baseline x86-64
 * does not have.
 */
#ifndef FIRN_ID_LANES_H
#define FIRN_ID_LANES_H

#include <stdint.h>
#include <string.h>

typedef int8_t lanes __attribute__((vector_size(16)));
typedef uint8_t lanes_bytes __attribute__((vector_size(16))); /* where sums may wrap */
typedef uint64_t lanes_words __attribute__((vector_size(16)));

/* Two words of 40 bits to 16 digits of 5 bits: halves move apart, then quarters, then eighths, each
 * time the high part to the lower place. */
static inline lanes lanes_spread5(lanes_words x)
{
    x = x >> 20 | (x & 0xfffffu) << 32;
    x = (x >> 10 & 0x000003ff000003ffu) | (x & 0x000003ff000003ffu) << 16;
    x = (x >> 5 & 0x001f001f001f001fu) | (x & 0x001f001f001f001fu) << 8;
    return (lanes)x;
}

/* The way back, for digits below 32. */
static inline lanes_words lanes_gather5(lanes digits)
{
    lanes_words x = (lanes_words)digits;
    x = (x & 0x00ff00ff00ff00ffu) << 5 | (x >> 8 & 0x00ff00ff00ff00ffu);
    x = (x & 0x0000ffff0000ffffu) << 10 | (x >> 16 & 0x0000ffff0000ffffu);
    return (x & 0xffffffffu) << 20 | x >> 32;
}

/* The same for words of 32 bits and digits of 4. */
static inline lanes lanes_spread4(lanes_words x)
{
    x = x >> 16 | (x & 0xffffu) << 32;
    x = (x >> 8 & 0x000000ff000000ffu) | (x & 0x000000ff000000ffu) << 16;
    x = (x >> 4 & 0x000f000f000f000fu) | (x & 0x000f000f000f000fu) << 8;
    return (lanes)x;
}

static inline lanes_words lanes_gather4(lanes digits)
{
    lanes_words x = (lanes_words)digits;
    x = (x & 0x00ff00ff00ff00ffu) << 4 | (x >> 8 & 0x00ff00ff00ff00ffu);
    x = (x & 0x0000ffff0000ffffu) << 8 | (x >> 16 & 0x0000ffff0000ffffu);
    return (x & 0xffffffffu) << 16 | x >> 32;
}

/* Digits to 0-9 and a, b, c, ... */
static inline lanes lanes_to_lower(lanes digits)
{
    return digits + '0' + ((digits > 9) & ('a' - '9' - 1));
}

static inline lanes lanes_between(lanes c, int8_t first, int8_t last)
{
    return (c > (int8_t)(first - 1)) & (c < (int8_t)(last + 1)); /* SSE2 has no >= */
}

/* Characters 0-9 and a..last to digits; what is neither is marked in *bad. Bytes above 127 are
 * negative here and so below every bound. */
static inline lanes lanes_from_lower(lanes c, int8_t last, lanes *bad)
{
    lanes digit = lanes_between(c, '0', '9'), letter = lanes_between(c, 'a', last);
    *bad |= ~(digit | letter);
    return (lanes)((lanes_bytes)c - '0' - ((lanes_bytes)letter & ('a' - '9' - 1)));
}

static inline lanes lanes_load(const char *p)
{
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline lanes lanes_load_halves(const char *low, const char *high)
{
    uint64_t l, h;
    memcpy(&l, low, sizeof l);
    memcpy(&h, high, sizeof h);
    return (lanes)(lanes_words){ l, h };
}

static inline void lanes_store(char *out, lanes v)
{
    memcpy(out, &v, sizeof v);
}

static inline void lanes_store_halves(char *low, char *high, lanes v)
{
    uint64_t l = ((lanes_words)v)[0], h = ((lanes_words)v)[1];
    memcpy(low, &l, sizeof l);
    memcpy(high, &h, sizeof h);
}

static inline int lanes_any(lanes v)
{
    lanes_words w = (lanes_words)v;
    return (w[0] | w[1]) != 0;
}

#endif
