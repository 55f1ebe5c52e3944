#include "t.h"

#include "firn/objectid.h"

T_TEST(objectid_round_trip)
{
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        struct firn_objectid id, back;
        char text[FIRN_OBJECTID_TEXT_BUF];
        t_random_bytes(&id, sizeof id);
        if (i % 4 == 0) /* runs of zeros and ones, where carries and borrows go wrong */
            memset(id.b + t_random_below(sizeof id.b / 2), i & 4 ? 0xff : 0, sizeof id.b / 2);
        firn_objectid_format(&id, text);
        T_EQ(strlen(text), FIRN_OBJECTID_TEXT_LEN);
        T_EQ(firn_objectid_parse(text, FIRN_OBJECTID_TEXT_LEN, &back), 0, "'%s'", text);
        T_EQ(firn_objectid_cmp(&id, &back), 0, "'%s'", text);
    }
}

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

/* Text order is byte order is firn_objectid_cmp(), also for IDs that differ late. */
T_TEST(objectid_keeps_order)
{
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        struct firn_objectid a, b;
        char x[FIRN_OBJECTID_TEXT_BUF], y[FIRN_OBJECTID_TEXT_BUF];
        t_random_bytes(&a, sizeof a);
        b = a;
        b.b[t_random_below(sizeof b.b)] = (uint8_t)t_random();
        firn_objectid_format(&a, x);
        firn_objectid_format(&b, y);
        T_EQ(sign(strcmp(x, y)), sign(memcmp(&a, &b, sizeof a)), "%s %s", x, y);
        T_EQ(sign(firn_objectid_cmp(&a, &b)), sign(memcmp(&a, &b, sizeof a)), "%s %s", x, y);
    }
}
