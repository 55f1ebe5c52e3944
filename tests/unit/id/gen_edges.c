/* Generators at the edges of 64-bit nanoseconds: what fuzzing the layouts brought up. */
#include "t.h"

#include "firn/gen.h"

static struct firn_layout layout(const char *text)
{
    struct firn_layout l;
    struct firn_diag diag;
    T_EQ(firn_layout_parse(text, strlen(text), 0, &l, &diag), 0, "%s", text);
    return l;
}

/* An epoch after 2554 does not fit 64 bits of nanoseconds; wrapped around it would lie in the
 * past. */
T_TEST(epoch_beyond_every_clock)
{
    struct firn_layout l = layout("time:41,node:10;epoch=9999-12-31T23:59:59Z");
    struct firn_clock_virtual clock;
    struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
    struct firn_gen g;
    struct firn_shared s;
    firn_clock_virtual_init(&clock, UINT64_C(1800000000000000000));
    opts.clock = &clock.base;
    T_EQ(firn_gen_init(&g, &l, &opts), FIRN_ECLOCK);
    T_EQ(firn_shared_init(&s, &l, &opts), FIRN_ECLOCK);
}

/* A window that begins after the end of the clock is waited for as long as the policy says, no
 * more. */
T_TEST(window_beyond_every_clock)
{
    struct firn_layout l = layout("time:62@1s,node:1,seq:1;epoch=0;unsigned");
    for (uint32_t policy = FIRN_POLICY_WAIT; policy <= FIRN_POLICY_BORROW; policy++) {
        struct firn_clock_virtual clock;
        struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
        struct firn_gen g;
        struct firn_shared s;
        uint64_t id;
        firn_clock_virtual_init(&clock, UINT64_C(1800000000000000000));
        opts.clock = &clock.base;
        opts.policy = policy;
        opts.from = UINT64_C(1) << 61;
        T_EQ(firn_gen_init(&g, &l, &opts), 0);
        int r = firn_gen_next(&g, &id);
        T_OK(r == FIRN_EAGAIN || r == FIRN_ECLOCK, "policy %u: %s", policy, firn_error_name(r));
        T_EQ(firn_shared_init(&s, &l, &opts), 0);
        r = firn_shared_next(&s, &id);
        T_OK(r == FIRN_EAGAIN || r == FIRN_ECLOCK, "policy %u: %s", policy, firn_error_name(r));
    }
}

T_TEST(epoch_of_a_layout_made_by_hand)
{
    struct firn_layout l = layout("firn");
    l.epoch_ms = -1;
    T_EQ(firn_layout_check(&l, 0, NULL), FIRN_ERANGE);
    l.epoch_ms = INT64_C(253402300800000);
    T_EQ(firn_layout_check(&l, 0, NULL), FIRN_ERANGE);
    l.epoch_ms--;
    T_EQ(firn_layout_check(&l, 0, NULL), 0);
}
