/*
 * A small world from a seed: proposers that read and change one register of three or five acceptors, over
 * messages that are lost, late, repeated and reordered; proposers give up, crash and duel, acceptors
 * stand still, lose their memory and are let in again.
 * Never: two values in one ballot, a value chosen that does not follow from the one chosen before, a history
 * of calls that is not linearizable, a call without end once the faults are over. Often enough: every outcome.
 * And each rule of paxos.c that can be taken away is missed.
 */
enum {
    MUTANT_none,
    MUTANT_promise_ignored, /* an acceptor accepts whatever comes */
    MUTANT_ballot_reused,   /* a proposers' ballots are not told apart */
    MUTANT_minority_told,   /* a value that only some acceptors have is told */
    MUTANT_first_taken,     /* the first promise's value is taken, not the highest ballot's */
    MUTANT_half,            /* half of the acceptors are enough */
    MUTANT_doubt_forgotten, /* a conflict is told although an earlier try may have been done */
    MUTANTS_OF_PAXOS,
    MUTANT_amnesia = MUTANTS_OF_PAXOS, /* an acceptor that lost its memory goes on */
    MUTANTS,
};
static int paxos_mutant;
#define PAXOS_MUTANTS
#define PAXOS_BEFORE_MAX 1 /* so that a chain is often too short to tell */
#include "coord/paxos.c"   /* with its mutants */
#include "coord/paxos_record.c"

#include "linear.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PROPOSERS = 4,
    POOL_MAX = 64,
    OPS_MAX = 120,
    EVENTS = 1500,
    VALUES_MAX = OPS_MAX + 2,
    TEXT_BUF = 12,
    LEAP = 1 << 20,
    STATES_MAX = 2000000,
};

struct envelope {                /* on its way */
    bool used, is_answer, again; /* again: the acceptor may have had it before */
    int proposer;
    unsigned acceptor;
    uint32_t call, attempt; /* of the proposer's */
    struct paxos_message message;
    struct paxos_answer answer;
};

struct acceptor {
    struct paxos_acceptor memory;
    uint64_t floor;
    bool down, out; /* out: it lost its memory, and answers nobody */
};

struct proposer {
    uint64_t id, round;
    uint32_t call; /* of this proposer, in all its lives */
    bool busy, resting, has_known;
    struct paxos p;
    struct paxos_known known;
    int op;        /* in the history */
    uint32_t last; /* the value it believes in */
    char old[TEXT_BUF], new[TEXT_BUF];
};

struct world {
    uint64_t seed, rng, now;
    unsigned n, fault_percent, disturb_percent;
    bool healed;
    uint64_t next_id;
    uint32_t next_value;
    struct acceptor acceptor[PAXOS_ACCEPTORS_MAX];
    struct proposer proposer[PROPOSERS];
    struct envelope pool[POOL_MAX];
    struct lin_op history[OPS_MAX];
    size_t ops;
    const char *broken; /* what happened that never may */
};

static struct {
    uint64_t ok, conflicts, unknown, eio, reads, fast, fast_lost, late, crashed, duels, wiped,
        admitted, adopted, doubts_cleared, removed, renewed;
} sometimes;

static struct world *w;

static void never(bool wrong, const char *what)
{
    if (wrong && !w->broken)
        w->broken = what;
}

static uint64_t draw(void)
{
    uint64_t z = (w->rng += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t n)
{
    return draw() % n;
}

static bool chance(unsigned percent)
{
    return below(100) < percent;
}

static bool fault(void)
{
    return !w->healed && chance(w->fault_percent);
}

/* ---- acceptors ---- */

/* Through its text, as a store has it. */
static void remember(struct acceptor *a)
{
    char text[PAXOS_TEXT_MAX];
    struct paxos_acceptor again;
    size_t len = paxos_encode(&a->memory, text);
    never(paxos_parse(text, len, &again, NULL) != 0, "a record that cannot be read");
    a->memory = again;
}

/* One value a ballot, wherever it is accepted. */
static void check_ballots(void)
{
    for (unsigned i = 0; i < w->n; i++)
        for (unsigned k = i + 1; k < w->n; k++) {
            const struct paxos_acceptor *a = &w->acceptor[i].memory, *b = &w->acceptor[k].memory;
            never(a->accepted.round && same(a->accepted, b->accepted) &&
                      !same(a->value.tag, b->value.tag),
                  "two values in one ballot");
        }
}

static struct envelope *some_envelope(bool used)
{
    size_t from = below(POOL_MAX);
    for (size_t i = 0; i < POOL_MAX; i++) {
        struct envelope *e = &w->pool[(from + i) % POOL_MAX];
        if (e->used == used)
            return e;
    }
    return used ? NULL : &w->pool[from]; /* full: something is lost */
}

static void acceptor_event(const struct envelope *e)
{
    struct acceptor *a = &w->acceptor[e->acceptor];
    if (a->down || a->out)
        return;
    struct envelope answer = *e;
    answer.is_answer = true;
    answer.answer.firm = !e->again;
    paxos_acceptor_raise(&a->memory, a->floor);
    if (paxos_acceptor_step(&a->memory, &e->message, &answer.answer))
        remember(a);
    check_ballots();
    if (fault())
        return;
    *some_envelope(false) = answer;
}

/* What `firn admin admit` does, with any majority of the others; not all of them need be up. */
static void admit(unsigned x)
{
    unsigned set = 0, need = w->n / 2 + 1;
    uint64_t highest = 0;
    struct ballot best = { 0 };
    struct paxos_value value = { 0 };
    for (unsigned at = (unsigned)below(w->n), i = 0; i < w->n && count(set) < need; i++) {
        const struct acceptor *a = &w->acceptor[(at + i) % w->n];
        if ((at + i) % w->n != x && !a->out && !a->down)
            set |= 1u << (at + i) % w->n;
    }
    if (count(set) < need)
        return;
    for (unsigned i = 0; i < w->n; i++)
        if (set >> i & 1 && w->acceptor[i].memory.promised.round > highest)
            highest = w->acceptor[i].memory.promised.round;
    uint64_t floor = highest + LEAP;
    struct ballot ballot = { floor, ++w->next_id };
    for (unsigned i = 0; i < w->n; i++)
        if (set >> i & 1) {
            struct acceptor *a = &w->acceptor[i];
            a->floor = floor;
            if (ballot_cmp(a->memory.accepted, best) > 0) {
                best = a->memory.accepted;
                value = a->memory.value;
            }
        }
    for (unsigned i = 0; i < w->n; i++)
        if (highest && (set >> i & 1 || i == x)) { /* else none of them knows the register */
            struct acceptor *a = &w->acceptor[i];
            a->memory.promised = a->memory.accepted = ballot;
            a->memory.value = value;
            remember(a);
        }
    w->acceptor[x].floor = floor;
    w->acceptor[x].out = false;
    sometimes.admitted++;
}

static void lose_memory(unsigned x)
{
    struct acceptor *a = &w->acceptor[x];
    for (unsigned i = 0; i < w->n; i++)
        if (w->acceptor[i].out)
            return; /* one at a time: more than a minority is lost otherwise */
    a->memory = (struct paxos_acceptor){ 0 };
    a->floor = 0;
    a->out = paxos_mutant != MUTANT_amnesia;
    sometimes.wiped++;
}

/* ---- proposers ---- */

static void follow(struct proposer *p, enum paxos_do what);

static uint32_t number(const struct paxos_value *v)
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

static void ended(struct proposer *p)
{
    struct lin_op *op = &w->history[p->op];
    op->ret = ++w->now;
    p->busy = p->resting = false;
    p->has_known = p->p.known.next.round != 0;
    if (p->has_known)
        p->known = p->p.known;
    switch (p->p.result) {
    case 0:
        if (op->kind == LIN_READ) {
            op->old = p->last = number(&p->p.value);
            sometimes.reads++;
            break;
        }
        op->kind = LIN_OK;
        p->last = op->new;
        sometimes.ok++;
        sometimes.removed += op->new == 0;
        sometimes.adopted += !p->p.changing;
        break;
    case FIRN_ECONFLICT:
        op->kind = LIN_CONFLICT;
        sometimes.conflicts++;
        sometimes.doubts_cleared += p->p.proposed;
        p->last = number(&p->p.value);
        break;
    case FIRN_EUNKNOWN:
        sometimes.unknown++;
        break;
    case FIRN_EIO:
        sometimes.eio++;
        if (op->kind == LIN_READ)
            op->user = 1; /* not part of the history */
        else
            op->user = 2; /* nor this, and it must not have been done */
        break;
    default:
        never(true, "no such result");
    }
}

static void follow(struct proposer *p, enum paxos_do what)
{
    switch (what) {
    case PAXOS_WAIT:
        break;
    case PAXOS_SEND:
        for (unsigned i = 0; i < w->n; i++) {
            if (fault())
                continue;
            *some_envelope(false) = (struct envelope){ .used = true,
                                                       .proposer = (int)(p - w->proposer),
                                                       .acceptor = i,
                                                       .call = p->call,
                                                       .attempt = p->p.attempt,
                                                       .message = p->p.message };
        }
        break;
    case PAXOS_BACK_OFF:
        p->resting = true;
        sometimes.duels++;
        break;
    case PAXOS_DONE:
        ended(p);
        break;
    }
}

static void begin_call(struct proposer *p)
{
    if (w->ops == OPS_MAX)
        return;
    p->op = (int)w->ops;
    struct lin_op *op = &w->history[w->ops++];
    *op = (struct lin_op){ .call = ++w->now };
    p->busy = true;
    p->call++;
    if (chance(30)) {
        op->kind = LIN_READ;
        follow(p, paxos_read(&p->p, w->n, p->id, &p->round));
        return;
    }
    op->kind = LIN_UNKNOWN;
    op->old = chance(90) ? p->last : (uint32_t)below(w->next_value);
    op->new = op->old &&chance(15) ? 0 : w->next_value++;
    const struct paxos_known *known = p->has_known ? &p->known : NULL;
    p->has_known = false;
    enum paxos_do what = paxos_change(&p->p, w->n, p->id, &p->round, text_of(op->old, p->old),
                                      text_of(op->new, p->new), known);
    sometimes.fast += p->p.phase == PAXOS_ACCEPTING;
    follow(p, what);
}

static void crash(struct proposer *p)
{
    if (p->busy && w->history[p->op].kind == LIN_READ)
        w->history[p->op].user = 1;
    uint32_t call = p->call + 1;
    *p = (struct proposer){ .id = ++w->next_id, .call = call, .last = p->last };
    sometimes.crashed++;
}

static void proposer_event(struct proposer *p)
{
    if (!p->busy) {
        if (chance(30))
            begin_call(p);
    } else if (p->resting) {
        if (chance(40)) {
            p->resting = false;
            follow(p, paxos_again(&p->p));
        }
    } else if (!w->healed && chance(6)) {
        paxos_give_up(&p->p);
        ended(p);
    } else if (chance(10)) {
        follow(p, paxos_hurry(&p->p));
    }
}

static void deliver(void)
{
    struct envelope *e = some_envelope(true);
    if (!e)
        return;
    struct envelope now = *e;
    if (!fault() || chance(50)) /* some come again */
        e->used = false;
    else {
        sometimes.late++;
        e->again = true;
    }
    if (!now.is_answer) {
        acceptor_event(&now);
        return;
    }
    struct proposer *p = &w->proposer[now.proposer];
    if (!p->busy || now.call != p->call)
        return;
    bool fast = p->p.phase == PAXOS_ACCEPTING && p->p.attempt == 1;
    enum paxos_do what = paxos_answered(&p->p, now.acceptor, now.attempt, &now.answer);
    sometimes.fast_lost += fast && what == PAXOS_BACK_OFF;
    follow(p, what);
}

static void lost_in_transit(void) /* a connection that broke: the proposer is told */
{
    struct envelope *e = some_envelope(true);
    if (!e || !e->is_answer)
        return;
    e->used = false;
    struct proposer *p = &w->proposer[e->proposer];
    if (p->busy && e->call == p->call)
        follow(p, paxos_answered(&p->p, e->acceptor, e->attempt, NULL));
}

static void disturb(void)
{
    unsigned x = (unsigned)below(w->n);
    switch (below(8)) {
    case 0:
        crash(&w->proposer[below(PROPOSERS)]);
        break;
    case 1:
    case 2:
        w->acceptor[x].down = !w->acceptor[x].down;
        break;
    case 3:
        lose_memory(x);
        break;
    case 4:
    case 5:
        for (x = 0; x < w->n; x++)
            if (w->acceptor[x].out)
                admit(x);
        break;
    default:
        lost_in_transit();
        break;
    }
}

static void world_init(uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->seed = w->rng = seed;
    w->n = chance(70) ? 3 : 5;
    w->fault_percent = (unsigned)below(25);
    w->disturb_percent = chance(75) ? 2 : 30;
    w->next_value = 1;
    for (int i = 0; i < PROPOSERS; i++)
        w->proposer[i].id = ++w->next_id;
}

/* No more faults: every call comes to its end. */
static void heal(void)
{
    w->healed = true;
    for (unsigned i = 0; i < w->n; i++)
        w->acceptor[i].down = false;
    for (unsigned i = 0; i < w->n; i++)
        if (w->acceptor[i].out)
            admit(i);
    w->ops = w->ops < OPS_MAX ? w->ops : OPS_MAX;
    for (int i = 0; i < PROPOSERS; i++)
        if (w->proposer[i].busy) { /* what it waits for may be lost */
            paxos_give_up(&w->proposer[i].p);
            ended(&w->proposer[i]);
        }
    memset(w->pool, 0, sizeof w->pool);
    if (w->ops > OPS_MAX - PROPOSERS)
        w->ops = OPS_MAX - PROPOSERS; /* an unfinished history is one, too */
    for (int i = 0; i < PROPOSERS; i++)
        begin_call(&w->proposer[i]);
    for (int i = 0; i < 20000; i++) {
        bool busy = false;
        for (int k = 0; k < PROPOSERS; k++)
            busy |= w->proposer[k].busy;
        if (!busy)
            return;
        deliver();
        struct proposer *p = &w->proposer[below(PROPOSERS)];
        if (p->busy && chance(25))
            proposer_event(p);
    }
    never(true, "a call without end");
}

static void check_history(void)
{
    struct lin_op op[OPS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < w->ops; i++)
        if (w->history[i].user == 0)
            op[n++] = w->history[i];
    struct lin_found found;
    enum lin_verdict v = lin_check(op, n, 0, STATES_MAX, &found);
    never(v == LIN_NO, "a history that is not linearizable");
    never(v == LIN_TOO_HARD || v == LIN_NO_MEMORY, "a history that is too hard to check");
}

/* NULL, or what went wrong. */
static const char *run(uint64_t seed)
{
    world_init(seed);
    for (int i = 0; i < EVENTS && !w->broken && w->ops < OPS_MAX - PROPOSERS; i++) {
        deliver();
        proposer_event(&w->proposer[below(PROPOSERS)]);
        if (chance(w->disturb_percent))
            disturb();
    }
    if (!w->broken)
        heal();
    if (!w->broken)
        check_history();
    return w->broken;
}

T_TEST(paxos_world_is_linearizable)
{
    w = malloc(sizeof *w);
    T_OK(w);
    const char *one = getenv("WORLD_SEED"), *many = getenv("WORLDS");
    uint64_t base = one ? strtoull(one, NULL, 0) : t_random(),
             worlds = one    ? 1
                      : many ? strtoull(many, NULL, 0)
                             : t_scale(3000);
    paxos_mutant = MUTANT_none;
    memset(&sometimes, 0, sizeof sometimes);
    for (uint64_t i = 0; i < worlds; i++) {
        const char *wrong = run(base + i);
        T_OK(!wrong, "%s, world seed %" PRIu64, wrong, base + i);
    }
    free(w);
    printf("    %" PRIu64 " ok, %" PRIu64 " conflicts, %" PRIu64 " unknown, %" PRIu64
           " reads; %" PRIu64 " in one round trip, %" PRIu64 " duels, %" PRIu64 " adopted, %" PRIu64
           " doubts cleared, %" PRIu64 " admitted\n",
           sometimes.ok, sometimes.conflicts, sometimes.unknown, sometimes.reads, sometimes.fast,
           sometimes.duels, sometimes.adopted, sometimes.doubts_cleared, sometimes.admitted);
    if (one)
        return;
    T_OK(sometimes.ok > 0 && sometimes.conflicts > 0 && sometimes.unknown > 0);
    T_OK(sometimes.eio > 0 && sometimes.reads > 0 && sometimes.fast > 0);
    T_OK(sometimes.fast_lost > 0 && sometimes.late > 0 && sometimes.crashed > 0);
    T_OK(sometimes.duels > 0 && sometimes.wiped > 0 && sometimes.admitted > 0);
    T_OK(sometimes.adopted > 0 && sometimes.doubts_cleared > 0 && sometimes.removed > 0);
}

T_TEST(paxos_world_misses_every_rule)
{
    static const char *const name[MUTANTS] = {
        [MUTANT_promise_ignored] = "promise ignored",
        [MUTANT_ballot_reused] = "ballot reused",
        [MUTANT_minority_told] = "minority told",
        [MUTANT_first_taken] = "first taken",
        [MUTANT_half] = "half",
        [MUTANT_doubt_forgotten] = "doubt forgotten",
        [MUTANT_amnesia] = "amnesia",
    };
    w = malloc(sizeof *w);
    T_OK(w);
    uint64_t base = t_random();
    for (paxos_mutant = 1; paxos_mutant < MUTANTS; paxos_mutant++) {
        uint64_t i = 0, worlds = 20000;
        const char *wrong = NULL;
        while (i < worlds && !(wrong = run(base + i)))
            i++;
        printf("    %-16s %s after %" PRIu64 " worlds\n", name[paxos_mutant],
               wrong ? wrong : "NOT NOTICED", i + 1);
        T_OK(wrong, "nobody misses the rule '%s'", name[paxos_mutant]);
    }
    paxos_mutant = MUTANT_none;
    free(w);
}
