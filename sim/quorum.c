/*
 * Worlds of a quorum (coord/paxos.h): proposers read and change one register of three or five acceptors. Messages
 * are lost, late, repeated and overtake each other; proposers give up, crash and duel; acceptors stand still, lose
 * their memory, are refused, and are let in again while the others go on. Everything is in virtual time and
 * from the plan: the same seed is the same run, and a failing plan can be shortened and replayed.
 *
 * Never: two values in one ballot; a value chosen that was not made from the one chosen before it; a history of
 * calls that is not linearizable; a call without end once the faults are over.
 *
 * As in store/quorum_acceptor.c the floor of an acceptor is remembered by each proposer, so it may be old. It is
 * read again when the proposer has written a record that had accepted nothing, and where it rose above the
 * ballot the vote does not count, although the record stays.
 */
#include "quorum.h"
#include "mutant.h"

#include "coord/paxos.h"
#include "linear.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    PROPOSERS = 4,
    ADMIN = PROPOSERS, /* who lets acceptors in again is a proposer, too */
    ACTORS,
    ENVELOPES_MAX = 1024,
    EVENTS_MAX = 4096,
    OPS_MAX = 110,
    BALLOTS_MAX = 8192,
    TEXT_BUF = 12,
    STATES_MAX = 2000000,
    LEAP = 1 << 20,
    HURRY_MS = 15,
    BACK_OFF_BITS_MAX = 6,
    HEAL_MS = 60000,
    ADMIT_MS = 3000, /* for one admission; then it is begun anew by whoever wants it */
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

struct ballot_truth { /* what was accepted in it, by whom, ever */
    struct ballot ballot;
    unsigned set;
    struct ballot tag, before[PAXOS_BEFORE_MAX];
    uint32_t before_n;
};

static struct quorum_world {
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
} q;

static int64_t now_ms(void)
{
    return q.w->now / MS;
}

static bool same(struct ballot a, struct ballot b)
{
    return ballot_cmp(a, b) == 0;
}

static unsigned count(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

/* ---- events ---- */

static bool before(const struct qevent *a, const struct qevent *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void at(int64_t ms, enum qevent_kind kind, unsigned who, uint64_t token)
{
    size_t i = q.events++;
    if (q.events > EVENTS_MAX)
        abort();
    q.event[i] = (struct qevent){ ms, q.order++, kind, who, token };
    for (; i > 0 && before(&q.event[i], &q.event[(i - 1) / 2]); i = (i - 1) / 2) {
        struct qevent e = q.event[i];
        q.event[i] = q.event[(i - 1) / 2];
        q.event[(i - 1) / 2] = e;
    }
}

static struct qevent take_event(void)
{
    struct qevent first = q.event[0];
    q.event[0] = q.event[--q.events];
    for (size_t i = 0, k; (k = 2 * i + 1) < q.events; i = k) {
        if (k + 1 < q.events && before(&q.event[k + 1], &q.event[k]))
            k++;
        if (!before(&q.event[k], &q.event[i]))
            break;
        struct qevent e = q.event[i];
        q.event[i] = q.event[k];
        q.event[k] = e;
    }
    return first;
}

static int64_t soon(void)
{
    return now_ms() + 1 + (int64_t)rand_below(&q.rng, q.latency_ms);
}

/* ---- messages ---- */

static void put_on_way(const struct envelope *e, int64_t ms)
{
    for (size_t i = 0; i < ENVELOPES_MAX; i++)
        if (!q.envelope[i].used) {
            q.envelope[i] = *e;
            q.envelope[i].used = true;
            at(ms, Q_DELIVER, (unsigned)i, 0);
            return;
        }
    abort(); /* far more than all proposers can have under way */
}

/* With what the plan wants to happen to it. */
static void send_envelope(struct envelope *e)
{
    unsigned *lose = e->is_answer ? &q.lose_answer[e->acceptor] : &q.lose[e->acceptor];
    int64_t ms = soon();
    if (*lose > 0) {
        --*lose;
        sometimes.px_lost++;
        return;
    }
    if (q.late_ms[e->acceptor] > 0) {
        ms += q.late_ms[e->acceptor];
        q.late_ms[e->acceptor] = 0;
        sometimes.px_late++;
    }
    put_on_way(e, ms);
    if (q.repeat_ms[e->acceptor] > 0) {
        e->again = true;
        put_on_way(e, ms + q.repeat_ms[e->acceptor]);
        q.repeat_ms[e->acceptor] = 0;
        sometimes.px_repeated++;
    }
}

/* ---- ground truth ---- */

static bool follows(const struct ballot_truth *v, const struct ballot_truth *from)
{
    if (same(v->tag, from->tag))
        return true;
    for (uint32_t i = 0; i < v->before_n; i++)
        if (same(v->before[i], from->tag))
            return true;
    /* The chain may not reach so far back. */
    return v->before_n == PAXOS_BEFORE_MAX && ballot_cmp(from->tag, v->before[v->before_n - 1]) < 0;
}

/* The values of the ballots that were chosen are one chain. */
static void check_chosen(const struct ballot_truth *b)
{
    const struct ballot_truth *below = NULL, *above = NULL;
    for (size_t i = 0; i < q.ballots; i++) {
        const struct ballot_truth *c = &q.ballot[i];
        int side = ballot_cmp(c->ballot, b->ballot);
        if (side == 0 || count(c->set) < q.majority)
            continue;
        if (side < 0 && (!below || ballot_cmp(c->ballot, below->ballot) > 0))
            below = c;
        if (side > 0 && (!above || ballot_cmp(c->ballot, above->ballot) < 0))
            above = c;
    }
    if ((below && !follows(b, below)) || (above && !follows(above, b)))
        violate(q.w, "agreement",
                "the value of ballot %" PRIu64 " and that of ballot %" PRIu64
                " were chosen, and the later is not made from the earlier",
                b->ballot.round,
                below && !follows(b, below) ? below->ballot.round : above->ballot.round);
}

static void note_accepted(unsigned acceptor)
{
    const struct paxos_acceptor *a = &q.acceptor[acceptor].memory;
    struct ballot_truth *b = NULL;
    for (size_t i = q.ballots; i > 0 && !b; i--)
        if (same(q.ballot[i - 1].ballot, a->accepted))
            b = &q.ballot[i - 1];
    if (!b) {
        if (q.ballots == BALLOTS_MAX)
            abort();
        b = &q.ballot[q.ballots++];
        *b = (struct ballot_truth){ .ballot = a->accepted,
                                    .tag = a->value.tag,
                                    .before_n = a->value.before_n };
        memcpy(b->before, a->value.before, sizeof b->before);
    } else if (!same(b->tag, a->value.tag)) {
        violate(q.w, "agreement", "two values in ballot %" PRIu64, b->ballot.round);
    }
    unsigned was = count(b->set);
    b->set |= 1u << acceptor;
    if (was < q.majority && count(b->set) >= q.majority)
        check_chosen(b);
}

/* ---- acceptors ---- */

/* Through its text, as a store has it. */
static void remember(unsigned i, const struct paxos_acceptor *memory)
{
    char text[PAXOS_TEXT_MAX];
    struct acceptor *a = &q.acceptor[i];
    bool accepts = !same(a->memory.accepted, memory->accepted);
    size_t len = paxos_encode(memory, text);
    if (paxos_parse(text, len, &a->memory, NULL) != 0)
        violate(q.w, "record", "an acceptor's record cannot be read again");
    if (accepts)
        note_accepted(i);
}

static bool there(const struct acceptor *a)
{
    return !a->out && a->down_until_ms <= now_ms();
}

static void acceptor_event(const struct envelope *e)
{
    struct acceptor *a = &q.acceptor[e->acceptor];
    struct actor *from = &q.actor[e->actor];
    struct envelope answer = *e;
    if (a->down_until_ms > now_ms())
        return;
    answer.is_answer = true;
    answer.failed = a->out;
    if (!a->out) {
        struct paxos_acceptor memory = a->memory;
        bool bare = memory.accepted.round == 0;
        answer.answer.firm = !e->again;
        paxos_acceptor_raise(&memory, from->floor[e->acceptor]);
        bool changed = paxos_acceptor_step(&memory, &e->message, &answer.answer);
        if (changed)
            remember(e->acceptor, &memory);
        sometimes.px_below_floor += !answer.answer.ok && e->message.ballot.round < a->floor;
        if (changed && bare) {
            from->floor[e->acceptor] = a->floor;
            answer.failed = e->message.ballot.round < a->floor;
            sometimes.px_floor_created += answer.failed;
        }
        fold(q.w, memory.promised.round * 31 + memory.accepted.round);
        trace(q.w, "acceptor %u: %s of actor %u in %" PRIu64 " %s", e->acceptor,
              e->message.ask == PAXOS_LOOK      ? "LOOK"
              : e->message.ask == PAXOS_PREPARE ? "PREPARE"
                                                : "ACCEPT",
              e->actor, e->message.ballot.round,
              answer.failed        ? "does not count"
              : answer.answer.ok   ? "yes"
              : answer.answer.firm ? "no"
                                   : "no, not firm");
    }
    send_envelope(&answer);
}

/* ---- proposers ---- */

static void follow(struct actor *p, enum paxos_do what);

static unsigned number_of(const struct actor *p)
{
    return (unsigned)(p - q.actor);
}

static uint32_t value_of(const struct paxos_value *v)
{
    char text[TEXT_BUF] = { 0 };
    if (!v->present)
        return 0;
    memcpy(text, v->bytes, v->len < TEXT_BUF ? v->len : TEXT_BUF - 1);
    return (uint32_t)strtoul(text, NULL, 10);
}

static struct paxos_text text_of(uint32_t value, char buf[TEXT_BUF])
{
    int n = snprintf(buf, TEXT_BUF, "%u", value);
    return (struct paxos_text){ value ? buf : NULL, value ? (size_t)n : 0 };
}

static void call_ended(struct actor *p)
{
    struct lin_op *op = &q.history[p->op];
    op->ret = ++q.order;
    p->has_known = p->p.known.next.round != 0;
    if (p->has_known)
        p->known = p->p.known;
    switch (p->p.result) {
    case 0:
        if (op->kind == LIN_READ) {
            op->old = p->last = value_of(&p->p.value);
            sometimes.px_read++;
            break;
        }
        op->kind = LIN_OK;
        p->last = op->new;
        sometimes.px_ok++;
        sometimes.px_removed += op->new == 0;
        sometimes.px_adopted += !p->p.changing;
        break;
    case FIRN_ECONFLICT:
        op->kind = LIN_CONFLICT;
        sometimes.px_conflict++;
        sometimes.px_doubt_cleared += p->p.proposed;
        p->last = value_of(&p->p.value);
        break;
    case FIRN_EUNKNOWN:
        sometimes.px_unknown++;
        break;
    case FIRN_EIO: /* no part of the history: nothing was done */
        sometimes.px_eio++;
        op->user = 1;
        break;
    default:
        violate(q.w, "result", "no such result: %d", p->p.result);
    }
    fold(q.w, (uint64_t)(unsigned)p->p.result << 32 | op->new);
    trace(q.w, "proposer %u: %s %u -> %u: %d", number_of(p),
          op->kind == LIN_READ ? "reads" : "changes", op->old, op->new, p->p.result);
}

static void renewed(struct actor *p);

static void ended(struct actor *p)
{
    p->busy = false;
    p->call++;
    if (number_of(p) == ADMIN) {
        renewed(p);
        return;
    }
    call_ended(p);
    at(now_ms() + (int64_t)rand_below(&q.rng, 30), Q_BEGIN, number_of(p), p->call);
}

static int64_t rest_ms(struct actor *p)
{
    unsigned bits = p->rests < BACK_OFF_BITS_MAX ? p->rests : BACK_OFF_BITS_MAX;
    if (p->rests++ == 0)
        return 0;
    return p->p.proposed ? (int64_t)rand_below(&q.rng, 2)
                         : 1 + (int64_t)rand_below(&q.rng, UINT64_C(1) << bits);
}

static void follow(struct actor *p, enum paxos_do what)
{
    switch (what) {
    case PAXOS_WAIT:
        if (p->p.phase == PAXOS_LOOKING || p->p.doubting)
            at(now_ms() + HURRY_MS, Q_HURRY, number_of(p), p->call << 20 | p->p.attempt);
        break;
    case PAXOS_SEND:
        for (unsigned i = 0; i < q.n; i++) {
            struct envelope e = { .actor = number_of(p),
                                  .acceptor = i,
                                  .call = p->call,
                                  .attempt = p->p.attempt,
                                  .message = p->p.message };
            send_envelope(&e);
        }
        break;
    case PAXOS_BACK_OFF:
        sometimes.px_duel += p->p.no != 0;
        at(now_ms() + rest_ms(p), Q_AGAIN, number_of(p), p->call << 20 | p->p.attempt);
        break;
    case PAXOS_DONE:
        ended(p);
        break;
    }
}

static void begin_call(struct actor *p)
{
    if (q.ops >= (now_ms() < q.end_ms ? OPS_MAX - PROPOSERS : OPS_MAX)) /* some are for the end */
        return;
    p->op = (int)q.ops;
    struct lin_op *op = &q.history[q.ops++];
    *op = (struct lin_op){ .call = ++q.order };
    p->busy = true;
    p->rests = 0;
    at(now_ms() + q.call_ms, Q_TIMEOUT, number_of(p), p->call);
    if (rand_chance(&q.rng, 30)) {
        op->kind = LIN_READ;
        follow(p, paxos_read(&p->p, q.n, p->id, &p->round));
        return;
    }
    op->kind = LIN_UNKNOWN;
    op->old = rand_chance(&q.rng, 90) ? p->last : (uint32_t)rand_below(&q.rng, q.next_value);
    op->new = op->old &&rand_chance(&q.rng, 15) ? 0 : q.next_value++;
    const struct paxos_known *known = p->has_known ? &p->known : NULL;
    p->has_known = false;
    enum paxos_do what = paxos_change(&p->p, q.n, p->id, &p->round, text_of(op->old, p->old),
                                      text_of(op->new, p->new), known);
    sometimes.px_fast += p->p.phase == PAXOS_ACCEPTING;
    follow(p, what);
}

/* It dies and another process comes: another id, no memory. Its last call stays without an answer. */
static void crash(struct actor *p)
{
    if (p->busy && q.history[p->op].kind == LIN_READ)
        q.history[p->op].user = 1;
    uint64_t call = p->call + 1;
    *p = (struct actor){ .id = ++q.next_id, .call = call, .last = p->last };
    sometimes.px_crashed++;
    at(now_ms() + (int64_t)rand_below(&q.rng, 50), Q_BEGIN, number_of(p), call);
}

static void answer_event(const struct envelope *e)
{
    struct actor *p = &q.actor[e->actor];
    if (!p->busy || e->call != p->call)
        return;
    bool fast = p->p.phase == PAXOS_ACCEPTING && p->p.attempt == 1;
    enum paxos_do what = paxos_answered(&p->p, e->acceptor, e->attempt,
                                        e->failed ? NULL : &e->answer);
    sometimes.px_fast_lost += fast && what == PAXOS_BACK_OFF;
    follow(p, what);
}

/* ---- letting an acceptor in again: the steps of store/quorum_admit.c ---- */

static void admission_ends(bool done)
{
    trace(q.w, "the admission of acceptor %u %s", q.admission.x, done ? "is done" : "is given up");
    q.admission.step = ADMIT_NONE;
    sometimes.px_admitted += done;
    sometimes.px_admit_failed += !done;
    if (q.actor[ADMIN].busy) {
        q.actor[ADMIN].busy = false;
        q.actor[ADMIN].call++;
    }
}

static void next_step(enum admit_step step)
{
    q.admission.step = step;
    at(soon(), Q_ADMIT, 0, q.admission.token);
}

static void admit(unsigned x)
{
    if (!q.acceptor[x].out || q.admission.step != ADMIT_NONE)
        return;
    uint64_t token = q.admission.token + 1;
    q.admission = (struct admission){
        .x = x, .token = token, .life = q.acceptor[x].life, .until_ms = now_ms() + ADMIT_MS
    };
    q.actor[ADMIN] = (struct actor){ .id = ++q.next_id, .call = q.actor[ADMIN].call + 1 };
    trace(q.w, "acceptor %u is to be admitted", x);
    next_step(ADMIT_LOOK);
}

/* Those of the others that can be asked; a random majority of them counts. 0: too few. */
static unsigned some_majority(unsigned among)
{
    unsigned set = 0, from = (unsigned)rand_below(&q.rng, q.n);
    for (unsigned i = 0; i < q.n && count(set) < q.majority; i++) {
        unsigned k = (from + i) % q.n;
        if (k != q.admission.x && among >> k & 1 && there(&q.acceptor[k]))
            set |= 1u << k;
    }
    return count(set) < q.majority ? 0 : set;
}

static void renewed(struct actor *p)
{
    if (p->p.result == 0) {
        q.admission.renewed = true;
        next_step(ADMIT_GIVE);
    } else {
        admission_ends(false);
    }
}

static void admit_event(void)
{
    struct admission *m = &q.admission;
    struct acceptor *x = &q.acceptor[m->x];
    struct actor *p = &q.actor[ADMIN];
    unsigned set = some_majority(m->step == ADMIT_KEYS ? m->raised : ~0u);
    if (now_ms() > m->until_ms || x->life != m->life || !x->out) {
        admission_ends(false);
        return;
    }
    switch (m->step) {
    case ADMIT_NONE:
    case ADMIT_RENEW:
        break;
    case ADMIT_LOOK:
        for (unsigned i = 0; i < q.n; i++)
            if (set >> i & 1) {
                const struct acceptor *a = &q.acceptor[i];
                uint64_t high = a->floor > a->memory.promised.round ? a->floor
                                                                    : a->memory.promised.round;
                m->floor = high > m->floor ? high : m->floor;
            }
        m->floor += LEAP;
        if (set)
            next_step(ADMIT_FLOORS);
        else
            admission_ends(false);
        break;
    case ADMIT_FLOORS: /* one after the other, while calls go on */
        if (m->next < q.n) {
            struct acceptor *a = &q.acceptor[m->next];
            if (m->next != m->x && there(a)) {
                a->floor = m->floor;
                m->raised |= 1u << m->next;
            }
            m->next++;
            next_step(ADMIT_FLOORS);
        } else {
            next_step(ADMIT_KEYS);
        }
        break;
    case ADMIT_KEYS: {
        bool known = false;
        for (unsigned i = 0; i < q.n; i++)
            known |= set >> i & 1 && q.acceptor[i].memory.promised.round != 0;
        if (!set) {
            admission_ends(false);
        } else if (!known || SIM_MUTANT(px_admitted_empty)) {
            next_step(ADMIT_GIVE);
        } else {
            m->step = ADMIT_RENEW;
            p->round = m->floor;
            p->busy = true;
            at(m->until_ms, Q_TIMEOUT, ADMIN, p->call);
            follow(p, paxos_renew(&p->p, q.n, p->id, &p->round));
        }
        break;
    }
    case ADMIT_GIVE:
        if (x->down_until_ms > now_ms()) {
            admission_ends(false);
            return;
        }
        x->memory = (struct paxos_acceptor){ 0 };
        if (m->renewed) {
            struct paxos_acceptor memory = { .promised = p->p.message.ballot,
                                             .accepted = p->p.message.ballot,
                                             .value = p->p.value };
            remember(m->x, &memory);
        }
        x->floor = m->floor;
        x->out = false;
        for (unsigned i = 0; i < ACTORS; i++) /* they open it anew, and read px-member */
            q.actor[i].floor[m->x] = x->floor;
        admission_ends(true);
        break;
    }
}

static void wipe(unsigned x)
{
    struct acceptor *a = &q.acceptor[x];
    unsigned out = 0;
    for (unsigned i = 0; i < q.n; i++)
        out += q.acceptor[i].out && i != x;
    if (out + 1 > q.n - q.majority)
        return; /* a majority must be left that remembers */
    a->memory = (struct paxos_acceptor){ 0 };
    a->floor = 0;
    a->life++;
    a->out = !SIM_MUTANT(px_amnesia);
    sometimes.px_wiped++;
}

/* ---- the run ---- */

static void quorum_inject(const struct fault *f)
{
    unsigned x = f->node % q.n;
    sometimes.fault[f->kind]++;
    trace(q.w, "fault %s %u %lld", fault_name[f->kind], f->node, (long long)f->arg);
    switch ((enum fault_kind)f->kind) {
    case FAULT_px_lose:
        q.lose[x] += (unsigned)f->arg;
        break;
    case FAULT_px_lose_answer:
        q.lose_answer[x] += (unsigned)f->arg;
        break;
    case FAULT_px_late:
        q.late_ms[x] = f->arg;
        break;
    case FAULT_px_repeat:
        q.repeat_ms[x] = f->arg;
        break;
    case FAULT_px_down:
        q.acceptor[x].down_until_ms = now_ms() + f->arg;
        break;
    case FAULT_px_wipe:
        wipe(x);
        break;
    case FAULT_px_admit:
        for (unsigned i = 0; i < q.n; i++)
            if (q.acceptor[(x + i) % q.n].out)
                admit((x + i) % q.n);
        break;
    case FAULT_px_crash:
        crash(&q.actor[f->node % PROPOSERS]);
        break;
    default: /* of other worlds */
        break;
    }
}

static void happen(const struct qevent *e)
{
    struct actor *p = e->who < ACTORS ? &q.actor[e->who] : NULL;
    bool mine = p && p->busy && e->token == (p->call << 20 | p->p.attempt);
    struct envelope now;
    switch (e->kind) {
    case Q_DELIVER:
        now = q.envelope[e->who];
        q.envelope[e->who].used = false;
        if (now.is_answer)
            answer_event(&now);
        else
            acceptor_event(&now);
        break;
    case Q_BEGIN:
        if (!p->busy && e->token == p->call)
            begin_call(p);
        break;
    case Q_HURRY:
        if (mine && p->p.phase < PAXOS_RESTING) {
            bool doubting = p->p.doubting;
            enum paxos_do what = paxos_hurry(&p->p);
            sometimes.px_too_short += doubting && what == PAXOS_DONE;
            follow(p, what);
        }
        break;
    case Q_AGAIN:
        if (mine)
            follow(p, paxos_again(&p->p));
        break;
    case Q_TIMEOUT:
        if (p->busy && e->token == p->call) {
            paxos_give_up(&p->p);
            ended(p);
        }
        break;
    case Q_FAULT:
        quorum_inject(&q.w->plan->fault[e->who]);
        break;
    case Q_ADMIT:
        if (e->token == q.admission.token && q.admission.step != ADMIT_NONE)
            admit_event();
        break;
    }
}

static void until(int64_t ms)
{
    while (q.events > 0 && q.event[0].at_ms <= ms && !q.w->failed) {
        struct qevent e = take_event();
        q.w->now = e.at_ms * MS;
        happen(&e);
    }
}

/* No more faults: acceptors that are out are let in, and each proposer comes to the end of one more call. */
static void heal(void)
{
    unsigned out;
    memset(q.lose, 0, sizeof q.lose);
    memset(q.lose_answer, 0, sizeof q.lose_answer);
    for (unsigned i = 0; i < q.n; i++)
        q.acceptor[i].down_until_ms = 0;
    int64_t end = now_ms() + HEAL_MS;
    do {
        out = 0;
        for (unsigned i = 0; i < q.n; i++) {
            out += q.acceptor[i].out;
            admit(i);
        }
        until(now_ms() + 100);
        q.w->now += 100 * MS;
    } while (out > 0 && now_ms() < end && !q.w->failed);
    if (out > 0)
        violate(q.w, "liveness", "an acceptor is not let in again");
    for (unsigned i = 0; i < PROPOSERS; i++)
        at(now_ms() + 1, Q_BEGIN, i, q.actor[i].call);
    until(now_ms() + HEAL_MS);
    for (unsigned i = 0; i < PROPOSERS; i++)
        if (q.actor[i].busy)
            violate(q.w, "liveness", "proposer %u is in a call without end", i);
}

static void check_history(void)
{
    static struct lin_op op[OPS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < q.ops; i++)
        if (q.history[i].user == 0)
            op[n++] = q.history[i];
    struct lin_found found;
    enum lin_verdict v = lin_check(op, n, 0, STATES_MAX, &found);
    if (v == LIN_NO)
        violate(q.w, "linear", "%zu calls have no order that explains the answer of call %zu", n,
                found.stuck);
    if (v == LIN_TOO_HARD || v == LIN_NO_MEMORY)
        violate(q.w, "linear", "%zu calls are too hard to check", n);
}

void quorum_world_run(struct world *w, struct plan *plan)
{
    const struct config *c = &plan->config;
    w->plan = plan;
    w->config = c;
    w->now = 0;
    w->failed = false;
    w->ids = w->hash = 0;
    memset(&q, 0, sizeof q);
    q.w = w;
    q.rng = rand_split(c->seed, 12);
    q.n = c->slots;
    q.majority = q.n / 2 + 1;
    q.latency_ms = (unsigned)c->emit_ms;
    q.call_ms = (int64_t)c->op_timeout_ms;
    q.next_value = 1;
    q.end_ms = c->duration_ns / MS;
    sometimes.px_five += q.n == 5;
    for (unsigned i = 0; i < PROPOSERS; i++) {
        q.actor[i] = (struct actor){ .id = ++q.next_id };
        at((int64_t)rand_below(&q.rng, 40), Q_BEGIN, i, 0);
    }
    for (size_t i = 0; i < plan->count; i++)
        at(plan->fault[i].at_ms, Q_FAULT, (unsigned)i, 0);
    until(q.end_ms);
    if (!w->failed) {
        w->now = q.end_ms * MS;
        heal();
    }
    if (!w->failed)
        check_history();
    sometimes.seeds++;
    sometimes.px_calls += q.ops;
    sometimes.node_ms += (uint64_t)now_ms() * PROPOSERS;
}
