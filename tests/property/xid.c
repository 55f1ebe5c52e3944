#include "t.h"

#include "firn/xid.h"

T_TEST(xid_round_trip)
{
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        struct firn_xid id, back;
        char text[FIRN_XID_TEXT_BUF];
        t_random_bytes(&id, sizeof id);
        if (i % 4 == 0) /* runs of zeros and ones, where carries and borrows go wrong */
            memset(id.b + t_random_below(sizeof id.b / 2), i & 4 ? 0xff : 0, sizeof id.b / 2);
        firn_xid_format(&id, text);
        T_EQ(strlen(text), FIRN_XID_TEXT_LEN);
        T_EQ(firn_xid_parse(text, FIRN_XID_TEXT_LEN, &back), 0, "'%s'", text);
        T_EQ(firn_xid_cmp(&id, &back), 0, "'%s'", text);
    }
}

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

/* Text order is byte order is firn_xid_cmp(), also for IDs that differ late. */
T_TEST(xid_keeps_order)
{
    for (uint64_t i = t_scale(1000000); i > 0; i--) {
        struct firn_xid a, b;
        char x[FIRN_XID_TEXT_BUF], y[FIRN_XID_TEXT_BUF];
        t_random_bytes(&a, sizeof a);
        b = a;
        b.b[t_random_below(sizeof b.b)] = (uint8_t)t_random();
        firn_xid_format(&a, x);
        firn_xid_format(&b, y);
        T_EQ(sign(strcmp(x, y)), sign(memcmp(&a, &b, sizeof a)), "%s %s", x, y);
        T_EQ(sign(firn_xid_cmp(&a, &b)), sign(memcmp(&a, &b, sizeof a)), "%s %s", x, y);
    }
}
