/* MD5: four rounds of sixteen steps; a round has its mixing function, shifts and word order.
 * Tested in tests/golden/hash.c. */
#include "id/md5.h"
#include "id/bytes.h"
#include "id/hash64.h"

/* floor(2^32 * |sin(i + 1)|) */
static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static const struct {
    uint8_t shift[4];
    uint8_t step, start; /* step i of the round takes word (start + step * i) mod 16 */
} rounds[4] = {
    { { 7, 12, 17, 22 }, 1, 0 },
    { { 5, 9, 14, 20 }, 5, 1 },
    { { 4, 11, 16, 23 }, 3, 5 },
    { { 6, 10, 15, 21 }, 7, 0 },
};

static uint32_t mix(int round, uint32_t b, uint32_t c, uint32_t d)
{
    switch (round) {
    case 0:
        return (b & c) | (~b & d);
    case 1:
        return (d & b) | (~d & c);
    case 2:
        return b ^ c ^ d;
    default:
        return c ^ (b | ~d);
    }
}

static void md5_block(uint32_t *state, const uint8_t block[HASH64_BLOCK])
{
    uint32_t words[16], a = state[0], b = state[1], c = state[2], d = state[3];
    memcpy(words, block,
           sizeof words); /* little-endian, as MD5 wants them; bytes.h holds us to it */
    for (int i = 0; i < 64; i++) {
        int round = i / 16;
        uint32_t word = words[(rounds[round].start + rounds[round].step * (i % 16)) % 16];
        uint32_t sum = a + mix(round, b, c, d) + sines[i] + word;
        int shift = rounds[round].shift[i % 4];
        a = d, d = c, c = b;
        b += sum << shift | sum >> (32 - shift);
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
}

void firn__md5(const void *a, size_t a_len, const void *b, size_t b_len,
               uint8_t out[FIRN__MD5_BYTES])
{
    uint32_t state[4] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };
    uint64_t bits = ((uint64_t)a_len + b_len) * 8;
    uint8_t length[8];
    struct hash64_tail tail = { .used = 0 };
    memcpy(length, &bits, sizeof length);
    hash64_feed(&tail, state, md5_block, a, a_len);
    hash64_feed(&tail, state, md5_block, b, b_len);
    hash64_finish(&tail, state, md5_block, length);
    memcpy(out, state, sizeof state);
}
