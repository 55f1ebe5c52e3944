/*
 * The turns of the thread that owns a store. Jobs come first: a commit that fails tells the lease
 * what to look at. Tests: tests/unit/drive/serve.c; the simulator runs it with faults.
 */
#include "drive/serve.h"
#include "coord/mutant.h"
#include "drive/keyed.h"
#include "drive/setup.h"
#include "id/diag.h"
#include "id/minmax.h"

enum {
    SWEEP_S_MIN = 1, /* all keys are looked at once in a 24th of the retention, within these */
    SWEEP_S_MAX = 3600,
    SWEEP_MS_MIN = 10, /* between two steps of that */
    SWEEP_LATER_MS = 1000,
    NS_PER_S = 1000000000,
};

void serve_now(const struct lease *l, int64_t mono_ns, struct group_now *out)
{
    out->ms = (uint64_t)mono_ns / 1000000;
    out->s = clock_f_at(&l->clock, mono_ns) / NS_PER_S;
    out->clock = l->clock.state != CLOCK_WAIT;
    out->gate = l->view.gate;
    out->gate_error = l->view.error;
    out->held = l->view.held;
    out->gate_why = l->view.diag.text;
}

static struct group_now now(struct serve *s)
{
    struct group_now t;
    s->world.now(s->world.user, &t);
    return t;
}

static bool is_open(const struct serve *s)
{
    return s->lease->view.gate == LEASE_GATE_OPEN;
}

static struct job *run_jobs(struct serve *s, struct job *jobs)
{
    struct job *again = group_serve(s->group, s->tickets, &s->world, jobs);
    bool pause = s->group->failed || s->group->waits;
    s->retry_ms = pause ? now(s).ms + RETRY_PAUSE_MS : 0;
    if (s->group->doubted) { /* the slot's next write would notice it only in a while */
        lease_doubt(s->lease);
        s->step_ms_ = 0;
    }
    return again;
}

static void step_lease(struct serve *s)
{
    void *user = s->world.user;
    s->step_ms_ = lease_step(s->lease, s->last ? s->last(user) : 0);
    if (s->publish)
        s->publish(user);
    if (is_open(s) || FIRN_MUTANT(tk_blocks_kept))
        return;
    if (s->world.lock)
        s->world.lock(user);
    seq_table_drop(s->tickets->table); /* another server may be granted them by what is there now */
    if (s->world.unlock)
        s->world.unlock(user);
}

/* Remove some of the keys that are older than the retention. */
static uint64_t sweep(struct serve *s)
{
    struct group_now t = now(s);
    uint64_t every_s = min64(max64(s->retention_s / 24, SWEEP_S_MIN), SWEEP_S_MAX);
    uint64_t every_ms = max64(every_s * 1000 / KEYED_PARTS, SWEEP_MS_MIN);
    uint64_t now_s = t.s > 0 ? (uint64_t)t.s : 0, retention = s->retention_s;
    struct firn_diag d = { 0, "" };
    size_t removed = 0;
    bool more = false;
    if (FIRN_MUTANT(tk_swept_early))
        retention /= 16;
    if (!is_open(s) || !t.clock || now_s < retention)
        return t.ms + SWEEP_LATER_MS;
    int r = keyed_sweep(s->tickets->store, s->part_, now_s - retention, &removed, &more, &d);
    s->keys_removed += removed;
    if (r)
        return now(s).ms + SWEEP_LATER_MS; /* the store fails */
    s->part_ = (s->part_ + !more) % KEYED_PARTS;
    return now(s).ms + (more ? SWEEP_MS_MIN : every_ms);
}

struct job *serve_turn(struct serve *s, struct job *jobs)
{
    struct job *again = jobs ? run_jobs(s, jobs) : NULL;
    bool hurry = s->hurry && s->hurry(s->world.user);
    if (hurry || now(s).ms >= s->step_ms_)
        step_lease(s);
    if (now(s).ms >= s->sweep_ms_)
        s->sweep_ms_ = sweep(s);
    s->due_ms = min64(s->step_ms_, s->sweep_ms_);
    return again;
}

int serve_may_create(struct serve *s, struct firn_diag *d)
{
    const struct lease *l = s->lease;
    struct meta_record m;
    if ((!l->born_ && !l->found_) || FIRN_MUTANT(tk_created_anywhere))
        return 0; /* a new file: its records are made as soon as there is a clock */
    int r = setup_read_meta(s->tickets->store, &m, NULL, d);
    if (r == 0 && nonce_eq(&m.cluster, l->born_ ? &l->node.params.cluster : &l->meta.cluster))
        return 0;
    if (r != 0 && r != FIRN_ENOENT)
        return r;
    return firn__diag(d, FIRN_ESTORE, 0,
                      "the store's records are gone, so no sequence begins there: restore it, or "
                      "`firn admin init --recover`");
}

uint64_t serve_end(struct serve *s, uint64_t until_ms)
{
    return is_open(s) ? ticket_give_back(s->tickets, until_ms) : 0;
}
