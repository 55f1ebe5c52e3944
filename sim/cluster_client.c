/*
 * Clients of a cluster's world. A ticket is what a client has when its compare-and-swap from n to
 * n + 1 was acknowledged. A call whose outcome is not known is sent again, to another member, with
 * the same nonces; a client that gives up leaves it unknown for good.
 *
 * Never: a ticket that two clients have; one that was acknowledged and is above the register's
 * last value; a number below that value which no client has and none may have (its owner was told
 * that another came first); calls without an order that explains all answers.
 */
#include "cluster_in.h"

enum { STATES_MAX = 2000000 };

struct firn_slice k_key(unsigned reg)
{
    /* The store puts its space and a NUL before a key. */
    static const char name[REGISTERS][11] = { "\0tickets/a", "\0tickets/b", "\0tickets/c" };
    size_t skip = k.c.whole ? 0 : 1;
    return firn_slice(name[reg] + skip, sizeof name[reg] - skip);
}

uint32_t k_value(const struct fsm *f, unsigned reg)
{
    bool found;
    char text[16] = { 0 };
    size_t i = map_find(&f->map, k_key(reg), &found);
    if (!found)
        return 0;
    struct firn_slice v = map_value(&f->map, i);
    memcpy(text, v.p, v.len < sizeof text ? v.len : sizeof text - 1);
    return (uint32_t)strtoul(text, NULL, 10);
}

/* ---- a call ---- */

static unsigned some_machine(void)
{
    unsigned from = (unsigned)rand_below(&k.rng, MACHINES);
    for (unsigned n = 0; n < MACHINES; n++)
        if (k.member[(from + n) % MACHINES].id)
            return (from + n) % MACHINES;
    return from;
}

static void ask(unsigned n)
{
    struct client *c = &k.client[n];
    struct letter *l = calloc(1, sizeof *l);
    if (!l)
        abort();
    c->r.call = c->call << 8 | (++c->attempt & 255);
    l->from = n;
    l->request = c->r;
    int64_t us = k_way();
    if (!k.healing && rand_below(&k.rng, 1000) < k.c.loss_pm)
        free(l);
    else
        k_at(k_now() + us, K_ASK, c->target, 0, l);
    k_at(k_now() + k.c.election_ms * 1500, K_RETRY, n, c->r.call, NULL);
}

static void ended(unsigned n)
{
    struct client *c = &k.client[n];
    c->busy = false;
    c->call++;
    fold(k.w, c->call << 8 | n);
    k_at(k_now() + 200 + (int64_t)rand_below(&k.rng, (uint64_t)k.c.think_us), K_BEGIN, n, c->call,
         NULL);
}

/* The call ended without an answer. */
static void give_up(unsigned n)
{
    struct client *c = &k.client[n];
    struct lin_op *op = &k.history[c->op];
    op->ret = ++k.order;
    if (c->r.read || !c->doubt) {
        op->user = 0; /* nothing was done: no part of the history */
    } else {
        k.maybe[c->r.reg][c->r.new] = 1;
        sometimes.rc_unknown++;
    }
    trace(k.w, "client %u: gives up, %s register %u, %u to %u%s", n,
          c->r.read ? "reads" : "changes", c->r.reg, c->r.old, c->r.new,
          c->doubt ? ", not known" : "");
    ended(n);
}

void k_begin(unsigned n)
{
    struct client *c = &k.client[n];
    if (k.ops >= k.ops_max)
        return;
    unsigned reg = (unsigned)rand_below(&k.rng, REGISTERS);
    c->busy = true;
    c->doubt = c->refused = false;
    c->attempt = 0;
    c->r = (struct request){ .reg = reg,
                             .read = !c->knows[reg] || rand_chance(&k.rng, 30),
                             .old = c->last[reg],
                             .new = c->last[reg] + 1,
                             .since = c->since[reg],
                             .nonce = { n, rand_next(&k.rng) } };
    c->target = some_machine();
    c->deadline = k_now() + k.c.call_us;
    c->op = k.ops++;
    k.history[c->op] = (struct lin_op){ .kind = c->r.read ? LIN_READ : LIN_UNKNOWN,
                                        .old = c->r.old,
                                        .new = c->r.new,
                                        .call = ++k.order,
                                        .user = reg + 1 };
    ask(n);
}

void k_retry(unsigned n)
{
    struct client *c = &k.client[n];
    if (!c->refused) {
        c->doubt = c->r.again = !c->r.read;
        c->target = some_machine();
    }
    if (k_now() >= c->deadline || (!c->refused && !k.healing && rand_chance(&k.rng, 10))) {
        give_up(n);
        return;
    }
    c->refused = false;
    ask(n);
}

void k_answer(struct kmember *m, const struct waiting *x, int result)
{
    struct letter *l = calloc(1, sizeof *l);
    if (!l)
        abort();
    l->from = x->client;
    l->request = x->r;
    l->result = result;
    l->value = k_value(&m->fsm, x->r.reg);
    l->requests = m->fsm.requests;
    struct kmember *leader = core_leader(m->core) ? k_member(core_leader(m->core)) : NULL;
    l->machine = leader && leader != m ? k_machine(leader) : some_machine();
    if (!k.healing && rand_below(&k.rng, 1000) < k.c.loss_pm)
        free(l);
    else
        k_at(k_now() + k_way(), K_REPLY, x->client, 0, l);
}

static void changed(unsigned n)
{
    struct client *c = &k.client[n];
    if (k.given[c->r.reg][c->r.new])
        violate(k.w, "ticket", "ticket %u of register %u was given twice", c->r.new, c->r.reg);
    k.given[c->r.reg][c->r.new] = 1;
    k.history[c->op].kind = LIN_OK;
    c->last[c->r.reg] = c->r.new;
    k.w->ids++;
    k.healed_writes += k.healing;
    sometimes.rc_ok++;
    sometimes.rc_repeat_answered += c->r.again;
}

void k_reply(const struct letter *l)
{
    struct client *c = &k.client[l->from];
    struct lin_op *op = &k.history[c->op];
    unsigned reg = c->r.reg;
    if (!c->busy || c->call != l->request.call >> 8)
        return;
    if (c->r.call != l->request.call && l->result != 0 && l->result != FIRN_ECONFLICT)
        return; /* of an earlier attempt */
    switch (l->result) {
    case 0:
        if (c->r.read) {
            op->old = c->last[reg] = (uint32_t)l->value;
            sometimes.rc_read++;
        } else {
            changed(l->from);
        }
        break;
    case FIRN_ECONFLICT:
        op->kind = LIN_CONFLICT;
        c->last[reg] = (uint32_t)l->value;
        sometimes.rc_conflict++;
        break;
    case FIRN_EAGAIN: /* this attempt did nothing */
        c->refused = true;
        c->target = l->machine;
        c->r.call = c->call << 8 | (++c->attempt & 255);
        k_at(k_now() + 500 + (int64_t)rand_below(&k.rng, 20000), K_RETRY, l->from, c->r.call, NULL);
        return;
    case TOO_OLD:
        sometimes.rc_too_old++;
        c->doubt = true;
        give_up(l->from);
        return;
    default: /* the lead was lost */
        k_retry(l->from);
        return;
    }
    op->ret = ++k.order;
    c->knows[reg] = true;
    c->since[reg] = l->requests;
    trace(k.w, "client %u: %s register %u, %u to %u: %d, has %u", l->from,
          c->r.read ? "reads" : "changes", reg, c->r.old, c->r.new, l->result, c->last[reg]);
    ended(l->from);
}

/* ---- at the end ---- */

void k_check_history(bool whole)
{
    static struct lin_op op[OPS_MAX];
    const struct kmember *at = NULL;
    for (unsigned i = 0; i < CLIENTS; i++)
        if (k.client[i].busy) {
            k.client[i].doubt = true;
            give_up(i);
        }
    for (unsigned i = 0; i < MACHINES; i++)
        if (k.member[i].up && k.member[i].side == &k.main && !k.member[i].corrupt &&
            (!at || k.member[i].applied > at->applied))
            at = &k.member[i];
    for (unsigned reg = 0; reg < REGISTERS && at; reg++) {
        uint32_t last = k_value(k_fsm(at), reg);
        for (uint32_t t = k.value[reg] + 1; t < TICKETS_MAX && whole; t++) {
            if (k.given[reg][t] && t > last && !k.stuck)
                violate(k.w, "lost", "ticket %u of register %u was given, the last is %u", t, reg,
                        last);
            if (t <= last && !k.given[reg][t] && !k.maybe[reg][t])
                violate(k.w, "gap", "ticket %u of register %u was given to no client", t, reg);
        }
        size_t n = 0;
        for (size_t i = 0; i < k.ops; i++)
            if (k.history[i].user == reg + 1)
                op[n++] = k.history[i];
        struct lin_found found;
        enum lin_verdict v = lin_check(op, n, k.value[reg], STATES_MAX, &found);
        if (v == LIN_NO)
            violate(k.w, "linear", "%zu calls have no order that explains the answer of call %zu",
                    n, found.stuck);
        if (v == LIN_TOO_HARD || v == LIN_NO_MEMORY)
            violate(k.w, "linear", "%zu calls are too hard to check", n);
    }
}
