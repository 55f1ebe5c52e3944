/* What the election lab's picture promises: one leader, the next lowest takes over, and what a
 * fail-over costs with either way to watch. */
#include "cli/lab/lab.h"
#include "t.h"

#include <stdlib.h>

enum { SEED = 54, ENSEMBLE = 0, C1, C2, C3, C4, C5 };
enum { DOING, ZNODE, WATCHES };

static struct lab_trace play(uint64_t seed, unsigned faults)
{
    struct lab_opts o = { seed, faults, -1 };
    struct lab_trace t;
    struct firn_diag d = { 0 };
    T_EQ(lab_election(&o, &t, &d), 0, "seed %" PRIu64 " faults %u: %s", seed, faults, d.text);
    return t;
}

static unsigned count(const struct lab_trace *t, size_t from, size_t until, const char *event)
{
    unsigned n = 0;
    for (size_t i = from; i < until; i++)
        n += t->step[i].kind == LAB_MESSAGE && strcmp(t->step[i].event, event) == 0;
    return n;
}

static const char *at(const struct lab_trace *t, size_t step, int who, unsigned field)
{
    return t->step[step].cell[who][field];
}

T_TEST(znodes_are_numbered_in_the_order_of_their_creation)
{
    struct lab_trace t = play(SEED, 0);
    size_t created = lab_trace_find(&t, 0, "created");
    T_STR(t.step[created].label, "/election/0000000001");
    T_STR(t.step[lab_trace_find(&t, created + 1, "created")].label, "/election/0000000002");
    size_t end = lab_trace_find(&t, 0, "fail_over");
    T_STR(at(&t, end, ENSEMBLE, ZNODE), "1 2 3 4 5");
    for (int c = C1; c <= C5; c++)
        T_EQ(strtoull(at(&t, end, c, ZNODE), NULL, 10), c);
    lab_trace_done(&t);
}

T_TEST(the_cure_wakes_one_candidate)
{
    struct lab_trace t = play(SEED, 0);
    size_t first = lab_trace_find(&t, 0, "fail_over"), middle = lab_trace_find(&t, 0, "middle"),
           second = lab_trace_find(&t, 0, "second"), end = lab_trace_find(&t, 0, "return");
    T_EQ(count(&t, first, middle, "notified"), 1);
    T_EQ(count(&t, first, middle, "read"), 1);
    T_EQ(count(&t, middle, second, "notified"), 1);
    T_EQ(count(&t, second, end, "notified"), 1);
    T_STR(at(&t, middle, C2, DOING), "leader");
    T_STR(at(&t, middle, C5, WATCHES), "4");
    T_STR(at(&t, second, C5, WATCHES), "3"); /* past the one that went */
    T_STR(at(&t, second, C2, DOING), "leader");
    T_STR(at(&t, end, C3, DOING), "leader"); /* the next lowest */
    lab_trace_done(&t);
}

T_TEST(the_herd_wakes_all_that_are_left)
{
    struct lab_trace t = play(SEED, LAB_HERD);
    size_t first = lab_trace_find(&t, 0, "fail_over"), middle = lab_trace_find(&t, 0, "middle"),
           second = lab_trace_find(&t, 0, "second"), end = lab_trace_find(&t, 0, "return");
    T_EQ(count(&t, first, middle, "notified"), 4);
    T_EQ(count(&t, first, middle, "read"), 4);
    T_EQ(count(&t, middle, second, "notified"), 0); /* C4 was watched by none */
    T_EQ(count(&t, second, end, "notified"), 2);
    T_STR(at(&t, end, C3, DOING), "leader");
    lab_trace_done(&t);
}

T_TEST(both_ways_are_counted_side_by_side)
{
    for (unsigned faults = 0; faults <= LAB_HERD; faults += LAB_HERD) {
        struct lab_trace t = play(SEED, faults);
        T_STR(t.step[lab_trace_find(&t, 0, "tally_herd")].label,
              "all watch the leader: 4 + 0 + 2 notifications, 4 + 0 + 2 reads");
        T_STR(t.step[lab_trace_find(&t, 0, "tally_cure")].label,
              "watch the one before: 1 + 1 + 1 notifications, 1 + 1 + 1 reads");
        lab_trace_done(&t);
    }
}

T_TEST(one_that_comes_back_stands_at_the_end)
{
    struct lab_trace t = play(SEED, 0);
    T_STR(at(&t, t.steps - 1, ENSEMBLE, ZNODE), "3 5 6");
    T_STR(at(&t, t.steps - 1, C1, ZNODE), "6");
    T_STR(at(&t, t.steps - 1, C1, WATCHES), "5");
    T_STR(at(&t, t.steps - 1, C3, DOING), "leader");
    lab_trace_done(&t);
}

/* At most one leader in each step, with the lowest znode; a new one has a higher number. */
T_TEST(every_run_has_one_leader)
{
    for (uint64_t seed = 1; seed <= t_scale(100); seed++)
        for (unsigned faults = 0; faults <= LAB_HERD; faults += LAB_HERD) {
            struct lab_trace t = play(seed, faults);
            uint64_t last = 0;
            for (size_t i = 0; i < t.steps; i++) {
                unsigned leaders = 0;
                T_OK(t.step[i].label[0] && t.step[i].why[0]);
                T_OK(strlen(t.step[i].why) < LAB_WHY_BUF - 1, "cut: %s", t.step[i].why);
                T_OK(strlen(t.step[i].label) < LAB_LABEL_BUF - 1, "cut: %s", t.step[i].label);
                for (int c = C1; c <= C5; c++) {
                    if (strcmp(at(&t, i, c, DOING), "leader") != 0)
                        continue;
                    uint64_t mine = strtoull(at(&t, i, c, ZNODE), NULL, 10);
                    leaders++;
                    T_EQ(mine, strtoull(at(&t, i, ENSEMBLE, ZNODE), NULL, 10));
                    T_OK(mine >= last);
                    last = mine;
                }
                T_OK(leaders <= 1, "seed %" PRIu64 " step %zu: %u leaders", seed, i, leaders);
            }
            T_EQ(last, 3);
            lab_trace_done(&t);
        }
}
