/*
 * Worlds of a cluster (raft/core): three or five members, and others that join and leave. Each is
 * the core and the state machine as shipped, with a disk, a network and a clock of this world.
 * Messages are lost, late, repeated and overtake each other; machines are partitioned, in one
 * direction or both; clocks run at different speeds; processes are stopped and killed; machines
 * lose their power, and with it all that was not synced, at each step of their I/O; disks are slow
 * or full; members are added, promoted, demoted, removed, and replaced after a loss of their disk.
 * Everything is in virtual time and from the plan: the same seed is the same run, and a failing
 * plan can be shortened and replayed.
 *
 * Never: two leaders in a term; two entries with one index and term; a committed entry undone; a
 * leader without an entry that was committed before its term; two states after one index; a promise
 * before it is on the disk; a term or a vote that goes back; a ticket twice, an acknowledged one
 * lost, a history that is not linearizable; a cluster that does not recover once the faults are
 * over.
 */
#include "cluster_in.h"
#include "member_in.h"

enum { HEAL_US = 60000000, HEAL_STEP_US = 20000, HEAL_OPS = 100 };

struct cluster_world k;

/* ---- faults ---- */

static void cut(unsigned from, unsigned to, int64_t ms)
{
    k.cut_until[from][to] = k_now() + ms * 1000;
}

static void cut_all(unsigned x, bool in, bool out, int64_t ms)
{
    for (unsigned i = 0; i < MACHINES; i++) {
        if (in && i != x)
            cut(i, x, ms);
        if (out && i != x)
            cut(x, i, ms);
    }
}

static void split(unsigned set, int64_t ms)
{
    for (unsigned i = 0; i < MACHINES; i++)
        for (unsigned j = 0; j < MACHINES; j++)
            if ((set >> i & 1) != (set >> j & 1))
                cut(i, j, ms);
}

static void inject_cluster(const struct fault *f)
{
    unsigned x = f->node % MACHINES;
    struct kmember *m = &k.member[x];
    int64_t us = f->arg * 1000;
    sometimes.fault[f->kind]++;
    trace(k.w, "fault %s %u %lld", fault_name[f->kind], f->node, (long long)f->arg);
    switch ((enum fault_kind)f->kind) {
    case FAULT_rc_lose:
        k.lose[x] += (unsigned)f->arg;
        break;
    case FAULT_rc_late:
        k.late_us[x] = us;
        break;
    case FAULT_rc_repeat:
        if (k.c.whole) /* TCP repeats nothing; a connection breaks */
            wires_break(m);
        k.repeat_us[x] = us;
        break;
    case FAULT_rc_cut:
        cut_all(x, true, true, f->arg);
        break;
    case FAULT_rc_cut_in:
        cut_all(x, true, false, f->arg);
        break;
    case FAULT_rc_cut_out:
        cut_all(x, false, true, f->arg);
        break;
    case FAULT_rc_split:
        split((unsigned)f->arg & 255, f->arg >> 8);
        break;
    case FAULT_rc_pause:
        m->paused_until = k_now() + us;
        break;
    case FAULT_rc_clock:
        k_clock(m, f->arg);
        m->wall_us += (f->arg - 1000) * 1000000; /* and the wall clock steps */
        break;
    case FAULT_rc_kill:
        k_crash(m, false, us);
        break;
    case FAULT_rc_power:
        k_crash(m, true, us);
        break;
    case FAULT_rc_all_power:
        for (unsigned i = 0; i < MACHINES; i++)
            k_crash(&k.member[i], true, us + (int64_t)rand_below(&k.rng, 200000));
        break;
    case FAULT_rc_die_io:
        m->dies_in = f->arg;
        break;
    case FAULT_rc_full:
        m->full_until = k_now() + us;
        break;
    case FAULT_rc_slow:
        m->slow_until = k_now() + 2000000;
        m->slow_us = us;
        break;
    default:
        k_operator_fault(f);
        break;
    }
}

/* ---- events ---- */

static void happen_to(struct kmember *m, struct kevent *e)
{
    switch (e->kind) {
    case K_TICK:
        k_at(k_now() + TICK_US, K_TICK, e->who, m->life, NULL);
        if (m->whole) {
            whole_tick(m);
            break;
        }
        core_tick(m->core, k_local_ms(m));
        k_after(m);
        break;
    case K_DELIVER:
        k_deliver(m, e->letter);
        break;
    case K_DISK:
        k_disk_step(m);
        break;
    case K_ASK:
        k_asked(m, e->letter);
        break;
    default:
        break;
    }
    if (m->dying)
        k_crash(m, true, 1000 + (int64_t)rand_below(&k.rng, (uint64_t)k.c.election_ms * 4000));
}

static void happen(struct kevent *e)
{
    struct kmember *m = e->who < MACHINES ? &k.member[e->who] : NULL;
    const struct client *c = e->who < CLIENTS ? &k.client[e->who] : NULL;
    bool mine = (e->kind != K_TICK && e->kind != K_DISK) || e->token == m->life;
    switch (e->kind) {
    case K_TICK:
    case K_DELIVER:
    case K_DISK:
    case K_ASK:
        if (!m->up || !mine)
            break;
        if (m->paused_until > k_now()) {
            /* What has waited happens in any order. */
            k_at(m->paused_until + (int64_t)rand_below(&k.rng, 3000), e->kind, e->who, e->token,
                 e->letter);
            return;
        }
        happen_to(m, e);
        break;
    case K_BOOT:
        if (m->id == e->token)
            k_boot(m);
        break;
    case K_REPLY:
        k_reply(e->letter);
        break;
    case K_BEGIN:
        if (!c->busy && e->token == c->call)
            k_begin(e->who);
        break;
    case K_RETRY:
        if (c->busy && e->token == c->r.call)
            k_retry(e->who);
        break;
    case K_SETTLE:
    case K_CONNECT:
    case K_WIRE:
    case K_SILENT:
    case K_TAKE:
    case K_ANSWER:
    case K_WAKE:
        if (!whole_happen(e))
            return;
        break;
    case K_OPERATE:
        k_at(k_now() + 5000 + (int64_t)rand_below(&k.rng, 60000), K_OPERATE, 0, 0, NULL);
        k_operate();
        break;
    case K_FAULT:
        inject_cluster(&k.w->plan->fault[e->who]);
        break;
    }
    free(e->letter);
    for (unsigned i = 0; i < MACHINES && e->kind >= K_SETTLE; i++)
        if (k.member[i].up && k.member[i].dying)
            k_crash(&k.member[i], true, 100000);
}

static void until(int64_t us)
{
    while (k.events > 0 && k.event[0].at <= us && !k.w->failed) {
        struct kevent e = k_take();
        k.w->now = e.at * 1000;
        happen(&e);
    }
    if (!k.w->failed)
        k.w->now = us * 1000;
}

/* ---- the end of the faults ---- */

static void end_faults(void)
{
    k.healing = true;
    k.healing_since = k_now();
    memset(k.lose, 0, sizeof k.lose);
    memset(k.late_us, 0, sizeof k.late_us);
    memset(k.repeat_us, 0, sizeof k.repeat_us);
    memset(k.cut_until, 0, sizeof k.cut_until);
    for (unsigned i = 0; i < MACHINES; i++) {
        struct kmember *m = &k.member[i];
        m->full_until = m->slow_until = m->paused_until = m->dies_in = 0;
        k_clock(m, rand_between(&k.rng, 970, 1030));
        m->wall_us %= CLOCK_WRONG_US;
        if (m != k.disaster.returns || k.disaster.over)
            k_boot(m);
    }
    if (k.c.whole)
        lost_begin_healing();
    k.errands = 0;
    k.ops_max = k.ops + HEAL_OPS < OPS_MAX ? k.ops + HEAL_OPS : OPS_MAX;
    for (unsigned i = 0; i < CLIENTS && !k.c.whole; i++)
        if (!k.client[i].busy)
            k_begin(i);
}

/* An operator removes the members whose machines are lost. */
static void remove_dead(const struct kmember *leader)
{
    const struct core_config *c = core_config(leader->core);
    for (unsigned i = 0; i < c->count && k.errands == 0; i++) {
        const struct kmember *m = k_member(c->member[i].id);
        if (k.id[c->member[i].id].dead || (m && m->side != leader->side))
            k_errand(leader->side, ERRAND_REMOVE, c->member[i].id);
    }
}

static const struct kmember *healed_leader(const struct side *of)
{
    const struct kmember *leader = NULL;
    for (unsigned i = 0; i < MACHINES; i++) {
        const struct kmember *m = &k.member[i];
        if (m->side == of && m->up && core_settled(m->core) && (!leader || m->term > leader->term))
            leader = m;
    }
    return leader;
}

static const char *not_healed_of(struct side *of)
{
    const struct kmember *leader = healed_leader(of);
    if (!leader)
        return "no member leads";
    if (k.healed_writes == 0)
        return "no write is committed";
    const struct core_config *c = core_config(leader->core);
    if (core_changing(leader->core))
        return "a change of the members is not committed";
    if (of->healed_index == 0)
        of->healed_index = core_committed(leader->core);
    for (unsigned i = 0; i < c->count; i++) {
        const struct kmember *m = k_member(c->member[i].id);
        if (k.id[c->member[i].id].dead || (m && m->side != of)) {
            remove_dead(leader);
            return "a member whose machine is lost, or of another cluster, is not removed";
        }
        if (!m || !m->up || m->applied < of->healed_index)
            return "a member has not caught up";
    }
    return k.c.whole ? whole_not_healed(of, c) : NULL;
}

static const char *not_healed(void)
{
    const char *why = k.c.whole ? lost_not_healed() : NULL;
    why = why ? why : not_healed_of(&k.main);
    return why || !k.c.meets ? why : not_healed_of(&k.other);
}

static void heal(void)
{
    const char *why = NULL;
    end_faults();
    int64_t end = k_now() + HEAL_US;
    do {
        until(k_now() + HEAL_STEP_US);
        why = k.w->failed ? NULL : not_healed();
    } while (why && k_now() < end && !k.w->failed);
    if (!why)
        return;
    if (k_survives(0) || (k.disaster.survivor && !k.disaster.over))
        violate(k.w, "liveness", "%s", why);
    k.stuck = true;
    sometimes.rc_majority_lost++;
}

/* ---- a run ---- */

static void begin(void)
{
    if (k.c.whole)
        firnds_reset();
    k.first = k.c.alone || k.c.whole ? 1 : k.c.members;
    k.main.config.count = k.first;
    for (unsigned i = 0; i < k.c.members; i++) {
        struct core_member *m = &k.main.config.member[i];
        *m = (struct core_member){ .id = ++k.next_id, .role = CORE_VOTER };
        snprintf(m->address, sizeof m->address, "m%" PRIu64, m->id);
    }
    k.main.begun = k.main.config;
    for (unsigned i = 0; i < MACHINES; i++) {
        k.member[i].clock_pm = 1000;
        k.member[i].side = i < MACHINES - k.c.others ? &k.main : &k.other;
        k.member[i].disk.first = 1;
        if (k.c.files)
            k_folder_new(&k.member[i]);
    }
    for (unsigned i = 0; i < k.c.members; i++) {
        k.member[i].id = i + 1;
        k.member[i].founder = i == 0;
        k_boot(&k.member[i]);
        if (i >= k.first && !k.c.whole) {
            k_errand(&k.main, ERRAND_ADD, i + 1);
            k_errand(&k.main, ERRAND_PROMOTE, i + 1);
        }
    }
    for (unsigned i = MACHINES - k.c.others; i < MACHINES; i++) {
        k.member[i].id = ++k.next_id;
        k.member[i].founder = i == MACHINES - k.c.others;
        k_boot(&k.member[i]);
    }
    for (unsigned i = 0; k.c.whole && i < CLIENTS; i++)
        whole_client_begin(i);
    for (unsigned i = 0; i < CLIENTS && !k.c.whole; i++)
        k_at((int64_t)rand_below(&k.rng, 300000), K_BEGIN, i, 0, NULL);
    k_at(10000, K_OPERATE, 0, 0, NULL);
    for (size_t i = 0; i < k.w->plan->count; i++)
        k_at((int64_t)k.w->plan->fault[i].at_ms * 1000, K_FAULT, (unsigned)i, 0, NULL);
}

static void end(void)
{
    whole_clients_end();
    for (unsigned i = 0; i < MACHINES; i++) {
        k_forget(&k.member[i]);
        free(k.member[i].twin);
        free(k.member[i].wires);
        free(k.member[i].disk.entry);
        k_folder_free(&k.member[i]);
    }
    k_clear();
    wires_clear();
}

void cluster_world_run(struct world *w, struct plan *plan)
{
    struct kevent *event = k.event;
    size_t room = k.events_room;
    w->plan = plan;
    w->config = &plan->config;
    w->now = 0;
    w->failed = false;
    w->ids = w->hash = 0;
    memset(&k, 0, offsetof(struct cluster_world, entry));
    memset(k.id, 0, sizeof k.id);
    k.event = event;
    k.events_room = room;
    k.w = w;
    k_oracle_reset();
    cluster_configure(&k.c, &plan->config);
    k.rng = rand_split(k.c.seed, 22);
    k.again = rand_split(k.c.seed, 26);
    k.ops_max = OPS_MAX - HEAL_OPS - CLIENTS;
    sometimes.rc_five += k.c.members == 5;
    begin();
    until(k.c.end_us);
    if (!w->failed)
        heal();
    if (!w->failed && k.c.whole)
        whole_clients_stop();
    if (!w->failed)
        k_check_history(true);
    end();
    sometimes.seeds++;
    sometimes.rc_calls += k.ops;
    sometimes.ids += w->ids;
    sometimes.node_ms += (uint64_t)(k_now() / 1000) * k.c.members;
}
