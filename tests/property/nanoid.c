#include "t.h"

#include "firn/nanoid.h"

/* Any alphabet, any length: each character comes as often as the others, within 6 standard
 * deviations, and none comes that is not in the alphabet. */
T_TEST(nanoid_is_uniform)
{
    static const unsigned sizes[] = { 2,  3,  5,  7,   10,  31,  33,  36, 58,
                                      62, 64, 65, 100, 129, 200, 255, 256 };
    for (size_t s = 0; s < T_LEN(sizes); s++) {
        unsigned size = sizes[s];
        char chars[256];
        for (int i = 0; i < 256; i++)
            chars[i] = (char)i;
        for (unsigned i = 255; i > 0; i--) { /* shuffle, then take the first */
            unsigned j = (unsigned)t_random_below(i + 1);
            char c = chars[i];
            chars[i] = chars[j], chars[j] = c;
        }
        struct firn_nanoid_alphabet a;
        struct firn_rng rng;
        uint8_t seed[FIRN_RNG_SEED_BYTES];
        t_random_bytes(seed, sizeof seed);
        firn_rng_init(&rng, seed);
        T_EQ(firn_nanoid_alphabet_init(&a, chars, size), 0);

        uint64_t count[256] = { 0 }, total = 0, want = t_scale(10000) * size;
        while (total < want) {
            char out[FIRN_NANOID_BUF_MAX];
            size_t len = 1 + t_random_below(FIRN_NANOID_LEN_MAX);
            T_EQ(firn_nanoid(&a, len, &rng, out), 0);
            T_EQ(out[len], '\0');
            T_EQ(firn_nanoid_check(out, len, &a), 0);
            for (size_t i = 0; i < len; i++)
                count[(uint8_t)out[i]]++;
            total += len;
        }
        for (unsigned i = 0; i < size; i++) {
            /* (count - mean)^2 < 36 * variance, with everything multiplied by size^2 */
            int64_t off = (int64_t)(count[(uint8_t)chars[i]] * size) - (int64_t)total;
            T_OK((unsigned __int128)(off * off) < (unsigned __int128)36 * total * (size - 1),
                 "alphabet of %u: character %u came %" PRIu64 " times of %" PRIu64, size, i,
                 count[(uint8_t)chars[i]], total);
        }
    }
}
