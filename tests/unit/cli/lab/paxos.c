/* What the Paxos lab's picture promises, on its default seed and on many others, with every set of
 * faults. */
#include "cli/lab/lab.h"
#include "t.h"

#include <stdlib.h>

enum { SEED = 54, CUTS = 3 };
enum { DOING, BALLOT, YES, PROMISED, ACCEPTED, VALUE };
static const unsigned all_faults = LAB_DUEL | LAB_KILL_PROPOSER | LAB_LOSE;

static struct lab_trace play(uint64_t seed, unsigned faults, int cut)
{
    struct lab_opts o = { seed, faults, cut };
    struct lab_trace t;
    struct firn_diag d = { 0 };
    int r = lab_paxos(&o, &t, &d);
    T_EQ(r, 0, "seed %" PRIu64 " faults %u cut %d: %s", seed, faults, cut, d.text);
    return t;
}

static int party(const struct lab_trace *t, const char *name)
{
    for (unsigned i = 0; i < t->parties; i++)
        if (strcmp(t->party[i], name) == 0)
            return (int)i;
    return -1;
}

/* Messages of that event that arrived before step `end`. */
static unsigned count(const struct lab_trace *t, size_t end, const char *event)
{
    unsigned n = 0;
    for (size_t i = 0; i < end; i++)
        n += t->step[i].kind == LAB_MESSAGE && strcmp(t->step[i].event, event) == 0;
    return n;
}

static const char * final(const struct lab_trace *t, const char *who, unsigned field)
{
    return t->step[t->steps - 1].cell[party(t, who)][field];
}

T_TEST(one_proposer_goes_as_in_the_mission)
{
    struct lab_trace t = play(SEED, 0, -1);
    size_t learner = lab_trace_find(&t, 0, "learner");
    T_EQ(count(&t, learner, "prepare"), 3);
    T_EQ(count(&t, learner, "promise"), 3);
    T_EQ(count(&t, learner, "accept"), 3);
    T_EQ(count(&t, learner, "accepted"), 3);
    T_EQ(count(&t, t.steps, "refused"), 0);
    size_t prepare = lab_trace_find(&t, 0, "prepare"), promise = lab_trace_find(&t, 0, "promise");
    T_STR(t.step[prepare].label, "Prepare(n=1)");
    T_STR(t.step[prepare + 1].label, "1 > 0: promised = 1");
    T_STR(t.step[promise].label, "Promise(n=1, accepted: none)");
    size_t accept = lab_trace_find(&t, 0, "accept"), accepted = lab_trace_find(&t, 0, "accepted");
    T_STR(t.step[accept].label, "Accept(n=1, v=value_x, next=2)");
    T_STR(t.step[accepted].label, "Accepted(n=1)");
    T_STR(final(&t, "P1", VALUE), "value_x");
    T_STR(final(&t, "L", VALUE), "value_x");
    for (int i = 1; i <= 3; i++) {
        char name[] = { 'A', (char)('0' + i), '\0' };
        T_STR(final(&t, name, VALUE), "value_x");
        T_STR(final(&t, name, ACCEPTED), "1");
    }
    lab_trace_done(&t);
}

T_TEST(a_majority_comes_before_each_phase_and_before_the_end)
{
    struct lab_trace t = play(SEED, 0, -1);
    T_EQ(count(&t, lab_trace_find(&t, 0, "majority"), "promise"), 2);
    T_EQ(count(&t, lab_trace_find(&t, 0, "decided"), "accepted"), 2);
    lab_trace_done(&t);
}

T_TEST(two_of_three_are_enough)
{
    for (int cut = 0; cut < CUTS; cut++) {
        struct lab_trace t = play(SEED, 0, cut);
        T_EQ(count(&t, t.steps, "accepted"), 2);
        T_STR(final(&t, "L", VALUE), "value_x");
        lab_trace_done(&t);
    }
}

T_TEST(a_duel_ends_with_one_value)
{
    struct lab_trace t = play(SEED, LAB_DUEL, -1);
    T_OK(count(&t, t.steps, "refused") > 0, "no duel");
    T_OK(lab_trace_find(&t, 0, "rest") < t.steps);
    size_t decided = lab_trace_find(&t, 0, "decided");
    T_OK(decided < t.steps);
    T_EQ(lab_trace_find(&t, decided + 1, "decided"), t.steps);
    T_OK(lab_trace_find(&t, 0, "conflict") < t.steps);
    T_STR(final(&t, "P1", VALUE), final(&t, "P2", VALUE));
    T_STR(final(&t, "P1", VALUE), final(&t, "L", VALUE));
    lab_trace_done(&t);
}

T_TEST(what_a_dead_proposer_left_is_completed)
{
    struct lab_trace t = play(SEED, LAB_KILL_PROPOSER, -1);
    size_t kill = lab_trace_find(&t, 0, "kill");
    T_STR(t.step[kill].cell[party(&t, "A1")][VALUE], "value_x");
    T_STR(t.step[kill].cell[party(&t, "A2")][VALUE], "none");
    T_STR(t.step[kill].cell[party(&t, "A3")][VALUE], "none");
    T_STR(final(&t, "P1", DOING), "dead");
    T_STR(final(&t, "P2", VALUE), "value_x"); /* not value_y, which it wanted */
    T_STR(final(&t, "L", VALUE), "value_x");
    lab_trace_done(&t);
}

T_TEST(lost_answers_cost_a_ballot_not_the_value)
{
    struct lab_trace t = play(SEED, LAB_LOSE, -1);
    unsigned lost = 0;
    for (size_t i = 0; i < t.steps; i++)
        lost += t.step[i].kind == LAB_LOST && strcmp(t.step[i].event, "accepted") == 0;
    T_EQ(lost, 3);
    size_t decided = lab_trace_find(&t, 0, "decided");
    T_OK(t.step[decided].term > 1);
    T_STR(final(&t, "L", VALUE), "value_x");
    lab_trace_done(&t);
}

/* ---- for every run ---- */

static uint64_t round_of(const char *ballot)
{
    return strtoull(ballot, NULL, 10); /* "3.P2", or "-" for none */
}

/* Promises only rise and are kept; all nodes that learned a value learned the same. */
static void check_run(const struct lab_trace *t)
{
    for (size_t i = 1; i < t->steps; i++) {
        const struct lab_step *s = &t->step[i];
        T_OK(s->label[0] && s->why[0]);
        T_OK(strlen(s->why) < LAB_WHY_BUF - 1, "cut: %s", s->why);
        T_OK(strlen(s->label) < LAB_LABEL_BUF - 1, "cut: %s", s->label);
        for (unsigned k = 0; k < t->parties; k++) {
            T_OK(round_of(s->cell[k][PROMISED]) >= round_of(s[-1].cell[k][PROMISED]));
            T_OK(round_of(s->cell[k][PROMISED]) >= round_of(s->cell[k][ACCEPTED]));
        }
    }
    const char *value = final(t, "L", VALUE);
    T_OK(strcmp(value, "value_x") == 0 || strcmp(value, "value_y") == 0);
    for (int i = 1; i <= 2; i++) {
        char name[] = { 'P', (char)('0' + i), '\0' };
        if (party(t, name) < 0 || strcmp(final(t, name, DOING), "dead") == 0)
            continue;
        T_STR(final(t, name, DOING), "done");
        T_STR(final(t, name, VALUE), value);
    }
}

T_TEST(every_run_ends_with_one_value)
{
    for (uint64_t seed = 1; seed <= t_scale(200); seed++)
        for (unsigned faults = 0; faults < 2 * LAB_LOSE; faults++)
            for (int cut = -1; cut < CUTS && !(faults & ~all_faults); cut++) {
                struct lab_trace t = play(seed, faults, cut);
                check_run(&t);
                lab_trace_done(&t);
            }
}

T_TEST(duels_go_both_ways)
{
    unsigned x = 0, y = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct lab_trace t = play(seed, LAB_DUEL, -1);
        x += strcmp(final(&t, "L", VALUE), "value_x") == 0;
        y += strcmp(final(&t, "L", VALUE), "value_y") == 0;
        lab_trace_done(&t);
    }
    T_OK(x > 0 && y > 0, "x %u, y %u", x, y);
}
