/*
 * ChaCha12 with fast key erasure (D. J. Bernstein's construction): one refill computes 16 blocks
 * under the current key with counters 0..15, takes the first 32 bytes as the next key and hands out
 * the rest. The key is used once, so no nonce is needed.
 * Blocks are computed side by side in vectors: word i of all blocks is one vector. gcc and clang
 * lower the vector type to what the target has, so one body serves SSE2, AVX2 and AVX-512.
 */
#include "firn/random.h"
#include "id/rng_take.h"

enum { LANES = 16, WORDS = 16, ROUNDS = 12 };
enum { SOURCE_KERNEL = 1, SOURCE_FIXED = 2 }; /* 0: not seeded yet */
enum { RATION_MAX = 512 };                    /* bytes: what a copy of a busy thread may repeat */
enum { REFILLS_MAX = 1024 };                  /* of about a kibibyte each, until the next seed */

typedef uint32_t vec __attribute__((vector_size(LANES * 4)));
_Static_assert(offsetof(struct firn_rng, pool_) == 64, "draws of 16 bytes lie in one cache line");
_Static_assert(LANES *WORDS * 4 == FIRN_RNG_POOL_BYTES + FIRN_RNG_SEED_BYTES, "pool and next key");

#define ROTL(v, n) (((v) << (n)) | ((v) >> (32 - (n))))
#define QUARTER(a, b, c, d)          \
    do {                             \
        a += b, d = ROTL(d ^ a, 16); \
        c += d, b = ROTL(b ^ c, 12); \
        a += b, d = ROTL(d ^ a, 8);  \
        c += d, b = ROTL(b ^ c, 7);  \
    } while (0)

static inline __attribute__((always_inline)) void chacha_16_blocks(const uint32_t key[8],
                                                                   uint32_t out[LANES * WORDS])
{
    static const uint32_t sigma[4] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 };
    static const vec counter = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    vec in[WORDS], x[WORDS];
    for (int i = 0; i < 4; i++)
        in[i] = (vec){ 0 } + sigma[i];
    for (int i = 0; i < 8; i++)
        in[4 + i] = (vec){ 0 } + key[i];
    in[12] = counter;
    in[13] = in[14] = in[15] = (vec){ 0 };
    for (int i = 0; i < WORDS; i++)
        x[i] = in[i];

    for (int round = 0; round < ROUNDS; round += 2) {
        QUARTER(x[0], x[4], x[8], x[12]);
        QUARTER(x[1], x[5], x[9], x[13]);
        QUARTER(x[2], x[6], x[10], x[14]);
        QUARTER(x[3], x[7], x[11], x[15]);
        QUARTER(x[0], x[5], x[10], x[15]);
        QUARTER(x[1], x[6], x[11], x[12]);
        QUARTER(x[2], x[7], x[8], x[13]);
        QUARTER(x[3], x[4], x[9], x[14]);
    }
    /* Word by word across blocks: another order than the RFC's stream, the same bits. */
    for (int i = 0; i < WORDS; i++) {
        x[i] += in[i];
        memcpy(out + i * LANES, &x[i], sizeof x[i]);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void blocks_avx512(const uint32_t *key, uint32_t *out)
{
    chacha_16_blocks(key, out);
}
__attribute__((target("avx2"))) static void blocks_avx2(const uint32_t *key, uint32_t *out)
{
    chacha_16_blocks(key, out);
}
#endif

static void blocks_plain(const uint32_t *key, uint32_t *out)
{
    chacha_16_blocks(key, out);
}

static void blocks(const uint32_t *key, uint32_t *out)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        blocks_avx512(key, out);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        blocks_avx2(key, out);
        return;
    }
#endif
    blocks_plain(key, out);
}

static void fill_pool(struct firn_rng *r)
{
    uint32_t out[LANES * WORDS];
    blocks(r->key_, out);
    memcpy(r->key_, out, sizeof r->key_);
    memcpy(r->pool_, (const uint8_t *)out + sizeof r->key_, sizeof r->pool_);
    explicit_bzero(out, sizeof out);
    r->end_ = 0;
    r->refills_++;
}

/* The old key stays part of the new one: whatever was secret before still helps. */
static void seed(struct firn_rng *r, uint64_t era)
{
    uint32_t fresh[8];
    firn__entropy(fresh, sizeof fresh);
    for (int i = 0; i < 8; i++)
        r->key_[i] ^= fresh[i];
    explicit_bzero(fresh, sizeof fresh);
    r->source_ = SOURCE_KERNEL;
    r->era_ = era;
    r->refills_ = 0;
    fill_pool(r);
}

/* Bytes that may be drawn until the next look at the time: one draw after a pause, then twice as
 * many at each look within the same few milliseconds. So a thread that draws rarely looks each
 * time, and a busy one twice a pool. */
static void hand_out(struct firn_rng *r, size_t ration)
{
    size_t spare = FIRN_RNG_POOL_BYTES - r->end_;
    r->left_ = r->ration_ = (uint32_t)(ration < spare ? ration : spare);
    r->end_ += r->left_;
}

/* Called with busy_ set: at least `len` bytes are left afterwards. */
void firn__rng_refill(struct firn_rng *r, size_t len)
{
    if (r->source_ == SOURCE_FIXED) {
        fill_pool(r);
        hand_out(r, FIRN_RNG_POOL_BYTES);
        return;
    }
    uint64_t era = firn__entropy_era();
    size_t ration = r->ration_ * 2;
    memset(r->pool_ + r->end_ - r->left_, 0, r->left_); /* too few: they are dropped */
    if (r->source_ != SOURCE_KERNEL || era != r->era_) {
        seed(r, era);
        ration = len;
    } else if (r->refills_ >= REFILLS_MAX) {
        seed(r, era);
    } else if (FIRN_RNG_POOL_BYTES - r->end_ < len) {
        fill_pool(r);
    }
    ration = ration < RATION_MAX ? ration : RATION_MAX;
    hand_out(r, ration < len ? len : ration);
}

uint64_t firn__entropy_u64(void)
{
    uint64_t v;
    firn__entropy(&v, sizeof v);
    return v;
}

rng_bytes16 firn__entropy_16(void)
{
    rng_bytes16 v;
    firn__entropy(&v, sizeof v);
    return v;
}

void firn_rng_init(struct firn_rng *r, const uint8_t seed[FIRN_RNG_SEED_BYTES])
{
    memset(r, 0, sizeof *r);
    memcpy(r->key_, seed, sizeof r->key_);
    r->source_ = SOURCE_FIXED;
}

void firn_rng_bytes(struct firn_rng *r, void *out, size_t len)
{
    uint8_t *p = out;
    while (len > 0) {
        size_t part = len < FIRN_RNG_POOL_BYTES ? len : FIRN_RNG_POOL_BYTES;
        firn__rng_take(r, p, part);
        p += part;
        len -= part;
    }
}

uint64_t firn_rng_u64(struct firn_rng *r)
{
    return firn__rng_take_u64(r);
}

/* Lemire's multiply: the low half tells whether this draw falls into the short, biased part. */
uint32_t firn_rng_below(struct firn_rng *r, uint32_t bound)
{
    if (bound == 0)
        return 0;
    uint32_t biased = (0u - bound) % bound, v;
    uint64_t product;
    do {
        firn__rng_take(r, &v, sizeof v);
        product = (uint64_t)v * bound;
    } while ((uint32_t)product < biased);
    return (uint32_t)(product >> 32);
}
