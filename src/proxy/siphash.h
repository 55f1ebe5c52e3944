/*
 * siphash.h - SipHash-2-4: a 64-bit hash whose collisions nobody can find without the key. For
 * tables whose keys clients choose (addresses, users, paths). Tested with the authors' values in
 * tests/unit/proxy/siphash.c. Any thread.
 */
#ifndef FIRN_PROXY_SIPHASH_H
#define FIRN_PROXY_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct siphash_key {
    uint64_t k0, k1;
};

#define SIP_ROTATE(x, b) ((x) << (b) | (x) >> (64 - (b)))

static inline void siphash_rounds(uint64_t v[4], int n)
{
    while (n-- > 0) {
        v[0] += v[1], v[2] += v[3];
        v[1] = SIP_ROTATE(v[1], 13) ^ v[0], v[3] = SIP_ROTATE(v[3], 16) ^ v[2];
        v[0] = SIP_ROTATE(v[0], 32);
        v[2] += v[1], v[0] += v[3];
        v[1] = SIP_ROTATE(v[1], 17) ^ v[2], v[3] = SIP_ROTATE(v[3], 21) ^ v[0];
        v[2] = SIP_ROTATE(v[2], 32);
    }
}

static inline uint64_t siphash(struct siphash_key k, const void *data, size_t len)
{
    uint64_t v[4] = { k.k0 ^ UINT64_C(0x736f6d6570736575), k.k1 ^ UINT64_C(0x646f72616e646f6d),
                      k.k0 ^ UINT64_C(0x6c7967656e657261), k.k1 ^ UINT64_C(0x7465646279746573) };
    const unsigned char *p = data;
    uint64_t last = (uint64_t)len << 56;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word = 0;
        for (int i = 7; i >= 0; i--)
            word = word << 8 | p[i];
        v[3] ^= word;
        siphash_rounds(v, 2);
        v[0] ^= word;
    }
    for (size_t i = 0; i < len; i++)
        last |= (uint64_t)p[i] << (8 * i);
    v[3] ^= last;
    siphash_rounds(v, 2);
    v[0] ^= last;
    v[2] ^= 0xff;
    siphash_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#undef SIP_ROTATE

#endif
