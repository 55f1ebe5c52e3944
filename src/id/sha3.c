/*
 * Keccak-f[1600] on 25 lanes, lane (x, y) at index x + 5 * y, and the sponge around it: the message
 * is added into the first 72 bytes of the state, which is permuted each time they are full.
 * Tested in tests/golden/hash.c.
 */
#include "id/sha3.h"
#include "id/bytes.h"

enum { RATE = 72, ROUNDS = 24 };

static inline uint64_t rotl(uint64_t v, int n)
{
    return v << n | v >> (64 - n);
}

/* rho and pi walk one cycle through all lanes but the first: step t moves to `lane`, turned by t's
 * triangular number. */
static const uint8_t lanes[24] = { 10, 7,  11, 17, 18, 3, 5,  16, 8,  21, 24, 4,
                                   15, 23, 19, 13, 12, 2, 20, 14, 22, 9,  6,  1 };
static const uint8_t turns[24] = { 1,  3,  6,  10, 15, 21, 28, 36, 45, 55, 2,  14,
                                   27, 41, 56, 8,  25, 43, 62, 18, 39, 61, 20, 44 };
static const uint64_t round_constants[ROUNDS] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000,
    0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
    0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
    0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003,
    0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};

/* A round without loops: its tables become constants and most lanes registers, in under half the
 * time. */
#define UNROLL _Pragma("GCC unroll 24")

static void permute(uint64_t s[25])
{
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t column[5];
        UNROLL
        for (int x = 0; x < 5; x++)
            column[x] = s[x] ^ s[x + 5] ^ s[x + 10] ^ s[x + 15] ^ s[x + 20];
        UNROLL
        for (int x = 0; x < 5; x++) { /* theta */
            uint64_t d = column[(x + 4) % 5] ^ rotl(column[(x + 1) % 5], 1);
            UNROLL
            for (int y = 0; y < 25; y += 5)
                s[x + y] ^= d;
        }
        uint64_t moving = s[1];
        UNROLL
        for (int t = 0; t < 24; t++) { /* rho and pi */
            uint64_t next = s[lanes[t]];
            s[lanes[t]] = rotl(moving, turns[t]);
            moving = next;
        }
        UNROLL
        for (int y = 0; y < 25; y += 5) { /* chi */
            uint64_t row[5];
            memcpy(row, s + y, sizeof row);
            UNROLL
            for (int x = 0; x < 5; x++)
                s[x + y] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
        }
        s[0] ^= round_constants[round]; /* iota */
    }
}

/* `at` is the place in the rate where the next byte goes; the new place is returned. */
static size_t absorb(uint64_t s[25], size_t at, const void *data, size_t len)
{
    const uint8_t *p = data;
    uint8_t *state = (uint8_t *)s; /* lanes are little-endian, and so are we */
    for (size_t i = 0; i < len; i++) {
        state[at++] ^= p[i];
        if (at == RATE) {
            permute(s);
            at = 0;
        }
    }
    return at;
}

void firn__sha3_512(const void *a, size_t a_len, const void *b, size_t b_len,
                    uint8_t out[FIRN__SHA3_512_BYTES])
{
    uint64_t s[25] = { 0 };
    size_t at = absorb(s, absorb(s, 0, a, a_len), b, b_len);
    ((uint8_t *)s)[at] ^= 0x06;
    ((uint8_t *)s)[RATE - 1] ^= 0x80;
    permute(s);
    memcpy(out, s, FIRN__SHA3_512_BYTES);
}
