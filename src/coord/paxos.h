/*
 * paxos.h - one register kept by a majority of acceptors: CASPaxos (Rystsov, 2018). Pure.
 *
 * An acceptor remembers three things of a register: the highest ballot it promised to, the ballot
 * that it accepted last, and that ballot's value. A proposer changes the register in two steps,
 * each answered by a majority: PREPARE(b) makes acceptors promise to refuse ballots below b and
 * tell what they accepted; the value of the highest accepted ballot among them is the register's,
 * the change is applied to it, and ACCEPT(b, changed value) makes it the register's new one. A
 * change that does not fit (the register holds another value than the one to replace) and a read
 * accept the value that was found, unchanged. ACCEPT also asks for the promise to this proposer's
 * next ballot, so that its next change is one round trip. LOOK only reads: where a majority shows
 * one accepted ballot, that value is the register's.
 *
 * Why it is safe.
 *  (1) A ballot is (round, proposer's nonce), rounds of one proposer only rise, and an acceptor
 *      promises a ballot once: so a ballot carries at most one value.
 *  (2) Let v be accepted in b by a majority ("chosen"). Every ballot above b that gets to ACCEPT
 *      carries v or what became of v: its majority of promises has an acceptor in common with v's.
 *      That acceptor accepted b before it promised more, because afterwards it refuses b. So the
 *      proposer saw b or a higher ballot, for which the same holds, and took the highest. A promise
 *      that came with an ACCEPT is no different: it comes from an acceptor that at that moment had
 *      accepted what this proposer knows. So the values form one chain in the order of ballots,
 *      each made from the one before.
 *  (3) A look at a majority that shows one accepted ballot b: b is chosen; and nothing above b was
 *      chosen before the look began, or one of them would show it. So the answer was right at some
 *      moment of the call. With no such agreement the value found is accepted again, by a majority,
 *      before it is told.
 *  (4) OK: the new value, or a value made from it, is accepted by a majority.
 *      CONFLICT: another value is accepted by a majority (told of a value that only a minority has,
 *      a caller could later find the old one again), and the change is in no chain any more. If
 *      nothing was proposed, or all acceptors refused it when they first heard of it, which is for
 *      ever, that is clear. Else its fate is open because some acceptor may have it, and the chain
 *      decides. Each value is marked with the ballot that made it, and has the marks of the values
 *      before it. Our mark in the chain: the change was made, OK. The mark of the value that we
 *      would have replaced, or of a later one that is known to be made without ours, and ours not
 *      behind it: the change is not in the chain. That chain is then accepted in a ballot above all
 *      of ours, also if it was chosen before: later ballots continue from there, so ours is over.
 *      The chain does not reach back so far: UNKNOWN.
 *      UNKNOWN: a minority may have the new value, and any proposer may complete it later.
 *  (5) All of this needs acceptors that remember. An acceptor that lost its memory, or got an older
 *      one back, must not answer (store/quorum.c: membership). It may be admitted again as one that
 *      remembers enough: choose a round F above every round that it can have promised to; let a
 *      majority, without it, refuse all below F (a floor: a promise that holds for every register,
 *      also one that does not exist yet); have every register that one of them knows accepted again
 *      by such a majority, in ballots of F and above; give it what they accepted, and the floor F.
 *      Now everything it promised before is still promised. Everything that was chosen with its
 *      help was accepted by all but it of that majority, of which one is in the majority of F, so
 *      it was accepted again; and nothing below F is chosen any more.
 */
#ifndef FIRN_COORD_PAXOS_H
#define FIRN_COORD_PAXOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#define PAXOS_VALUE_MAX 1024
#define PAXOS_TEXT_MAX  (PAXOS_VALUE_MAX + 800) /* an acceptor's record */
#ifndef PAXOS_BEFORE_MAX                        /* a test makes it less */
#define PAXOS_BEFORE_MAX 16
#endif
enum { PAXOS_ACCEPTORS_MAX = 7 };

struct ballot { /* in order of round, then id; all zero: none */
    uint64_t round, id;
};

static inline int ballot_cmp(struct ballot a, struct ballot b)
{
    int c = (a.round > b.round) - (a.round < b.round);
    return c ? c : (a.id > b.id) - (a.id < b.id);
}

struct paxos_value {
    struct ballot tag; /* of the ballot that made it; none: the register was never written */
    uint32_t before_n; /* the tags of the values it was made from, latest first */
    struct ballot before[PAXOS_BEFORE_MAX];
    bool present; /* else the register is absent, or was removed */
    uint32_t len;
    char bytes[PAXOS_VALUE_MAX];
};

/* ---- the acceptor ---- */

struct paxos_acceptor { /* all zero is the state before the first message */
    struct ballot promised, accepted;
    struct paxos_value value; /* of `accepted` */
};

enum paxos_ask { PAXOS_LOOK, PAXOS_PREPARE, PAXOS_ACCEPT };

struct paxos_message {
    enum paxos_ask ask;
    struct ballot ballot;
    struct ballot next;       /* ACCEPT: promise this one too */
    struct paxos_value value; /* ACCEPT */
};

struct paxos_answer {
    bool ok; /* false: it has promised to a higher ballot */
    bool
        firm; /* the carrier's: applied for the first time, so a refused value was never accepted */
    struct ballot promised, accepted; /* as they are now */
    struct paxos_value value;         /* LOOK and PREPARE: what it accepted last */
};

/* The floor: no ballot of a round below `round` is promised to any more. */
void paxos_acceptor_raise(struct paxos_acceptor *a, uint64_t round);

/* One message. true: `a` changed, and must be durable before the answer is given. */
bool paxos_acceptor_step(struct paxos_acceptor *a, const struct paxos_message *m,
                         struct paxos_answer *out);

/* The acceptor's memory as text: lines, and behind the last one the bytes of the value. One text
 * for each state, so comparing texts is comparing states. */
size_t paxos_encode(const struct paxos_acceptor *a, char out[PAXOS_TEXT_MAX]);
FIRN_MUSTUSE int paxos_parse(const char *p, size_t len, struct paxos_acceptor *out,
                             struct firn_diag *d);

/* ---- the proposer ---- */

enum paxos_do {
    PAXOS_WAIT,     /* for answers */
    PAXOS_SEND,     /* p->message to every acceptor, as attempt p->attempt */
    PAXOS_BACK_OFF, /* wait a random time, longer each time, then paxos_again() */
    PAXOS_DONE,     /* p->result */
};

struct paxos_text { /* p NULL: absent */
    const char *p;
    size_t len;
};

/* What a proposer keeps of a register after a change: a majority promised `next` when it accepted
 * this. */
struct paxos_known {
    struct ballot next; /* none: nothing is known */
    struct paxos_value value;
};

enum paxos_phase { PAXOS_LOOKING, PAXOS_PREPARING, PAXOS_ACCEPTING, PAXOS_RESTING, PAXOS_ENDED };

struct
    paxos { /* one call on one register; private but for message, attempt, result, value, known */
    unsigned n, majority;
    uint64_t id;
    uint64_t *round; /* borrowed: the highest round this proposer used, in any register */
    bool write, renew;
    struct paxos_text old, new;

    enum paxos_phase phase;
    uint32_t attempt;
    struct paxos_message message;

    unsigned yes, no, lost;                  /* sets of acceptors, of this attempt */
    struct ballot seen[PAXOS_ACCEPTORS_MAX]; /* what each yes accepted */
    struct ballot best;                      /* the highest of them, */
    struct paxos_value value;                /* and its value; after the end: the register's */
    uint64_t highest;                        /* round seen anywhere */
    bool changing;                           /* the ACCEPT under way has our change */
    bool proposed;                           /* some ACCEPT had it, and may have been accepted: */
    struct ballot tag, base;                 /* as this, made from that */
    struct ballot past;                      /* a value that was made from `base` without it */
    bool doubted;                            /* more than one had it */
    uint32_t change_attempt;                 /* the last one that had, and the acceptors */
    unsigned refused;                        /* that refused it */
    bool doubting;                           /* a majority promised, and the chain does not tell */
    unsigned rests;

    int result;               /* 0 (a read: p->value), FIRN_ECONFLICT, FIRN_EUNKNOWN, FIRN_EIO */
    struct paxos_known known; /* after the end */
};

/* Begin. n acceptors, odd; `id` is this incarnation's nonce, never 0. old and new are borrowed to
 * the end. `known` is what the last change of this register left, or NULL; it may be used once. */
enum paxos_do paxos_read(struct paxos *p, unsigned n, uint64_t id, uint64_t *round);

/* Have the register accepted again, in a ballot above *round. */
enum paxos_do paxos_renew(struct paxos *p, unsigned n, uint64_t id, uint64_t *round);
enum paxos_do paxos_change(struct paxos *p, unsigned n, uint64_t id, uint64_t *round,
                           struct paxos_text old, struct paxos_text new,
                           const struct paxos_known *known);

/* The answer of acceptor `from` to attempt `attempt`; NULL: there will be none. Late ones are
 * ignored. */
enum paxos_do paxos_answered(struct paxos *p, unsigned from, uint32_t attempt,
                             const struct paxos_answer *a);

/* A little time went by: decide without the slow acceptors. */
enum paxos_do paxos_hurry(struct paxos *p);

/* After PAXOS_BACK_OFF. */
enum paxos_do paxos_again(struct paxos *p);

/* The time is over: sets the result. FIRN_EIO: nothing was written. */
void paxos_give_up(struct paxos *p);

#endif
