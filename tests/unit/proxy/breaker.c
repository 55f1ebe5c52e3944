/* The breaker: what opens it, one probe at a time, late answers, and laws over random histories. */
#include "proxy/breaker.h"
#include "t.h"

static const struct breaker_rules rules = BREAKER_RULES_INIT;

static bool call(struct breaker *b, enum breaker_outcome how, uint64_t now)
{
    struct breaker_pass p = breaker_ask(b, &rules, now);
    breaker_answer(b, &rules, p, how, now);
    return p.pass;
}

static void open_it(struct breaker *b, uint64_t now)
{
    for (int i = 0; i < 5; i++)
        T_OK(call(b, BREAKER_BAD, now));
    T_EQ(b->state, BREAKER_OPEN);
}

T_TEST(the_body)
{
    T_STR(BREAKER_BODY, "{\"error\": \"Service temporarily unavailable\"}");
}

T_TEST(failures_in_a_row)
{
    struct breaker b = { 0 };
    for (int i = 0; i < 100; i++) { /* four, then a success */
        T_OK(call(&b, i % 5 == 4 ? BREAKER_GOOD : BREAKER_BAD, 1000));
        if (i == 18) /* before the share counts */
            break;
    }
    T_EQ(b.state, BREAKER_CLOSED);
    b = (struct breaker){ 0 };
    open_it(&b, 1000);
    T_OK(!call(&b, BREAKER_GOOD, 1000));
    T_EQ(breaker_retry_ms(&b, 1000), 5000);
    T_OK(!call(&b, BREAKER_GOOD, 5999));
    T_OK(call(&b, BREAKER_GOOD, 6000));
    T_EQ(b.state, BREAKER_CLOSED);
    T_STR(breaker_state_name(b.state), "closed");
}

T_TEST(share_of_failures)
{
    struct breaker b = { 0 };
    for (int i = 0; i < 19; i++) /* every second one fails */
        T_OK(call(&b, i % 2 ? BREAKER_GOOD : BREAKER_BAD, 1000 + 10 * i));
    T_EQ(b.state, BREAKER_CLOSED); /* too few to judge by */
    T_OK(call(&b, BREAKER_GOOD, 1200));
    T_OK(call(&b, BREAKER_BAD, 1200));
    T_EQ(b.state, BREAKER_OPEN); /* 11 of 21 */
}

T_TEST(the_window_forgets)
{
    struct breaker b = { 0 };
    for (int i = 0; i < 40; i++) /* one second apart: never twenty within ten seconds */
        T_OK(call(&b, i % 5 < 4 ? BREAKER_BAD : BREAKER_GOOD, 1000 * (uint64_t)i));
    T_EQ(b.state, BREAKER_CLOSED);
}

T_TEST(one_probe_at_a_time)
{
    struct breaker b = { 0 };
    open_it(&b, 0);
    struct breaker_pass probe = breaker_ask(&b, &rules, 5000);
    T_OK(probe.pass);
    T_EQ(b.state, BREAKER_HALF_OPEN);
    for (int i = 0; i < 10; i++)
        T_OK(!breaker_ask(&b, &rules, 5000).pass);
    breaker_answer(&b, &rules, probe, BREAKER_UNKNOWN, 5001); /* its client went away */
    probe = breaker_ask(&b, &rules, 5001);
    T_OK(probe.pass);
    breaker_answer(&b, &rules, probe, BREAKER_BAD, 5002);
    T_EQ(b.state, BREAKER_OPEN);
    T_EQ(breaker_retry_ms(&b, 5002), 10000); /* twice as long as the first time */
    T_EQ(b.opened, 2);
}

T_TEST(a_probe_without_answer_fails)
{
    struct breaker b = { 0 };
    open_it(&b, 0);
    struct breaker_pass lost = breaker_ask(&b, &rules, 5000);
    T_OK(lost.pass);
    T_OK(!breaker_ask(&b, &rules, 34999).pass);
    T_OK(!breaker_ask(&b, &rules, 35000).pass);
    T_EQ(b.state, BREAKER_OPEN);
    breaker_answer(&b, &rules, lost, BREAKER_GOOD, 35001); /* too late */
    T_EQ(b.state, BREAKER_OPEN);
}

T_TEST(open_time_doubles_up_to_its_maximum_and_starts_again)
{
    struct breaker b = { 0 };
    static const uint64_t want[] = { 5000, 10000, 20000, 40000, 60000, 60000 };
    uint64_t now = 0;
    open_it(&b, now);
    for (size_t i = 0; i < T_LEN(want); i++) {
        T_EQ(breaker_retry_ms(&b, now), want[i]);
        now += want[i];
        T_OK(call(&b, BREAKER_BAD, now));
    }
    now += breaker_retry_ms(&b, now);
    T_OK(call(&b, BREAKER_GOOD, now));
    open_it(&b, now);
    T_EQ(breaker_retry_ms(&b, now), 5000);
}

/* Requests that were under way when it opened say nothing about the time after. */
T_TEST(late_answers_count_for_nothing)
{
    struct breaker b = { 0 };
    struct breaker_pass late[20];
    for (int i = 0; i < 20; i++)
        late[i] = breaker_ask(&b, &rules, 0);
    for (int i = 0; i < 5; i++)
        breaker_answer(&b, &rules, late[i], BREAKER_BAD, 1);
    T_EQ(b.state, BREAKER_OPEN);
    for (int i = 5; i < 20; i++)
        breaker_answer(&b, &rules, late[i], i % 2 ? BREAKER_BAD : BREAKER_GOOD, 2);
    T_EQ(b.opened, 1);
    T_EQ(breaker_retry_ms(&b, 1), 5000);
    T_OK(breaker_ask(&b, &rules, 5001).pass);
    breaker_answer(&b, &rules, late[19], BREAKER_GOOD, 5002);
    T_EQ(b.state, BREAKER_HALF_OPEN);
}

T_TEST(several_probes)
{
    struct breaker b = { 0 };
    struct breaker_rules three = rules;
    three.probes = 3;
    open_it(&b, 0);
    for (int i = 0; i < 3; i++) {
        struct breaker_pass p = breaker_ask(&b, &three, 5000);
        T_OK(p.pass && b.state == BREAKER_HALF_OPEN);
        breaker_answer(&b, &three, p, BREAKER_GOOD, 5000);
    }
    T_EQ(b.state, BREAKER_CLOSED);
}

T_TEST(rules_that_cannot_be_used)
{
    struct breaker_rules r = rules;
    T_OK(!breaker_rules_wrong(&r));
    r.error_percent = 101;
    T_OK(breaker_rules_wrong(&r));
    r.error_percent = r.consecutive = 0;
    T_OK(breaker_rules_wrong(&r));
    r = rules;
    r.open_max_ms = r.open_ms - 1;
    T_OK(breaker_rules_wrong(&r));
    r = rules;
    r.probes = 0;
    T_OK(breaker_rules_wrong(&r));
}

/* Whatever happens: open refuses until its time, half open lets one at a time through, and a
 * service that is well again is used again. */
T_TEST(laws)
{
    for (uint64_t round = 0; round < t_scale(300); round++) {
        struct breaker b = { 0 };
        struct breaker_pass flight[16];
        size_t flying = 0;
        uint64_t now = 0, out = 0;
        uint32_t out_era = 0;
        for (int i = 0; i < 2000; i++) {
            now += t_random_below(200);
            if (flying < 16 && t_random_below(2)) {
                enum breaker_state was = b.state;
                uint64_t retry = b.retry_ms;
                struct breaker_pass p = breaker_ask(&b, &rules, now);
                T_OK(!(was == BREAKER_OPEN && now < retry && p.pass));
                T_OK(was != BREAKER_CLOSED || p.pass);
                if (p.pass && b.state == BREAKER_HALF_OPEN) {
                    T_OK(out_era != b.era || out == 0, "a second probe");
                    out_era = b.era;
                    out = p.probe;
                }
                if (p.pass)
                    flight[flying++] = p;
            } else if (flying > 0) {
                size_t k = t_random_below(flying);
                struct breaker_pass p = flight[k];
                flight[k] = flight[--flying];
                if (p.era == out_era && p.probe == out)
                    out = 0;
                breaker_answer(&b, &rules, p, (enum breaker_outcome)t_random_below(3), now);
            }
        }
        for (int i = 0; i < 5; i++) {
            now += 200000;
            (void)call(&b, BREAKER_GOOD, now);
        }
        T_EQ(b.state, BREAKER_CLOSED);
    }
}
