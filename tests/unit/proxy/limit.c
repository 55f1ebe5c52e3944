/* Limits: the mission's 100 per minute, the laws of both kinds over random traffic, the table. */
#include "proxy/limit.h"
#include "t.h"

#include <stdio.h>

enum { SECOND = 1000000 };
static const uint64_t begin = UINT64_C(1800000000) * SECOND;
static const struct limit_rule per_minute = { LIMIT_WINDOW, 100, 60 * SECOND, 0 };

T_TEST(the_101st_is_refused)
{
    struct limit_state s = { 0 };
    for (uint32_t i = 0; i < 100; i++) {
        struct limit_answer a = limit_step(&per_minute, &s, begin + i * SECOND / 10);
        T_OK(a.pass, "%u", i);
        T_EQ(a.remaining, 99 - i);
    }
    struct limit_answer a = limit_step(&per_minute, &s, begin + 10 * SECOND);
    T_OK(!a.pass);
    T_EQ(limit_retry_after_s(&a), 50);
    a = limit_step(&per_minute, &s, begin + 60 * SECOND - 1);
    T_OK(!a.pass);
    T_EQ(limit_retry_after_s(&a), 1);
    a = limit_step(&per_minute, &s, begin + 60 * SECOND);
    T_OK(a.pass);
    T_EQ(a.remaining, 99);
}

/* The window begins with the first request of the client, not with a minute of the clock. */
T_TEST(windows_begin_with_a_request)
{
    struct limit_state s = { 0 };
    const uint64_t late = begin + 59 * SECOND;
    for (int i = 0; i < 100; i++)
        T_OK(limit_step(&per_minute, &s, late).pass);
    T_OK(!limit_step(&per_minute, &s, begin + 60 * SECOND).pass);
    T_OK(limit_step(&per_minute, &s, late + 60 * SECOND).pass);
}

T_TEST(a_clock_that_steps_back)
{
    struct limit_state w = { 0 }, g = { 0 };
    const struct limit_rule smooth = { LIMIT_SMOOTH, 1, SECOND, 1 };
    T_OK(limit_step(&per_minute, &w, begin).pass);
    T_OK(limit_step(&per_minute, &w, begin - 3600 * (uint64_t)SECOND).pass);
    T_OK(limit_step(&smooth, &g, begin).pass);
    T_OK(!limit_step(&smooth, &g, begin).pass);
    T_OK(limit_step(&smooth, &g, begin - 3600 * (uint64_t)SECOND).pass);
}

T_TEST(smooth_burst_and_rate)
{
    struct limit_state s = { 0 };
    const struct limit_rule r = { LIMIT_SMOOTH, 10, SECOND, 3 };
    for (uint32_t i = 0; i < 3; i++) {
        struct limit_answer a = limit_step(&r, &s, begin);
        T_OK(a.pass);
        T_EQ(a.remaining, 2 - i);
    }
    struct limit_answer a = limit_step(&r, &s, begin);
    T_OK(!a.pass);
    T_EQ(a.wait_us, SECOND / 10);
    T_EQ(limit_retry_after_s(&a), 1);
    T_OK(!limit_step(&r, &s, begin + SECOND / 10 - 1).pass);
    T_OK(limit_step(&r, &s, begin + SECOND / 10).pass);
    T_OK(!limit_step(&r, &s, begin + SECOND / 10).pass);
}

static struct limit_rule random_rule(enum limit_kind kind)
{
    return (struct limit_rule){ kind, (uint32_t)(1 + t_random_below(20)),
                                1000 + t_random_below(SECOND), (uint32_t)(1 + t_random_below(10)) };
}

/* GCRA: in any stretch of time T at most burst + T × count / period pass. Window: in one window at
 * most count. And a wait is exact: a request just before its end is refused, one at its end
 * passes. */
T_TEST(laws)
{
    static uint64_t passed[5000];
    for (uint64_t round = 0; round < t_scale(300); round++) {
        const enum limit_kind kind = round & 1;
        const struct limit_rule r = random_rule(kind);
        const uint64_t gap = 1 + t_random_below(2 * r.period_us / r.count);
        struct limit_state s = { 0 };
        uint64_t now = begin;
        size_t n = 0;
        T_OK(limit_rule_wrong(&r) == NULL);
        for (int i = 0; i < 3000; i++, now += t_random_below(gap)) {
            struct limit_answer a = limit_step(&r, &s, now);
            if (a.pass) {
                passed[n++] = now;
                continue;
            }
            struct limit_state early = s, then = s;
            T_OK(a.wait_us > 0);
            T_OK(!limit_step(&r, &early, now + a.wait_us - 1).pass);
            T_OK(limit_step(&r, &then, now + a.wait_us).pass);
        }
        for (size_t i = 0; i < n; i++)
            for (size_t k = i; k < n && k < i + 60; k++) {
                double span = (double)(passed[k] - passed[i]), most;
                most = kind == LIMIT_SMOOTH ? r.burst + span * r.count / (double)r.period_us
                                            : r.count * (2 + span / (double)r.period_us);
                T_OK((double)(k - i + 1) <= most + 1e-9, "%zu in %.0f us of %u per %llu", k - i + 1,
                     span, r.count, (unsigned long long)r.period_us);
            }
        if (kind ==
            LIMIT_WINDOW) /* windows, found from outside: each begins where the last ended */
            for (size_t i = 0; i < n;) {
                size_t k = i;
                while (k < n && passed[k] < passed[i] + r.period_us)
                    k++;
                T_OK(k - i <= r.count, "%zu", k - i);
                i = k;
            }
    }
}

T_TEST(rules_that_cannot_be_used)
{
    T_OK(limit_rule_wrong(&(struct limit_rule){ LIMIT_WINDOW, 0, SECOND, 0 }));
    T_OK(limit_rule_wrong(&(struct limit_rule){ LIMIT_WINDOW, 1, 0, 0 }));
    T_OK(limit_rule_wrong(&(struct limit_rule){ LIMIT_SMOOTH, 1, SECOND, 0 }));
    T_OK(!limit_rule_wrong(&per_minute));
    /* The largest does not overflow. */
    const struct limit_rule large = { LIMIT_SMOOTH, 1, UINT64_C(604800) * SECOND, LIMIT_COUNT_MAX };
    struct limit_state s = { 0 };
    T_OK(!limit_rule_wrong(&large));
    T_OK(limit_step(&large, &s, begin).pass);
    T_OK(s.at_us > begin);
}

static struct limit_answer take(struct limit_table *t, uint32_t rule, const char *client,
                                uint64_t now)
{
    return limit_table_take(t, &per_minute, rule, (struct slice){ client, strlen(client) }, now);
}

T_TEST(the_table_keeps_clients_and_rules_apart)
{
    struct limit_table *t;
    T_EQ(limit_table_new(1024, (struct siphash_key){ 1, 2 }, &t), 0);
    for (int i = 0; i < 100; i++)
        T_OK(take(t, 1, "10.0.0.1", begin).pass);
    T_OK(!take(t, 1, "10.0.0.1", begin).pass);
    T_OK(take(t, 1, "10.0.0.2", begin).pass);
    T_OK(take(t, 2, "10.0.0.1", begin).pass);
    T_OK(take(t, 1, "10.0.0.1", begin + 60 * SECOND).pass);
    limit_table_free(t);
}

/* A hundred thousand addresses with one request each, in a table of a thousand: the client that is
 * over its limit stays over it. */
T_TEST(a_flood_frees_nobody)
{
    struct limit_table *t;
    char name[32];
    T_EQ(limit_table_new(1024, (struct siphash_key){ t_random(), t_random() }, &t), 0);
    for (int i = 0; i < 100; i++)
        T_OK(take(t, 1, "loud", begin).pass);
    for (uint64_t i = 0; i < t_scale(100000); i++) {
        snprintf(name, sizeof name, "flood-%llu", (unsigned long long)i);
        T_OK(take(t, 1, name, begin + i).pass);
    }
    T_OK(!take(t, 1, "loud", begin + SECOND).pass);
    limit_table_free(t);
}

T_TEST(refusals_are_remembered)
{
    struct limit_table *t;
    const struct slice c = { "user", 4 }, other = { "used", 4 };
    T_EQ(limit_table_new(64, (struct siphash_key){ 1, 2 }, &t), 0);
    T_EQ(limit_table_refused(t, 1, c, begin), 0);
    limit_table_refuse(t, 1, c, begin + 500, begin);
    T_EQ(limit_table_refused(t, 1, c, begin + 1), 499);
    T_EQ(limit_table_refused(t, 1, c, begin + 500), 0);
    T_EQ(limit_table_refused(t, 2, c, begin), 0);
    T_EQ(limit_table_refused(t, 1, other, begin), 0);
    T_OK(take(t, 1, "user", begin).pass); /* its count is another place */
    limit_table_free(t);
}

T_TEST(keys_cannot_be_forged)
{
    struct buf b;
    buf_init(&b, LIMIT_KEY_BYTES_MAX + 64);
    limit_key(&b, "by-user", (struct slice){ "a:b\r\n", 5 });
    T_OK(slice_is((struct slice){ b.p, b.len }, "limit:by-user:a%3Ab%0D%0A"));
    buf_done(&b);
}

T_TEST(answers_of_the_script)
{
    struct limit_answer a;
    T_OK(limit_script_answer((int64_t[]){ 1, 99, 60000000 }, &a));
    T_OK(a.pass && a.remaining == 99 && a.wait_us == 60000000);
    T_OK(limit_script_answer((int64_t[]){ 0, 0, 1 }, &a) && !a.pass);
    T_OK(!limit_script_answer((int64_t[]){ 2, 0, 1 }, &a));
    T_OK(!limit_script_answer((int64_t[]){ 1, -1, 1 }, &a));
    T_OK(!limit_script_answer((int64_t[]){ 0, 0, -1 }, &a));
}
