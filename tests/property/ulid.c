#include "t.h"

#include "firn/ulid.h"

T_TEST(ulid_round_trip)
{
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        struct firn_ulid id, back;
        char text[FIRN_ULID_TEXT_BUF];
        t_random_bytes(&id, sizeof id);
        if (i % 4 == 0) /* runs of zeros and ones, where carries and borrows go wrong */
            memset(id.b + t_random_below(sizeof id.b / 2), i & 4 ? 0xff : 0, sizeof id.b / 2);
        firn_ulid_format(&id, text);
        T_EQ(strlen(text), FIRN_ULID_TEXT_LEN);
        T_EQ(firn_ulid_parse(text, FIRN_ULID_TEXT_LEN, &back), 0, "'%s'", text);
        T_EQ(firn_ulid_cmp(&id, &back), 0, "'%s'", text);
    }
}

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

/* Text order is byte order is firn_ulid_cmp(), also for IDs that differ late. */
T_TEST(ulid_keeps_order)
{
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        struct firn_ulid a, b;
        char x[FIRN_ULID_TEXT_BUF], y[FIRN_ULID_TEXT_BUF];
        t_random_bytes(&a, sizeof a);
        b = a;
        b.b[t_random_below(sizeof b.b)] = (uint8_t)t_random();
        firn_ulid_format(&a, x);
        firn_ulid_format(&b, y);
        T_EQ(sign(strcmp(x, y)), sign(memcmp(&a, &b, sizeof a)), "%s %s", x, y);
        T_EQ(sign(firn_ulid_cmp(&a, &b)), sign(memcmp(&a, &b, sizeof a)), "%s %s", x, y);
    }
}

/* Whatever the clock does, a generator's ULIDs rise, and their time is the latest it has seen. */
T_TEST(ulid_next_rises)
{
    uint8_t seed[FIRN_RNG_SEED_BYTES];
    struct firn_rng r;
    struct firn_ulid_gen g = FIRN_ULID_GEN_INIT;
    struct firn_ulid id, last = { { 0 } };
    uint64_t now_ms = 1700000000000, latest_ms = 0;
    t_random_bytes(seed, sizeof seed);
    firn_rng_init(&r, seed);
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        now_ms += t_random_below(3) == 0 ? t_random_below(20) - 8 : 0;
        latest_ms = now_ms > latest_ms ? now_ms : latest_ms;
        T_EQ(firn_ulid_next(&g, now_ms, &r, &id), 0);
        T_EQ(firn_ulid_unix_ms(&id), latest_ms);
        T_OK(firn_ulid_cmp(&id, &last) > 0);
        last = id;
    }
}
