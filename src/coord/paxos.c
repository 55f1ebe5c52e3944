/*
 * CASPaxos: the steps of acceptor and proposer; paxos.h has the argument.
 * Tests: tests/unit/coord/paxos.c; the simulator's worlds of a quorum.
 */
#include "coord/paxos.h"
#include "coord/mutant.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <string.h>

enum { LEAP_BITS_MAX = 12 };

static const struct ballot no_ballot;

static bool same(struct ballot a, struct ballot b)
{
    return a.round == b.round && a.id == b.id;
}

/* ---- the acceptor ---- */

void paxos_acceptor_raise(struct paxos_acceptor *a, uint64_t round)
{
    if (a->promised.round < round)
        a->promised = (struct ballot){ round, 0 };
}

bool paxos_acceptor_step(struct paxos_acceptor *a, const struct paxos_message *m,
                         struct paxos_answer *out)
{
    bool changed = false;
    struct ballot promised = a->promised, accepted = a->accepted;
    switch (m->ask) {
    case PAXOS_LOOK:
        out->ok = true;
        break;
    case PAXOS_PREPARE: /* a ballot is promised once: its proposer may have forgotten its use */
        out->ok = ballot_cmp(m->ballot, a->promised) > (FIRN_MUTANT(px_ballot_reused) ? -1 : 0);
        if (out->ok) {
            a->promised = m->ballot;
            changed = true;
        }
        break;
    case PAXOS_ACCEPT:
        if (same(m->ballot, a->accepted)) { /* again */
            out->ok = true;
            break;
        }
        out->ok = ballot_cmp(m->ballot, a->promised) >= 0 || FIRN_MUTANT(px_promise_ignored);
        if (out->ok) {
            a->accepted = m->ballot;
            a->promised = ballot_cmp(m->next, m->ballot) > 0 ? m->next : m->ballot;
            a->value = m->value;
            changed = true;
        }
        break;
    }
    firn_assert(ballot_cmp(a->promised, promised) >= 0 || FIRN_MUTANT(px_promise_ignored),
                "promised %" PRIu64 " to %" PRIu64, promised.round, a->promised.round);
    firn_assert(ballot_cmp(a->accepted, accepted) >= 0 || FIRN_MUTANT(px_promise_ignored),
                "accepted %" PRIu64 " to %" PRIu64, accepted.round, a->accepted.round);
    firn_assert(ballot_cmp(a->accepted, a->promised) <= 0, "accepted %" PRIu64 " of %" PRIu64,
                a->accepted.round, a->promised.round);
    out->promised = a->promised;
    out->accepted = a->accepted;
    if (m->ask != PAXOS_ACCEPT)
        out->value = a->value;
    return changed;
}

/* ---- values ---- */

static bool holds(const struct paxos_value *v, struct paxos_text t)
{
    if (!v->present || !t.p)
        return v->present == (t.p != NULL);
    return v->len == t.len && memcmp(v->bytes, t.p, t.len) == 0;
}

/* Whether the value is the one of that tag, or was made from it as far as is known. */
static bool in_chain(const struct paxos_value *v, struct ballot tag)
{
    if (same(v->tag, tag))
        return true;
    for (uint32_t i = 0; i < v->before_n; i++)
        if (same(v->before[i], tag))
            return true;
    return false;
}

static void change(struct paxos_value *v, struct ballot tag, struct paxos_text new)
{
    uint32_t n = v->before_n < PAXOS_BEFORE_MAX ? v->before_n : PAXOS_BEFORE_MAX - 1;
    firn_assert(new.len <= PAXOS_VALUE_MAX, "%zu bytes", new.len);
    firn_assert(!in_chain(v, tag) || FIRN_MUTANT(px_ballot_reused), "tag %" PRIu64, tag.round);
    memmove(&v->before[1], &v->before[0], n * sizeof v->before[0]);
    v->before[0] = v->tag;
    v->before_n = n + 1;
    v->tag = tag;
    v->present = new.p != NULL;
    v->len = new.p ? (uint32_t) new.len : 0;
    if (v->len > 0)
        memcpy(v->bytes, new.p, v->len);
}

/* ---- the proposer ---- */

static unsigned count(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

static enum paxos_do finish(struct paxos *p, int result)
{
    firn_assert(p->phase != PAXOS_ENDED);
    p->phase = PAXOS_ENDED;
    p->doubting = false;
    p->result = result;
    return PAXOS_DONE;
}

static struct ballot new_ballot(struct paxos *p)
{
    if (*p->round < p->highest)
        *p->round = p->highest;
    firn_assert(*p->round < UINT64_MAX);
    return (struct ballot){ ++*p->round, FIRN_MUTANT(px_ballot_reused) ? 1 : p->id };
}

static enum paxos_do send(struct paxos *p, enum paxos_phase phase, enum paxos_ask ask)
{
    p->phase = phase;
    p->message.ask = ask;
    p->yes = p->no = p->lost = 0;
    p->attempt++;
    return PAXOS_SEND;
}

static enum paxos_do look(struct paxos *p)
{
    p->best = no_ballot;
    p->value = (struct paxos_value){ 0 };
    return send(p, PAXOS_LOOKING, PAXOS_LOOK);
}

/* Each time from farther above the other proposers, or one that needs one round trip would always
 * be ahead of one that needs two. */
static enum paxos_do prepare(struct paxos *p)
{
    p->highest += (UINT64_C(1) << (p->rests < LEAP_BITS_MAX ? p->rests : LEAP_BITS_MAX)) - 1;
    p->best = no_ballot;
    p->value = (struct paxos_value){ 0 };
    p->message.ballot = new_ballot(p);
    firn_assert(p->message.ballot.round > p->highest);
    p->message.next = no_ballot;
    return send(p, PAXOS_PREPARING, PAXOS_PREPARE);
}

static enum paxos_do accept(struct paxos *p, struct ballot ballot, bool changing)
{
    p->changing = changing;
    p->message.ballot = ballot;
    if (p->highest < ballot.round)
        p->highest = ballot.round;
    if (changing) {
        p->doubted = p->proposed;
        if (!p->proposed) {
            p->proposed = true;
            p->tag = ballot;
            p->base = p->past = p->value.tag;
        }
        p->change_attempt = p->attempt + 1;
        p->refused = 0;
        change(&p->value, p->tag, p->new);
    }
    p->message.next = new_ballot(p);
    p->message.value = p->value;
    firn_assert(ballot_cmp(p->message.next, ballot) > 0, "next %" PRIu64 " ballot %" PRIu64,
                p->message.next.round, ballot.round);
    firn_assert(p->value.before_n <= PAXOS_BEFORE_MAX && p->value.len <= PAXOS_VALUE_MAX);
    return send(p, PAXOS_ACCEPTING, PAXOS_ACCEPT);
}

/* p->value is the register's, for good. */
static enum paxos_do decided(struct paxos *p)
{
    if (!p->write || p->changing || (p->proposed && in_chain(&p->value, p->tag)))
        return finish(p, 0);
    return finish(p, FIRN_ECONFLICT);
}

/* How many of the answers show the highest accepted ballot. */
static unsigned agreed(const struct paxos *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->n; i++)
        n += p->yes >> i & 1 && same(p->seen[i], p->best);
    return n;
}

/* A majority promised: p->value is what the register holds, or is about to. */
static enum paxos_do propose(struct paxos *p)
{
    firn_assert(count(p->yes) >= p->majority || FIRN_MUTANT(px_half), "yes %#x", p->yes);
    bool mine = p->proposed && in_chain(&p->value, p->tag);
    bool lost_track = p->proposed && !mine && !in_chain(&p->value, p->base) &&
                      !in_chain(&p->value, p->past);
    if (p->proposed && !mine && !lost_track)
        p->past = p->value.tag;
    p->changing = false;
    p->doubting = p->write && lost_track && !FIRN_MUTANT(px_doubt_forgotten);
    if (p->doubting) /* the last refusals may be under way */
        return PAXOS_WAIT;
    if (p->write && !mine && holds(&p->value, p->old))
        return accept(p, p->message.ballot, true);
    /* A chosen value need not be chosen again. But with a change of ours under way, only a ballot
     * above all of ours ends what they could still become. */
    bool settled = agreed(p) >= p->majority && !p->proposed;
    if (!p->renew && (settled || FIRN_MUTANT(px_minority_told)))
        return decided(p);
    return accept(p, p->message.ballot, false);
}

/* A majority has answered the look. */
static enum paxos_do looked(struct paxos *p, bool hurry)
{
    unsigned agree = agreed(p), open = p->n - count(p->yes | p->lost);
    p->changing = false;
    if (agree >= p->majority || FIRN_MUTANT(px_minority_told))
        return p->write && holds(&p->value, p->old) ? prepare(p) : decided(p);
    return !hurry && agree + open >= p->majority ? PAXOS_WAIT : prepare(p);
}

static enum paxos_do rest(struct paxos *p)
{
    p->phase = PAXOS_RESTING;
    p->rests++;
    return PAXOS_BACK_OFF;
}

static void note(struct paxos *p, unsigned from, const struct paxos_answer *a)
{
    if (p->highest < a->promised.round)
        p->highest = a->promised.round;
    if (!a->ok) {
        p->no |= 1u << from;
        return;
    }
    p->yes |= 1u << from;
    if (p->phase == PAXOS_ACCEPTING)
        return;
    p->seen[from] = a->accepted;
    if (FIRN_MUTANT(px_first_taken) ? count(p->yes) == 1 : ballot_cmp(a->accepted, p->best) > 0) {
        p->best = a->accepted;
        p->value = a->value;
    }
}

enum paxos_do paxos_answered(struct paxos *p, unsigned from, uint32_t attempt,
                             const struct paxos_answer *a)
{
    firn_assert(from < p->n, "acceptor %u of %u", from, p->n);
    unsigned bit = 1u << from;
    if (a && !a->ok && a->firm && p->proposed &&
        attempt == p->change_attempt) { /* also when it comes late */
        p->refused |= bit;
        if (count(p->refused) == p->n && !p->doubted) {
            p->proposed = false;
            if (p->doubting)
                return propose(p);
        }
    }
    if (p->doubting)
        return PAXOS_WAIT;
    if (attempt != p->attempt || p->phase >= PAXOS_RESTING || (p->yes | p->no | p->lost) & bit)
        return PAXOS_WAIT;
    if (a)
        note(p, from, a);
    else
        p->lost |= bit;
    firn_assert(count(p->yes) + count(p->no) + count(p->lost) == count(p->yes | p->no | p->lost),
                "yes %#x no %#x lost %#x", p->yes, p->no, p->lost);
    unsigned majority = FIRN_MUTANT(px_half) ? p->n / 2 : p->majority;
    if (count(p->yes) >= majority) {
        switch (p->phase) {
        case PAXOS_LOOKING:
            return looked(p, false);
        case PAXOS_PREPARING:
            return propose(p);
        case PAXOS_ACCEPTING:
            p->known = (struct paxos_known){ p->message.next, p->value };
            return decided(p);
        case PAXOS_RESTING:
        case PAXOS_ENDED:
            break;
        }
    }
    /* A refusal means that another proposer is ahead; too few acceptors left, that this attempt
     * cannot succeed. */
    if ((p->no != 0 && count(p->yes | p->no) >= p->majority) || p->n - count(p->lost) < p->majority)
        return rest(p);
    return PAXOS_WAIT;
}

enum paxos_do paxos_hurry(struct paxos *p)
{
    if (p->doubting)
        return finish(p, FIRN_EUNKNOWN);
    return p->phase == PAXOS_LOOKING && count(p->yes) >= p->majority ? looked(p, true) : PAXOS_WAIT;
}

enum paxos_do paxos_again(struct paxos *p)
{
    if (p->phase != PAXOS_RESTING)
        return PAXOS_WAIT;
    return p->message.ask == PAXOS_LOOK ? look(p) : prepare(p);
}

static void begin(struct paxos *p, unsigned n, uint64_t id, uint64_t *round)
{
    firn_assert(n > 0 && n <= PAXOS_ACCEPTORS_MAX && id != 0, "%u acceptors", n);
    *p = (struct paxos){ .n = n, .majority = n / 2 + 1, .id = id, .round = round };
}

enum paxos_do paxos_read(struct paxos *p, unsigned n, uint64_t id, uint64_t *round)
{
    begin(p, n, id, round);
    return look(p);
}

enum paxos_do paxos_renew(struct paxos *p, unsigned n, uint64_t id, uint64_t *round)
{
    begin(p, n, id, round);
    p->renew = true;
    return prepare(p);
}

enum paxos_do paxos_change(struct paxos *p, unsigned n, uint64_t id, uint64_t *round,
                           struct paxos_text old, struct paxos_text new,
                           const struct paxos_known *known)
{
    begin(p, n, id, round);
    p->write = true;
    p->old = old;
    p->new = new;
    if (!known || known->next.round == 0 || !holds(&known->value, old))
        return look(p);
    p->value = known->value;
    return accept(p, known->next, true);
}

void paxos_give_up(struct paxos *p)
{
    if (p->phase != PAXOS_ENDED)
        finish(p, p->proposed ? FIRN_EUNKNOWN : FIRN_EIO);
}
