/*
 * Acceptor, record and proposer, message by message: what each may answer, and the orders of
 * messages that the simulator (sim/quorum.c) meets too rarely.
 */
#include "t.h"

#include "coord/paxos.h"

#include <stdio.h>

enum { N = 3 };

static struct paxos_text text(const char *s)
{
    return (struct paxos_text){ s, s ? strlen(s) : 0 };
}

static struct world {
    struct paxos_acceptor a[N];
    uint64_t round[4];
} w;

static void world_init(void)
{
    memset(&w, 0, sizeof w);
}

/* Hand the message under way to one acceptor, and its answer back. */
static enum paxos_do pass(struct paxos *p, unsigned i)
{
    struct paxos_answer answer = { .firm = true };
    paxos_acceptor_step(&w.a[i], &p->message, &answer);
    return paxos_answered(p, i, p->attempt, &answer);
}

/* To all in turn, round after round, until it is done. */
static int finish(struct paxos *p, enum paxos_do what)
{
    for (int i = 0; i < 50 && what != PAXOS_DONE; i++) {
        if (what == PAXOS_BACK_OFF)
            what = paxos_again(p);
        for (unsigned k = 0; k < N && what != PAXOS_DONE && what != PAXOS_BACK_OFF; k++)
            what = pass(p, k);
    }
    T_OK(what == PAXOS_DONE);
    return p->result;
}

static enum paxos_do change(struct paxos *p, unsigned who, const char *old, const char *new)
{
    return paxos_change(p, N, 1 + who, &w.round[who], text(old), text(new), NULL);
}

static const char *read_all(unsigned who)
{
    static char out[64];
    struct paxos p;
    T_EQ(finish(&p, paxos_read(&p, N, 1 + who, &w.round[who])), 0);
    snprintf(out, sizeof out, "%.*s", p.value.present ? (int)p.value.len : 1,
             p.value.present ? p.value.bytes : "-");
    return out;
}

T_TEST(paxos_acceptor_answers)
{
    struct paxos_acceptor a = { 0 };
    struct paxos_answer out;
    struct paxos_message m = { .ask = PAXOS_PREPARE, .ballot = { 2, 7 } };
    T_OK(paxos_acceptor_step(&a, &m, &out) && out.ok);
    T_OK(!paxos_acceptor_step(&a, &m, &out) && !out.ok, "a ballot is promised once");
    m.ballot = (struct ballot){ 2, 6 };
    T_OK(!paxos_acceptor_step(&a, &m, &out) && !out.ok && out.promised.id == 7);
    m = (struct paxos_message){ .ask = PAXOS_ACCEPT,
                                .ballot = { 1, 9 },
                                .value = { .tag = { 1, 9 } } };
    T_OK(!paxos_acceptor_step(&a, &m, &out) && !out.ok);
    m.ballot = m.value.tag = (struct ballot){ 2, 7 };
    m.next = (struct ballot){ 3, 7 };
    T_OK(paxos_acceptor_step(&a, &m, &out) && out.ok && out.promised.round == 3);
    T_OK(!paxos_acceptor_step(&a, &m, &out) && out.ok, "again");
    m = (struct paxos_message){ .ask = PAXOS_LOOK };
    T_OK(!paxos_acceptor_step(&a, &m, &out) && out.ok && out.accepted.round == 2);
    paxos_acceptor_raise(&a, 3);
    T_EQ(a.promised.id, 7);
    paxos_acceptor_raise(&a, 10);
    m = (struct paxos_message){ .ask = PAXOS_ACCEPT, .ballot = { 3, 7 } };
    T_OK(!paxos_acceptor_step(&a, &m, &out) && !out.ok, "below the floor, though it was promised");
    m.ask = PAXOS_PREPARE;
    m.ballot = (struct ballot){ 9, 99 };
    T_OK(!paxos_acceptor_step(&a, &m, &out) && !out.ok);
    m.ballot = (struct ballot){ 10, 1 };
    T_OK(paxos_acceptor_step(&a, &m, &out) && out.ok);
}

T_TEST(paxos_record_round_trip)
{
    char out[PAXOS_TEXT_MAX];
    struct paxos_acceptor a, b;
    for (uint64_t i = 0; i < t_scale(20000); i++) {
        memset(&a, 0, sizeof a);
        a.accepted = (struct ballot){ t_random_below(4) ? t_random() >> 5 : 0, 0 };
        a.accepted.id = a.accepted.round ? t_random() : 0;
        a.promised = (struct ballot){ a.accepted.round + t_random_below(3), t_random() };
        if (ballot_cmp(a.promised, a.accepted) < 0 || a.promised.round == 0)
            a.promised = a.accepted;
        if (a.accepted.round && t_random_below(5)) {
            a.value.tag = (struct ballot){ 1 + t_random_below(a.accepted.round), a.accepted.id };
            a.value.before_n = (uint32_t)(1 + t_random_below(PAXOS_BEFORE_MAX));
            for (uint32_t k = 0; k + 1 < a.value.before_n; k++)
                a.value.before[k] = (struct ballot){ 1 + t_random_below(99), t_random() };
            a.value.present = t_random_below(4) != 0;
            a.value.len = a.value.present ? (uint32_t)t_random_below(PAXOS_VALUE_MAX + 1) : 0;
            t_random_bytes(a.value.bytes, a.value.len);
        }
        size_t len = paxos_encode(&a, out);
        T_OK(len <= PAXOS_TEXT_MAX);
        T_EQ(paxos_parse(out, len, &b, NULL), 0, "%.*s", (int)len, out);
        T_EQ(memcmp(&a, &b, sizeof a), 0);
        for (size_t cut = 0; cut < len && i < 50; cut++)
            T_EQ(paxos_parse(out, cut, &b, NULL), FIRN_EFORMAT);
    }
}

T_TEST(paxos_record_rejects)
{
    static const char *const bad[] = {
        "",
        "firn=px 2\npromised=0\naccepted=0\ntag=0\nbefore=\nvalue=-\n",
        "firn=px 1\npromised=0\naccepted=0\ntag=0\nbefore=\nvalue=-\n ",
        "firn=px 1\npromised=01.0000000000000001\naccepted=0\ntag=0\nbefore=\nvalue=-\n",
        "firn=px 1\npromised=1.000000000000001\naccepted=0\ntag=0\nbefore=\nvalue=-\n",
        "firn=px 1\npromised=1.000000000000000A\naccepted=0\ntag=0\nbefore=\nvalue=-\n",
        "firn=px 1\npromised=9999999999999999999.0000000000000001\naccepted=0\ntag=0\nbefore=\nvalue=-\n",
        "firn=px 1\npromised=0\naccepted=1.0000000000000001\ntag=0\nbefore=\nvalue=-\n",
        "firn=px 1\npromised=0\naccepted=0\ntag=0\nbefore=\nvalue=1\nx",
        "firn=px 1\npromised=2.0000000000000001\naccepted=1.0000000000000001\ntag=1.0000000000000001\n"
        "before=\nvalue=1\nx",
        "firn=px 1\npromised=2.0000000000000001\naccepted=1.0000000000000001\ntag=1.0000000000000001\n"
        "before=0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nvalue=1\nx",
        "firn=px 1\npromised=2.0000000000000001\naccepted=1.0000000000000001\ntag=1.0000000000000001\n"
        "before=0 \nvalue=1\nx",
        "firn=px 1\npromised=2.0000000000000001\naccepted=1.0000000000000001\ntag=1.0000000000000001\n"
        "before=0\nvalue=2\nx",
        "firn=px 1\npromised=2.0000000000000001\naccepted=1.0000000000000001\ntag=1.0000000000000001\n"
        "before=0\nvalue=1025\nx",
    };
    struct paxos_acceptor a;
    struct firn_diag d;
    static const char good[] =
        "firn=px 1\npromised=2.0000000000000001\naccepted=1.0000000000000001\ntag=1.0000000000000001\n"
        "before=0\nvalue=1\nx";
    T_EQ(paxos_parse(good, strlen(good), &a, &d), 0);
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(paxos_parse(bad[i], strlen(bad[i]), &a, &d), FIRN_EFORMAT, "record %zu", i);
}

T_TEST(paxos_changes_and_reads)
{
    struct paxos p, q;
    world_init();
    T_STR(read_all(0), "-");
    T_EQ(finish(&p, change(&p, 0, NULL, "one")), 0);
    T_STR(read_all(1), "one");
    T_EQ(finish(&q, change(&q, 1, NULL, "two")), FIRN_ECONFLICT);
    T_EQ(finish(&q, change(&q, 1, "one", NULL)), 0);
    T_STR(read_all(0), "-");
    T_EQ(finish(&q, change(&q, 1, "one", "two")), FIRN_ECONFLICT);
    T_EQ(finish(&q, change(&q, 1, NULL, "")), 0);
    T_STR(read_all(0), "");
}

T_TEST(paxos_one_round_trip_after_the_first)
{
    struct paxos p, q;
    world_init();
    finish(&p, change(&p, 0, NULL, "1"));
    struct paxos_known known = p.known;
    T_OK(known.next.round > 0);
    T_EQ(paxos_change(&p, N, 1, &w.round[0], text("1"), text("2"), &known), PAXOS_SEND);
    T_EQ(p.message.ask, PAXOS_ACCEPT);
    T_EQ(pass(&p, 2), PAXOS_WAIT);
    T_EQ(pass(&p, 1), PAXOS_DONE);
    T_EQ(p.result, 0);

    /* Somebody else came in between: its promise is gone, and it finds out. */
    known = p.known;
    finish(&q, change(&q, 1, "2", "3"));
    T_EQ(finish(&p, paxos_change(&p, N, 1, &w.round[0], text("2"), text("4"), &known)),
         FIRN_ECONFLICT);
    T_STR(read_all(0), "3");
}

/* A change that a minority accepted is neither told to a reader nor taken for a conflict before a
 * majority has it. */
T_TEST(paxos_a_minority_has_it)
{
    struct paxos p, q;
    world_init();
    finish(&p, change(&p, 0, NULL, "old"));
    struct paxos_known known = p.known;
    paxos_change(&p, N, 1, &w.round[0], text("old"), text("new"), &known);
    T_EQ(pass(&p, 0), PAXOS_WAIT); /* only the first one hears of it */
    T_EQ(paxos_read(&q, N, 2, &w.round[1]), PAXOS_SEND);
    T_EQ(pass(&q, 0), PAXOS_WAIT);
    T_EQ(pass(&q, 1), PAXOS_WAIT); /* they differ; the third may decide */
    T_EQ(paxos_hurry(&q), PAXOS_SEND);
    T_EQ(q.message.ask, PAXOS_PREPARE);
    pass(&q, 0);
    T_EQ(pass(&q, 1), PAXOS_SEND);
    T_EQ(q.message.ask, PAXOS_ACCEPT); /* it is completed before it is told */
    T_EQ(finish(&q, PAXOS_SEND), 0);
    T_OK(q.value.len == 3 && memcmp(q.value.bytes, "new", 3) == 0);
    T_EQ(finish(&p, pass(&p, 1)), 0); /* refused there, and then it finds that it was done */
    T_OK(!p.changing);
}

/* Found by the simulation: our change was proposed a second time, on a removal that a minority has;
 * then the others show the value from before it. That one is chosen, but in a ballot below ours:
 * ours, which one acceptor has, could still be completed. So it is accepted again before the
 * conflict is told. */
T_TEST(paxos_a_doubt_ends_above_our_ballots)
{
    struct paxos p, q;
    struct paxos_answer no = { .promised = { 50, 9 } };
    world_init();
    change(&p, 0, NULL, "ours");
    pass(&p, 0);
    T_EQ(pass(&p, 1), PAXOS_SEND);
    pass(&p, 0);
    T_EQ(pass(&p, 1), PAXOS_SEND);
    T_OK(p.changing); /* no acceptor heard it, but for all we know one did */
    T_EQ(finish(&q, change(&q, 1, NULL, "theirs")), 0);
    T_OK(w.a[1].value.present);
    struct paxos_known known = q.known;
    w.a[0] = w.a[2] = w.a[1]; /* all have it */
    paxos_change(&q, N, 2, &w.round[1], text("theirs"), text(NULL), &known);
    pass(&q, 2); /* removed, by a minority */

    paxos_answered(&p, 0, p.attempt, &no);
    T_EQ(paxos_answered(&p, 1, p.attempt, &no), PAXOS_BACK_OFF);
    T_EQ(paxos_again(&p), PAXOS_SEND);
    pass(&p, 2);
    T_EQ(pass(&p, 1), PAXOS_SEND);
    T_OK(p.changing, "absent again, so ours is proposed again");
    T_EQ(pass(&p, 2), PAXOS_WAIT); /* the minority has it now */

    paxos_answered(&p, 0, p.attempt, &no);
    T_EQ(paxos_again(&p), PAXOS_SEND);
    T_EQ(pass(&p, 0), PAXOS_WAIT); /* both show "theirs" */
    T_EQ(pass(&p, 1), PAXOS_SEND);
    T_EQ(p.message.ask, PAXOS_ACCEPT);
    T_OK(!p.changing);
    pass(&p, 0);
    T_EQ(pass(&p, 1), PAXOS_DONE);
    T_EQ(p.result, FIRN_ECONFLICT);
    T_STR(read_all(2), "theirs");
}

/* Refusals by all end a doubt, unless the message may have been applied before. */
T_TEST(paxos_refused_by_all)
{
    for (int firm = 0; firm < 2; firm++) {
        struct paxos p, q;
        world_init();
        finish(&p, change(&p, 0, NULL, "0"));
        struct paxos_known known = p.known;
        char last[16] = "0", next[16];
        for (int i = 1; i < PAXOS_BEFORE_MAX + 3; i++) { /* more than the chain remembers */
            snprintf(next, sizeof next, "%d", i);
            T_EQ(finish(&q, change(&q, 1, last, next)), 0);
            memcpy(last, next, sizeof last);
        }
        enum paxos_do what = paxos_change(&p, N, 1, &w.round[0], text("0"), text("x"), &known);
        uint32_t attempt = p.attempt;
        for (unsigned i = 0; i < N; i++) {
            struct paxos_answer answer = { .firm = firm };
            paxos_acceptor_step(&w.a[i], &p.message, &answer);
            T_OK(!answer.ok);
            enum paxos_do now = paxos_answered(&p, i, attempt, &answer);
            what = now == PAXOS_WAIT ? what : now;
        }
        T_EQ(what, PAXOS_BACK_OFF);
        if (firm) {
            T_EQ(finish(&p, what), FIRN_ECONFLICT);
            continue;
        }
        T_EQ(paxos_again(&p), PAXOS_SEND);
        pass(&p, 0);
        T_EQ(pass(&p, 1), PAXOS_WAIT); /* for refusals that may still come */
        T_EQ(paxos_hurry(&p), PAXOS_DONE);
        T_EQ(p.result, FIRN_EUNKNOWN);
    }
}

/* The last refusal comes after a majority promised the next ballot. */
T_TEST(paxos_a_late_refusal)
{
    struct paxos p, q;
    struct paxos_answer no[N] = { { .firm = true }, { .firm = true }, { .firm = true } };
    world_init();
    finish(&p, change(&p, 0, NULL, "0"));
    struct paxos_known known = p.known;
    for (int i = 1; i < PAXOS_BEFORE_MAX + 3; i++) {
        char last[16], next[16];
        snprintf(last, sizeof last, "%d", i - 1);
        snprintf(next, sizeof next, "%d", i);
        T_EQ(finish(&q, change(&q, 1, last, next)), 0);
    }
    paxos_change(&p, N, 1, &w.round[0], text("0"), text("x"), &known);
    uint32_t attempt = p.attempt;
    for (unsigned i = 0; i < N; i++)
        paxos_acceptor_step(&w.a[i], &p.message, &no[i]);
    paxos_answered(&p, 0, attempt, &no[0]);
    T_EQ(paxos_answered(&p, 1, attempt, &no[1]), PAXOS_BACK_OFF);
    T_EQ(paxos_again(&p), PAXOS_SEND);
    pass(&p, 1);
    T_EQ(pass(&p, 2), PAXOS_WAIT);
    T_EQ(finish(&p, paxos_answered(&p, 2, attempt, &no[2])), FIRN_ECONFLICT);
}

T_TEST(paxos_gives_up)
{
    struct paxos p;
    world_init();
    change(&p, 0, NULL, "x");
    paxos_give_up(&p);
    T_EQ(p.result, FIRN_EIO, "nothing was proposed");
    change(&p, 0, NULL, "x");
    pass(&p, 0);
    pass(&p, 1);
    pass(&p, 0);
    T_EQ(pass(&p, 1), PAXOS_SEND);
    T_EQ(p.message.ask, PAXOS_ACCEPT);
    paxos_give_up(&p);
    T_EQ(p.result, FIRN_EUNKNOWN);
    T_EQ(pass(&p, 0), PAXOS_WAIT, "what comes late is ignored");
    T_EQ(p.result, FIRN_EUNKNOWN);
}

T_TEST(paxos_stores_that_are_away)
{
    struct paxos p;
    world_init();
    change(&p, 0, NULL, "x");
    T_EQ(paxos_answered(&p, 0, p.attempt, NULL), PAXOS_WAIT);
    T_EQ(paxos_answered(&p, 0, p.attempt, NULL), PAXOS_WAIT, "the same one again");
    T_EQ(paxos_answered(&p, 1, p.attempt, NULL), PAXOS_BACK_OFF);
    T_EQ(paxos_again(&p), PAXOS_SEND);
    T_EQ(p.message.ask, PAXOS_LOOK);
    T_EQ(paxos_answered(&p, 0, p.attempt, NULL), PAXOS_WAIT);
    enum paxos_do what = PAXOS_WAIT;
    for (int i = 0; i < 3; i++)
        for (unsigned k = 1; k < N && what != PAXOS_DONE; k++)
            what = pass(&p, k);
    T_EQ(what, PAXOS_DONE);
    T_EQ(p.result, 0);
}

/* ---- an acceptor that lost its memory, and was let in again ---- */

enum { FIVE = 5, FLOOR = 1000 };

static struct paxos_acceptor five[FIVE];
static uint64_t floor_of[FIVE];

static enum paxos_do pass_five(struct paxos *p, unsigned i)
{
    struct paxos_answer answer = { .firm = true };
    paxos_acceptor_raise(&five[i], floor_of[i]);
    paxos_acceptor_step(&five[i], &p->message, &answer);
    return paxos_answered(p, i, p->attempt, &answer);
}

static int finish_five(struct paxos *p, enum paxos_do what, const unsigned *who, unsigned n)
{
    for (int i = 0; i < 50 && what != PAXOS_DONE; i++) {
        if (what == PAXOS_BACK_OFF)
            what = paxos_again(p);
        for (unsigned k = 0; k < n && what != PAXOS_DONE && what != PAXOS_BACK_OFF; k++)
            what = pass_five(p, who[k]);
    }
    T_OK(what == PAXOS_DONE);
    return p->result;
}

/*
 * Two proposers create a register that no acceptor has. The first has the promises of 0 and 1 when
 * 0 loses its memory and is let in again by 2, 3 and 4, who do not know the register. The second is
 * done with 0, 3 and 4, in a lower ballot. Then 2 answers the first: the promises of 0, 1 and 2
 * have no acceptor in common with 0, 3 and 4 but the one that forgot. Returns what the first is
 * told; the second has made it.
 */
static int two_make_it(bool floors)
{
    static const unsigned without_one[] = { 0, 3, 4 }, without_zero[] = { 2, 1, 3, 4 };
    struct paxos first, second;
    uint64_t round[2] = { 0 };
    memset(five, 0, sizeof five);
    memset(floor_of, 0, sizeof floor_of);
    T_OK(paxos_change(&first, FIVE, 9, &round[0], text(NULL), text("a"), NULL) == PAXOS_SEND);
    T_OK(pass_five(&first, 0) == PAXOS_WAIT && pass_five(&first, 1) == PAXOS_WAIT);
    T_OK(pass_five(&first, 2) == PAXOS_SEND && first.phase == PAXOS_PREPARING);
    T_OK(pass_five(&first, 0) == PAXOS_WAIT && pass_five(&first, 1) == PAXOS_WAIT);
    five[0] = (struct paxos_acceptor){ 0 };
    for (unsigned i = 0; i < FIVE; i++)
        floor_of[i] = floors && i != 1 ? FLOOR : 0;
    enum paxos_do what = paxos_change(&second, FIVE, 5, &round[1], text(NULL), text("b"), NULL);
    T_EQ(finish_five(&second, what, without_one, 3), 0, "the second made it");
    return finish_five(&first, PAXOS_WAIT, without_zero, 4);
}

T_TEST(paxos_a_floor_keeps_the_promises_of_a_lost_memory)
{
    T_EQ(two_make_it(true), FIRN_ECONFLICT);
    T_EQ(two_make_it(false), 0, "without it both would have made the same register");
}
