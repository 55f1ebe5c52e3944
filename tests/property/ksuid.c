#include "t.h"

#include "firn/ksuid.h"

T_TEST(ksuid_round_trip)
{
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        struct firn_ksuid id, back;
        char text[FIRN_KSUID_TEXT_BUF];
        t_random_bytes(&id, sizeof id);
        if (i % 4 == 0) /* runs of zeros and ones, where carries and borrows go wrong */
            memset(id.b + t_random_below(sizeof id.b / 2), i & 4 ? 0xff : 0, sizeof id.b / 2);
        firn_ksuid_format(&id, text);
        T_EQ(strlen(text), FIRN_KSUID_TEXT_LEN);
        T_EQ(firn_ksuid_parse(text, FIRN_KSUID_TEXT_LEN, &back), 0, "'%s'", text);
        T_EQ(firn_ksuid_cmp(&id, &back), 0, "'%s'", text);
    }
}

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

/* Text order is byte order is firn_ksuid_cmp(), also for IDs that differ late. */
T_TEST(ksuid_keeps_order)
{
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        struct firn_ksuid a, b;
        char x[FIRN_KSUID_TEXT_BUF], y[FIRN_KSUID_TEXT_BUF];
        t_random_bytes(&a, sizeof a);
        b = a;
        b.b[t_random_below(sizeof b.b)] = (uint8_t)t_random();
        firn_ksuid_format(&a, x);
        firn_ksuid_format(&b, y);
        T_EQ(sign(strcmp(x, y)), sign(memcmp(&a, &b, sizeof a)), "%s %s", x, y);
        T_EQ(sign(firn_ksuid_cmp(&a, &b)), sign(memcmp(&a, &b, sizeof a)), "%s %s", x, y);
    }
}

/* Any 27 characters of the alphabet are refused as too large or are the one text of their value. */
T_TEST(ksuid_text_is_canonical)
{
    static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const char greatest[] = "aWgEPTl1tmebfsQzFP4bxwgy80V";
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        char text[FIRN_KSUID_TEXT_BUF] = "", again[FIRN_KSUID_TEXT_BUF];
        size_t same = i % 3 == 0 ? (size_t)t_random_below(FIRN_KSUID_TEXT_LEN) : 0;
        for (size_t k = 0; k < FIRN_KSUID_TEXT_LEN; k++)
            text[k] = k < same ? greatest[k] : alphabet[t_random_below(62)];
        size_t run = same + (size_t)t_random_below(FIRN_KSUID_TEXT_LEN - same);
        if (i % 4 == 0) /* beside a multiple of a power of 62 */
            memset(text + run, i & 4 ? '0' : 'z', FIRN_KSUID_TEXT_LEN - run);
        struct firn_ksuid id;
        int r = firn_ksuid_parse(text, FIRN_KSUID_TEXT_LEN, &id);
        T_EQ(r, strcmp(text, greatest) > 0 ? FIRN_ERANGE : 0, "'%s'", text);
        if (r != 0)
            continue;
        firn_ksuid_format(&id, again);
        T_STR(again, text);
    }
}
