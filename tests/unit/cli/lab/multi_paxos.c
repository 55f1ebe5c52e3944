/* What the Multi-Paxos lab's picture promises, on its default seed and on many others, with every
 * set of faults: one value per slot, and a leader that prepares once. */
#include "cli/lab/lab.h"
#include "t.h"

#include <stdlib.h>

enum { SEED = 54, CUTS = 3, SLOTS = 5 };
enum { DOING, BALLOT, SLOT_1 };
static const unsigned all_faults = LAB_DUEL | LAB_LOSE | LAB_PLAIN;

static struct lab_trace play(uint64_t seed, unsigned faults, int cut)
{
    struct lab_opts o = { seed, faults, cut };
    struct lab_trace t;
    struct firn_diag d = { 0 };
    int r = lab_multi_paxos(&o, &t, &d);
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

static bool is(const struct lab_step *s, enum lab_kind kind, const char *event)
{
    return s->kind == kind && strcmp(s->event, event) == 0;
}

/* Messages of that event, sent by `who` (-1: anybody), in steps from..until. */
static unsigned count(const struct lab_trace *t, size_t from, size_t until, const char *event,
                      int who)
{
    unsigned n = 0;
    for (size_t i = from; i < until; i++)
        n += is(&t->step[i], LAB_MESSAGE, event) && (who < 0 || t->step[i].from == who);
    return n;
}

static const char * final(const struct lab_trace *t, const char *who, unsigned slot)
{
    return t->step[t->steps - 1].cell[party(t, who)][SLOT_1 + slot - 1];
}

static const char *label(const struct lab_trace *t, const char *event)
{
    size_t i = lab_trace_find(t, 0, event);
    return i < t->steps ? t->step[i].label : "none";
}

T_TEST(a_stable_leader_prepares_once)
{
    struct lab_trace t = play(SEED, 0, -1);
    int p1 = party(&t, "P1"), p2 = party(&t, "P2");
    size_t kill = lab_trace_find(&t, 0, "kill");
    T_EQ(count(&t, 0, t.steps, "prepare", p1), 3); /* for four slots: one to each acceptor */
    T_EQ(count(&t, 0, t.steps, "prepare", p2), 3);
    T_EQ(count(&t, 0, kill, "accept", p1), 8); /* two values to all, two to the first acceptor */
    T_EQ(count(&t, 0, t.steps, "refused", -1), 0);
    T_STR(label(&t, "prepare"), "Prepare(n=1, slots from 1 on)");
    T_STR(label(&t, "promise"), "Promise(n=1, accepted: none)");
    T_STR(label(&t, "accept"), "Accept(n=1, slot 1: x=1)");
    T_STR(label(&t, "accepted"), "Accepted(n=1, slot 1)");
    lab_trace_done(&t);
}

T_TEST(the_next_leader_proposes_again_what_it_learned)
{
    static const char *const values[] = { "x=1", "y=2", "z=3", "w=4", "v=5" };
    for (int cut = -1; cut < CUTS; cut++) {
        struct lab_trace t = play(SEED, 0, cut);
        size_t kill = lab_trace_find(&t, 0, "kill"), lead = lab_trace_find(&t, kill, "lead");
        size_t accept = lab_trace_find(&t, lead, "accept");
        T_EQ(t.step[lab_trace_find(&t, lead, "ballot")].term, 2);
        T_STR(t.step[accept].label, "Accept(n=2, slot 1: x=1, 2: y=2, 3: z=3, 4: w=4)");
        for (unsigned s = 1; s <= SLOTS; s++)
            T_STR(final(&t, "P2", s), values[s - 1]);
        lab_trace_done(&t);
    }
}

T_TEST(a_gap_gets_a_no_op)
{
    struct lab_trace t = play(SEED, LAB_LOSE, -1);
    T_STR(final(&t, "P2", 3), "no-op");
    T_STR(final(&t, "P2", 4), "w=4");
    T_STR(final(&t, "P2", 5), "z=3"); /* the client asked again */
    lab_trace_done(&t);
}

T_TEST(plain_paxos_costs_twice_the_round_trips)
{
    struct lab_trace t = play(SEED, 0, -1);
    T_STR(label(&t, "tally_multi"), "Multi-Paxos: 36 messages, 6 round trips");
    T_STR(label(&t, "tally_plain"), "plain Paxos: 60 messages, 10 round trips");
    lab_trace_done(&t);
    t = play(SEED, LAB_PLAIN, -1);
    size_t kill = lab_trace_find(&t, 0, "kill");
    T_EQ(count(&t, 0, kill, "prepare", party(&t, "P1")), 12); /* four slots, three acceptors */
    T_STR(final(&t, "P2", 5), "v=5");
    lab_trace_done(&t);
}

T_TEST(duelling_leaders_refuse_each_other_and_agree)
{
    struct lab_trace t = play(SEED, LAB_DUEL, -1);
    T_OK(count(&t, 0, t.steps, "refused", -1) > 0, "no duel");
    T_OK(lab_trace_find(&t, 0, "rest") < t.steps);
    T_EQ(count(&t, 0, t.steps, "answer", -1), 4); /* both clients' commands */
    lab_trace_done(&t);
}

/* ---- for every run ---- */

/* "x=1@3": where the value ends. */
static size_t value_len(const char *cell)
{
    const char *at = strchr(cell, '@');
    return at ? (size_t)(at - cell) : strlen(cell);
}

static uint64_t ballot_of(const char *cell)
{
    const char *at = strchr(cell, '@');
    return strtoull(at ? at + 1 : cell, NULL, 10);
}

/* One value per slot, as the acceptors' cells show it, and all that is learned is that value. */
static void check_slot(const struct lab_trace *t, unsigned slot)
{
    char chosen[LAB_CELL_BUF] = "";
    int a1 = party(t, "A1"), p1 = party(t, "P1");
    for (size_t i = 0; i < t->steps; i++) {
        const struct lab_step *s = &t->step[i];
        for (int k = a1; k < a1 + 3; k++) {
            const char *cell = s->cell[k][SLOT_1 + slot];
            unsigned same = 0;
            for (int other = a1; other < a1 + 3; other++)
                same += strcmp(s->cell[other][SLOT_1 + slot], cell) == 0;
            if (same < 2 || strcmp(cell, "-") == 0)
                continue;
            size_t len = value_len(cell);
            if (!chosen[0])
                memcpy(chosen, cell, len);
            T_OK(strlen(chosen) == len && memcmp(chosen, cell, len) == 0, "slot %u: %s, then %s",
                 slot + 1, chosen, cell);
        }
        for (int k = p1; k < p1 + 2; k++)
            if (strcmp(s->cell[k][SLOT_1 + slot], "-") != 0)
                T_STR(s->cell[k][SLOT_1 + slot], chosen);
    }
}

static void check_run(const struct lab_trace *t)
{
    int a1 = party(t, "A1");
    for (unsigned slot = 0; slot < SLOTS; slot++)
        check_slot(t, slot);
    for (size_t i = 1; i < t->steps; i++) {
        const struct lab_step *s = &t->step[i];
        T_OK(s->label[0] && s->why[0]);
        T_OK(strlen(s->why) < LAB_WHY_BUF - 1, "cut: %s", s->why);
        T_OK(strlen(s->label) < LAB_LABEL_BUF - 1, "cut: %s", s->label);
        for (int k = a1; k < a1 + 3; k++) {
            T_OK(ballot_of(s->cell[k][BALLOT]) >= ballot_of(s[-1].cell[k][BALLOT]));
            for (unsigned slot = 0; slot < SLOTS; slot++)
                T_OK(ballot_of(s->cell[k][SLOT_1 + slot]) <= ballot_of(s->cell[k][BALLOT]));
        }
    }
    T_OK(lab_trace_find(t, 0, "tally_here") < t->steps);
}

T_TEST(every_run_has_one_value_per_slot)
{
    for (uint64_t seed = 1; seed <= t_scale(20); seed++)
        for (unsigned faults = 0; faults < 2 * LAB_FAULT_LAST; faults++)
            for (int cut = -1; cut < CUTS && !(faults & ~all_faults); cut++) {
                struct lab_trace t = play(seed, faults, cut);
                check_run(&t);
                lab_trace_done(&t);
            }
}
