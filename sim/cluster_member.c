/*
 * A member of a cluster's world: the core as shipped, the state machine as shipped, the disk's
 * twin, and the part of src/raft that stands between them and a client, as short as it can be: a
 * write is answered when its entry is applied in the term in which it was proposed, a read when the
 * core has shown that this member still leads. A new leader's first entry of its own is the digest
 * of its state.
 */
#include "cluster_in.h"
#include "member_in.h"

struct kmember *k_member(uint64_t id)
{
    for (unsigned i = 0; i < MACHINES; i++)
        if (k.member[i].id == id)
            return &k.member[i];
    return NULL;
}

unsigned k_machine(const struct kmember *m)
{
    return (unsigned)(m - k.member);
}

bool k_running(const struct kmember *m)
{
    return m->up && m->paused_until <= k_now();
}

/* ---- time ---- */

static int64_t local_us(const struct kmember *m)
{
    return m->clock_was + (k_now() - m->clock_at) * m->clock_pm / 1000;
}

uint64_t k_local_ms(const struct kmember *m)
{
    return (uint64_t)local_us(m) / 1000;
}

void k_clock(struct kmember *m, int64_t rate_pm)
{
    m->clock_was = local_us(m);
    m->clock_at = k_now();
    m->clock_pm = rate_pm;
}

/* ---- life ---- */

const struct fsm *k_fsm(const struct kmember *m)
{
    return m->whole ? member_fsm(m->whole) : &m->fsm;
}

void k_boot(struct kmember *m)
{
    struct core_saved_state s;
    struct disk_loaded loaded;
    struct core_opts o = { .id = m->id,
                           .election_ms = (uint32_t)k.c.election_ms,
                           .seed = rand_next(&k.rng) };
    if (m->up || m->id == 0)
        return;
    m->life++;
    if (!k_disk_open(m, &s, &loaded)) {
        m->dying = false;
        m->dies_in = 0;
        k_at(k_now() + 50000, K_BOOT, k_machine(m), m->id, NULL);
        return;
    }
    m->up = true;
    if (!m->restarts) {
        m->clock_was = (int64_t)rand_below(&k.rng, 1000000000);
        m->clock_at = k_now();
    }
    m->applied = m->looked = m->check_term = 0;
    m->waits = 0;
    m->state = CORE_FOLLOWER;
    if (k.c.whole) {
        whole_start(m, &s, &loaded);
        return;
    }
    int r = core_new(&o, &s, k_local_ms(m), &m->core);
    k_disk_loaded_done(m, &loaded);
    if (r != 0) {
        violate(k.w, "load", "member %" PRIu64 " cannot load what it has saved: %d", m->id, r);
        m->up = false;
        return;
    }
    m->term = core_term(m->core);
    trace(k.w,
          "member %" PRIu64 " starts: term %" PRIu64 " vote %" PRIu64 " entries %" PRIu64
          " to %" PRIu64 " snapshot %" PRIu64,
          m->id, core_term(m->core), core_vote(m->core), core_first(m->core), core_last(m->core),
          core_snapshot_index(m->core));
    k_look_started(m);
    /* A first member begins the cluster, and again if nothing of that reached its disk. */
    if (m->id <= k.first && m->disk.term == 0 && m->disk.entries == 0 &&
        core_bootstrap(m->core, &k.main.begun) != 0)
        violate(k.w, "bootstrap", "member %" PRIu64 " cannot begin a cluster", m->id);
    k_at(k_now() + (int64_t)rand_below(&k.rng, TICK_US), K_TICK, k_machine(m), m->life, NULL);
    k_after(m);
}

static void stop(struct kmember *m, bool power)
{
    if (m->whole)
        whole_end(m, power);
    m->up = m->dying = m->corrupt = false;
    m->life++;
    m->dies_in = 0;
    m->waits = 0;
    if (m->restores && !m->id_noted) { /* the folder's identity is the old one */
        m->id = k.disaster.old_id;
        m->name = k.disaster.old_name;
    }
    m->restores = m->restored = false;
    if (!k.c.whole)
        core_free(m->core);
    m->core = NULL;
    fsm_done(&m->fsm);
}

void k_crash(struct kmember *m, bool power, int64_t again_us)
{
    if (!m->up)
        return;
    trace(k.w, "member %" PRIu64 " %s in stage %d with %zu saves under way", m->id,
          power ? "loses its power" : "is killed", m->stage, m->queued);
    sometimes.rc_crashed_writing += m->stage == DISK_WRITING;
    sometimes.rc_crashed_syncing += m->stage == DISK_SYNCING;
    sometimes.rc_crashed_synced += m->stage == DISK_REPORTING;
    stop(m, power);
    k_disk_crash(m, power);
    if (again_us >= 0)
        k_at(k_now() + again_us, K_BOOT, k_machine(m), m->id, NULL);
}

void k_forget(struct kmember *m)
{
    if (m->up)
        stop(m, true);
    k_disk_clear(m);
    m->life++;
    m->id = m->name = 0;
    m->retired = m->founder = m->was_in = m->restores = m->restarts = false;
}

bool k_io(struct kmember *m)
{
    if (m->dying)
        return false;
    if (m->dies_in > 0 && --m->dies_in == 0) {
        m->dying = true;
        sometimes.rc_died_io++;
    }
    return !m->dying;
}

/* ---- what the core wants done ---- */

static void finish(struct kmember *m, size_t i, int result)
{
    struct waiting x = m->wait[i];
    m->wait[i] = m->wait[--m->waits];
    k_answer(m, &x, result);
}

static void answer_writes(struct kmember *m, const struct core_entry *e)
{
    for (size_t i = 0; i < m->waits;) {
        struct waiting *x = &m->wait[i];
        if (x->r.read || x->index != e->index) {
            i++;
            continue;
        }
        if (x->term != e->term) {
            finish(m, i, FIRN_EUNKNOWN);
            continue;
        }
        uint8_t outcome = m->fsm.result_len > 0 ? m->fsm.result[0] : FSM_OTHER;
        if (m->fsm.result_len != 2 || outcome == FSM_OTHER)
            violate(k.w, "apply", "entry %" PRIu64 " of term %" PRIu64 " is not what was proposed",
                    e->index, e->term);
        finish(m, i, outcome == FSM_UNKNOWN ? TOO_OLD : m->fsm.result[1] ? FIRN_ECONFLICT : 0);
    }
}

static void answer_others(struct kmember *m)
{
    bool leads = core_state(m->core) == CORE_LEADER;
    for (size_t i = 0; i < m->waits;) {
        struct waiting *x = &m->wait[i];
        if (x->r.read && x->index == 0 && core_shown(m->core) >= x->number)
            x->index = core_committed(m->core);
        if (!leads || core_term(m->core) != x->term)
            finish(m, i, x->r.read ? FIRN_EAGAIN : FIRN_EUNKNOWN);
        else if (x->r.read && x->index > 0 && m->applied >= x->index)
            finish(m, i, 0);
        else
            i++;
    }
}

static void apply(struct kmember *m, enum core_apply_kind kind, const struct core_applying *a)
{
    if (kind == APPLY_SNAPSHOT) {
        if (fsm_restore(&m->fsm, a->snapshot->bytes, a->snapshot->len) != 0)
            violate(k.w, "restore", "member %" PRIu64 " cannot read the snapshot of %" PRIu64,
                    m->id, a->snapshot->index);
        if (a->snapshot->index < m->applied)
            violate(k.w, "restore", "member %" PRIu64 " goes back from %" PRIu64 " to %" PRIu64,
                    m->id, m->applied, a->snapshot->index);
        m->applied = a->snapshot->index;
        k_look_restored(m, a->snapshot);
        return;
    }
    const struct core_entry *e = &a->entry;
    if (e->index != m->applied + 1)
        violate(k.w, "apply", "member %" PRIu64 " applies %" PRIu64 " after %" PRIu64, m->id,
                e->index, m->applied);
    m->applied = e->index;
    m->fsm.result_len = 0;
    if (e->type == ENTRY_DATA && fsm_apply(&m->fsm, e->bytes, e->len) != 0)
        violate(k.w, "apply", "entry %" PRIu64 " cannot be applied", e->index);
    k_look_applied(m, e);
    answer_writes(m, e);
}

static bool make_snapshot(struct kmember *m)
{
    if (m->applied < core_snapshot_index(m->core) + k.c.snapshot_every)
        return false;
    for (size_t i = 0; i < m->queued; i++)
        if (m->queue[i].snapshot)
            return false;
    size_t size = fsm_snapshot_size(&m->fsm);
    char *p = malloc(size);
    if (!p || fsm_snapshot(&m->fsm, p, size) != 0)
        abort();
    bool made = core_snapshot(m->core, p, size, k.c.snapshot_keep) == 0;
    sometimes.rc_snapshot += made;
    free(p);
    return made;
}

/* Nothing of a new leader's may be between its digest and what the digest is of. */
static bool propose_check(struct kmember *m)
{
    char room[FSM_CHECK_BYTES];
    if (!core_leads(m->core) || !core_settled(m->core) || m->check_term == core_term(m->core) ||
        core_last(m->core) != m->applied)
        return false;
    fsm_entry_check(room, core_term(m->core), &m->fsm);
    if (core_propose(m->core, room, sizeof room, &m->check_index) != 0)
        return false;
    m->check_term = core_term(m->core);
    return true;
}

void k_after(struct kmember *m)
{
    struct core_save s;
    struct core_message msg;
    struct core_applying a;
    enum core_apply_kind kind;
    for (bool more = true; more && !k.w->failed;) {
        while (core_save(m->core, &s)) {
            k_look_save(m, &s);
            if (!k_io(m))
                return;
            k_disk_take(m, &s);
        }
        while (core_send(m->core, &msg)) {
            k_look_send(m, &msg);
            if (!k_io(m))
                return;
            k_send(m, &msg);
        }
        k_look(m);
        while ((kind = core_apply(m->core, &a)) != APPLY_NONE && !k.w->failed)
            apply(m, kind, &a);
        more = propose_check(m) || make_snapshot(m);
    }
    if (!k.w->failed)
        answer_others(m);
}

/* ---- clients ---- */

static size_t entry_of(const struct request *r, char *room, size_t cap)
{
    char body[256], old[16], new[16];
    struct frame_out o = { .p = body, .cap = sizeof body };
    struct firn_cas want = { .key = k_key(r->reg) };
    struct fsm_entry e;
    int n = snprintf(new, sizeof new, "%u", r->new);
    want.value = firn_slice(new, (size_t)n);
    n = snprintf(old, sizeof old, "%u", r->old);
    want.old = r->old ? firn_slice(old, (size_t)n) : (struct firn_slice){ NULL, 0 };
    frame_u64(&o, 0);
    frame_u64(&o, r->nonce[0]);
    frame_u64(&o, r->nonce[1]);
    frame_u64(&o, r->since);
    frame_u8(&o, r->again);
    frame_cas(&o, &want, 1);
    fsm_entry_begin(&e, room, cap);
    if (o.full || !fsm_entry_add(&e, body, o.len))
        abort();
    return fsm_entry_end(&e);
}

void k_asked(struct kmember *m, const struct letter *l)
{
    char room[512];
    struct waiting x = { .r = l->request, .term = core_term(m->core), .client = l->from };
    bool ready = m->waits < PENDING_MAX &&
                 (x.r.read || (core_leads(m->core) && core_settled(m->core) &&
                               m->check_term == x.term && m->applied >= m->check_index));
    if (ready && x.r.read) {
        x.number = core_ask(m->core);
        ready = x.number != 0;
    } else if (ready) {
        size_t len = entry_of(&x.r, room, sizeof room);
        ready = core_propose(m->core, room, len, &x.index) == 0;
    }
    if (!ready) {
        k_answer(m, &x, FIRN_EAGAIN);
        return;
    }
    m->wait[m->waits++] = x;
    k_after(m);
}
