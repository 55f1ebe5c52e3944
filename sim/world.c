/*
 * A run: events by time, faults as planned, and in the end the healing: faults are over, clocks are
 * right, an operator recovers what was lost; then every node must serve again.
 */
#include "cluster.h"
#include "quorum.h"
#include "mutant.h"

#include <stdlib.h>

/* ---- events ---- */

static bool before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void post(struct world *w, int64_t at, enum event_kind kind, int who, uint64_t token, void *p)
{
    if (w->events == w->events_room) {
        w->events_room = w->events_room ? w->events_room * 2 : 256;
        w->heap = realloc(w->heap, w->events_room * sizeof *w->heap);
        if (!w->heap)
            abort();
    }
    uint64_t boot = kind == EV_FAULT || kind == EV_BOOT ? 0 : w->proc[who].boot;
    struct event e = { at, w->order++, boot, token, kind, who, p };
    size_t i = w->events++;
    while (i > 0 && before(&e, &w->heap[(i - 1) / 2])) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = e;
}

static struct event take(struct world *w)
{
    struct event first = w->heap[0], last = w->heap[--w->events];
    size_t i = 0;
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= w->events)
            break;
        if (k + 1 < w->events && before(&w->heap[k + 1], &w->heap[k]))
            k++;
        if (!before(&w->heap[k], &last))
            break;
        w->heap[i] = w->heap[k];
        i = k;
    }
    w->heap[i] = last;
    return first;
}

static void drop(struct event *e)
{
    if (e->kind == EV_APPLY || e->kind == EV_REPLY)
        msg_free(e->p);
    else if (e->kind == EV_SLIP)
        free(e->p);
}

/* ---- faults ---- */

static void everywhere(struct world *w, struct proc *p,
                       void (*each)(struct world *, struct proc *, int64_t), int64_t arg)
{
    if (!w->config->embedded) {
        each(w, p, arg);
        return;
    }
    for (int i = 0; i < w->procs; i++) /* one machine, one clock */
        each(w, &w->proc[i], arg);
}

static void clock_step(struct world *w, struct proc *p, int64_t ms)
{
    clock_rebase(w, p);
    if (w->config->wild_clocks)
        p->clock.base_r += ms * MS;
    else
        p->clock.base_r = w->now + ms * MS; /* never wrong by more than that */
}

static void clock_freeze(struct world *w, struct proc *p, int64_t ms)
{
    clock_rebase(w, p);
    p->clock.base_t = w->now + ms * MS;
}

static void clock_drift(struct world *w, struct proc *p, int64_t per_mille)
{
    clock_rebase(w, p);
    p->clock.drift_pm = per_mille;
}

static void clock_set(struct world *w, struct proc *p, int64_t unused)
{
    (void)unused;
    p->clock.base_r = p->clock.base_t = w->now;
    p->clock.drift_pm = 0;
}

static void clock_1970(struct world *w, struct proc *p, int64_t unused)
{
    (void)unused;
    clock_rebase(w, p);
    p->clock.base_r = 1000 * SECOND;
}

static void end_and_boot(struct world *w, struct proc *p, int64_t after_ms)
{
    bool home = p->id < (int)w->config->nodes;
    proc_end(w, p);
    if (home)
        post(w, w->now + after_ms * MS, EV_BOOT, p->id, 0, NULL);
}

static void lose_all(struct world *w)
{
    w->lost = true;
    for (size_t i = 0; i < w->store.count; i++)
        store_delete(w, &w->store.cell[i]);
}

/* What befalls the store. */
static void inject_store(struct world *w, const struct fault *f)
{
    char key[RECORD_KEY_BUF];
    struct cell *c;
    switch ((enum fault_kind)f->kind) {
    case FAULT_failover:
        w->store.identity++;
        /* fall through */
    case FAULT_restore:
        w->lost = true;
        store_rewind(w, f->arg * MS);
        if (w->config->tickets)
            tickets_lost(w);
        break;
    case FAULT_tk_lost_wal: /* the machine's processes died, and the log with them */
        for (int i = 0; i < w->procs; i++)
            if (w->proc[i].up)
                end_and_boot(w, &w->proc[i], 10 + 100 * i);
        w->lost = true;
        store_rewind(w, f->arg * MS);
        tickets_lost(w);
        break;
    case FAULT_replace:
        w->lost = true; /* no node can tell that nothing is */
        w->store.identity++;
        break;
    case FAULT_wipe:
        lose_all(w);
        if (w->config->tickets)
            tickets_lost(w);
        if (!w->config->embedded)
            break;
        /* A container without a volume: the processes go with the file. */
        w->store.identity++;
        for (int i = 0; i < w->procs; i++) {
            w->proc[i].wrong_layout = false; /* it would make the new store with that */
            if (w->proc[i].up)
                end_and_boot(w, &w->proc[i], 10 + 100 * i);
        }
        break;
    case FAULT_delete_slot:
        c = store_find(w, key, slot_key((uint32_t)f->arg, key));
        if (c) {
            w->lost = true;
            store_delete(w, c);
        }
        break;
    case FAULT_delete_meta:
        c = store_find(w, META_KEY, META_KEY_LEN);
        if (c) {
            w->lost = true;
            store_delete(w, c);
        }
        break;
    default:
        break;
    }
}

void inject(struct world *w, const struct fault *f)
{
    struct proc *p = &w->proc[f->node];
    struct image *m;
    trace(w, "fault: %s node %u %lld", fault_name[f->kind], f->node, (long long)f->arg);
    sometimes.fault[f->kind]++;
    fold(w, (uint64_t)f->kind << 16 | f->node);
    switch ((enum fault_kind)f->kind) {
    case FAULT_lose_request:
    case FAULT_lose_reply:
    case FAULT_late:
    case FAULT_repeat:
    case FAULT_refuse:
    case FAULT_slow:
        p->on_write.set = true;
        p->on_write.kind = (enum fault_kind)f->kind;
        p->on_write.arg = f->arg;
        return;
    case FAULT_stale:
        p->on_read.set = true;
        p->on_read.arg = f->arg;
        return;
    case FAULT_cut:
        p->cut_until = w->now + f->arg * MS;
        return;
    case FAULT_store_down:
        w->store.down_until = w->now + f->arg * MS;
        return;
    case FAULT_restore:
    case FAULT_failover:
    case FAULT_replace:
    case FAULT_wipe:
    case FAULT_delete_slot:
    case FAULT_delete_meta:
    case FAULT_tk_lost_wal:
        inject_store(w, f);
        return;
    case FAULT_tk_crash_call:
        p->dies_in = (f->arg >> 1) + 1;
        p->dies_after = f->arg & 1;
        return;
    case FAULT_clock_step:
        w->clock_back |= w->config->embedded && f->arg < 0;
        everywhere(w, p, clock_step, f->arg);
        return;
    case FAULT_clock_1970:
        w->clock_back = true;
        everywhere(w, p, clock_1970, 0);
        return;
    case FAULT_clock_set:
        w->clock_back |= w->config->embedded;
        everywhere(w, p, clock_set, 0);
        return;
    case FAULT_clock_freeze:
        w->clock_back |= w->config->embedded;
        everywhere(w, p, clock_freeze, f->arg);
        return;
    case FAULT_clock_drift:
        w->clock_back |= w->config->embedded;
        everywhere(w, p, clock_drift, f->arg);
        return;
    default:
        break;
    }
    if (!p->up)
        return;
    switch ((enum fault_kind)f->kind) {
    case FAULT_suspend:
        if (w->now < p->paused_until) /* it sleeps already, or is stopped: one thing at a time */
            break;
        p->clock.slept_ns += f->arg * MS;
        p->clock.wakes_at = w->now + f->arg * MS;
        /* fall through */
    case FAULT_pause:
        p->paused_at = w->now;
        if (p->paused_until < w->now + f->arg * MS)
            p->paused_until = w->now + f->arg * MS;
        break;
    case FAULT_crash:
        end_and_boot(w, p, f->arg);
        break;
    case FAULT_wrong_layout:
        if (w->config->embedded && (w->lost || w->highest == 0))
            break; /* it might make a new store with that */
        end_and_boot(w, p, f->arg);
        p->wrong_layout = true;
        break;
    case FAULT_leave:
        p->restart_ms = f->arg;
        proc_leave(w, p);
        break;
    case FAULT_fork_child:
        proc_fork(w, p);
        break;
    case FAULT_clone:
        proc_clone(w, p);
        break;
    case FAULT_burst:
        if (!w->config->tickets && w->now >= p->paused_until)
            proc_emit(w, p, (uint64_t)f->arg);
        break;
    case FAULT_lock_lost:
        p->lock_lost = true;
        break;
    case FAULT_fence:
        m = image_of(w, p);
        m->fence = m->lease.born_;
        break;
    default:
        break;
    }
}

/* ---- the loop ---- */

static void wake(struct world *w, struct event *e, struct msg *reply)
{
    struct proc *p = &w->proc[e->who];
    if (!p->up || p->boot != e->boot || p->token != e->token) {
        msg_free(reply);
        return;
    }
    if (w->now < p->paused_until) {
        post(w, p->paused_until, e->kind, e->who, e->token, reply);
        return;
    }
    p->reply = reply;
    co_resume(w, p);
    if (!p->ended) {
        oracle_proc(w, p);
        return;
    }
    if (p->job == JOB_SERVE)
        end_and_boot(w, p, p->restart_ms);
    else
        proc_end(w, p);
}

static void dispatch(struct world *w, struct event *e)
{
    struct proc *p = &w->proc[e->who];
    struct msg *m;
    switch (e->kind) {
    case EV_WAKE:
        wake(w, e, NULL);
        break;
    case EV_REPLY:
        wake(w, e, e->p);
        break;
    case EV_APPLY:
        m = e->p;
        store_apply(w, m);
        if (m->reply_after < 0 || w->proc[m->proc].boot != m->boot)
            msg_free(m); /* no process waits for the answer */
        else
            post(w, w->now + m->reply_after, EV_REPLY, m->proc, m->token, m);
        break;
    case EV_EMIT:
        if (!p->up || p->boot != e->boot)
            break;
        if (w->now < p->paused_until) {
            post(w, p->paused_until, EV_EMIT, p->id, 0, NULL);
            break;
        }
        if (w->config->tickets)
            tickets_ask(w, p);
        else
            proc_emit(w, p, rand_below(&p->rng, w->config->burst_max) + 1);
        post(w,
             w->now +
                 rand_between(&p->rng, w->config->emit_ms / 2, w->config->emit_ms * 3 / 2) * MS,
             EV_EMIT, p->id, 0, NULL);
        break;
    case EV_FAULT:
        if (!w->healed)
            inject(w, e->p);
        break;
    case EV_BOOT:
        if (!p->up)
            proc_boot(w, p);
        break;
    case EV_DIE:
        if (p->up && p->boot == e->boot) {
            sometimes.died_in_call++;
            p->died = p->job != JOB_SERVE;
            end_and_boot(w, p, 50);
        }
        break;
    case EV_SLIP:
        if (p->up && p->boot == e->boot)
            proc_slip(w, p, e->p);
        free(e->p);
        break;
    }
}

void world_until(struct world *w, int64_t end)
{
    while (!w->failed && w->events > 0 && w->heap[0].at <= end) {
        struct event e = take(w);
        w->now = e.at > w->now ? e.at : w->now;
        dispatch(w, &e);
    }
    w->now = w->now > end ? w->now : end;
}

/* ---- a life ---- */

/* An operator's command, in a process of its own, until it is done. */
static void administer(struct world *w, int job)
{
    struct proc *p = &w->proc[w->procs - 1];
    p->died = false;
    do { /* interrupted, it is begun again */
        proc_end(w, p);
        p->again = p->died;
        p->died = false;
        p->job = job;
        clock_set(w, p, 0);
        p->paused_until = p->cut_until = 0;
        proc_boot(w, p);
        for (int i = 0; i < 1000 && p->up && !w->failed; i++)
            world_until(w, w->now + 100 * MS);
    } while (p->died);
    if (p->up)
        violate(w, "operator", "an operator's command does not end");
    p->job = JOB_SERVE;
}

void world_new(struct world *w, const struct config *max, int procs)
{
    *w = (struct world){ .procs = procs };
    w->proc = calloc((size_t)procs, sizeof *w->proc);
    w->region = calloc((size_t)procs, sizeof *w->region);
    w->truth = calloc(max->slots, sizeof *w->truth);
    w->locked_by = calloc(max->slots, sizeof *w->locked_by);
    for (int i = 0; w->region && i < procs; i++) {
        w->region[i].image = aligned_alloc(64, sizeof(struct image));
        w->region[i].world = w;
        if (!w->region[i].image)
            abort();
    }
    if (!w->proc || !w->region || !w->truth || !w->locked_by)
        abort();
}

void world_free(struct world *w)
{
    store_reset(w);
    for (int i = 0; i < w->procs; i++) {
        free(w->region[i].image);
        free(w->proc[i].saved);
    }
    free(w->store.cell);
    free(w->proc);
    free(w->region);
    free(w->truth);
    free(w->locked_by);
    free(w->heap);
    free(w->id);
}

void world_reset(struct world *w, struct plan *plan)
{
    for (int i = 0; i < w->procs; i++)
        proc_end(w, &w->proc[i]);
    while (w->events > 0) {
        struct event e = take(w);
        drop(&e);
    }
    w->plan = plan;
    w->config = &plan->config;
    w->now = w->config->start_ns;
    w->rng = rand_split(w->config->seed, 3);
    w->healed = w->draining = w->failed = false;
    w->order = 0;
    w->ids = w->calls = 0;
    w->hash = 0;
    w->node_ns = 0;
    store_reset(w);
    oracle_reset(w);
    for (uint32_t i = 0; i < w->config->slots; i++)
        w->locked_by[i] = -1;
    int64_t off = (int64_t)w->config->skew_max_ms / 4;
    for (int i = 0; i < w->procs; i++) {
        struct image *saved = w->proc[i].saved;
        w->region[i].users = 0;
        w->proc[i] = (struct proc){ .id = i, .node = i, .saved = saved };
        w->proc[i].clock.base_t = w->now;
        w->proc[i].clock.base_r = w->now +
                                  (w->config->embedded ? 0 : rand_between(&w->rng, -off, off) * MS);
    }
    if (stamp_plan_init(&w->stamp_plan, &w->config->layout, NULL) != 0)
        abort();
    w->stamp_plan.lease.tick_us = (uint32_t)w->config->tick_ms * 1000;
    if (w->config->tickets)
        tickets_reset(w);
}

/* After a loss that no node could notice, and after damage, an operator recovers the store with all
 * its users stopped, as the runbook says. */
static void operate(struct world *w)
{
    bool whole = store_find(w, META_KEY, META_KEY_LEN) != NULL &&
                 store_now(store_find(w, META_KEY, META_KEY_LEN)) != NULL;
    char key[RECORD_KEY_BUF];
    for (uint32_t i = 0; i < w->config->slots; i++) {
        struct cell *c = store_find(w, key, slot_key(i, key));
        whole &= c && store_now(c);
    }
    bool recover = !whole || oracle_open_zones(w);
    bool restart = recover || (w->config->embedded && w->lost); /* a replaced file needs that */
    for (int i = 0; i < w->procs; i++) {
        struct proc *p = &w->proc[i];
        bool home = i < (int)w->config->nodes;
        enum slot_state s = p->up ? image_of(w, p)->lease.view.state : SLOT_CLOSED;
        if (restart || p->wrong_layout || s == SLOT_HALTED || s == SLOT_CLOSED ||
            s == SLOT_WAIT_CLOCK)
            proc_end(w, p);
        p->wrong_layout = false;
        if (!p->up && home)
            post(w, w->now + 5 * SECOND, EV_BOOT, i, 0, NULL);
    }
    if (recover)
        administer(w, JOB_RECOVER);
}

static void heal(struct world *w)
{
    const struct config *c = w->config;
    int64_t window = (int64_t)(c->window_ms + c->max_drift_ms + 2 * c->skew_max_ms) * MS;
    for (int i = 0; i < w->procs; i++) /* stopped processes come back first */
        world_until(w, w->proc[i].paused_until);
    trace(w, "healed");
    w->healed = true;
    w->store.down_until = 0;
    for (int i = 0; i < w->procs; i++) {
        struct host_clock *k = &w->proc[i].clock;
        clock_set(w, &w->proc[i], 0);
        k->slept_ns -= k->wakes_at > w->now ? k->wakes_at - w->now : 0; /* wakes up now */
        w->proc[i].paused_until = w->proc[i].cut_until = 0;
        if (w->proc[i].up && image_of(w, &w->proc[i])->release)
            w->proc[i].restart_ms = 0;
    }
    world_until(w, w->now + 10 * SECOND);
    w->draining = c->tickets; /* what is under way comes to its end */
    if (c->tickets)
        world_until(w, w->now + 60 * SECOND);
    if (c->tickets || w->failed)
        return;
    /* Slots that a wrong clock left in the future: time has to reach them. */
    int64_t highest = firn_layout_unix_us(&c->layout, oracle_highest(w)) * 1000;
    if (highest > w->now && !c->ends) {
        w->now = highest;
        for (int i = 0; i < w->procs; i++)
            clock_set(w, &w->proc[i], 0);
    }
    operate(w);
    world_until(w, w->now + 2 * window + 2 * (int64_t)c->quarantine_ms * MS + 20 * SECOND);
    if (!w->failed)
        oracle_healed(w);
}

/* A store, and all nodes about to start. */
void world_begin(struct world *w, struct plan *plan)
{
    world_reset(w, plan);
    const struct config *c = w->config;
    if (!c->embedded)
        administer(w, JOB_INIT);
    w->store.made = w->store.serial;
    for (uint32_t i = 0; i < c->nodes; i++)
        post(w, w->now + rand_between(&w->rng, 0, 3000) * MS, EV_BOOT, (int)i, 0, NULL);
}

void world_run(struct world *w, struct plan *plan)
{
    if (plan->config.quorum) {
        quorum_world_run(w, plan);
        return;
    }
    if (plan->config.cluster) {
        cluster_world_run(w, plan);
        return;
    }
    world_begin(w, plan);
    const struct config *c = w->config;
    int64_t begin = w->now;
    for (size_t i = 0; i < plan->count; i++)
        post(w, begin + (int64_t)plan->fault[i].at_ms * MS, EV_FAULT, 0, 0, &plan->fault[i]);
    world_until(w, begin + c->duration_ns);
    if (!w->failed)
        heal(w);
    if (c->tickets && !w->failed)
        tickets_healed(w);
    sometimes.seeds++;
    sometimes.ids += w->ids;
    sometimes.node_ms += (uint64_t)((w->now - begin) / MS) * c->nodes;
}
