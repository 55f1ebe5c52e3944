/* rand.h - random numbers from a seed: splitmix64, one stream for each part of the world, so that a
 * fault more or less changes as little as possible of the rest. */
#ifndef SIM_RAND_H
#define SIM_RAND_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t rand_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t rand_next(uint64_t *s)
{
    return rand_mix(*s += 0x9e3779b97f4a7c15u);
}

static inline uint64_t rand_split(uint64_t seed, uint64_t part)
{
    return rand_mix(rand_mix(seed + 0x632be59bd9b4e019u) ^ (part * 0x9e3779b97f4a7c15u));
}

static inline uint64_t rand_below(uint64_t *s, uint64_t n)
{
    return rand_next(s) % n;
}

static inline int64_t rand_between(uint64_t *s, int64_t lo, int64_t hi)
{
    return lo + (int64_t)rand_below(s, (uint64_t)(hi - lo + 1));
}

static inline bool rand_chance(uint64_t *s, unsigned percent)
{
    return rand_below(s, 100) < percent;
}

static inline void rand_bytes(uint64_t *s, void *out, size_t len)
{
    char *p = out;
    while (len > 0) {
        uint64_t v = rand_next(s);
        size_t n = len < sizeof v ? len : sizeof v;
        memcpy(p, &v, n);
        p += n;
        len -= n;
    }
}

#endif
