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

/* Options without their size are what `struct firn_gen_opts o = { .slot = 17 }` makes: the slot
 * would be dropped, and IDs would carry slot 0. */
T_TEST(options_without_a_size)
{
    struct firn_layout l = layout("firn");
    struct firn_clock_virtual clock;
    struct firn_gen g, *on_page = NULL;
    struct firn_shared s, *shared_page = NULL;
    firn_clock_virtual_init(&clock, UINT64_C(1800000000000000000));
    const uint32_t bad[] = { 0, 4, 16, sizeof(struct firn_gen_opts) - 1 };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_gen_opts opts = { .size = bad[i], .slot = 17, .clock = &clock.base };
        T_EQ(firn_gen_init(&g, &l, &opts), FIRN_EINVAL, "size %u", bad[i]);
        T_EQ(firn_shared_init(&s, &l, &opts), FIRN_EINVAL, "size %u", bad[i]);
        T_EQ(firn_gen_new(&l, &opts, &on_page), FIRN_EINVAL, "size %u", bad[i]);
        T_EQ(firn_shared_new(&l, &opts, &shared_page), FIRN_EINVAL, "size %u", bad[i]);
    }
}

/* A caller of a later release, whose struct has grown: zeros there are the default, anything else
 * is more than this library knows. */
T_TEST(options_of_a_later_release)
{
    struct firn_layout l = layout("firn");
    struct firn_clock_virtual clock;
    struct firn_gen g;
    struct {
        struct firn_gen_opts opts;
        uint64_t more;
    } later = { .opts = { .size = sizeof later, .slot = 17, .clock = &clock.base } };
    firn_clock_virtual_init(&clock, UINT64_C(1800000000000000000));
    T_EQ(firn_gen_init(&g, &l, &later.opts), 0);
    later.more = 1;
    T_EQ(firn_gen_init(&g, &l, &later.opts), FIRN_ENOTSUP);
}

/* A tick longer than what is ridden out as a step back: used up is not stepped back. */
T_TEST(shared_answers_as_gen_with_long_ticks)
{
    struct firn_layout l = layout("unused:1,time:31@1s,node:30,seq:2");
    for (uint32_t policy = FIRN_POLICY_WAIT; policy <= FIRN_POLICY_ERROR; policy++) {
        struct firn_clock_virtual clock;
        struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
        struct firn_gen g;
        struct firn_shared s;
        uint64_t id;
        firn_clock_virtual_init(&clock, UINT64_C(1800000000000000000));
        opts.clock = &clock.base;
        opts.policy = policy;
        opts.wait_max_ms = 100;
        T_EQ(firn_gen_init(&g, &l, &opts), 0);
        T_EQ(firn_shared_init(&s, &l, &opts), 0);
        clock.frozen = 1;
        T_EQ(firn_gen_next(&g, &id), FIRN_EAGAIN); /* the window begins with the next tick */
        T_EQ(firn_shared_next(&s, &id), FIRN_EAGAIN);
        clock.ns += UINT64_C(1500000000);
        for (int i = 0; i < 4; i++) {
            T_EQ(firn_gen_next(&g, &id), 0);
            T_EQ(firn_shared_next(&s, &id), 0);
        }
        for (int i = 0; i < 3; i++) {
            T_EQ(firn_gen_next(&g, &id), FIRN_EAGAIN);
            T_EQ(firn_shared_next(&s, &id), FIRN_EAGAIN);
        }
        clock.ns -= UINT64_C(3600000000000);
        T_EQ(firn_gen_next(&g, &id), FIRN_ECLOCK);
        T_EQ(firn_shared_next(&s, &id), FIRN_ECLOCK);
    }
}

/* Time and sequence of 63 bits end where the word of a closed generator used to begin. */
T_TEST(shared_at_a_63_bit_end)
{
    struct firn_layout l = layout("time:41@1ms,node:1,seq:22;epoch=1970-01-01T00:00:00Z;unsigned");
    struct firn_clock_virtual clock;
    struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
    const uint64_t end = UINT64_C(1) << 41;
    struct firn_gen g;
    struct firn_shared s;
    uint64_t id, last = 0;
    firn_clock_virtual_init(&clock, (end - 2) * 1000000);
    opts.clock = &clock.base;
    opts.policy = FIRN_POLICY_ERROR;
    T_EQ(firn_gen_init(&g, &l, &opts), 0);
    T_EQ(firn_shared_init(&s, &l, &opts), 0);
    clock.ns += 1000000;
    T_EQ(firn_gen_next(&g, &id), 0);
    T_EQ(firn_shared_next(&s, &id), 0);
    clock.ns += 1000000;
    for (int i = 0; i < 3; i++) {
        T_EQ(firn_gen_next(&g, &id), FIRN_EEXHAUSTED);
        T_EQ(firn_shared_next(&s, &id), FIRN_EEXHAUSTED);
    }
    firn_shared_close(&s, &last);
    T_EQ(last, end - 1);
    T_EQ(firn_shared_next(&s, &id), FIRN_ECLOSED);
    T_EQ(firn_shared_next(&s, &id), FIRN_ECLOSED);
}

T_TEST(nothing_is_asked_for)
{
    struct firn_layout l = layout("firn");
    struct firn_clock_virtual clock;
    struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
    struct firn_gen g;
    struct firn_shared s;
    size_t n = 9;
    firn_clock_virtual_init(&clock, UINT64_C(1800000000000000000));
    opts.clock = &clock.base;
    T_EQ(firn_gen_init(&g, &l, &opts), 0);
    T_EQ(firn_shared_init(&s, &l, &opts), 0);
    T_EQ(firn_gen_fill(&g, NULL, 0, &n), 0);
    T_EQ(n, 0);
    n = 9;
    T_EQ(firn_shared_fill(&s, NULL, 0, &n), 0);
    T_EQ(n, 0);
    T_EQ(firn_gen_fill(&g, NULL, 1, &n), FIRN_EINVAL);
    T_EQ(firn_shared_fill(&s, NULL, 1, &n), FIRN_EINVAL);
}

/* Shard 0 is a shard: a layout that has none must not answer as if it had. */
T_TEST(shard_zero_without_a_shard_field)
{
    struct firn_clock_virtual clock;
    struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
    struct firn_gen g;
    uint64_t id;
    firn_clock_virtual_init(&clock, UINT64_C(1800000000000000000));
    opts.clock = &clock.base;
    struct firn_layout plain = layout("firn");
    T_EQ(firn_gen_init(&g, &plain, &opts), 0);
    T_EQ(firn_gen_next_shard(&g, 0, &id), FIRN_ERANGE);
    struct firn_layout with = layout("unused:1,time:41,shard:4,node:6,seq:12");
    T_EQ(firn_gen_init(&g, &with, &opts), 0);
    T_EQ(firn_gen_next_shard(&g, 0, &id), 0);
}
