/*
 * The Paxos lab: the proposer and the acceptors of coord/paxos.c, as a quorum: store runs them, on
 * a simulated network. P1 wants to set the register, which is absent, to value_x: Prepare, Promise,
 * Accept, Accepted. At the end a learner reads. Our proposer does two things more than the
 * textbook's, and they are shown: it reads before it prepares, and its Accept requests the promise
 * for its next ballot.
 */
#include "cli/lab/lab.h"
#include "coord/paxos.h"
#include "id/diag.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { P1, P2, LEARNER, ASKERS }; /* proposers; their ballots carry 1, 2, 3 */
enum { ACCEPTORS = 3, EVENTS_MAX = 256 };
enum { DOING, BALLOT, YES, PROMISED, ACCEPTED, VALUE };
enum {
    NEAR_MS = 4,
    TIMEOUT_MS = 30,
    REST_MS = 20,
    LATER_MS = 6,
    TAKE_OVER_MS = 40,
    LIMIT_MS = 5000
};

const char *const lab_paxos_links[] = { "P1-A1", "P1-A2", "P1-A3", NULL };

enum event_type { START, ASK, ANSWER, TIMEOUT, AGAIN };

struct event {
    uint64_t at_ms, sequence;
    enum event_type type;
    unsigned asker, acceptor;
    uint32_t attempt;
    bool lost;
    struct paxos_message message;
    struct paxos_answer answer;
};

struct asker {
    int party; /* -1: does not take part */
    bool busy, dead;
    uint64_t round;
    const char *wants;
    struct paxos p;
};

struct play {
    struct lab_trace *trace;
    const struct lab_opts *opts;
    uint64_t now_ms, rng, sequence;
    struct asker asker[ASKERS];
    struct paxos_acceptor acceptor[ACCEPTORS];
    int acceptor_party[ACCEPTORS];
    uint32_t lossy_attempt; /* of P1's first Accept, whose answers get lost; 0: not yet */
    bool failed;
    struct event *event;
    size_t events;
};

/* ---- texts ---- */

enum { TEXT_BUF = 32 };

/* n: the round. The proposer is shown only where there are two. */
static const char *ballot_text(const struct play *p, struct ballot b, char out[TEXT_BUF])
{
    static const char *const who[] = { "", "P1", "P2", "L" };
    if (b.round == 0)
        snprintf(out, TEXT_BUF, "-");
    else if (p->asker[P2].party < 0 && b.id == P1 + 1)
        snprintf(out, TEXT_BUF, "%" PRIu64, b.round);
    else
        snprintf(out, TEXT_BUF, "%" PRIu64 ".%s", b.round, b.id <= ASKERS ? who[b.id] : "?");
    return out;
}

static const char *value_text(const struct paxos_value *v, char out[TEXT_BUF])
{
    if (v->present)
        snprintf(out, TEXT_BUF, "%.*s", (int)v->len, v->bytes);
    else
        snprintf(out, TEXT_BUF, "none");
    return out;
}

static const char *party(const struct play *p, int i)
{
    return p->trace->party[i];
}

static unsigned ones(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

/* ---- steps ---- */

static void put_state(const struct play *p, struct lab_step *s)
{
    static const char *const doing[] = { "looking", "preparing", "accepting", "resting", "done" };
    char text[TEXT_BUF];
    for (unsigned i = 0; i < ASKERS; i++) {
        const struct asker *a = &p->asker[i];
        if (a->party < 0)
            continue;
        bool begun = a->p.n > 0;
        lab_cell(s, a->party, DOING, "%s", a->dead ? "dead" : begun ? doing[a->p.phase] : "idle");
        lab_cell(s, a->party, BALLOT, "%s",
                 begun ? ballot_text(p, a->p.message.ballot, text) : "-");
        lab_cell(s, a->party, YES, "%u of 3", begun ? ones(a->p.yes) : 0);
        lab_cell(s, a->party, VALUE, "%s",
                 begun && a->p.phase == PAXOS_ENDED ? value_text(&a->p.value, text) : "-");
    }
    for (unsigned i = 0; i < ACCEPTORS; i++) {
        const struct paxos_acceptor *a = &p->acceptor[i];
        lab_cell(s, p->acceptor_party[i], PROMISED, "%s", ballot_text(p, a->promised, text));
        lab_cell(s, p->acceptor_party[i], ACCEPTED, "%s", ballot_text(p, a->accepted, text));
        lab_cell(s, p->acceptor_party[i], VALUE, "%s", value_text(&a->value, text));
    }
}

static struct lab_step *add(struct play *p, enum lab_kind kind, const char *event, int from, int to)
{
    struct lab_step *s = lab_trace_add(p->trace, kind, event, from, to, p->now_ms);
    put_state(p, s);
    return s;
}

static void chapter(struct play *p, const char *event, const char *label, const char *why)
{
    struct lab_step *s = add(p, LAB_CHAPTER, event, LAB_NOBODY, LAB_NOBODY);
    lab_label(s, "%s", label);
    lab_why(s, "%s", why);
}

/* ---- events ---- */

static uint64_t draw(struct play *p)
{
    uint64_t z = (p->rng += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static struct event *schedule(struct play *p, enum event_type type, unsigned asker, uint64_t in_ms)
{
    static struct event nowhere;
    if (p->events == EVENTS_MAX) {
        p->failed = true;
        return &nowhere;
    }
    struct event *e = &p->event[p->events++];
    *e = (struct event){
        .at_ms = p->now_ms + in_ms, .sequence = p->sequence++, .type = type, .asker = asker
    };
    return e;
}

static struct event next(struct play *p)
{
    size_t best = 0;
    for (size_t i = 1; i < p->events; i++) {
        const struct event *a = &p->event[i], *b = &p->event[best];
        if (a->at_ms < b->at_ms || (a->at_ms == b->at_ms && a->sequence < b->sequence))
            best = i;
    }
    struct event e = p->event[best];
    p->event[best] = p->event[--p->events];
    return e;
}

/* A1 is a little nearer than A2, which is nearer than A3; with two proposers the delays vary. */
static uint64_t way_ms(struct play *p, unsigned acceptor)
{
    return NEAR_MS + acceptor + (p->opts->faults & LAB_DUEL ? draw(p) % 7 : 0);
}

static bool is_cut(const struct play *p, unsigned asker, unsigned acceptor)
{
    return asker == P1 && p->opts->cut == (int)acceptor;
}

/* ---- the proposer's side ---- */

static void send_all(struct play *p, unsigned i)
{
    struct asker *a = &p->asker[i];
    for (unsigned k = 0; k < ACCEPTORS; k++) {
        struct event *e = schedule(p, ASK, i, way_ms(p, k));
        e->acceptor = k;
        e->attempt = a->p.attempt;
        e->message = a->p.message;
        e->lost = is_cut(p, i, k);
        e = schedule(p, TIMEOUT, i, TIMEOUT_MS);
        e->acceptor = k;
        e->attempt = a->p.attempt;
    }
    if (i == P1 && (p->opts->faults & LAB_LOSE) && a->p.phase == PAXOS_ACCEPTING &&
        p->lossy_attempt == 0) {
        p->lossy_attempt = a->p.attempt;
        struct lab_step *s = add(p, LAB_FAULT, "lossy", a->party, a->party);
        lab_label(s, "the answers will be lost");
        lab_why(s, "The network loses what the acceptors answer to this Accept.");
    }
}

static void note_prepare(struct play *p, struct asker *a)
{
    char n[TEXT_BUF];
    struct lab_step *s = add(p, LAB_NOTE, "ballot", a->party, a->party);
    s->term = a->p.message.ballot.round;
    lab_label(s, "new ballot: n=%s", ballot_text(p, a->p.message.ballot, n));
    lab_why(s,
            "Higher than every ballot that %s has used or received. Ballots of different "
            "proposers are never equal: the proposer is part of them.",
            party(p, a->party));
}

static void note_accept(struct play *p, struct asker *a)
{
    char n[TEXT_BUF], v[TEXT_BUF];
    struct lab_step *s = add(p, LAB_NOTE, "majority", a->party, a->party);
    s->term = a->p.message.ballot.round;
    value_text(&a->p.message.value, v);
    lab_label(s, "majority of promises: v=%s", v);
    ballot_text(p, a->p.best, n);
    if (a->p.changing && a->p.best.round == 0)
        lab_why(
            s,
            "2 of 3 promised, and none of them has accepted anything: %s is free to propose its "
            "own value, %s.",
            party(p, a->party), v);
    else if (a->p.changing)
        lab_why(s,
                "2 of 3 promised. %s may replace the value that they accepted last (n=%s): it "
                "proposes %s.",
                party(p, a->party), n, v);
    else if (a->wants && strcmp(v, a->wants) == 0)
        lab_why(s,
                "2 of 3 promised, and show that %s was accepted with n=%s: this proposer's own, "
                "from before. It proposes it again, in a ballot whose answers arrive.",
                v, n);
    else
        lab_why(s,
                "2 of 3 promised, and one of them has accepted %s with n=%s. It may be chosen "
                "already, so %s must propose that value, not its own.",
                v, n, party(p, a->party));
}

static void note_done(struct play *p, struct asker *a)
{
    char v[TEXT_BUF];
    bool reads = a == &p->asker[LEARNER];
    value_text(&a->p.value, v);
    const char *event = reads ? "learned" : a->p.result == 0 ? "decided" : "conflict";
    struct lab_step *s = add(p, LAB_NOTE, event, a->party, a->party);
    s->term = a->p.message.ballot.round;
    if (a->p.result != 0 && a->p.result != FIRN_ECONFLICT) {
        lab_label(s, "%s", firn_error_message(a->p.result));
        lab_why(s, "%s gives up.", party(p, a->party));
    } else if (reads) {
        lab_label(s, "learns: %s", v);
        if (a->p.message.ask == PAXOS_LOOK)
            lab_why(
                s,
                "A majority reports the same accepted ballot: its value is chosen, and the learner "
                "needed one round trip.");
        else
            lab_why(
                s,
                "A read found no majority with one ballot, so the value might not be chosen yet. "
                "The learner used a ballot of its own to be sure.");
    } else if (a->p.result == 0) {
        lab_label(s, "majority accepted: agreed on %s", v);
        lab_why(s,
                "2 of 3 accepted %s. Every later ballot needs promises of a majority, learns of it "
                "from one of them, and must continue with it: this is final.",
                v);
    } else {
        lab_label(s, "%s is chosen: gives up", v);
        lab_why(s,
                "%s wanted to write into an empty register; it holds %s. Both proposers now know "
                "the same value.",
                party(p, a->party), v);
    }
}

static void act(struct play *p, unsigned i, enum paxos_do what)
{
    static const char *const phase1[] = { "Phase 1: Prepare", "P1, phase 1: Prepare",
                                          "P2, phase 1: Prepare", "L, phase 1: Prepare" };
    static const char *const phase2[] = { "Phase 2: Accept", "P1, phase 2: Accept",
                                          "P2, phase 2: Accept", "L, phase 2: Accept" };
    struct asker *a = &p->asker[i];
    switch (what) {
    case PAXOS_WAIT:
        return;
    case PAXOS_SEND:
        if (a->p.phase == PAXOS_PREPARING) {
            chapter(
                p, "phase1", phase1[p->asker[P2].party < 0 ? 0 : i + 1],
                "A proposer asks acceptors to reject every ballot below its own from now on, and "
                "to report what they have accepted.");
            note_prepare(p, a);
        } else if (a->p.phase == PAXOS_ACCEPTING) {
            chapter(p, "phase2", phase2[p->asker[P2].party < 0 ? 0 : i + 1],
                    "With promises of a majority a proposer asks the acceptors to accept a value.");
            note_accept(p, a);
        }
        send_all(p, i);
        return;
    case PAXOS_BACK_OFF: {
        uint64_t ms = 2 + draw(p) % (REST_MS << (a->p.rests < 4 ? a->p.rests : 4));
        struct lab_step *s = add(p, LAB_NOTE, "rest", a->party, a->party);
        bool refused = a->p.no != 0;
        lab_label(s, refused ? "outbid: waits %" PRIu64 " ms" : "no answers: waits %" PRIu64 " ms",
                  ms);
        lab_why(
            s,
            refused
                ? "Another proposer has promises for a higher ballot. Two proposers could outbid "
                  "each other for ever: a random wait, longer each time, ends this."
                : "Too few answers to know. The value may be chosen or not: the next, higher "
                  "ballot will find out.");
        schedule(p, AGAIN, i, ms);
        return;
    }
    case PAXOS_DONE:
        a->busy = false;
        note_done(p, a);
        return;
    }
}

static void start(struct play *p, unsigned i)
{
    struct asker *a = &p->asker[i];
    enum paxos_do what;
    a->busy = true;
    if (i == LEARNER) {
        what = paxos_read(&a->p, ACCEPTORS, i + 1, &a->round);
    } else {
        struct paxos_text old = { NULL, 0 }, new = { a->wants, strlen(a->wants) };
        what = paxos_change(&a->p, ACCEPTORS, i + 1, &a->round, old, new, NULL);
    }
    struct lab_step *s = add(p, LAB_NOTE, i == LEARNER ? "learn" : "propose", a->party, a->party);
    if (i == LEARNER) {
        lab_label(s, "what was agreed on?");
        lab_why(s, "A learner reads from the acceptors.");
    } else {
        lab_label(s, "wants %s: reads first", a->wants);
        lab_why(s,
                "%s wants to set the register, which it believes to be empty, to %s. It reads "
                "before it prepares: a read costs the acceptors no write, and may show that it is "
                "too late.",
                party(p, a->party), a->wants);
    }
    act(p, i, what);
}

/* ---- the acceptor's side ---- */

static const char *ask_name(enum paxos_ask ask)
{
    return ask == PAXOS_LOOK ? "look" : ask == PAXOS_PREPARE ? "prepare" : "accept";
}

static void label_ask(const struct play *p, const struct event *e, struct lab_step *s)
{
    const struct paxos_message *m = &e->message;
    char n[TEXT_BUF], next_n[TEXT_BUF], v[TEXT_BUF];
    ballot_text(p, m->ballot, n);
    s->term = m->ask == PAXOS_LOOK ? 0 : m->ballot.round;
    switch (m->ask) {
    case PAXOS_LOOK:
        lab_label(s, "Look");
        lab_why(s, "Asks what was accepted. This changes nothing.");
        break;
    case PAXOS_PREPARE:
        lab_label(s, "Prepare(n=%s)", n);
        lab_why(s, "Promise to refuse everything below n=%s, and tell what you accepted last.", n);
        break;
    case PAXOS_ACCEPT:
        lab_label(s, "Accept(n=%s, v=%s, next=%s)", n, value_text(&m->value, v),
                  ballot_text(p, m->next, next_n));
        lab_why(
            s,
            "Accept %s unless you promised a higher ballot; and promise n=%s at once, so that the "
            "next change of this proposer needs no Prepare.",
            v, next_n);
        break;
    }
    if (e->lost)
        lab_why(s, "The message is lost. %s learns nothing from %s and waits for the others.",
                party(p, p->asker[e->asker].party), party(p, p->acceptor_party[e->acceptor]));
}

static void note_acceptor(struct play *p, const struct event *e, const struct paxos_acceptor *was,
                          const struct paxos_answer *a)
{
    const struct paxos_message *m = &e->message;
    int me = p->acceptor_party[e->acceptor];
    char n[TEXT_BUF], old[TEXT_BUF], v[TEXT_BUF];
    if (m->ask == PAXOS_LOOK)
        return;
    ballot_text(p, m->ballot, n);
    ballot_text(p, was->promised, old);
    struct lab_step *s = add(p, LAB_NOTE, "acceptor", me, me);
    s->term = m->ballot.round;
    if (!a->ok) {
        lab_label(s, "%s < promised %s: no", n, old);
        lab_why(s, "%s promised n=%s, and keeps the promise.", party(p, me), old);
    } else if (m->ask == PAXOS_PREPARE) {
        lab_label(s, "%s > %s: promised = %s", n, was->promised.round ? old : "0", n);
        lab_why(s,
                "%s writes the promise to its disk before it answers: a crash must not undo a "
                "promise.",
                party(p, me));
    } else {
        lab_label(s, "accepted = (%s, %s)", n, value_text(&m->value, v));
        lab_why(s, "n=%s is not below what %s promised (%s): it accepts, on its disk.", n,
                party(p, me), old);
    }
}

/* The acceptor's state is encoded and decoded, as in a store. */
static bool remember(struct paxos_acceptor *a)
{
    char text[PAXOS_TEXT_MAX];
    size_t len = paxos_encode(a, text);
    return paxos_parse(text, len, a, NULL) == 0;
}

/* P1 crashes when the first acceptor has accepted: its messages to the others were never sent. */
static void kill_proposer(struct play *p)
{
    struct asker *a = &p->asker[P1];
    a->dead = true;
    a->busy = false;
    for (size_t i = 0; i < p->events;)
        if (p->event[i].asker == P1)
            p->event[i] = p->event[--p->events];
        else
            i++;
    struct lab_step *s = add(p, LAB_FAULT, "kill", a->party, a->party);
    lab_label(s, "killed");
    lab_why(s, "P1 crashes in the middle of sending: one acceptor has its value, the others never "
               "received it.");
    if (!(p->opts->faults & LAB_DUEL))
        schedule(p, START, P2, TAKE_OVER_MS);
}

static void asked(struct play *p, struct event *e)
{
    struct paxos_acceptor *a = &p->acceptor[e->acceptor], was = *a;
    struct asker *from = &p->asker[e->asker];
    struct paxos_answer answer = { .firm = true };
    struct lab_step *s = add(p, e->lost ? LAB_LOST : LAB_MESSAGE, ask_name(e->message.ask),
                             from->party, p->acceptor_party[e->acceptor]);
    label_ask(p, e, s);
    if (e->lost)
        return;
    if (paxos_acceptor_step(a, &e->message, &answer) && !remember(a))
        p->failed = true;
    note_acceptor(p, e, &was, &answer);
    struct event *back = schedule(p, ANSWER, e->asker, way_ms(p, e->acceptor));
    back->acceptor = e->acceptor;
    back->attempt = e->attempt;
    back->message.ask = e->message.ask;
    back->message.ballot = e->message.ballot;
    back->answer = answer;
    back->lost = is_cut(p, e->asker, e->acceptor) ||
                 (e->asker == P1 && p->lossy_attempt != 0 && e->attempt == p->lossy_attempt);
    if (e->asker == P1 && (p->opts->faults & LAB_KILL_PROPOSER) && e->message.ask == PAXOS_ACCEPT &&
        answer.ok)
        kill_proposer(p);
}

static void label_answer(const struct play *p, const struct event *e, struct lab_step *s, bool late)
{
    char n[TEXT_BUF], acc[TEXT_BUF], v[TEXT_BUF];
    const struct paxos_answer *a = &e->answer;
    const char *who = party(p, p->acceptor_party[e->acceptor]);
    bool has = a->accepted.round != 0;
    ballot_text(p, e->message.ballot, n);
    ballot_text(p, a->accepted, acc);
    value_text(&a->value, v);
    s->term = e->message.ask == PAXOS_LOOK ? 0 : e->message.ballot.round;
    if (!a->ok) {
        lab_label(s, "refused(promised %s)", ballot_text(p, a->promised, n));
        lab_why(s, "%s has promised n=%s to another proposer.", who, n);
    } else if (e->message.ask == PAXOS_ACCEPT) {
        lab_label(s, "Accepted(n=%s)", n);
        lab_why(s, "%s has the value on its disk until a higher ballot replaces it.", who);
    } else {
        bool promise = e->message.ask == PAXOS_PREPARE;
        char head[2 * TEXT_BUF];
        snprintf(head, sizeof head, promise ? "Promise(n=%s, " : "Seen(", n);
        if (has)
            lab_label(s, "%saccepted: %s, %s)", head, acc, v);
        else
            lab_label(s, "%saccepted: none)", head);
        lab_why(s,
                promise
                    ? has ? "%s promises, and reports what it accepted: the proposer must continue "
                            "with that."
                          : "%s promises, and has accepted nothing so far."
                : has ? "%s shows the last that it accepted."
                      : "%s has accepted nothing so far.",
                who);
    }
    if (e->lost)
        lab_why(s, "The answer is lost: %s has done it, and %s does not know.", who,
                party(p, p->asker[e->asker].party));
    else if (late)
        lab_why(s, "%s's answer comes late: a majority was enough.", who);
}

static void answered(struct play *p, struct event *e)
{
    struct asker *a = &p->asker[e->asker];
    static const char *const yes[] = { "seen", "promise", "accepted" };
    bool late = e->attempt != a->p.attempt || a->p.phase >= PAXOS_RESTING;
    enum paxos_do what = PAXOS_WAIT;
    enum paxos_phase phase = a->p.phase;
    if (!e->lost)
        what = paxos_answered(&a->p, e->acceptor, e->attempt, &e->answer);
    /* The diagram shows the count before the proposer acts on it. */
    struct lab_step *s = add(p, e->lost ? LAB_LOST : LAB_MESSAGE,
                             e->answer.ok ? yes[e->message.ask] : "refused",
                             p->acceptor_party[e->acceptor], a->party);
    if (what == PAXOS_SEND && a->p.phase != phase)
        lab_cell(s, a->party, YES, "2 of 3");
    label_answer(p, e, s, late && !e->lost);
    act(p, e->asker, what);
}

static bool step(struct play *p)
{
    if (p->events == 0 || p->failed)
        return false;
    struct event e = next(p);
    struct asker *a = &p->asker[e.asker];
    p->now_ms = e.at_ms;
    switch (e.type) {
    case START:
        start(p, e.asker);
        break;
    case ASK:
        asked(p, &e);
        break;
    case ANSWER:
        answered(p, &e);
        break;
    case TIMEOUT:
        if (a->busy && e.attempt == a->p.attempt && a->p.phase < PAXOS_RESTING)
            act(p, e.asker, paxos_answered(&a->p, e.acceptor, e.attempt, NULL));
        break;
    case AGAIN:
        if (a->busy)
            act(p, e.asker, paxos_again(&a->p));
        break;
    }
    return !p->failed;
}

/* ---- scenario ---- */

static bool play(struct play *p)
{
    static const char *const fields[] = { "doing",    "ballot",   "answers",
                                          "promised", "accepted", "value" };
    struct lab_trace *t = p->trace;
    bool two = p->opts->faults & (LAB_DUEL | LAB_KILL_PROPOSER);
    p->asker[P1] = (struct asker){ .party = lab_trace_party(t, "P1"), .wants = "value_x" };
    p->asker[P2] = (struct asker){ .party = two ? lab_trace_party(t, "P2") : -1,
                                   .wants = "value_y" };
    for (unsigned i = 0; i < ACCEPTORS; i++) {
        char acceptor[] = { 'A', (char)('1' + i), '\0' };
        p->acceptor_party[i] = lab_trace_party(t, acceptor);
    }
    p->asker[LEARNER] = (struct asker){ .party = lab_trace_party(t, "L") };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        lab_trace_field(t, fields[i]);
    snprintf(t->title, sizeof t->title, "Paxos: three acceptors agree on one value");
    chapter(p, "look", "Before: a read",
            "Three acceptors that have neither promised nor accepted anything.");
    if (p->opts->cut >= 0) {
        struct lab_step *s = add(p, LAB_FAULT, "cut", p->asker[P1].party,
                                 p->acceptor_party[p->opts->cut]);
        lab_label(s, "the link is cut");
        lab_why(s, "Nothing gets through between P1 and %s.",
                party(p, p->acceptor_party[p->opts->cut]));
    }
    schedule(p, START, P1, 0);
    if (p->opts->faults & LAB_DUEL)
        schedule(p, START, P2, LATER_MS);
    while (p->now_ms < LIMIT_MS && step(p))
        continue;
    if (p->failed || p->now_ms >= LIMIT_MS || p->asker[P1].busy || p->asker[P2].busy)
        return false;
    chapter(p, "learner", "The learner", "A learner that asks a majority learns the chosen value.");
    schedule(p, START, LEARNER, 0);
    while (p->now_ms < 2 * LIMIT_MS && step(p))
        continue;
    return !p->failed && !p->asker[LEARNER].busy;
}

int lab_paxos(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d)
{
    lab_trace_init(out, "paxos", o->seed);
    struct play *p = calloc(1, sizeof *p);
    if (!p)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    p->trace = out;
    p->opts = o;
    p->rng = o->seed;
    p->event = calloc(EVENTS_MAX, sizeof *p->event);
    bool memory = p->event != NULL, ok = memory && play(p);
    free(p->event);
    free(p);
    if (!memory || out->full)
        return firn__diag(d, FIRN_ENOMEM, 0,
                          "out of memory, or a run without end (seed %" PRIu64 ")", o->seed);
    return ok ? 0
              : firn__diag(d, FIRN_EIO, 0,
                           "the proposers did not finish with seed %" PRIu64
                           ", after %zu steps: try another --seed, and report this one",
                           o->seed, out->steps);
}
