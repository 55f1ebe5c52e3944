/*
 * Acceptors of a quorum's world, and the truth that the oracle keeps: every value accepted in any
 * ballot.
 *
 * As in store/quorum_acceptor.c the floor of an acceptor is remembered by each proposer, so it may
 * be old. It is read again when the proposer has written a record that had accepted nothing, and
 * where it rose above the ballot the vote does not count, although the record stays.
 */
#include "quorum_in.h"

static bool follows(const struct ballot_truth *v, const struct ballot_truth *from)
{
    if (q_same(v->tag, from->tag))
        return true;
    for (uint32_t i = 0; i < v->before_n; i++)
        if (q_same(v->before[i], from->tag))
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
        if (side == 0 || q_count(c->set) < q.majority)
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
        if (q_same(q.ballot[i - 1].ballot, a->accepted))
            b = &q.ballot[i - 1];
    if (!b) {
        if (q.ballots == BALLOTS_MAX)
            abort();
        b = &q.ballot[q.ballots++];
        *b = (struct ballot_truth){ .ballot = a->accepted,
                                    .tag = a->value.tag,
                                    .before_n = a->value.before_n };
        memcpy(b->before, a->value.before, sizeof b->before);
    } else if (!q_same(b->tag, a->value.tag)) {
        violate(q.w, "agreement", "two values in ballot %" PRIu64, b->ballot.round);
    }
    unsigned was = q_count(b->set);
    b->set |= 1u << acceptor;
    if (was < q.majority && q_count(b->set) >= q.majority)
        check_chosen(b);
}

/* Through its text, as a store has it. */
void q_remember(unsigned i, const struct paxos_acceptor *memory)
{
    char text[PAXOS_TEXT_MAX];
    struct acceptor *a = &q.acceptor[i];
    bool accepts = !q_same(a->memory.accepted, memory->accepted);
    size_t len = paxos_encode(memory, text);
    if (paxos_parse(text, len, &a->memory, NULL) != 0)
        violate(q.w, "record", "an acceptor's record cannot be read again");
    if (accepts)
        note_accepted(i);
}

bool q_there(const struct acceptor *a)
{
    return !a->out && a->down_until_ms <= q_now_ms();
}

void q_accept(const struct envelope *e)
{
    struct acceptor *a = &q.acceptor[e->acceptor];
    struct actor *from = &q.actor[e->actor];
    struct envelope answer = *e;
    if (a->down_until_ms > q_now_ms())
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
            q_remember(e->acceptor, &memory);
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
    q_send(&answer);
}

void q_wipe(unsigned x)
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
