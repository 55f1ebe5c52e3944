/* The system's clocks tell the system's time; how finely is not asserted: machines stall. */
#include "t.h"

#include "firn/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

static uint64_t wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Between two readings of the wall clock, but for what a coarse or anchored clock may lag or lead,
 * and for steps of the wall clock itself. */
static void tells_the_time(const struct firn_clock *c)
{
    const uint64_t slack_ns = 1000000000;
    for (int i = 0; i < 1000; i++) {
        uint64_t before = wall_ns(), now = c->now_ns(c), after = wall_ns();
        T_OK(now + slack_ns >= before && now <= after + slack_ns);
        before = wall_ns();
        now = c->fine_ns(c);
        after = wall_ns();
        T_OK(now + slack_ns >= before && now <= after + slack_ns);
    }
}

static void *first_precise(void *arg)
{
    (void)arg;
    const struct firn_clock *c = firn_clock_precise();
    c->now_ns(c);
    return NULL;
}

/* The first test: whichever thread comes first looks for the vDSO. A race shows under tsan. */
T_TEST(clock_first_use_in_two_threads)
{
    pthread_t t;
    struct firn_clock_tsc tsc;
    T_EQ(pthread_create(&t, NULL, first_precise, NULL), 0);
    int r = firn_clock_tsc_init(&tsc);
    T_OK(r == 0 || r == FIRN_ENOTSUP);
    T_EQ(pthread_join(t, NULL), 0);
}

T_TEST(clock_precise)
{
    tells_the_time(firn_clock_precise());
}

T_TEST(clock_coarse)
{
    tells_the_time(firn_clock_coarse());
}

T_TEST(clock_tsc)
{
    struct firn_clock_tsc c;
    T_EQ(firn_clock_tsc_init(NULL), FIRN_EINVAL);
    int r = firn_clock_tsc_init(&c);
    if (r == FIRN_ENOTSUP) {
        printf("NOTE: this processor has no invariant time stamp counter: not tested\n");
        return;
    }
    T_EQ(r, 0);
    tells_the_time(&c.base);
}

T_TEST(clock_for_a_tick)
{
    T_OK(firn_clock_for_tick(1000) == firn_clock_coarse());
    T_OK(firn_clock_for_tick(999) == firn_clock_precise());
}

T_TEST(clock_virtual)
{
    struct firn_clock_virtual c;
    firn_clock_virtual_init(&c, 1000);
    c.lag_ns = 10;
    T_EQ(c.base.now_ns(&c.base), 990);
    T_EQ(c.base.fine_ns(&c.base), 1000);
    c.base.sleep_ns(&c.base, 5);
    T_EQ(c.base.fine_ns(&c.base), 1005);
    c.frozen = 1;
    c.base.sleep_ns(&c.base, 5);
    T_EQ(c.base.fine_ns(&c.base), 1005);
    c.lag_ns = 5000;
    T_EQ(c.base.now_ns(&c.base), 0);
}
