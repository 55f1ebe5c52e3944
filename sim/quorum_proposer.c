/* Proposers of a quorum's world: their calls, their crashes, and the history that is checked. */
#include "quorum_in.h"

enum { HURRY_MS = 15, BACK_OFF_BITS_MAX = 6 };

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

void q_ended(struct actor *p)
{
    p->busy = false;
    p->call++;
    if (number_of(p) == ADMIN) {
        q_renewed(p);
        return;
    }
    call_ended(p);
    q_at(q_now_ms() + (int64_t)rand_below(&q.rng, 30), Q_BEGIN, number_of(p), p->call);
}

static int64_t rest_ms(struct actor *p)
{
    unsigned bits = p->rests < BACK_OFF_BITS_MAX ? p->rests : BACK_OFF_BITS_MAX;
    if (p->rests++ == 0)
        return 0;
    return p->p.proposed ? (int64_t)rand_below(&q.rng, 2)
                         : 1 + (int64_t)rand_below(&q.rng, UINT64_C(1) << bits);
}

void q_follow(struct actor *p, enum paxos_do what)
{
    switch (what) {
    case PAXOS_WAIT:
        if (p->p.phase == PAXOS_LOOKING || p->p.doubting)
            q_at(q_now_ms() + HURRY_MS, Q_HURRY, number_of(p), p->call << 20 | p->p.attempt);
        break;
    case PAXOS_SEND:
        for (unsigned i = 0; i < q.n; i++) {
            struct envelope e = { .actor = number_of(p),
                                  .acceptor = i,
                                  .call = p->call,
                                  .attempt = p->p.attempt,
                                  .message = p->p.message };
            q_send(&e);
        }
        break;
    case PAXOS_BACK_OFF:
        sometimes.px_duel += p->p.no != 0;
        q_at(q_now_ms() + rest_ms(p), Q_AGAIN, number_of(p), p->call << 20 | p->p.attempt);
        break;
    case PAXOS_DONE:
        q_ended(p);
        break;
    }
}

void q_begin(struct actor *p)
{
    if (q.ops >= (q_now_ms() < q.end_ms ? OPS_MAX - PROPOSERS : OPS_MAX)) /* some are for the end */
        return;
    p->op = (int)q.ops;
    struct lin_op *op = &q.history[q.ops++];
    *op = (struct lin_op){ .call = ++q.order };
    p->busy = true;
    p->rests = 0;
    q_at(q_now_ms() + q.call_ms, Q_TIMEOUT, number_of(p), p->call);
    if (rand_chance(&q.rng, 30)) {
        op->kind = LIN_READ;
        q_follow(p, paxos_read(&p->p, q.n, p->id, &p->round));
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
    q_follow(p, what);
}

/* It dies and another process comes: another id, no memory. Its last call stays without an
 * answer. */
void q_crash(struct actor *p)
{
    if (p->busy && q.history[p->op].kind == LIN_READ)
        q.history[p->op].user = 1;
    uint64_t call = p->call + 1;
    *p = (struct actor){ .id = ++q.next_id, .call = call, .last = p->last };
    sometimes.px_crashed++;
    q_at(q_now_ms() + (int64_t)rand_below(&q.rng, 50), Q_BEGIN, number_of(p), call);
}

void q_answer(const struct envelope *e)
{
    struct actor *p = &q.actor[e->actor];
    if (!p->busy || e->call != p->call)
        return;
    bool fast = p->p.phase == PAXOS_ACCEPTING && p->p.attempt == 1;
    enum paxos_do what = paxos_answered(&p->p, e->acceptor, e->attempt,
                                        e->failed ? NULL : &e->answer);
    sometimes.px_fast_lost += fast && what == PAXOS_BACK_OFF;
    q_follow(p, what);
}
