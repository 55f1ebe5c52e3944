#include "t.h"

#include "firn/uuid.h"

#include <stdlib.h>

static struct firn_rng rng;

static void seed_rng(void)
{
    uint8_t seed[FIRN_RNG_SEED_BYTES];
    t_random_bytes(seed, sizeof seed);
    firn_rng_init(&rng, seed);
}

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

T_TEST(uuid_parse_undoes_format)
{
    char before[FIRN_UUID_TEXT_BUF] = "";
    struct firn_uuid last = firn_uuid_nil;
    firn_uuid_format(&last, before);
    for (uint64_t n = t_scale(1000000); n > 0; n--) {
        struct firn_uuid id, again;
        char text[FIRN_UUID_TEXT_BUF];
        uint64_t halves[2] = { t_random(), t_random() };
        memcpy(id.b, halves, sizeof id.b);
        if (n % 4 == 0) /* near neighbours too, for the order */
            id = last, id.b[t_random_below(16)] ^= (uint8_t)(1u << t_random_below(8));
        firn_uuid_format(&id, text);
        T_EQ(text[FIRN_UUID_TEXT_LEN], '\0');
        T_EQ(firn_uuid_parse(text, FIRN_UUID_TEXT_LEN, &again), 0, "'%s'", text);
        T_EQ(firn_uuid_cmp(&id, &again), 0, "'%s'", text);
        T_EQ(firn_uuid_cmp(&id, &last), sign(memcmp(id.b, last.b, sizeof id.b)));
        T_EQ(firn_uuid_cmp(&id, &last), sign(strcmp(text, before)), "%s and %s", text, before);
        last = id;
        memcpy(before, text, sizeof before);
    }
}

/* A clock that freezes, runs, jumps ahead and steps back, up to `wide` at a time. */
static uint64_t wild_clock(uint64_t now, uint64_t wide)
{
    switch (t_random_below(8)) {
    case 0: {
        uint64_t back = t_random_below(wide);
        return now > back ? now - back : 0;
    }
    case 1:
        return now + t_random_below(wide);
    case 2:
    case 3:
        return now + 1;
    default:
        return now;
    }
}

T_TEST(uuid_v7_always_rises)
{
    struct firn_uuid_v7_gen g = FIRN_UUID_V7_GEN_INIT;
    struct firn_uuid last = firn_uuid_nil;
    uint64_t now = UINT64_C(1700000000000);
    seed_rng();
    for (uint64_t n = t_scale(1000000); n > 0; n--) {
        struct firn_uuid id;
        uint64_t ms;
        now = wild_clock(now, 5000);
        if (t_random_below(50) == 0)
            g.counter_ |= (1u << 26) - 4; /* close to the rollover, which is rare otherwise */
        T_EQ(firn_uuid_v7(&g, now, &rng, &id), 0);
        T_EQ(firn_uuid_version(&id), 7);
        T_OK(firn_uuid_cmp(&id, &last) > 0, "%" PRIu64 " before the end", n);
        T_EQ(firn_uuid_unix_ms(&id, &ms), 0);
        T_OK(ms >= now, "never behind the clock");
        last = id;
    }
}

T_TEST(uuid_v6_always_rises)
{
    struct firn_uuid_gregorian_gen g;
    struct firn_uuid last = firn_uuid_nil, id;
    uint64_t now = UINT64_C(17000000000000000), last_now = 0;
    uint16_t last_seq = 0;
    seed_rng();
    firn_uuid_gregorian_init(&g, NULL, &rng);
    for (uint64_t n = t_scale(1000000); n > 0; n--) {
        uint16_t seq;
        uint64_t ticks;
        now = wild_clock(now, 50000000);
        T_EQ(firn_uuid_v6(&g, now, &id), 0);
        T_EQ(firn_uuid_version(&id), 6);
        T_OK(firn_uuid_cmp(&id, &last) > 0, "%" PRIu64 " before the end", n);
        T_EQ(firn_uuid_ticks(&id, &ticks), 0);
        T_OK(ticks >= now + FIRN_UUID_UNIX_EPOCH_TICKS);
        T_EQ(firn_uuid_clock_seq(&id, &seq), 0);
        if (last_now != 0)
            T_EQ(seq, (last_seq + (now < last_now)) & 0x3fff);
        last = id, last_now = now, last_seq = seq;
    }
}

T_TEST(uuid_v1_never_repeats)
{
    struct firn_uuid_gregorian_gen g;
    uint64_t now = UINT64_C(17000000000000000), last = 0;
    seed_rng();
    firn_uuid_gregorian_init(&g, NULL, &rng);
    for (uint64_t n = t_scale(1000000); n > 0; n--) {
        struct firn_uuid id;
        uint64_t ticks;
        now = wild_clock(now, 50000000);
        T_EQ(firn_uuid_v1(&g, now, &id), 0);
        T_EQ(firn_uuid_version(&id), 1);
        T_EQ(firn_uuid_ticks(&id, &ticks), 0);
        T_OK(ticks > last, "a tick is stamped once");
        last = ticks;
    }
}

static int by_bytes(const void *a, const void *b)
{
    return firn_uuid_cmp(a, b);
}

static void check_distinct(struct firn_uuid *ids, uint64_t n)
{
    qsort(ids, n, sizeof *ids, by_bytes);
    for (uint64_t i = 1; i < n; i++)
        T_OK(firn_uuid_cmp(&ids[i - 1], &ids[i]) < 0, "a UUID came twice");
}

T_TEST(uuid_v4_never_repeats)
{
    uint64_t n = t_scale(2000000);
    struct firn_uuid *ids = malloc(n * sizeof *ids);
    T_OK(ids);
    for (uint64_t i = 0; i < n; i++) {
        firn_uuid_v4(firn_rng_thread(), &ids[i]);
        T_EQ(firn_uuid_version(&ids[i]), 4);
    }
    check_distinct(ids, n);
    free(ids);
}

/* Many generators at once, in the same milliseconds: only the random bits keep them apart. */
T_TEST(uuid_v7_never_repeats)
{
    enum { GENERATORS = 16 };
    uint64_t n = t_scale(2000000);
    struct firn_uuid_v7_gen g[GENERATORS];
    struct firn_uuid *ids = malloc(n * sizeof *ids);
    T_OK(ids);
    memset(g, 0, sizeof g);
    for (uint64_t i = 0; i < n; i++)
        T_EQ(firn_uuid_v7(&g[i % GENERATORS], UINT64_C(1700000000000) + i / 100000,
                          firn_rng_thread(), &ids[i]),
             0);
    check_distinct(ids, n);
    free(ids);
}

/* Each free bit of versions 4 and 7 is one half of the time: nothing is stuck but what must be. */
T_TEST(uuid_random_bits_are_balanced)
{
    enum { DRAWS = 20000 };
    static uint32_t v4[128], v7[128];
    struct firn_uuid id;
    seed_rng();
    for (uint64_t n = 0; n < DRAWS; n++) {
        struct firn_uuid_v7_gen g = FIRN_UUID_V7_GEN_INIT;
        firn_uuid_v4(&rng, &id);
        for (int b = 0; b < 128; b++)
            v4[b] += id.b[b / 8] >> (7 - b % 8) & 1;
        T_EQ(firn_uuid_v7(&g, 0, &rng, &id), 0);
        for (int b = 0; b < 128; b++)
            v7[b] += id.b[b / 8] >> (7 - b % 8) & 1;
    }
    for (int b = 0; b < 128; b++) {
        int fixed = (b >= 48 && b < 52) || b == 64 || b == 65; /* version and variant */
        int of_v7 = !fixed && b > 52;                          /* after the counter's top bit */
        if (!fixed)                                            /* 8 standard deviations */
            T_OK(v4[b] > DRAWS / 2 - 566 && v4[b] < DRAWS / 2 + 566, "v4 bit %d: %u", b, v4[b]);
        if (of_v7)
            T_OK(v7[b] > DRAWS / 2 - 566 && v7[b] < DRAWS / 2 + 566, "v7 bit %d: %u", b, v7[b]);
    }
}
