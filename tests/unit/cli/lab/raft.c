/* What the Raft lab's picture promises, on its default seed and on many others, with every set of
 * faults. */
#include "cli/lab/lab.h"
#include "t.h"

#include <stdlib.h>

enum { SEED = 54, CLIENT = 0, A, B, C, PARTIES };
enum { ROLE, TERM, VOTE, LOG, COMMIT, APPLIED, VALUE };
enum { CUT_A_B = 0, CUT_B_C = 2, CUTS = 3 };
static const unsigned all_faults = LAB_KILL_LEADER | LAB_NO_PRE_VOTE | LAB_LOSE;

static struct lab_trace play(uint64_t seed, unsigned faults, int cut)
{
    struct lab_opts o = { seed, faults, cut };
    struct lab_trace t;
    struct firn_diag d = { 0 };
    int r = lab_raft(&o, &t, &d);
    T_EQ(r, 0, "seed %" PRIu64 " faults %u cut %d: %s", seed, faults, cut, d.text);
    return t;
}

static uint64_t number(const struct lab_step *s, int party, unsigned field)
{
    return strtoull(s->cell[party][field], NULL, 10);
}

static const struct lab_step *last(const struct lab_trace *t)
{
    return &t->step[t->steps - 1];
}

/* The step of that event and party at or after `from`. */
static size_t find(const struct lab_trace *t, size_t from, const char *event, int party)
{
    while ((from = lab_trace_find(t, from, event)) < t->steps && t->step[from].from != party)
        from++;
    return from;
}

T_TEST(it_begins_in_term_3_after_index_9)
{
    struct lab_trace t = play(SEED, 0, -1);
    for (int n = A; n <= C; n++) {
        T_STR(t.step[0].cell[n][ROLE], n == A ? "leader" : "follower");
        T_EQ(number(&t.step[0], n, TERM), 3);
        T_EQ(number(&t.step[0], n, LOG), 9);
        T_EQ(number(&t.step[0], n, COMMIT), 9);
        T_STR(t.step[0].cell[n][VALUE], "4");
    }
    lab_trace_done(&t);
}

T_TEST(set_x_goes_as_in_the_mission)
{
    struct lab_trace t = play(SEED, 0, -1);
    size_t request = lab_trace_find(&t, 0, "request");
    T_STR(t.step[request].label, "set x = 5");
    size_t append = find(&t, request, "append", A);
    T_EQ(t.step[append].term, 3);
    T_EQ(t.step[append].index, 10);
    size_t to_b = find(&t, append, "append_entries", A),
           ack = find(&t, to_b, "append_entries_result", B);
    T_EQ(t.step[to_b].to, B);
    T_EQ(t.step[ack].index, 10);
    size_t commit = find(&t, ack, "commit", A), answer = find(&t, commit, "answer", A);
    T_EQ(t.step[commit].index, 10);
    T_EQ(t.step[answer].to, CLIENT);
    /* The followers learn of it from the next heartbeats. */
    size_t apply_b = find(&t, answer, "apply", B), apply_c = find(&t, answer, "apply", C);
    T_OK(apply_b < t.steps && apply_c < t.steps);
    T_EQ(t.step[apply_b].index, 10);
    T_STR(t.step[apply_c].cell[C][VALUE], "5");
    lab_trace_done(&t);
}

T_TEST(then_b_is_elected_in_term_4)
{
    struct lab_trace t = play(SEED, 0, -1);
    size_t chapter = lab_trace_find(&t, 0, "election"), out = find(&t, chapter, "timeout", B);
    size_t ask = find(&t, out, "request_vote", B), vote = find(&t, ask, "vote", A);
    size_t leader = find(&t, vote, "leader", B);
    T_OK(leader < t.steps);
    T_EQ(t.step[ask].term, 4);
    T_EQ(t.step[vote].term, 4);
    T_EQ(t.step[leader].term, 4);
    size_t heartbeat = find(&t, leader, "append_entries", B);
    T_EQ(t.step[heartbeat].term, 4);
    T_STR(last(&t)->cell[B][ROLE], "leader");
    lab_trace_done(&t);
}

T_TEST(time_outs_are_between_150_and_300_ms)
{
    for (uint64_t seed = 1; seed <= t_scale(100); seed++) {
        struct lab_trace t = play(seed, LAB_KILL_LEADER, -1);
        size_t kill = lab_trace_find(&t, 0, "kill"), out = lab_trace_find(&t, kill, "timeout");
        T_OK(out < t.steps);
        uint64_t ms = t.step[out].at_ms - t.step[kill].at_ms;
        /* It last heard A a few ms before the kill, and looks at its clock every 30 ms. */
        T_OK(ms >= 150 - 10 && ms <= 300 + 30, "seed %" PRIu64 ": %" PRIu64 " ms", seed, ms);
        lab_trace_done(&t);
    }
}

T_TEST(a_killed_leader_is_followed_by_term_4_and_nothing_is_lost)
{
    struct lab_trace t = play(SEED, LAB_KILL_LEADER, -1);
    size_t answer = lab_trace_find(&t, 0, "answer"), kill = find(&t, answer, "kill", A);
    T_OK(kill < t.steps);
    T_EQ(number(&t.step[kill], B, COMMIT), 9); /* no other member knew */
    T_EQ(number(&t.step[kill], C, COMMIT), 9);
    T_STR(t.step[kill].cell[A][ROLE], "down");
    size_t leader = lab_trace_find(&t, kill, "leader");
    T_EQ(t.step[leader].term, 4);
    T_STR(t.step[leader].cell[A][ROLE], "down");
    size_t second = lab_trace_find(&t, answer + 1, "answer");
    T_EQ(t.step[second].index, 11);
    for (int n = A; n <= C; n++) {
        T_STR(last(&t)->cell[n][VALUE], "5");
        T_EQ(number(last(&t), n, COMMIT), 11);
        T_EQ(number(last(&t), n, TERM), 4);
    }
    lab_trace_done(&t);
}

T_TEST(without_a_majority_there_is_no_leader)
{
    struct lab_trace t = play(SEED, LAB_KILL_LEADER, CUT_B_C);
    size_t kill = lab_trace_find(&t, 0, "kill"), heal = lab_trace_find(&t, 0, "heal");
    size_t leader = lab_trace_find(&t, kill, "leader");
    T_OK(kill < heal && heal < leader && leader < t.steps);
    T_OK(lab_trace_find(&t, kill, "no_majority") < heal);
    T_OK(lab_trace_find(&t, kill, "request_pre_vote") < heal); /* a member did try */
    lab_trace_done(&t);
}

T_TEST(pre_vote_keeps_a_lonely_node_from_raising_the_term)
{
    struct lab_trace with = play(SEED, 0, CUT_A_B), without = play(SEED, LAB_NO_PRE_VOTE, CUT_A_B);
    const struct lab_step *w = &with.step[lab_trace_find(&with, 0, "heal")];
    const struct lab_step *o = &without.step[lab_trace_find(&without, 0, "heal")];
    T_STR(w->cell[B][ROLE], "candidate");
    T_EQ(number(w, B, TERM), 3);
    T_STR(w->cell[C][VALUE], "5"); /* the majority went on */
    T_STR(o->cell[B][ROLE], "candidate");
    T_OK(number(o, B, TERM) > 3);
    lab_trace_done(&with);
    lab_trace_done(&without);
}

T_TEST(what_was_lost_is_sent_again)
{
    struct lab_trace t = play(SEED, LAB_LOSE, -1);
    size_t lost = lab_trace_find(&t, 0, "append_entries"), n = 0;
    T_EQ(t.step[lost].kind, LAB_LOST);
    for (size_t i = lost; i < t.steps && strcmp(t.step[i].event, "answer") != 0; i++)
        n += t.step[i].kind == LAB_MESSAGE && strcmp(t.step[i].event, "append_entries") == 0 &&
             t.step[i].index == 10;
    T_OK(n >= 1);
    lab_trace_done(&t);
}

/* ---- for every run ---- */

static bool is(const struct lab_step *s, enum lab_kind kind, const char *event)
{
    return s->kind == kind && strcmp(s->event, event) == 0;
}

/* Before a leader commits, it has an entry on its own disk, and another node told it in the same
 * term that it has it too. */
static void check_majority(const struct lab_trace *t, size_t commit)
{
    const struct lab_step *c = &t->step[commit];
    bool stored = false, acked = false;
    for (size_t i = 0; i < commit; i++) {
        const struct lab_step *s = &t->step[i];
        stored = stored ||
                 (is(s, LAB_NOTE, "stored") && s->from == c->from && s->index >= c->index);
        acked = acked || (is(s, LAB_MESSAGE, "append_entries_result") && s->to == c->from &&
                          s->index >= c->index && s->term == c->term);
    }
    T_OK(stored, "commit of %" PRIu64 " without own disk", c->index);
    T_OK(acked, "commit of %" PRIu64 " without a majority", c->index);
}

static void check_run(const struct lab_trace *t)
{
    uint64_t committed = 9, leader_of_term = 0;
    for (size_t i = 0; i < t->steps; i++) {
        const struct lab_step *s = &t->step[i];
        if (is(s, LAB_NOTE, "commit")) {
            check_majority(t, i);
            if (s->index > committed)
                committed = s->index;
        }
        if (is(s, LAB_NOTE, "leader")) {
            T_OK(s->term > leader_of_term, "two leaders in term %" PRIu64, s->term);
            leader_of_term = s->term;
            T_OK(number(s, s->from, LOG) >= committed, "a leader without what is committed");
        }
        if (is(s, LAB_MESSAGE, "answer"))
            T_OK(committed >= s->index, "answered before it was committed");
        for (int n = A; n <= C; n++) {
            if (strcmp(s->cell[n][ROLE], "down") == 0)
                continue;
            T_OK(number(s, n, APPLIED) <= number(s, n, COMMIT));
            T_OK(number(s, n, COMMIT) <= number(s, n, LOG));
            T_OK(number(s, n, COMMIT) <= committed, "a commit that no leader made");
            T_OK(i == 0 || number(s, n, TERM) >= number(s - 1, n, TERM), "a term went back");
        }
        T_OK(s->kind == LAB_CHAPTER || s->label[0], "a step without a label");
        T_OK(s->why[0], "a step without a reason: %s", s->label);
        T_OK(strlen(s->why) < LAB_WHY_BUF - 1, "cut: %s", s->why);
        T_OK(strlen(s->label) < LAB_LABEL_BUF - 1, "cut: %s", s->label);
    }
    T_OK(leader_of_term >= 4);
    for (int n = A; n <= C; n++) {
        T_STR(last(t)->cell[n][VALUE], "5");
        T_EQ(number(last(t), n, APPLIED), committed);
    }
}

T_TEST(every_run_keeps_raft_s_promises)
{
    for (uint64_t seed = 1; seed <= t_scale(200); seed++)
        for (unsigned faults = 0; faults < 2 * LAB_LOSE; faults++)
            for (int cut = -1; cut < CUTS && !(faults & ~all_faults); cut++) {
                struct lab_trace t = play(seed, faults, cut);
                check_run(&t);
                lab_trace_done(&t);
            }
}

T_TEST(a_seed_is_a_run)
{
    unsigned same = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct lab_trace a = play(seed, LAB_KILL_LEADER, -1), b = play(seed, LAB_KILL_LEADER, -1);
        struct lab_trace c = play(seed + 1, LAB_KILL_LEADER, -1);
        T_EQ(a.steps, b.steps);
        for (size_t i = 0; i < a.steps; i++) {
            T_STR(a.step[i].label, b.step[i].label);
            T_EQ(a.step[i].at_ms, b.step[i].at_ms);
            T_OK(memcmp(a.step[i].cell, b.step[i].cell, sizeof a.step[i].cell) == 0);
        }
        same += a.steps == c.steps && last(&a)->at_ms == last(&c)->at_ms;
        lab_trace_done(&a);
        lab_trace_done(&b);
        lab_trace_done(&c);
    }
    T_OK(same < 20, "the seed changes nothing");
}
