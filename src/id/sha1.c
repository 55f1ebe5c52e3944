/* SHA-1: sixteen words of the block grow to eighty, one for each step.
 * Tested in tests/golden/hash.c. */
#include "id/sha1.h"
#include "id/bytes.h"
#include "id/hash64.h"

static inline uint32_t rotl(uint32_t v, int n)
{
    return v << n | v >> (32 - n);
}

static inline uint32_t mix(int round, uint32_t b, uint32_t c, uint32_t d)
{
    switch (round) {
    case 0:
        return (b & c) | (~b & d);
    case 2:
        return (b & c) | (b & d) | (c & d);
    default:
        return b ^ c ^ d;
    }
}

static void sha1_block(uint32_t *state, const uint8_t block[HASH64_BLOCK])
{
    static const uint32_t constants[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
    uint32_t w[80];
    for (int i = 0; i < 16; i++)
        w[i] = load_be32(block + 4 * i);
    for (int i = 16; i < 80; i++)
        w[i] = rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);

    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 80; i++) {
        uint32_t next = rotl(a, 5) + mix(i / 20, b, c, d) + e + constants[i / 20] + w[i];
        e = d, d = c, c = rotl(b, 30), b = a, a = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

void firn__sha1(const void *a, size_t a_len, const void *b, size_t b_len,
                uint8_t out[FIRN__SHA1_BYTES])
{
    uint32_t state[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
    uint8_t length[8];
    struct hash64_tail tail = { .used = 0 };
    store_be64(length, ((uint64_t)a_len + b_len) * 8);
    hash64_feed(&tail, state, sha1_block, a, a_len);
    hash64_feed(&tail, state, sha1_block, b, b_len);
    hash64_finish(&tail, state, sha1_block, length);
    for (int i = 0; i < 5; i++)
        store_be32(out + 4 * i, state[i]);
}
