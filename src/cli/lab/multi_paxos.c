/*
 * The Multi-Paxos lab: a log of slots, each decided by the acceptors and the proposer of
 * coord/paxos.c, on a simulated network. A leader prepares once for all slots; from then on a value
 * costs it one round trip, Accept and Accepted. A leader that crashes is replaced by one with a
 * higher ballot, which completes what it learns from the promises. At the end the messages are
 * counted, beside a run that prepares every slot by itself.
 *
 * One message may carry many slots: each slot's acceptor takes its part by paxos_acceptor_step().
 * An acceptor that promises or accepts a ballot promises it for every slot. The proposer keeps a
 * struct paxos for each slot: paxos_renew() prepares, and proposes what it finds; paxos_change()
 * with a known promise skips Prepare. The promise to a next ballot, which an Accept of
 * coord/paxos.h may ask for, is not used: the leader's ballot stays the same.
 *
 * Invariant: a slot in which a majority has accepted one value never gets another one, and whoever
 * learns a slot learns that value. It is asserted at each step.
 */
#include "cli/lab/lab.h"
#include "coord/paxos.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { P1, P2, PROPOSERS };
enum { ACCEPTORS = 3, MAJORITY = 2, SLOTS = 5, ALL_SLOTS = (1 << SLOTS) - 1 };
enum { COMMANDS_MAX = SLOTS, EVENTS_MAX = 96 };
enum { DOING, BALLOT, SLOT_1 };
enum { LOSSY_SLOT = 2, CRASH_SLOT = 3 }; /* slots 3 and 4 for the reader */
enum {
    NEAR_MS = 4,
    TIMEOUT_MS = 30,
    REST_MS = 20,
    LATER_MS = 6,
    TAKE_OVER_MS = 40,
    LIMIT_MS = 20000
};

enum event_type { ASK, ANSWER, TIMEOUT, AGAIN };

struct part { /* of a message: one slot's */
    uint32_t call, attempt;
    struct paxos_message ask;
    struct paxos_answer answer;
};

struct event {
    uint64_t at_ms, sequence;
    enum event_type type;
    unsigned proposer, acceptor, slots;
    bool lost;
    struct part part[SLOTS];
};

enum doing { IDLE, PREPARING, LEADING, RESTING };

struct proposer {
    int party; /* -1: does not take part */
    enum doing doing;
    bool dead;
    struct ballot ballot;
    uint64_t highest; /* round seen anywhere */
    unsigned rests;
    unsigned prepared, busy, chosen; /* sets of slots: promised and free; under way; known */
    uint32_t call[SLOTS];            /* numbers the calls of paxos_renew() and paxos_change() */
    uint64_t round[SLOTS];           /* that they were given */
    struct paxos slot[SLOTS];
    struct paxos_value value[SLOTS]; /* of those in `chosen` */
    const char *command[COMMANDS_MAX];
    unsigned commands, answered; /* the second: a set of commands */
};

struct play {
    struct lab_trace *trace;
    bool plain, duel, lose, crash;
    int cut;
    uint64_t now_ms, rng, sequence;
    int client;
    struct proposer proposer[PROPOSERS];
    struct paxos_acceptor acceptor[ACCEPTORS][SLOTS];
    int acceptor_party[ACCEPTORS];
    unsigned lost; /* acceptors that the first Accept of the lossy slot was lost to */
    unsigned decided;
    struct paxos_value value[SLOTS]; /* what a majority accepted */
    unsigned messages, trips;
    bool failed;
    struct event *event;
    size_t events;
};

/* ---- texts ---- */

enum { TEXT_BUF = 32 };

static const char *value_text(const struct paxos_value *v, char out[TEXT_BUF])
{
    if (v->present)
        snprintf(out, TEXT_BUF, "%.*s", (int)v->len, v->bytes);
    else
        snprintf(out, TEXT_BUF, "no-op");
    return out;
}

/* "1: x=1, 2: y=2": the values of a message; `accepted`: those that an acceptor reports, with the
 * ballots. */
static void list_slots(const struct event *e, bool accepted, char *out, size_t size)
{
    char text[TEXT_BUF];
    size_t len = 0;
    out[0] = '\0';
    for (unsigned s = 0; s < SLOTS && len < size; s++) {
        const struct part *part = &e->part[s];
        if (!(e->slots >> s & 1) || (accepted && part->answer.accepted.round == 0))
            continue;
        const char *comma = len ? ", " : "";
        if (accepted)
            len += (size_t)snprintf(out + len, size - len, "%s%u: %s@%" PRIu64, comma, s + 1,
                                    value_text(&part->answer.value, text),
                                    part->answer.accepted.round);
        else
            len += (size_t)snprintf(out + len, size - len, "%s%u: %s", comma, s + 1,
                                    value_text(&part->ask.value, text));
    }
}

static const char *party(const struct play *p, int i)
{
    return p->trace->party[i];
}

static unsigned first_of(unsigned set)
{
    return (unsigned)__builtin_ctz(set);
}

/* ---- steps ---- */

static struct ballot promised_of(const struct paxos_acceptor slot[SLOTS])
{
    struct ballot highest = slot[0].promised;
    for (unsigned s = 1; s < SLOTS; s++)
        if (ballot_cmp(slot[s].promised, highest) > 0)
            highest = slot[s].promised;
    return highest;
}

static void put_ballot(struct lab_step *s, int who, struct ballot b)
{
    if (b.round)
        lab_cell(s, who, BALLOT, "%" PRIu64, b.round);
    else
        lab_cell(s, who, BALLOT, "-");
}

static void put_state(const struct play *p, struct lab_step *step)
{
    static const char *const doing[] = { "idle", "prepares", "leader", "rests" };
    char text[TEXT_BUF];
    for (unsigned i = 0; i < PROPOSERS; i++) {
        const struct proposer *a = &p->proposer[i];
        if (a->party < 0)
            continue;
        lab_cell(step, a->party, DOING, "%s", a->dead ? "dead" : doing[a->doing]);
        put_ballot(step, a->party, a->ballot);
        for (unsigned s = 0; s < SLOTS; s++)
            lab_cell(step, a->party, SLOT_1 + s, "%s",
                     a->chosen >> s & 1 ? value_text(&a->value[s], text) : "-");
    }
    for (unsigned i = 0; i < ACCEPTORS; i++) {
        put_ballot(step, p->acceptor_party[i], promised_of(p->acceptor[i]));
        for (unsigned s = 0; s < SLOTS; s++) {
            const struct paxos_acceptor *a = &p->acceptor[i][s];
            if (a->accepted.round)
                lab_cell(step, p->acceptor_party[i], SLOT_1 + s, "%s@%" PRIu64,
                         value_text(&a->value, text), a->accepted.round);
            else
                lab_cell(step, p->acceptor_party[i], SLOT_1 + s, "-");
        }
    }
}

static struct lab_step *add(struct play *p, enum lab_kind kind, const char *event, int from, int to)
{
    struct lab_step *s = lab_trace_add(p->trace, kind, event, from, to, p->now_ms);
    put_state(p, s);
    return s;
}

static struct lab_step *note(struct play *p, const char *event, int who)
{
    return add(p, LAB_NOTE, event, who, who);
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

static struct event *schedule(struct play *p, enum event_type type, unsigned proposer,
                              uint64_t in_ms)
{
    if (p->events == EVENTS_MAX) { /* the last one is lost, and the run has failed */
        p->failed = true;
        p->events--;
    }
    struct event *e = &p->event[p->events++];
    *e = (struct event){
        .at_ms = p->now_ms + in_ms, .sequence = p->sequence++, .type = type, .proposer = proposer
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

/* A1 is a little nearer than A2, which is nearer than A3; with two leaders the delays vary. */
static uint64_t way_ms(struct play *p, unsigned acceptor)
{
    return NEAR_MS + acceptor + (p->duel ? draw(p) % 7 : 0);
}

/* ---- the proposer's side ---- */

/* One message to each acceptor, with what the calls of these slots want to send. */
static void send_all(struct play *p, unsigned i, unsigned slots)
{
    struct proposer *a = &p->proposer[i];
    p->trips++;
    for (unsigned k = 0; k < ACCEPTORS; k++) {
        bool lossy = p->lose && (slots >> LOSSY_SLOT & 1) && !(p->lost >> k & 1) &&
                     a->slot[LOSSY_SLOT].message.ask == PAXOS_ACCEPT;
        if (lossy)
            p->lost |= 1u << k;
        for (int timeout = 0; timeout < 2; timeout++) {
            struct event *e = timeout ? schedule(p, TIMEOUT, i, TIMEOUT_MS)
                                      : schedule(p, ASK, i, way_ms(p, k));
            e->acceptor = k;
            e->slots = slots;
            e->lost = lossy || (i == P1 && p->cut == (int)k);
            for (unsigned s = 0; s < SLOTS; s++)
                if (slots >> s & 1) {
                    e->part[s].call = a->call[s];
                    e->part[s].attempt = a->slot[s].attempt;
                    e->part[s].ask = a->slot[s].message;
                    e->part[s].ask.next = (struct ballot){ 0, 0 };
                }
        }
    }
}

/* P1 takes odd rounds and P2 even ones, so that a number alone names a ballot. */
static uint64_t round_above(unsigned proposer, uint64_t highest)
{
    uint64_t round = highest + 1;
    return round % PROPOSERS == (proposer + 1) % PROPOSERS ? round : round + 1;
}

static void prepare(struct play *p, unsigned i)
{
    struct proposer *a = &p->proposer[i];
    unsigned open = ALL_SLOTS & ~a->chosen;
    uint64_t round = round_above(i, a->highest);
    if (open == 0) {
        p->failed = true; /* more values than slots */
        return;
    }
    if (p->plain)
        open = 1u << first_of(open);
    a->highest = round;
    a->ballot = (struct ballot){ round, i + 1 };
    a->doing = PREPARING;
    a->prepared = 0;
    a->busy = open;
    for (unsigned s = 0; s < SLOTS; s++)
        if (open >> s & 1) {
            a->call[s]++;
            a->round[s] = round - 1;
            enum paxos_do what = paxos_renew(&a->slot[s], ACCEPTORS, i + 1, &a->round[s]);
            firn_assert(what == PAXOS_SEND && a->slot[s].message.ballot.round == round);
        }
    if (p->plain)
        chapter(p, "prepare_slot", "Plain Paxos: each slot has a Prepare of its own",
                "Nothing is known about this slot, so it needs both phases: two round trips.");
    else
        chapter(p, "lead",
                i == P1 ? "P1: one Prepare for all slots" : "P2: one Prepare for all slots",
                "A proposer that wants to lead asks once, for all slots of the log that it does "
                "not know, also those that have no value yet.");
    struct lab_step *s = note(p, "ballot", a->party);
    s->term = round;
    lab_label(s, "new ballot: n=%" PRIu64, round);
    lab_why(s,
            "Higher than every ballot that %s has used or received. P1 takes odd numbers, P2 even "
            "ones, so no two are equal.",
            party(p, a->party));
    send_all(p, i, open);
}

/* The first command that is in no slot that this proposer knows or tries; NULL: none. */
static const char *next_command(const struct proposer *a)
{
    for (unsigned c = 0; c < a->commands; c++) {
        bool placed = false;
        for (unsigned s = 0; s < SLOTS; s++) {
            const struct paxos_value *v = a->chosen >> s & 1 ? &a->value[s]
                                          : a->busy >> s & 1 ? &a->slot[s].message.value
                                                             : NULL;
            placed = placed || (v && v->present && v->len == strlen(a->command[c]) &&
                                memcmp(v->bytes, a->command[c], v->len) == 0);
        }
        if (!placed)
            return a->command[c];
    }
    return NULL;
}

/* Where a command ended, if this proposer knows; -1: it does not. */
static int slot_of(const struct proposer *a, const char *command)
{
    for (int s = 0; s < SLOTS; s++)
        if ((a->chosen >> s & 1) && a->value[s].present && a->value[s].len == strlen(command) &&
            memcmp(a->value[s].bytes, command, a->value[s].len) == 0)
            return s;
    return -1;
}

static void propose(struct play *p, unsigned i, const char *command)
{
    struct proposer *a = &p->proposer[i];
    unsigned k = first_of(a->prepared);
    struct paxos_text old = { NULL, 0 }, new = { command, strlen(command) };
    struct paxos_known promised = { .next = a->ballot };
    a->prepared &= ~(1u << k);
    a->busy |= 1u << k;
    a->call[k]++;
    a->round[k] = a->ballot.round;
    enum paxos_do what = paxos_change(&a->slot[k], ACCEPTORS, i + 1, &a->round[k], old, new,
                                      &promised);
    firn_assert(what == PAXOS_SEND && a->slot[k].message.ask == PAXOS_ACCEPT &&
                ballot_cmp(a->slot[k].message.ballot, a->ballot) == 0);
    struct lab_step *s = note(p, "propose", a->party);
    s->term = a->ballot.round;
    s->index = k + 1;
    lab_label(s, "slot %u: %s", k + 1, command);
    lab_why(s,
            p->plain ? "A majority has promised n=%" PRIu64 " for this slot, and reported no value."
                     : "A majority has promised n=%" PRIu64
                       " for every slot, and this one is free: "
                       "no Prepare.",
            a->ballot.round);
    send_all(p, i, 1u << k);
}

/* What a proposer does when it has nothing under way, or may have more. */
static void go_on(struct play *p, unsigned i)
{
    struct proposer *a = &p->proposer[i];
    const char *command;
    while (!a->dead && (a->doing == IDLE || a->doing == LEADING) &&
           (command = next_command(a)) != NULL) {
        if ((p->plain || p->duel) && a->busy) /* one after another */
            return;
        if (a->prepared == 0) {
            if (!a->busy)
                prepare(p, i);
            return;
        }
        propose(p, i, command);
    }
}

/* A majority has promised. What it accepted before is proposed again, with this ballot, and so is
 * nothing, in a gap; slots above the last value are free. */
static void promised(struct play *p, unsigned i)
{
    struct proposer *a = &p->proposer[i];
    unsigned found = 0, gaps = 0;
    for (unsigned s = 0; s < SLOTS; s++)
        if ((a->busy >> s & 1) && a->slot[s].best.round)
            found |= 1u << s;
    for (unsigned s = 0; s < SLOTS; s++)
        if ((a->busy >> s & 1) && !(found >> s & 1) && found >> s)
            gaps |= 1u << s;
    a->prepared = a->busy & ~(found | gaps);
    a->busy = found | gaps;
    a->doing = LEADING;
    struct lab_step *s = note(p, "leads", a->party);
    s->term = a->ballot.round;
    if (a->busy == 0) {
        lab_label(s, p->plain ? "promised: slot %u is free" : "leader: slots from %u on are free",
                  first_of(a->prepared) + 1);
        lab_why(s,
                p->plain
                    ? "2 of 3 promised, and none of them has accepted anything in this slot."
                    : "2 of 3 promised for all slots, and none of them has accepted anything. From "
                      "now on %s needs no Prepare, until a higher ballot appears.",
                party(p, a->party));
        return;
    }
    lab_label(s, gaps ? "proposes again what it found, and a no-op in the gap"
                      : "proposes again what it found");
    lab_why(s,
            "Each value in the promises may be chosen already, so %s proposes it again, with its "
            "own ballot.%s",
            party(p, a->party),
            gaps ? " Nothing is reported for a slot below: nothing can be chosen there, and a "
                   "no-op closes the gap, so that the log can be executed."
                 : " Where it was chosen, the slot keeps the same value.");
    send_all(p, i, a->busy);
}

/* Another proposer has a higher ballot, or too few acceptors answer. */
static void step_down(struct play *p, unsigned i, bool refused)
{
    struct proposer *a = &p->proposer[i];
    uint64_t ms = 2 + draw(p) % (REST_MS << (a->rests < 5 ? a->rests : 5));
    for (unsigned s = 0; s < SLOTS; s++)
        if (a->busy >> s & 1) {
            a->call[s]++; /* answers that are under way are late */
            paxos_give_up(&a->slot[s]);
        }
    a->rests++;
    a->busy = a->prepared = 0;
    a->doing = RESTING;
    struct lab_step *s = note(p, "rest", a->party);
    lab_label(s, refused ? "outbid: waits %" PRIu64 " ms" : "no answers: waits %" PRIu64 " ms", ms);
    lab_why(s, refused
                   ? "Another proposer has promises for a higher ballot, so this one leads no "
                     "more. Two could outbid each other for ever: each waits for a random "
                     "time, longer after each defeat."
                   : "Too few answers to know. The value may be chosen or not: the next, higher "
                     "ballot will find out.");
    schedule(p, AGAIN, i, ms);
}

static void answer_client(struct play *p, unsigned i)
{
    struct proposer *a = &p->proposer[i];
    for (unsigned c = 0; c < a->commands; c++) {
        int k = slot_of(a, a->command[c]);
        if (k < 0 || (a->answered >> c & 1))
            continue;
        a->answered |= 1u << c;
        struct lab_step *s = add(p, LAB_MESSAGE, "answer", a->party, p->client);
        s->index = (uint64_t)k + 1;
        lab_label(s, "%s is in slot %d", a->command[c], k + 1);
        lab_why(s, "The client learns it when the slot is decided.");
    }
}

/* Calls of these slots ended: a majority accepted their values. */
static void learn(struct play *p, unsigned i, unsigned slots)
{
    struct proposer *a = &p->proposer[i];
    char text[TEXT_BUF];
    for (unsigned s = 0; s < SLOTS; s++) {
        if (!(slots >> s & 1))
            continue;
        const struct paxos_value *v = &a->slot[s].value;
        firn_assert(a->slot[s].result == 0 && (p->decided >> s & 1), "slot %u", s + 1);
        firn_assert(v->present == p->value[s].present && v->len == p->value[s].len &&
                        memcmp(v->bytes, p->value[s].bytes, v->len) == 0,
                    "slot %u: another value was learned", s + 1);
        a->value[s] = *v;
    }
    a->busy &= ~slots;
    a->chosen |= slots;
    struct lab_step *s = note(p, "decided", a->party);
    s->term = a->ballot.round;
    s->index = first_of(slots) + 1;
    if (slots & (slots - 1))
        lab_label(s, "%d slots are decided", __builtin_popcount(slots));
    else
        lab_label(s, "slot %u is decided: %s", first_of(slots) + 1,
                  value_text(&a->value[first_of(slots)], text));
    lab_why(s,
            "2 of 3 accepted. Every later ballot needs promises of a majority, learns of it from "
            "one of them, and must propose it again: this is final.");
    answer_client(p, i);
    if (p->plain)
        a->doing = IDLE;
}

/* ---- the acceptor's side ---- */

/* The acceptor's state is encoded and decoded, as in a store. */
static bool remember(struct paxos_acceptor *a)
{
    char text[PAXOS_TEXT_MAX];
    size_t len = paxos_encode(a, text);
    return paxos_parse(text, len, a, NULL) == 0;
}

/* A slot in which a majority shows one accepted ballot is decided, for good. */
static void watch_slot(struct play *p, unsigned s)
{
    for (unsigned i = 0; i < ACCEPTORS; i++) {
        const struct paxos_acceptor *a = &p->acceptor[i][s];
        unsigned same = 0;
        for (unsigned k = 0; k < ACCEPTORS; k++)
            same += a->accepted.round && ballot_cmp(p->acceptor[k][s].accepted, a->accepted) == 0;
        if (same < MAJORITY)
            continue;
        firn_assert(!(p->decided >> s & 1) ||
                        (a->value.present == p->value[s].present &&
                         a->value.len == p->value[s].len &&
                         memcmp(a->value.bytes, p->value[s].bytes, a->value.len) == 0),
                    "slot %u has two values", s + 1);
        p->decided |= 1u << s;
        p->value[s] = a->value;
    }
}

/* True: accepted or promised. */
static bool take(struct play *p, struct event *e)
{
    struct ballot b = e->part[first_of(e->slots)].ask.ballot;
    bool ok = true;
    for (unsigned s = 0; s < SLOTS; s++) {
        struct paxos_acceptor *a = &p->acceptor[e->acceptor][s];
        struct part *part = &e->part[s];
        if (!(e->slots >> s & 1))
            continue;
        part->answer.firm = true;
        if (paxos_acceptor_step(a, &part->ask, &part->answer) && !remember(a))
            p->failed = true;
        ok = ok && part->answer.ok;
        watch_slot(p, s);
    }
    for (unsigned s = 0; s < SLOTS && ok && !p->plain; s++) {
        struct paxos_message same = { .ask = PAXOS_PREPARE, .ballot = b };
        struct paxos_answer ignored;
        if (!(e->slots >> s & 1))
            paxos_acceptor_step(&p->acceptor[e->acceptor][s], &same, &ignored);
    }
    return ok;
}

/* P1 crashes when the first acceptor has accepted: its messages to the others were never sent. */
static void kill_leader(struct play *p)
{
    struct proposer *a = &p->proposer[P1];
    a->dead = true;
    a->busy = a->prepared = 0;
    for (size_t i = 0; i < p->events;)
        if (p->event[i].proposer == P1)
            p->event[i] = p->event[--p->events];
        else
            i++;
    struct lab_step *s = add(p, LAB_FAULT, "kill", a->party, a->party);
    lab_label(s, "killed");
    lab_why(s, "P1 crashes in the middle of sending: one acceptor has its last value, the others "
               "never received it, and the client has no answer.");
    schedule(p, AGAIN, P2, TAKE_OVER_MS);
}

static void label_ask(const struct play *p, const struct event *e, struct lab_step *s)
{
    const struct paxos_message *m = &e->part[first_of(e->slots)].ask;
    const char *who = party(p, p->proposer[e->proposer].party);
    char list[LAB_LABEL_BUF - 24];
    s->term = m->ballot.round;
    s->index = first_of(e->slots) + 1;
    list_slots(e, false, list, sizeof list);
    if (m->ask == PAXOS_ACCEPT) {
        lab_label(s, "Accept(n=%" PRIu64 ", slot %s)", m->ballot.round, list);
        lab_why(s, "Accept unless you promised a higher ballot.");
    } else {
        lab_label(s,
                  p->plain ? "Prepare(n=%" PRIu64 ", slot %u)"
                           : "Prepare(n=%" PRIu64 ", slots from %u on)",
                  m->ballot.round, first_of(e->slots) + 1);
        lab_why(s,
                "Promise to refuse everything below n=%" PRIu64
                "%s, and tell what you accepted last.",
                m->ballot.round, p->plain ? " in this slot" : " in every slot");
    }
    if (e->lost)
        lab_why(s, "The message is lost: %s learns nothing from %s.", who,
                party(p, p->acceptor_party[e->acceptor]));
}

static void asked(struct play *p, struct event *e)
{
    static const char *const name[] = { "look", "prepare", "accept" };
    enum paxos_ask ask = e->part[first_of(e->slots)].ask.ask;
    struct lab_step *s = add(p, e->lost ? LAB_LOST : LAB_MESSAGE, name[ask],
                             p->proposer[e->proposer].party, p->acceptor_party[e->acceptor]);
    p->messages++;
    label_ask(p, e, s);
    if (e->lost)
        return;
    bool ok = take(p, e);
    if (ask == PAXOS_PREPARE && ok) {
        s = note(p, "acceptor", p->acceptor_party[e->acceptor]);
        lab_label(s, "promised = %" PRIu64, e->part[first_of(e->slots)].ask.ballot.round);
        lab_why(s, p->plain ? "On its disk, for this slot, before it answers."
                            : "On its disk, for every slot of the log, before it answers.");
    } else if (ok) {
        put_state(p, s);
    }
    struct event *back = schedule(p, ANSWER, e->proposer, way_ms(p, e->acceptor));
    back->acceptor = e->acceptor;
    back->slots = e->slots;
    memcpy(back->part, e->part, sizeof back->part);
    p->messages++;
    if (p->crash && !p->proposer[P1].dead && e->proposer == P1 && ok && ask == PAXOS_ACCEPT &&
        (e->slots >> CRASH_SLOT & 1))
        kill_leader(p);
}

static void label_answer(const struct play *p, const struct event *e, struct lab_step *s, bool late)
{
    const struct part *part = &e->part[first_of(e->slots)];
    const char *who = party(p, p->acceptor_party[e->acceptor]);
    unsigned first = first_of(e->slots) + 1, last = 32 - (unsigned)__builtin_clz(e->slots);
    char list[LAB_LABEL_BUF - 24];
    s->term = part->ask.ballot.round;
    s->index = first;
    list_slots(e, true, list, sizeof list);
    if (!part->answer.ok) {
        lab_label(s, "refused(promised %" PRIu64 ")", part->answer.promised.round);
        lab_why(s, "%s has promised n=%" PRIu64 " to another proposer.", who,
                part->answer.promised.round);
    } else if (part->ask.ask == PAXOS_PREPARE) {
        lab_label(s, "Promise(n=%" PRIu64 ", %s)", part->ask.ballot.round,
                  list[0] ? list : "accepted: none");
        lab_why(s,
                list[0] ? "%s promises, and reports what it accepted in which slot: value@ballot."
                        : "%s promises, and has accepted nothing so far.",
                who);
    } else if (first == last) {
        lab_label(s, "Accepted(n=%" PRIu64 ", slot %u)", part->ask.ballot.round, first);
        lab_why(s, "%s has the value on its disk.", who);
    } else {
        lab_label(s, "Accepted(n=%" PRIu64 ", slots %u to %u)", part->ask.ballot.round, first,
                  last);
        lab_why(s, "%s has these values on its disk.", who);
    }
    if (late)
        lab_why(s, "%s's answer comes late: the proposer has gone on.", who);
}

/* The answer of an acceptor, or that there is none, to each slot's call. */
static void answered(struct play *p, struct event *e)
{
    struct proposer *a = &p->proposer[e->proposer];
    unsigned send = 0, done = 0, open = 0;
    bool down = false, none = e->type == TIMEOUT, ok = true;
    for (unsigned s = 0; s < SLOTS; s++) {
        struct part *part = &e->part[s];
        if (!(e->slots >> s & 1) || part->call != a->call[s] || !(a->busy >> s & 1) ||
            part->attempt != a->slot[s].attempt)
            continue;
        open |= 1u << s;
        ok = ok && (none || part->answer.ok);
        if (!none && a->highest < part->answer.promised.round)
            a->highest = part->answer.promised.round;
        enum paxos_do what = paxos_answered(&a->slot[s], e->acceptor, part->attempt,
                                            none ? NULL : &part->answer);
        send |= what == PAXOS_SEND ? 1u << s : 0;
        done |= what == PAXOS_DONE ? 1u << s : 0;
        down = down || what == PAXOS_BACK_OFF;
    }
    if (!none) {
        static const char *const yes[] = { "seen", "promise", "accepted" };
        const struct part *part = &e->part[first_of(e->slots)];
        struct lab_step *s = add(p, LAB_MESSAGE, part->answer.ok ? yes[part->ask.ask] : "refused",
                                 p->acceptor_party[e->acceptor], a->party);
        label_answer(p, e, s, open == 0);
    }
    if (send)
        promised(p, e->proposer);
    if (done)
        learn(p, e->proposer, done);
    if (down)
        step_down(p, e->proposer, !ok);
    if (send || done)
        go_on(p, e->proposer);
}

static bool step(struct play *p)
{
    if (p->events == 0 || p->failed)
        return false;
    struct event e = next(p);
    struct proposer *a = &p->proposer[e.proposer];
    p->now_ms = e.at_ms;
    switch (e.type) {
    case ASK:
        asked(p, &e);
        break;
    case ANSWER:
    case TIMEOUT:
        answered(p, &e);
        break;
    case AGAIN:
        if (a->doing == IDLE && !next_command(a) && !p->duel) { /* takes over */
            prepare(p, e.proposer);
            break;
        }
        a->doing = IDLE;
        go_on(p, e.proposer);
        break;
    }
    return !p->failed;
}

/* ---- scenario ---- */

static void request(struct play *p, unsigned i, const char *command)
{
    struct proposer *a = &p->proposer[i];
    firn_assert(a->commands < COMMANDS_MAX);
    a->command[a->commands++] = command;
    struct lab_step *s = add(p, LAB_MESSAGE, "request", p->client, a->party);
    lab_label(s, "%s", command);
    lab_why(s, "The client asks %s.", party(p, a->party));
}

static bool run(struct play *p)
{
    uint64_t end = p->now_ms + LIMIT_MS;
    while (p->now_ms < end && step(p))
        continue;
    return !p->failed && p->events == 0;
}

static void parties(struct play *p)
{
    static const char *const fields[] = { "doing",  "n",      "slot 1", "slot 2",
                                          "slot 3", "slot 4", "slot 5" };
    struct lab_trace *t = p->trace;
    p->client = lab_trace_party(t, "Client");
    p->proposer[P1] = (struct proposer){ .party = lab_trace_party(t, "P1") };
    p->proposer[P2] = (struct proposer){ .party = lab_trace_party(t, "P2") };
    for (unsigned i = 0; i < ACCEPTORS; i++) {
        char acceptor[] = { 'A', (char)('1' + i), '\0' };
        p->acceptor_party[i] = lab_trace_party(t, acceptor);
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        lab_trace_field(t, fields[i]);
}

/* P1 leads and crashes, and P2 takes over. */
static bool fail_over(struct play *p)
{
    request(p, P1, "x=1");
    go_on(p, P1);
    if (!run(p))
        return false;
    if (!p->plain)
        chapter(p, "stable", "A stable leader: one round trip for each value",
                "P1's ballot is promised for all slots, so Accept and Accepted are enough.");
    request(p, P1, "y=2");
    go_on(p, P1);
    if (!run(p))
        return false;
    if (!p->plain)
        chapter(p, "crash", "The leader crashes",
                "Two more commands, in two slots at the same time; P1 crashes in the middle.");
    if (p->lose) {
        struct lab_step *s = add(p, LAB_FAULT, "lossy", p->proposer[P1].party,
                                 p->proposer[P1].party);
        lab_label(s, "slot 3: the first Accept will be lost");
        lab_why(s, "The network loses the first Accept of slot 3 to each acceptor.");
    }
    request(p, P1, "z=3");
    request(p, P1, "w=4");
    go_on(p, P1);
    if (!run(p) || !p->proposer[P1].dead)
        return false;
    if (!p->plain)
        chapter(p, "stable", "P2 is a stable leader",
                p->lose ? "The client had no answer to z=3 and asks again: the next slot, without "
                          "a Prepare."
                        : "The next command gets the next slot, without a Prepare.");
    request(p, P2, p->lose && !p->plain ? "z=3" : "v=5");
    go_on(p, P2);
    return run(p) && !next_command(&p->proposer[P2]);
}

static bool duel(struct play *p)
{
    if (p->lose) {
        struct lab_step *s = add(p, LAB_FAULT, "lossy", p->proposer[P1].party,
                                 p->proposer[P1].party);
        lab_label(s, "slot 3: the first Accept will be lost");
        lab_why(s, "The network loses the first Accept of slot 3 to each acceptor.");
    }
    request(p, P1, "x=1");
    request(p, P1, "y=2");
    request(p, P2, "v=8");
    request(p, P2, "w=9");
    go_on(p, P1);
    schedule(p, AGAIN, P2, LATER_MS);
    return run(p) && !next_command(&p->proposer[P1]) && !next_command(&p->proposer[P2]);
}

struct tally {
    unsigned messages, trips;
};

/* Five values by one leader, without faults. */
static bool tally(bool plain, struct event *events, struct tally *out)
{
    static const char *const command[] = { "x=1", "y=2", "z=3", "w=4", "v=5" };
    struct lab_trace unseen;
    struct play *p = calloc(1, sizeof *p);
    if (!p)
        return false;
    lab_trace_init(&unseen, "multi-paxos", 0);
    p->trace = &unseen;
    p->plain = plain;
    p->cut = -1;
    p->event = events;
    parties(p);
    bool ok = true;
    for (size_t i = 0; i < sizeof command / sizeof command[0] && ok; i++) {
        request(p, P1, command[i]);
        go_on(p, P1);
        ok = run(p);
    }
    *out = (struct tally){ p->messages, p->trips };
    ok = ok && p->decided == ALL_SLOTS && !unseen.full;
    lab_trace_done(&unseen);
    free(p);
    return ok;
}

static bool count(struct play *p)
{
    struct tally multi, plain;
    int who = p->proposer[P2].party;
    unsigned messages = p->messages, trips = p->trips;
    if (!tally(false, p->event, &multi) || !tally(true, p->event, &plain))
        return false;
    chapter(p, "counted", "Counted: five values, one leader, no fault",
            "The same five values in two more runs, counted and not shown: with a stable leader, "
            "and with a Prepare for each slot.");
    struct lab_step *s = note(p, "tally_multi", who);
    lab_label(s, "Multi-Paxos: %u messages, %u round trips", multi.messages, multi.trips);
    lab_why(s, "One round trip for Prepare, once, then one for each value.");
    s = note(p, "tally_plain", who);
    lab_label(s, "plain Paxos: %u messages, %u round trips", plain.messages, plain.trips);
    lab_why(s, "Two round trips for each value. --plain shows that run.");
    s = note(p, "tally_here", who);
    lab_label(s, "this run: %u messages, %u round trips", messages, trips);
    lab_why(s, "Lost messages, higher ballots and values that were proposed again are counted.");
    return true;
}

static bool play(struct play *p)
{
    struct lab_trace *t = p->trace;
    parties(p);
    snprintf(t->title, sizeof t->title, "Multi-Paxos: a log of values, and a leader");
    chapter(p, "begin", "Before: an empty log",
            "Three acceptors that have neither promised nor accepted anything. The log has five "
            "slots, and each is decided by Paxos.");
    if (p->cut >= 0) {
        struct lab_step *s = add(p, LAB_FAULT, "cut", p->proposer[P1].party,
                                 p->acceptor_party[p->cut]);
        lab_label(s, "the link is cut");
        lab_why(s, "Nothing gets through between P1 and %s.", party(p, p->acceptor_party[p->cut]));
    }
    return (p->duel ? duel(p) : fail_over(p)) && count(p);
}

int lab_multi_paxos(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d)
{
    lab_trace_init(out, "multi-paxos", o->seed);
    struct play *p = calloc(1, sizeof *p);
    if (!p)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    p->trace = out;
    p->plain = o->faults & LAB_PLAIN;
    p->duel = o->faults & LAB_DUEL;
    p->lose = o->faults & LAB_LOSE;
    p->crash = !p->duel;
    p->cut = o->cut;
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
