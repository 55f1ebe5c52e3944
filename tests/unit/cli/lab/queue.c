/* What the lab of firn's own election promises: one leader, rising tokens, one process that acts at
 * each failure, and a paused leader that knows by itself that it leads no more. */
#include "cli/lab/lab.h"
#include "t.h"

#include <stdlib.h>

enum { SEED = 54, STORE = 0, C1, C2, C3, C4, C5 };
enum { DOING, MEMBER, TOKEN, AHEAD, LEASE };

static struct lab_trace play(uint64_t seed)
{
    struct lab_opts o = { seed, 0, -1 };
    struct lab_trace t;
    struct firn_diag d = { 0 };
    T_EQ(lab_queue(&o, &t, &d), 0, "seed %" PRIu64 ": %s", seed, d.text);
    return t;
}

static const char *at(const struct lab_trace *t, size_t step, int who, unsigned field)
{
    return t->step[step].cell[who][field];
}

T_TEST(the_next_in_line_takes_over)
{
    struct lab_trace t = play(SEED);
    size_t fail_over = lab_trace_find(&t, 0, "fail_over"), middle = lab_trace_find(&t, 0, "middle"),
           pause = lab_trace_find(&t, 0, "pause");
    T_STR(at(&t, fail_over, STORE, TOKEN), "1 2 3 4 5");
    T_STR(at(&t, fail_over, C1, DOING), "leader");
    T_STR(at(&t, middle, STORE, TOKEN), "2 3 4 5");
    T_STR(at(&t, middle, C2, DOING), "leader");
    T_STR(at(&t, pause, STORE, TOKEN), "2 3 5");
    T_STR(at(&t, pause, C2, DOING), "leader"); /* one in the middle went */
    T_STR(at(&t, t.steps - 1, C3, DOING), "leader");
    T_STR(at(&t, t.steps - 1, STORE, TOKEN), "3 5 6");
    lab_trace_done(&t);
}

T_TEST(one_process_acts_at_each_failure)
{
    static const char *const tally[] = { "tally_leader", "tally_middle", "tally_pause" };
    struct lab_trace t = play(SEED);
    for (size_t i = 0; i < T_LEN(tally); i++) {
        size_t at = lab_trace_find(&t, 0, tally[i]);
        T_OK(at < t.steps && strstr(t.step[at].label, "by 1 process"), "%s", tally[i]);
    }
    lab_trace_done(&t);
}

T_TEST(a_paused_leader_knows_that_its_lease_is_over)
{
    struct lab_trace t = play(SEED);
    size_t pause = lab_trace_find(&t, 0, "pause"), again = lab_trace_find(&t, pause, "restart");
    size_t lost = lab_trace_find(&t, again, "lost");
    T_OK(lost < t.steps);
    for (size_t i = again; i < lost; i++) /* it asked nobody */
        T_OK(t.step[i].kind != LAB_MESSAGE || t.step[i].from != C2);
    T_STR(at(&t, t.steps - 1, C2, TOKEN), "6");
    lab_trace_done(&t);
}

T_TEST(every_run_has_one_leader_and_rising_tokens)
{
    for (uint64_t seed = 1; seed <= t_scale(30); seed++) {
        struct lab_trace t = play(seed);
        uint64_t last = 0;
        for (size_t i = 0; i < t.steps; i++) {
            unsigned leaders = 0;
            T_OK(t.step[i].label[0] && t.step[i].why[0]);
            T_OK(strlen(t.step[i].why) < LAB_WHY_BUF - 1, "cut: %s", t.step[i].why);
            for (int c = C1; c <= C5; c++) {
                if (strcmp(at(&t, i, c, DOING), "leader") != 0)
                    continue;
                uint64_t token = strtoull(at(&t, i, c, TOKEN), NULL, 10);
                T_OK(token >= last, "seed %" PRIu64 ": token %" PRIu64, seed, token);
                last = token;
                leaders++;
            }
            T_OK(leaders <= 1, "seed %" PRIu64 " step %zu: %u leaders", seed, i, leaders);
        }
        T_EQ(last, 3);
        lab_trace_done(&t);
    }
}
