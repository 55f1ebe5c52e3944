/*
 * A whole member on its machine: src/raft/member.h as firnd's node runs it (raft/node.c), with the
 * disk's twin (cluster_disk.c) behind raft/disk.h. The folder's identity is kept beside the disk:
 * the id, and the name of the cluster.
 */
#include "member_in.h"

#include <stdio.h>

struct disk {
    struct kmember *m;
};

void whole_address(unsigned machine, char out[32])
{
    snprintf(out, 32, "127.0.0.1:%u", 10001 + machine);
}

/* ---- raft/disk.h ---- */

int disk_save(struct disk *disk, const struct core *c, const struct core_save *s)
{
    struct kmember *m = disk->m;
    m->core = (struct core *)c; /* also of a member that is just being started */
    if (!k_io(m))
        return 0;
    k_look_save(m, s);
    if (s->snapshot)
        k_look_snapshot(m, s->snapshot);
    sometimes.rc_installed += s->snapshot && s->log_first == s->truncate;
    k_disk_take(m, s);
    return 0;
}

uint64_t disk_saved(const struct disk *disk)
{
    return disk->m->saved;
}

bool disk_problem(struct disk *disk, char *why, size_t cap)
{
    if (disk->m->full)
        snprintf(why, cap, "no space left on the device");
    return disk->m->full;
}

/* ---- what the member does is looked at ---- */

static struct kmember *starting;

static struct kmember *of_core(const struct core *c)
{
    for (unsigned i = 0; i < MACHINES; i++)
        if (k.member[i].core == c)
            return &k.member[i];
    return NULL;
}

/* The member takes the next entry: it has applied the one before. */
enum core_apply_kind k_core_apply(struct core *c, struct core_applying *out)
{
    struct kmember *m = starting ? starting : of_core(c);
    m->core = c;
    if (m == starting && m->term == 0)
        m->term = core_term(c);
    if (!m->dying)
        k_look(m);
    uint64_t before = m->applied;
    m->applied = core_applied(c);
    if (m->whole && m->applied != before)
        k_look_state(m);
    enum core_apply_kind kind = core_apply(c, out);
    if (kind == APPLY_ENTRY && out->entry.index < INDEX_MAX) {
        const struct truth *t = &m->side->truth[out->entry.index];
        if (!m->dying && (!t->set || t->term != out->entry.term))
            violate(k.w, "apply", "member %" PRIu64 " applies entry %" PRIu64 " too early", m->id,
                    out->entry.index);
    }
    if (kind == APPLY_SNAPSHOT && m->looked < out->snapshot->index)
        m->looked = out->snapshot->index;
    return kind;
}

void whole_enter(struct kmember *m)
{
    /* What is fenced with a clock that is minutes ahead is not stamped for minutes. */
    int64_t wrong = k.c.disaster ? m->wall_us % CLOCK_WRONG_US : m->wall_us;
    member_time(m->whole, k_local_ms(m),
                (uint64_t)(INT64_C(1700000000000000) + k_now() + wrong) / 1000);
}

static void looks(struct kmember *m)
{
    const struct node_view *v = member_view(m->whole);
    if (k.w->failed || m->dying)
        return;
    k_look(m);
    uint64_t name = member_cluster(m->whole);
    m->was_in |= name != 0;
    if (!m->restores && !m->side->name)
        m->side->name = name;
    if (!m->restores && name && name != m->side->name)
        violate(k.w, "name", "member %" PRIu64 " belongs to another cluster", m->id);
    sometimes.rm_differs += v->differs;
    if (v->differs && !k.c.corrupts)
        violate(k.w, "digest", "member %" PRIu64 ": the leader has other registers", m->id);
    sometimes.rm_stalled += v->stalled;
    sometimes.rm_told_removed += v->removed;
}

static void settle(struct kmember *m)
{
    member_settle(m->whole);
    looks(m);
}

void whole_left(struct kmember *m)
{
    looks(m);
    if (m->settles)
        return;
    if (!k.c.lazy) {
        settle(m);
    } else {
        m->settles = true;
        k_at(k_now() + (int64_t)rand_below(&k.rng, 500), K_SETTLE, k_machine(m), m->life, NULL);
    }
}

void whole_tick(struct kmember *m)
{
    whole_enter(m);
    member_tick(m->whole);
    looks(m);
    if (member_cluster(m->whole) && !m->full) { /* else at the next tick again */
        if (m->restores && !m->id_noted && rand_chance(&k.rng, 50))
            m->dies_in = 1; /* at its next step of I/O */
        m->name = member_cluster(m->whole);
        m->id_noted = true; /* in the same file */
    }
    if (m->restored && !m->full && !m->dying)
        lost_noted(m);
}

void whole_saved(struct kmember *m, uint64_t number)
{
    if (number > m->saved)
        m->saved = number;
    whole_enter(m);
    whole_left(m);
}

bool whole_happen(struct kevent *e)
{
    struct kmember *m = e->who < MACHINES ? &k.member[e->who] : NULL;
    switch (e->kind) {
    case K_SETTLE:
    case K_TAKE:
        if (e->kind == K_SETTLE && (!m->up || m->life != e->token))
            return true;
        if (m->up && m->paused_until > k_now()) {
            k_at(m->paused_until, e->kind, e->who, e->token, e->letter);
            return false;
        }
        if (e->kind == K_TAKE) {
            whole_take(m, e->letter);
        } else {
            m->settles = false;
            whole_enter(m);
            settle(m);
        }
        return true;
    case K_ANSWER:
        whole_answered(e->letter);
        return true;
    case K_WAKE:
        client_resume(e->who, e->token);
        return true;
    default:
        return wires_happen(e);
    }
}

/* ---- life ---- */

static void say(void *user, enum node_level level, const char *event, const char *text)
{
    struct kmember *m = user;
    (void)level;
    sometimes.rm_replaced += strcmp(event, "member_replaced") == 0;
    sometimes.rm_met += strcmp(event, "foreign_member") == 0;
    sometimes.rm_joined += strcmp(event, "members_changed") == 0 && strstr(text, "voter") != NULL;
    trace(k.w, "member %" PRIu64 " says %s: %s", m->id, event, text);
}

static void restored(void *user)
{
    struct kmember *m = user;
    k.disaster.fsm = member_fsm(m->whole);
    lost_named(m);
}

void whole_start(struct kmember *m, const struct core_saved_state *s, struct disk_loaded *loaded)
{
    char address[MACHINES][32];
    const char *join[MACHINES];
    struct firn_diag d = { 0 };
    unsigned self = k_machine(m), n = 0;
    for (unsigned i = 0; i < MACHINES; i++) {
        whole_address(i, address[i]);
        if (i != self && k.member[i].side == m->side && (i < k.c.members || !m->founder))
            join[n++] = address[i];
    }
    if (!m->twin)
        m->twin = calloc(1, sizeof *m->twin);
    if (!m->wires)
        m->wires = calloc(1, sizeof *m->wires);
    if (!m->twin || !m->wires)
        abort();
    m->twin->m = m->wires->m = m;
    loaded->state = *s;
    loaded->any = s->term > 0 || s->entries > 0 || s->snapshot;
    bool founds = m->founder && !m->restores;
    struct member_opts o = { .id = m->id,
                             .random = rand_next(&k.rng) | 1,
                             .cluster = m->name,
                             .address = address[self],
                             .newcomer = m->name == 0,
                             .init = founds,
                             .fresh = true,
                             .join = join,
                             .restore = m->restores,
                             .join_n = m->restores || (founds && k.c.alone) ? 0 : n,
                             .standby = m->standby,
                             .election_ms = (uint32_t)k.c.election_ms,
                             .snapshot_every = (uint32_t)k.c.snapshot_every,
                             .snapshot_keep = k.c.snapshot_keep ? (uint32_t)k.c.snapshot_keep : 1,
                             .wires = m->wires,
                             .disk = m->twin,
                             .loaded = loaded,
                             .say = say,
                             .restored = restored,
                             .user = m };
    m->saved = m->term = 0;
    m->full = m->settles = false;
    m->applied = 0;
    m->core = NULL;
    starting = m;
    int r = member_start(&o, k_local_ms(m), 1, &m->whole, &d);
    starting = NULL;
    k_disk_loaded_done(m, loaded);
    if (r != 0) {
        violate(k.w, "load", "member %" PRIu64 " cannot start: %s", m->id, d.text);
        m->up = false;
        m->whole = NULL;
        return;
    }
    m->core = (struct core *)member_core(m->whole);
    m->term = core_term(m->core);
    trace(k.w, "member %" PRIu64 " starts on machine %u: term %" PRIu64 ", entries to %" PRIu64,
          m->id, self, core_term(m->core), core_last(m->core));
    k_look_started(m);
    k_at(k_now() + (int64_t)rand_below(&k.rng, TICK_US), K_TICK, self, m->life, NULL);
    if (self < FIRNDS && k.c.firnds && !m->restarts)
        whole_firnd_begin(self);
    m->restarts = false;
}

void whole_end(struct kmember *m, bool power)
{
    sometimes.rm_forwarded += member_view(m->whole)->forwarded[0] +
                              member_view(m->whole)->forwarded[1];
    sometimes.rc_snapshot += member_view(m->whole)->snapshots;
    if (k_machine(m) < FIRNDS && !m->restarts)
        whole_firnd_end(k_machine(m));
    m->dying = true; /* nothing goes out any more */
    wires_crash(m, power);
    member_end(m->whole);
    m->whole = NULL;
    m->core = NULL;
}

/* ---- at the end ---- */

/* Who never was removed is a member, with a vote if it wants one. */
const char *whole_not_healed(const struct side *of, const struct core_config *c)
{
    for (unsigned i = 0; i < MACHINES; i++) {
        const struct kmember *m = &k.member[i];
        const struct core_member *in = config_member(c, m->id);
        if (m->id == 0 || m->side != of || !m->up || (!in && m->side->removed[m->id] > 0))
            continue;
        if (!in)
            return "a process has not joined";
        if (!client_healed(i))
            return "a client gets no ticket";
        if (k.c.firnds && !firnd_healed(i))
            return "a firnd gives no ticket";
        if (in->role != CORE_VOTER && !m->standby && m->side->removed[m->id] == 0)
            return "a member has no vote yet";
    }
    return NULL;
}
