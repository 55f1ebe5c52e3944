/* Admits an acceptor again that lost its memory: the steps of store/quorum_admit.c. */
#include "quorum_in.h"

enum {
    LEAP = 1 << 20,
    ADMIT_MS = 3000, /* for one admission; then it has to begin again */
};

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
    q_at(q_soon(), Q_ADMIT, 0, q.admission.token);
}

void q_admit(unsigned x)
{
    if (!q.acceptor[x].out || q.admission.step != ADMIT_NONE)
        return;
    uint64_t token = q.admission.token + 1;
    q.admission = (struct admission){
        .x = x, .token = token, .life = q.acceptor[x].life, .until_ms = q_now_ms() + ADMIT_MS
    };
    q.actor[ADMIN] = (struct actor){ .id = ++q.next_id, .call = q.actor[ADMIN].call + 1 };
    trace(q.w, "acceptor %u is to be admitted", x);
    next_step(ADMIT_LOOK);
}

/* A random majority of the acceptors in `among`. 0: too few. */
static unsigned some_majority(unsigned among)
{
    unsigned set = 0, from = (unsigned)rand_below(&q.rng, q.n);
    for (unsigned i = 0; i < q.n && q_count(set) < q.majority; i++) {
        unsigned k = (from + i) % q.n;
        if (k != q.admission.x && among >> k & 1 && q_there(&q.acceptor[k]))
            set |= 1u << k;
    }
    return q_count(set) < q.majority ? 0 : set;
}

void q_renewed(struct actor *p)
{
    if (p->p.result == 0) {
        q.admission.renewed = true;
        next_step(ADMIT_GIVE);
    } else {
        admission_ends(false);
    }
}

void q_admit_step(void)
{
    struct admission *m = &q.admission;
    struct acceptor *x = &q.acceptor[m->x];
    struct actor *p = &q.actor[ADMIN];
    unsigned set = some_majority(m->step == ADMIT_KEYS ? m->raised : ~0u);
    if (q_now_ms() > m->until_ms || x->life != m->life || !x->out) {
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
            if (m->next != m->x && q_there(a)) {
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
            q_at(m->until_ms, Q_TIMEOUT, ADMIN, p->call);
            q_follow(p, paxos_renew(&p->p, q.n, p->id, &p->round));
        }
        break;
    }
    case ADMIT_GIVE:
        if (x->down_until_ms > q_now_ms()) {
            admission_ends(false);
            return;
        }
        x->memory = (struct paxos_acceptor){ 0 };
        if (m->renewed) {
            struct paxos_acceptor memory = { .promised = p->p.message.ballot,
                                             .accepted = p->p.message.ballot,
                                             .value = p->p.value };
            q_remember(m->x, &memory);
        }
        x->floor = m->floor;
        x->out = false;
        for (unsigned i = 0; i < ACTORS; i++) /* they open it again, and read px-member */
            q.actor[i].floor[m->x] = x->floor;
        admission_ends(true);
        break;
    }
}
