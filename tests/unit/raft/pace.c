#include "t.h"

#include "raft/pace.h"

enum { BASE = 150 };

T_TEST(pace_keeps_the_configured_time_on_a_machine_without_pauses)
{
    struct pace p;
    pace_init(&p, BASE);
    for (uint64_t ms = 1000; ms < 200000; ms += 30) {
        pace_heard(&p, 1, ms);
        pace_paused(&p, 10 + (uint32_t)t_random_below(40), ms);
        T_EQ(pace_timeout(&p, ms), BASE, "at %llu", (unsigned long long)ms);
    }
}

T_TEST(pace_waits_longer_where_the_leader_is_heard_late)
{
    struct pace p;
    uint64_t ms = 1000;
    pace_init(&p, BASE);
    for (int i = 0; i < 3; i++, ms += 1100) {
        pace_heard(&p, 1, ms);
        pace_heard(&p, 1, ms + 120);
        T_EQ(pace_timeout(&p, ms + 120) > BASE, i > 0, "the second pause counts, not the first");
        p.heard_ms = 0; /* the time between is no pause in this test */
    }
    uint32_t timeout = pace_timeout(&p, ms);
    T_OK(timeout >= 3 * 120 && timeout < 2 * 3 * 120, "%u", timeout);
    T_EQ(pace_timeout(&p, ms + 70000), BASE, "a minute later it is forgotten");
}

T_TEST(pace_ignores_a_lost_leader_and_a_single_stop)
{
    struct pace p;
    pace_init(&p, BASE);
    for (uint64_t i = 1; i < 50; i++) /* each of another term: nobody was alive in between */
        pace_heard(&p, i, i * 400);
    T_EQ(pace_timeout(&p, 20000), BASE);
    pace_paused(&p, 5000, 21000);
    T_EQ(pace_timeout(&p, 21000), BASE, "stopped once");
    pace_paused(&p, 4000, 26000);
    T_EQ(pace_timeout(&p, 26000), BASE * PACE_MOST, "and again: at most ten times the setting");
}

T_TEST(pace_stays_within_its_bounds)
{
    for (int round = 0; round < 50; round++) {
        struct pace p;
        uint64_t ms = t_random_below(1000000);
        uint32_t base = 1 + (uint32_t)t_random_below(60000);
        pace_init(&p, base);
        for (int i = 0; i < 2000; i++) {
            ms += t_random_below(i % 100 == 0 ? 100000 : 200);
            if (t_random_below(3) == 0)
                pace_paused(&p, (uint32_t)t_random_below(UINT32_MAX), ms);
            else
                pace_heard(&p, t_random_below(3), ms);
            uint32_t t = pace_timeout(&p, ms);
            T_OK(t >= base && t <= base * PACE_MOST, "%u of %u", t, base);
            T_EQ(t, pace_timeout(&p, ms), "the same again");
        }
    }
}
