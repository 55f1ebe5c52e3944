/* Which server is asked, and how many retries there are: with a clock and dice of the test's. */
#include "client/balance.h"
#include "client/budget.h"
#include "t.h"

static size_t pick(const struct health *h, size_t n, uint64_t tried, uint64_t now)
{
    return balance_pick(h, n, tried, now, t_random());
}

static void attempt(struct health *h, enum verdict v, uint64_t took_us, uint64_t now)
{
    balance_begin(h);
    balance_end(h, v, took_us, now);
}

T_TEST(all_of_equal_servers_are_asked)
{
    struct health h[5] = { 0 };
    unsigned seen[5] = { 0 };
    for (int i = 0; i < 10000; i++)
        seen[pick(h, 5, 0, 1)]++;
    for (int i = 0; i < 5; i++)
        T_OK(seen[i] > 1000 && seen[i] < 3000, "server %d: %u", i, seen[i]);
}

T_TEST(of_two_the_less_busy_one)
{
    struct health h[2] = { { .busy = 3 }, { .busy = 2 } };
    for (int i = 0; i < 100; i++)
        T_EQ(pick(h, 2, 0, 1), 1);
    h[1].busy = 3;
    h[0].latency_us = 100;
    h[1].latency_us = 200;
    for (int i = 0; i < 100; i++)
        T_EQ(pick(h, 2, 0, 1), 0);
}

/* The busiest of many is never asked, because it loses against every other server. In 20,000 runs
 * the difference never was above 15; where any one is asked, never below 29. */
T_TEST(load_evens_out)
{
    struct health h[8] = { 0 };
    for (int i = 0; i < 10000; i++) {
        balance_begin(&h[pick(h, 8, 0, 1)]);
        if (i >= 64) /* somebody finishes */
            for (size_t k = t_random_below(8), n = 0; n < 8; n++, k = (k + 1) % 8)
                if (h[k].busy) {
                    balance_end(&h[k], SERVER_FINE, 100, 1);
                    break;
                }
        uint32_t least = UINT32_MAX, most = 0;
        for (int k = 0; k < 8; k++) {
            least = h[k].busy < least ? h[k].busy : least;
            most = h[k].busy > most ? h[k].busy : most;
        }
        T_OK(most - least <= 22, "%u to %u", least, most);
    }
}

T_TEST(tried_ones_are_not_asked_again)
{
    struct health h[3] = { 0 };
    for (int i = 0; i < 100; i++)
        T_EQ(pick(h, 3, 5, 1), 1);
    T_EQ(pick(h, 3, 7, 1), 3);
}

T_TEST(a_server_that_is_down_is_left_alone_and_comes_back)
{
    struct health h[2] = { 0 };
    uint64_t now = 1000;
    balance_begin(&h[0]);
    balance_end(&h[0], SERVER_DOWN, 0, now);
    T_OK(balance_is_out(&h[0], now));
    for (int i = 0; i < 100; i++)
        T_EQ(pick(h, 2, 0, now), 1);
    now += OUT_FIRST_MS;
    T_OK(!balance_is_out(&h[0], now), "it gets a chance");
    balance_begin(&h[0]);
    T_OK(balance_is_out(&h[0], now), "one at a time");
    balance_end(&h[0], SERVER_DOWN, 0, now);
    T_EQ(h[0].out_until_ms, now + 2 * OUT_FIRST_MS);
    now += 2 * OUT_FIRST_MS;
    balance_begin(&h[0]);
    balance_end(&h[0], SERVER_FINE, 50, now);
    T_OK(!balance_is_out(&h[0], now));
    T_EQ(h[0].outs, 0);
}

T_TEST(the_time_out_has_an_end)
{
    struct health h = { 0 };
    uint64_t now = 1000;
    for (int i = 0; i < 100; i++) {
        attempt(&h, SERVER_DOWN, 0, now);
        T_OK(h.out_until_ms <= now + OUT_MAX_MS);
        now = h.out_until_ms;
    }
}

T_TEST(calls_that_were_under_way_teach_one_lesson)
{
    struct health h = { .busy = 50 };
    for (int i = 0; i < 50; i++)
        balance_end(&h, SERVER_DOWN, 0, 1000);
    T_EQ(h.busy, 0);
    T_EQ(h.out_until_ms, 1000 + OUT_FIRST_MS);
}

T_TEST(one_slip_is_chance)
{
    struct health h = { 0 };
    attempt(&h, SERVER_SLIPPED, 0, 1000);
    T_OK(!balance_is_out(&h, 1000));
    attempt(&h, SERVER_FINE, 10, 1000);
    attempt(&h, SERVER_SLIPPED, 0, 1000);
    T_OK(!balance_is_out(&h, 1000));
    attempt(&h, SERVER_SLIPPED, 0, 1000);
    T_OK(balance_is_out(&h, 1000));
}

T_TEST(somebody_is_asked_when_all_are_out)
{
    struct health h[3] = { { .out_until_ms = 300 },
                           { .out_until_ms = 200 },
                           { .out_until_ms = 400 } };
    T_EQ(pick(h, 3, 0, 100), 1);
    T_EQ(pick(h, 3, 2, 100), 0);
}

/* However many calls fail, retries stay below a fifth of them and the burst. */
T_TEST(the_budget_bounds_retries)
{
    struct budget b;
    uint64_t calls = 0, retries = 0;
    budget_init(&b);
    for (int i = 0; i < 100000; i++) {
        budget_earn(&b);
        calls++;
        for (int k = 0; k < 3; k++)
            retries += budget_spend(&b);
    }
    T_OK(retries <= calls / 5 + BUDGET_MAX / BUDGET_RETRY, "%llu", (unsigned long long)retries);
    T_OK(retries >= calls / 5);
    for (int i = 0; i < 10000; i++)
        budget_earn(&b);
    uint64_t burst = 0;
    while (budget_spend(&b))
        burst++;
    T_EQ(burst, BUDGET_MAX / BUDGET_RETRY);
}
