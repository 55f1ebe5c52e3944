/* One grant after another: who closes the old generators, and where the new ones begin. */
#include "t.h"

#include "coord/stamp_source.h"

enum { MS = 1000000, USERS = 2 };

static uint64_t now_ns, now;

static uint64_t read_clock(const struct firn_clock *c)
{
    (void)c;
    return now_ns;
}

static void no_sleep(const struct firn_clock *c, uint64_t ns)
{
    (void)c;
    (void)ns;
}

static const struct firn_clock hand = { read_clock, read_clock, no_sleep };
static struct stamp_plan plan;
static struct stamp_source source;
static struct stamp_set set[USERS + 1];

static struct lease_view view(uint64_t gen, uint32_t slot, uint64_t until, bool closed)
{
    struct lease_view v = { .max_drift = 5000, .window = 3000 };
    v.grant = (struct slot_grant){ gen, slot, now, until, closed };
    return v;
}

static void setup(void)
{
    struct firn_layout l;
    T_EQ(firn_layout_parse("firn", 4, 0, &l, NULL), 0);
    T_EQ(stamp_plan_init(&plan, &l, NULL), 0);
    now = 1000000;
    now_ns = ((uint64_t)l.epoch_ms + now) * MS;
    memset(set, 0, sizeof set);
    stamp_source_init(&source, &plan, &hand, set, USERS + 1);
}

static int draw(struct stamps *s, uint64_t *id)
{
    struct firn_shared *g = stamps_generator(s, &plan, LEASED_SNOWFLAKE);
    return g ? firn_shared_next(g, id) : FIRN_EWINDOW;
}

T_TEST(source_has_nothing_before_a_grant)
{
    setup();
    struct lease_view none = view(0, 0, 0, false), empty = view(1, 3, now, false);
    T_OK(!stamp_source_follow(&source, NULL, &none));
    struct stamps *s = stamp_source_follow(&source, NULL, &empty);
    uint64_t id;
    T_EQ(draw(s, &id), FIRN_EWINDOW); /* not one tick yet */
    empty.grant.until += 10;
    T_OK(stamp_source_follow(&source, s, &empty) == s, "the same grant, the same generators");
    T_EQ(draw(s, &id), 0);
    T_EQ(stamp_source_highest(&source), 0); /* of grants that are over */
}

/* The first user that sees the new grant closes the old generators for the other one, too. */
T_TEST(source_closes_the_old_grant_for_all)
{
    setup();
    struct lease_view first = view(1, 9, now + 60000, false);
    struct lease_view second = view(2, 4, now + 60000, false); /* a smaller slot */
    struct stamps *a = stamp_source_follow(&source, NULL, &first);
    struct stamps *b = stamp_source_follow(&source, NULL, &first);
    uint64_t id, before;
    T_OK(a == b);
    T_EQ(draw(a, &before), 0);
    a = stamp_source_follow(&source, a, &second);
    T_OK(a != b);
    T_EQ(draw(b, &id), FIRN_ECLOSED);
    T_EQ(draw(a, &id), 0);
    T_OK(id > before, "in the same ms, on a smaller slot");
    T_EQ(stamp_source_highest(&source), now);
    T_OK(stamp_source_follow(&source, b, &second) == a);
}

/* Each user holds one set at a time: there is always a free one. */
T_TEST(source_takes_sets_again)
{
    setup();
    struct stamps *user[USERS] = { NULL, NULL };
    uint64_t id, last = 0;
    for (uint64_t gen = 1; gen < 50; gen++) {
        struct lease_view v = view(gen, (uint32_t)(gen * 7 % 16), now + 60000, false);
        struct stamps **u = &user[gen % USERS];
        *u = stamp_source_follow(&source, *u, &v);
        T_EQ(draw(*u, &id), 0);
        T_OK(id > last, "grant %d", (int)gen);
        last = id;
    }
}

T_TEST(source_ends_with_a_closed_grant_and_for_good)
{
    setup();
    struct lease_view v = view(1, 9, now + 60000, false), closed = view(1, 9, now + 60000, true);
    struct stamps *s = stamp_source_follow(&source, NULL, &v);
    uint64_t id;
    T_EQ(draw(s, &id), 0);
    T_OK(!stamp_source_follow(&source, s, &closed));
    T_EQ(draw(s, &id), FIRN_ECLOSED);
    v.grant.gen = 2;
    s = stamp_source_follow(&source, NULL, &v); /* as another incarnation */
    T_EQ(draw(s, &id), 0);
    stamp_source_close(&source);
    T_EQ(draw(s, &id), FIRN_ECLOSED);
    T_EQ(stamp_source_highest(&source), now + 1); /* each grant begins a tick */
    v.grant.gen = 3;
    T_OK(!stamp_source_follow(&source, s, &v), "nothing comes any more");
}
