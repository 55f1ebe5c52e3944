/* fnv.h - FNV-1a over words of eight bytes, for tables of keys that no adversary chose. */
#ifndef FIRN_ID_FNV_H
#define FIRN_ID_FNV_H

#include "id/bytes.h"

#include <stddef.h>
#include <stdint.h>

#define FNV_BEGIN UINT64_C(14695981039346656037)

static inline uint64_t fnv_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * UINT64_C(1099511628211);
    return sum ^ sum >> 32; /* else high bits never reach low ones */
}

static inline uint64_t fnv(uint64_t sum, const void *p, size_t len)
{
    const unsigned char *c = p;
    uint64_t rest = 0;
    sum = fnv_word(sum, len); /* keeps two texts apart */
    for (; len >= 8; c += 8, len -= 8)
        sum = fnv_word(sum, load_be64(c));
    for (size_t i = 0; i < len; i++)
        rest = rest << 8 | c[i];
    return fnv_word(sum, rest);
}

#endif
