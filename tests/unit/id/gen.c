/* The thread-owned and the shared generator, on a clock that the test moves. */
#include "t.h"

#include "firn/gen.h"

#define MS      UINT64_C(1000000)
#define START   (UINT64_C(1800000000000) * MS) /* 2027-01-15 */
#define TICK(l) firn_layout_ticks(&(l), (int64_t)(START / 1000))

static struct firn_layout layout_of(const char *text)
{
    struct firn_layout l;
    struct firn_diag d = { 0, "" };
    T_EQ(firn_layout_parse(text, strlen(text), 0, &l, &d), 0, "%s", d.text);
    return l;
}

/* Both generators behind one face, so that each rule is tested on both. */
struct either {
    bool shared;
    struct firn_gen own;
    struct firn_shared all;
};

static int either_init(struct either *e, bool shared, const struct firn_layout *l,
                       const struct firn_gen_opts *o)
{
    e->shared = shared;
    return shared ? firn_shared_init(&e->all, l, o) : firn_gen_init(&e->own, l, o);
}

static int either_next(struct either *e, uint64_t *id)
{
    return e->shared ? firn_shared_next(&e->all, id) : firn_gen_next(&e->own, id);
}

static int either_fill(struct either *e, uint64_t *ids, size_t n, size_t *out)
{
    return e->shared ? firn_shared_fill(&e->all, ids, n, out) : firn_gen_fill(&e->own, ids, n, out);
}

static void either_extend(struct either *e, uint64_t until)
{
    if (e->shared)
        firn_shared_extend(&e->all, until);
    else
        firn_gen_extend(&e->own, until);
}

static void either_close(struct either *e, uint64_t *last)
{
    if (e->shared)
        firn_shared_close(&e->all, last);
    else
        firn_gen_close(&e->own, last);
}

static struct firn_gen_opts opts_for(const struct firn_clock_virtual *c, enum firn_policy policy)
{
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    o.clock = &c->base;
    o.policy = policy;
    return o;
}

static uint64_t part(const struct firn_layout *l, uint64_t id, enum firn_field f)
{
    struct firn_parts p;
    T_EQ(firn_layout_decompose(l, id, &p), 0);
    return p.field[f];
}

static void stamps_time_slot_and_sequence(bool shared)
{
    struct firn_layout l = layout_of("firn");
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, START);
    struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_WAIT);
    o.slot = 517;
    struct either e;
    T_EQ(either_init(&e, shared, &l, &o), 0);
    c.ns += 5 * MS;
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t id;
        T_EQ(either_next(&e, &id), 0);
        T_EQ(part(&l, id, FIRN_FIELD_TIME), TICK(l) + 5);
        T_EQ(part(&l, id, FIRN_FIELD_NODE), 517);
        T_EQ(part(&l, id, FIRN_FIELD_SEQ), i);
    }
    c.ns += MS;
    uint64_t id;
    T_EQ(either_next(&e, &id), 0);
    T_EQ(part(&l, id, FIRN_FIELD_TIME), TICK(l) + 6);
    T_EQ(part(&l, id, FIRN_FIELD_SEQ), 0);
}

static void first_id_is_after_the_tick_of_creation(bool shared)
{
    struct firn_layout l = layout_of("firn");
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, START);
    c.lag_ns = 4 * MS; /* a coarse clock must not lead back before creation */
    struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_WAIT);
    struct either e;
    uint64_t id;
    T_EQ(either_init(&e, shared, &l, &o), 0);
    T_EQ(either_next(&e, &id), 0);
    T_EQ(part(&l, id, FIRN_FIELD_TIME), TICK(l) + 1);
    T_OK(c.ns >= START + MS, "it waited for that tick");
}

static void used_up_tick(bool shared)
{
    struct firn_layout l = layout_of("unused:1,time:41,node:10,seq:2");
    struct firn_clock_virtual c;
    struct either e;
    uint64_t id, last = 0;

    firn_clock_virtual_init(&c, START); /* wait: each fifth ID moves the clock on */
    struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_WAIT);
    T_EQ(either_init(&e, shared, &l, &o), 0);
    for (int i = 0; i < 40; i++) {
        T_EQ(either_next(&e, &id), 0);
        T_OK(id > last);
        T_OK(part(&l, id, FIRN_FIELD_TIME) <= firn_layout_ticks(&l, (int64_t)(c.ns / 1000)));
        last = id;
    }
    T_EQ(part(&l, id, FIRN_FIELD_TIME), TICK(l) + 10);

    firn_clock_virtual_init(&c, START); /* error: says so, and goes on when the clock does */
    o = opts_for(&c, FIRN_POLICY_ERROR);
    T_EQ(either_init(&e, shared, &l, &o), 0);
    c.ns += MS;
    for (int i = 0; i < 4; i++)
        T_EQ(either_next(&e, &id), 0);
    for (int i = 0; i < 10000; i++) /* trying again must not run away with the time */
        T_EQ(either_next(&e, &id), FIRN_EAGAIN);
    c.ns += MS;
    T_EQ(either_next(&e, &id), 0);
    T_EQ(part(&l, id, FIRN_FIELD_TIME), TICK(l) + 2);

    firn_clock_virtual_init(&c, START); /* borrow: ahead by max_drift_ms, no further */
    o = opts_for(&c, FIRN_POLICY_BORROW);
    o.max_drift_ms = 3;
    T_EQ(either_init(&e, shared, &l, &o), 0);
    for (int i = 0; i < 12; i++)
        T_EQ(either_next(&e, &id), 0, "ID %d", i);
    T_EQ(part(&l, id, FIRN_FIELD_TIME), TICK(l) + 3);
    for (int i = 0; i < 10000; i++)
        T_EQ(either_next(&e, &id), FIRN_EAGAIN);
    c.ns += MS;
    T_EQ(either_next(&e, &id), 0);
    T_EQ(part(&l, id, FIRN_FIELD_TIME), TICK(l) + 4);
}

static void clock_steps_back(bool shared)
{
    struct firn_layout l = layout_of("firn");
    struct firn_clock_virtual c;
    struct either e;
    uint64_t id, before;

    firn_clock_virtual_init(&c, START);
    struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_ERROR);
    T_EQ(either_init(&e, shared, &l, &o), 0);
    c.ns += 5 * MS;
    T_EQ(either_next(&e, &before), 0);
    c.ns -= 4 * MS; /* a small step is ridden out in the same tick */
    T_EQ(either_next(&e, &id), 0);
    T_EQ(id, before + 1);
    c.ns -= 3600 * 1000 * MS;
    T_EQ(either_next(&e, &id), FIRN_ECLOCK);
    T_EQ(either_next(&e, &id), FIRN_ECLOCK);
    c.ns += 3601 * 1000 * MS;
    T_EQ(either_next(&e, &id), 0);
    T_OK(id > before + 1);

    firn_clock_virtual_init(&c, START); /* wait: comes through a second, gives up on an hour */
    o = opts_for(&c, FIRN_POLICY_WAIT);
    o.wait_max_ms = 3000;
    T_EQ(either_init(&e, shared, &l, &o), 0);
    c.ns += 5 * MS;
    T_EQ(either_next(&e, &before), 0);
    c.ns -= 1000 * MS;
    T_EQ(either_next(&e, &id), 0);
    T_OK(id > before);
    c.ns -= 3600 * 1000 * MS;
    T_EQ(either_next(&e, &id), FIRN_ECLOCK);

    firn_clock_virtual_init(&c, START); /* borrow: an hour back carries on in the held tick */
    o = opts_for(&c, FIRN_POLICY_BORROW);
    T_EQ(either_init(&e, shared, &l, &o), 0);
    c.ns += 5 * MS;
    T_EQ(either_next(&e, &before), 0);
    c.ns -= 3600 * 1000 * MS;
    for (int i = 0; i < 10000; i++) {
        T_EQ(either_next(&e, &id), 0);
        T_OK(id > before);
        before = id;
    }
    T_EQ(part(&l, id, FIRN_FIELD_TIME), TICK(l) + 5 + 10000 / 4096);
}

static void window_ends(bool shared)
{
    struct firn_layout l = layout_of("unused:1,time:41,node:10,seq:2");
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, START);
    struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_BORROW);
    o.from = TICK(l) + 2;
    o.until = TICK(l) + 4;
    struct either e;
    uint64_t id;
    T_EQ(either_init(&e, shared, &l, &o), 0);
    for (int i = 0; i < 8; i++) {
        T_EQ(either_next(&e, &id), 0);
        T_EQ(part(&l, id, FIRN_FIELD_TIME), TICK(l) + 2 + i / 4);
    }
    T_EQ(either_next(&e, &id), FIRN_EWINDOW);
    either_extend(&e, TICK(l) + 3); /* never lowered */
    T_EQ(either_next(&e, &id), FIRN_EWINDOW);
    either_extend(&e, TICK(l) + 100);
    T_EQ(either_next(&e, &id), 0);
    T_EQ(part(&l, id, FIRN_FIELD_TIME), TICK(l) + 4);
    c.ns += 100 * MS;
    T_EQ(either_next(&e, &id), FIRN_EWINDOW);
}

static void close_ends_it(bool shared)
{
    struct firn_layout l = layout_of("firn");
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, START);
    struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_WAIT);
    struct either e;
    uint64_t id, last = 0, ids[4];
    size_t n;
    T_EQ(either_init(&e, shared, &l, &o), 0);
    c.ns += 7 * MS;
    T_EQ(either_next(&e, &id), 0);
    either_close(&e, &last);
    T_EQ(last, TICK(l) + 7);
    for (int i = 0; i < 100; i++)
        T_EQ(either_next(&e, &id), FIRN_ECLOSED);
    T_EQ(either_fill(&e, ids, 4, &n), FIRN_ECLOSED);
}

static void fill_crosses_ticks(bool shared)
{
    struct firn_layout l = layout_of("unused:1,time:41,node:10,seq:4");
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, START);
    struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_WAIT);
    struct either e;
    uint64_t ids[1000];
    size_t n = 0;
    T_EQ(either_init(&e, shared, &l, &o), 0);
    T_EQ(either_fill(&e, ids, 0, &n), 0);
    T_EQ(either_fill(&e, ids, 1000, &n), 0);
    T_EQ(n, 1000);
    for (size_t i = 0; i < n; i++) {
        T_EQ(part(&l, ids[i], FIRN_FIELD_SEQ), i % 16);
        T_EQ(part(&l, ids[i], FIRN_FIELD_TIME), TICK(l) + 1 + i / 16);
    }
    o = opts_for(&c, FIRN_POLICY_ERROR); /* what there is, then the reason */
    T_EQ(either_init(&e, shared, &l, &o), 0);
    c.ns += MS;
    T_EQ(either_fill(&e, ids, 1000, &n), 0);
    T_EQ(n, 16);
    T_EQ(either_fill(&e, ids, 1000, &n), FIRN_EAGAIN);
    T_EQ(n, 16, "untouched on error");
}

#define ON_BOTH(rule)     \
    T_TEST(gen_##rule)    \
    {                     \
        rule(false);      \
    }                     \
    T_TEST(shared_##rule) \
    {                     \
        rule(true);       \
    }

ON_BOTH(stamps_time_slot_and_sequence)
ON_BOTH(first_id_is_after_the_tick_of_creation)
ON_BOTH(used_up_tick)
ON_BOTH(clock_steps_back)
ON_BOTH(window_ends)
ON_BOTH(close_ends_it)
ON_BOTH(fill_crosses_ticks)

T_TEST(gen_layout_without_sequence)
{
    struct firn_layout l = layout_of("cockroach");
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, START);
    for (int shared = 0; shared < 2; shared++) {
        struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_BORROW);
        o.slot = 3;
        struct either e;
        uint64_t id, last = 0;
        T_EQ(either_init(&e, shared, &l, &o), 0);
        for (int i = 0; i < 1000; i++) {
            T_EQ(either_next(&e, &id), 0);
            T_OK(id > last);
            T_EQ(part(&l, id, FIRN_FIELD_NODE), 3);
            last = id;
        }
    }
}

T_TEST(gen_lanes_divide_the_sequence)
{
    struct firn_layout l = layout_of("unused:1,time:41,node:10,seq:4");
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, START);
    struct firn_gen lane[3];
    for (uint32_t i = 0; i < 3; i++) {
        struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_ERROR);
        o.lane = i;
        o.lanes = 3;
        T_EQ(firn_gen_init(&lane[i], &l, &o), 0);
    }
    c.ns += MS;
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t id;
        for (uint64_t q = 0; q < 5; q++) { /* 16 / 3 numbers each */
            T_EQ(firn_gen_next(&lane[i], &id), 0);
            T_EQ(part(&l, id, FIRN_FIELD_SEQ), i * 5 + q);
        }
        T_EQ(firn_gen_next(&lane[i], &id), FIRN_EAGAIN);
    }
}

T_TEST(gen_shard_travels_in_the_id)
{
    struct firn_layout l = layout_of("audit");
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, START);
    struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_WAIT);
    o.slot = 9;
    struct firn_gen g;
    uint64_t id;
    T_EQ(firn_gen_init(&g, &l, &o), 0);
    T_EQ(firn_gen_next_shard(&g, 31, &id), 0);
    T_EQ(part(&l, id, FIRN_FIELD_SHARD), 31);
    T_EQ(part(&l, id, FIRN_FIELD_NODE), 9);
    T_EQ(firn_gen_next_shard(&g, 32, &id), FIRN_ERANGE);
    l = layout_of(
        "instagram"); /* here the shard is the identity, and not for the caller to change */
    T_EQ(firn_gen_init(&g, &l, &o), 0);
    T_EQ(firn_gen_next_shard(&g, 1, &id), FIRN_ERANGE);
    T_EQ(firn_gen_next(&g, &id), 0);
    T_EQ(part(&l, id, FIRN_FIELD_SHARD), 9);
}

T_TEST(gen_after_an_observed_id)
{
    struct firn_layout l = layout_of("firn");
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, START);
    struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_BORROW);
    struct firn_gen g;
    uint64_t id, seen = 0;
    T_EQ(firn_gen_init(&g, &l, &o), 0);
    struct firn_parts p = { { TICK(l) + 4000, 0, 1000, 0, 4000 } };
    T_EQ(firn_layout_compose(&l, &p, &seen, NULL), 0);
    T_EQ(firn_gen_after(&g, &l, seen), 0);
    T_EQ(firn_gen_next(&g, &id), 0);
    T_OK(id > seen);
    int more = 0; /* the drift counts from the clock, not from what was observed */
    while (firn_gen_next(&g, &id) == 0 && more < 100 * 4096 * 1000)
        more++;
    T_OK(part(&l, id, FIRN_FIELD_TIME) <= TICK(l) + 5000);
    p.field[FIRN_FIELD_TIME] = TICK(l) + 6000; /* more than max_drift_ms ahead: not believed */
    T_EQ(firn_layout_compose(&l, &p, &seen, NULL), 0);
    T_EQ(firn_gen_after(&g, &l, seen), FIRN_ERANGE);
}

T_TEST(gen_refuses_bad_options)
{
    struct firn_layout l = layout_of("firn");
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, START);
    struct firn_gen g;
    struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_WAIT);
    o.slot = 1024;
    T_EQ(firn_gen_init(&g, &l, &o), FIRN_EINVAL);
    o = opts_for(&c, FIRN_POLICY_WAIT);
    o.lane = 4;
    o.lanes = 4;
    T_EQ(firn_gen_init(&g, &l, &o), FIRN_EINVAL);
    o = opts_for(&c, FIRN_POLICY_WAIT);
    o.clock = NULL;
    T_EQ(firn_gen_init(&g, &l, &o), FIRN_EINVAL);
    struct { /* options of a later version that ask for something */
        struct firn_gen_opts o;
        uint64_t later;
    } newer = { opts_for(&c, FIRN_POLICY_WAIT), 1 };
    newer.o.size = sizeof newer;
    T_EQ(firn_gen_init(&g, &l, &newer.o), FIRN_ENOTSUP);
    newer.later = 0;
    T_EQ(firn_gen_init(&g, &l, &newer.o), 0);
    o = opts_for(&c, FIRN_POLICY_WAIT);
    l = layout_of("mastodon");
    T_EQ(firn_gen_init(&g, &l, &o), FIRN_ENOTSUP);
    l = layout_of("uid-generator"); /* ran out in 2024 */
    T_EQ(firn_gen_init(&g, &l, &o), FIRN_EEXHAUSTED);
    l = layout_of("firn");
    c.ns = 1000 * MS; /* 1970 */
    T_EQ(firn_gen_init(&g, &l, &o), FIRN_ECLOCK);
}

T_TEST(gen_layout_runs_out)
{
    struct firn_layout l = layout_of("time:41,node:10,seq:2;epoch=1609459200000");
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, (uint64_t)firn_layout_end_us(&l) * 1000 - 3 * MS);
    for (int shared = 0; shared < 2; shared++) {
        struct firn_gen_opts o = opts_for(&c, FIRN_POLICY_BORROW);
        struct either e;
        uint64_t id;
        T_EQ(either_init(&e, shared, &l, &o), 0);
        int n = 0, r;
        while ((r = either_next(&e, &id)) == 0)
            n++;
        T_EQ(n, 8); /* two ticks of four */
        T_EQ(r, FIRN_EEXHAUSTED);
        either_extend(&e, UINT64_MAX); /* what a lease grants beyond does not exist */
        T_EQ(either_next(&e, &id), FIRN_EEXHAUSTED);
    }
}
