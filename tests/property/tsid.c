#include "t.h"

#include "firn/tsid.h"

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

T_TEST(tsid_parse_undoes_format)
{
    struct firn_tsid last = firn_tsid_from_u64(0);
    char before[FIRN_TSID_TEXT_BUF];
    firn_tsid_format(&last, before);
    for (uint64_t n = t_scale(1000000); n > 0; n--) {
        uint64_t v = n % 4 ? t_random() : firn_tsid_u64(&last) ^ UINT64_C(1) << t_random_below(64);
        struct firn_tsid id = firn_tsid_from_u64(v), again;
        char text[FIRN_TSID_TEXT_BUF], low[FIRN_TSID_TEXT_BUF];
        firn_tsid_format(&id, text);
        T_EQ(firn_tsid_parse(text, FIRN_TSID_TEXT_LEN, &again), 0, "'%s'", text);
        T_EQ(firn_tsid_u64(&again), v, "'%s'", text);
        for (int i = 0; i < FIRN_TSID_TEXT_BUF; i++)
            low[i] = (char)(text[i] >= 'A' ? text[i] | 0x20 : text[i]);
        T_EQ(firn_tsid_parse(low, FIRN_TSID_TEXT_LEN, &again), 0, "'%s'", low);
        T_EQ(firn_tsid_u64(&again), v, "'%s'", low);
        T_EQ(firn_tsid_cmp(&id, &last), sign(memcmp(id.b, last.b, sizeof id.b)));
        T_EQ(firn_tsid_cmp(&id, &last), sign(strcmp(text, before)), "%s and %s", text, before);
        last = id;
        memcpy(before, text, sizeof before);
    }
}

/* With few counter bits the generator rolls over all the time. */
T_TEST(tsid_always_rises)
{
    for (unsigned bits = 0; bits <= FIRN_TSID_NODE_BITS_MAX; bits += 5) {
        struct firn_tsid_gen g;
        struct firn_rng rng;
        uint8_t seed[FIRN_RNG_SEED_BYTES];
        uint32_t node = (uint32_t)t_random_below(UINT64_C(1) << bits);
        uint64_t now = UINT64_C(1700000000000), last = 0;
        t_random_bytes(seed, sizeof seed);
        firn_rng_init(&rng, seed);
        T_EQ(firn_tsid_gen_init(&g, FIRN_TSID_EPOCH_MS, bits, node), 0);
        for (uint64_t n = t_scale(200000); n > 0; n--) {
            struct firn_tsid id;
            switch (t_random_below(8)) {
            case 0:
                now -= t_random_below(5000);
                break;
            case 1:
                now += t_random_below(5000);
                break;
            case 2:
                now++;
                break;
            default:
                break;
            }
            T_EQ(firn_tsid_next(&g, now, &rng, &id), 0);
            T_OK(firn_tsid_u64(&id) > last, "%u node bits", bits);
            T_EQ(firn_tsid_tail(&id) >> (22 - bits), node);
            T_OK(firn_tsid_unix_ms(&id, FIRN_TSID_EPOCH_MS) >= now);
            last = firn_tsid_u64(&id);
        }
    }
}
