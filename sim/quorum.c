/*
 * Worlds of a quorum (coord/paxos.h): proposers read and change one register of three or five
 * acceptors. Messages are lost, late, repeated and overtake each other; proposers give up, crash
 * and duel; acceptors stand still, lose their memory, are refused, and are admitted again while the
 * others go on. Everything is in virtual time and from the plan: the same seed is the same run, and
 * a failing plan can be shortened and replayed.
 *
 * Never: two values in one ballot; a value chosen that was not made from the one chosen before it;
 * a history of calls that is not linearizable; a call without end once the faults are over.
 */
#include "quorum_in.h"

enum { STATES_MAX = 2000000, HEAL_MS = 60000 };

struct quorum_world q;

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
        q.acceptor[x].down_until_ms = q_now_ms() + f->arg;
        break;
    case FAULT_px_wipe:
        q_wipe(x);
        break;
    case FAULT_px_admit:
        for (unsigned i = 0; i < q.n; i++)
            if (q.acceptor[(x + i) % q.n].out)
                q_admit((x + i) % q.n);
        break;
    case FAULT_px_crash:
        q_crash(&q.actor[f->node % PROPOSERS]);
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
            q_answer(&now);
        else
            q_accept(&now);
        break;
    case Q_BEGIN:
        if (!p->busy && e->token == p->call)
            q_begin(p);
        break;
    case Q_HURRY:
        if (mine && p->p.phase < PAXOS_RESTING) {
            bool doubting = p->p.doubting;
            enum paxos_do what = paxos_hurry(&p->p);
            sometimes.px_too_short += doubting && what == PAXOS_DONE;
            q_follow(p, what);
        }
        break;
    case Q_AGAIN:
        if (mine)
            q_follow(p, paxos_again(&p->p));
        break;
    case Q_TIMEOUT:
        if (p->busy && e->token == p->call) {
            paxos_give_up(&p->p);
            q_ended(p);
        }
        break;
    case Q_FAULT:
        quorum_inject(&q.w->plan->fault[e->who]);
        break;
    case Q_ADMIT:
        if (e->token == q.admission.token && q.admission.step != ADMIT_NONE)
            q_admit_step();
        break;
    }
}

static void until(int64_t ms)
{
    while (q.events > 0 && q.event[0].at_ms <= ms && !q.w->failed) {
        struct qevent e = q_take();
        q.w->now = e.at_ms * MS;
        happen(&e);
    }
}

/* Faults are over: excluded acceptors are admitted, and each proposer completes one more call. */
static void heal(void)
{
    unsigned out;
    memset(q.lose, 0, sizeof q.lose);
    memset(q.lose_answer, 0, sizeof q.lose_answer);
    for (unsigned i = 0; i < q.n; i++)
        q.acceptor[i].down_until_ms = 0;
    int64_t end = q_now_ms() + HEAL_MS;
    do {
        out = 0;
        for (unsigned i = 0; i < q.n; i++) {
            out += q.acceptor[i].out;
            q_admit(i);
        }
        until(q_now_ms() + 100);
        q.w->now += 100 * MS;
    } while (out > 0 && q_now_ms() < end && !q.w->failed);
    if (out > 0)
        violate(q.w, "liveness", "an acceptor is not let in again");
    for (unsigned i = 0; i < PROPOSERS; i++)
        q_at(q_now_ms() + 1, Q_BEGIN, i, q.actor[i].call);
    until(q_now_ms() + HEAL_MS);
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
        q_at((int64_t)rand_below(&q.rng, 40), Q_BEGIN, i, 0);
    }
    for (size_t i = 0; i < plan->count; i++)
        q_at(plan->fault[i].at_ms, Q_FAULT, (unsigned)i, 0);
    until(q.end_ms);
    if (!w->failed) {
        w->now = q.end_ms * MS;
        heal();
    }
    if (!w->failed)
        check_history();
    sometimes.seeds++;
    sometimes.px_calls += q.ops;
    sometimes.node_ms += (uint64_t)q_now_ms() * PROPOSERS;
}
