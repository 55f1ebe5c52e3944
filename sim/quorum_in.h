/* quorum_in.h - internals of a quorum's world: one at a time, all of it in `q`. */
#ifndef SIM_QUORUM_IN_H
#define SIM_QUORUM_IN_H

#include "mutant.h"
#include "quorum.h"

#include "coord/paxos.h"
#include "linear.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    PROPOSERS = 4,
    ADMIN = PROPOSERS, /* admitting an acceptor takes a proposer, too */
    ACTORS,
    ENVELOPES_MAX = 1024,
    EVENTS_MAX = 4096,
    OPS_MAX = 110,
    BALLOTS_MAX = 8192,
    TEXT_BUF = 12,
};

enum qevent_kind {
    Q_DELIVER, /* `at` an envelope */
    Q_BEGIN,   /* a proposer's next call */
    Q_HURRY,
    Q_AGAIN,
    Q_TIMEOUT,
    Q_FAULT,
    Q_ADMIT, /* the next step of an admission */
};

struct qevent {
    int64_t at_ms;
    uint64_t order;
    enum qevent_kind kind;
    unsigned who;
    uint64_t token; /* of the call or attempt that it is for */
};

struct envelope {
    bool used, is_answer, again, failed; /* again: the acceptor may have had it before */
    unsigned actor, acceptor;
    uint64_t call;
    uint32_t attempt;
    struct paxos_message message;
    struct paxos_answer answer;
};

struct acceptor {
    struct paxos_acceptor memory;
    uint64_t floor;
    uint32_t life; /* of its memory */
    bool out;      /* refused: it lost its memory */
    int64_t down_until_ms;
};

struct actor {
    uint64_t id, round, call;
    uint64_t floor[PAXOS_ACCEPTORS_MAX]; /* as it last read them */
    bool busy, has_known;
    struct paxos p;
    struct paxos_known known;
    unsigned rests;
    int op;        /* in the history */
    uint32_t last; /* the value it believes in */
    char old[TEXT_BUF], new[TEXT_BUF];
};

enum admit_step { ADMIT_NONE, ADMIT_LOOK, ADMIT_FLOORS, ADMIT_KEYS, ADMIT_RENEW, ADMIT_GIVE };

struct admission {
    enum admit_step step;
    unsigned x, next, raised;
    uint64_t floor, token;
    uint32_t life;
    bool renewed;
    int64_t until_ms;
};

struct ballot_truth { /* the value accepted in it, and all acceptors that ever did */
    struct ballot ballot;
    unsigned set;
    struct ballot tag, before[PAXOS_BEFORE_MAX];
    uint32_t before_n;
};

struct quorum_world {
    struct world *w;
    uint64_t rng, order, next_id;
    uint32_t next_value;
    int64_t end_ms; /* of the faults */
    unsigned n, majority, latency_ms;
    int64_t call_ms;
    struct acceptor acceptor[PAXOS_ACCEPTORS_MAX];
    struct actor actor[ACTORS];
    struct admission admission;
    struct envelope envelope[ENVELOPES_MAX];
    struct qevent event[EVENTS_MAX]; /* a heap */
    size_t events;
    unsigned lose[PAXOS_ACCEPTORS_MAX], lose_answer[PAXOS_ACCEPTORS_MAX]; /* the next so many */
    int64_t late_ms[PAXOS_ACCEPTORS_MAX], repeat_ms[PAXOS_ACCEPTORS_MAX];
    struct lin_op history[OPS_MAX];
    size_t ops;
    struct ballot_truth ballot[BALLOTS_MAX];
    size_t ballots;
};

extern struct quorum_world q;

static inline int64_t q_now_ms(void)
{
    return q.w->now / MS;
}

static inline bool q_same(struct ballot a, struct ballot b)
{
    return ballot_cmp(a, b) == 0;
}

static inline unsigned q_count(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

/* quorum_way.c: what is yet to come, in virtual time, and messages on their way. */
void q_at(int64_t ms, enum qevent_kind kind, unsigned who, uint64_t token);
struct qevent q_take(void);
int64_t q_soon(void);
void q_send(struct envelope *e); /* with what the plan wants to happen to it */

/* quorum_acceptor.c: their memories, and what was ever accepted. */
void q_remember(unsigned i, const struct paxos_acceptor *memory);
bool q_there(const struct acceptor *a);
void q_accept(const struct envelope *e);
void q_wipe(unsigned x);

/* quorum_proposer.c */
void q_follow(struct actor *p, enum paxos_do what);
void q_ended(struct actor *p);
void q_begin(struct actor *p);
void q_crash(struct actor *p);
void q_answer(const struct envelope *e);

/* quorum_admit.c: letting an acceptor in again. */
void q_admit(unsigned x);
void q_admit_step(void);
void q_renewed(struct actor *p);

#endif
