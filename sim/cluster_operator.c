/*
 * The operator of a cluster's world, who adds, promotes, demotes and removes members, hands the
 * lead over, and replaces machines whose disk is lost: such a machine comes back as another member,
 * with another id. The operator asks any member that believes to lead, also one that no longer
 * does, and more than one at once.
 */
#include "cluster_in.h"
#include "member_in.h"

static bool is_dead(uint64_t id)
{
    return id >= IDS_MAX || k.id[id].dead;
}

static bool keeps(const struct core_config *c, uint64_t without)
{
    unsigned voters = 0, there = 0;
    for (unsigned i = 0; i < c->count; i++) {
        uint64_t id = c->member[i].id;
        voters += c->member[i].role == CORE_VOTER;
        there += c->member[i].role == CORE_VOTER && id != without && !is_dead(id);
    }
    return there > voters / 2;
}

/* The newest configuration of a member's log that is not known to be committed. */
static bool newest_in(const struct kmember *m, struct core_config *out)
{
    struct core_entry e;
    if (m->up) {
        for (uint64_t i = core_last(m->core); i > k.main.config_index && i >= core_first(m->core);
             i--)
            if (core_entry_at(m->core, i, &e) && e.type == ENTRY_CONFIG)
                return config_read(e.bytes, e.len, out) == 0;
        return false;
    }
    for (size_t n = m->disk.entries; n > 0 && m->disk.entry[n - 1].index > k.main.config_index; n--)
        if (m->disk.entry[n - 1].type == ENTRY_CONFIG)
            return config_read(m->disk.entry[n - 1].bytes, m->disk.entry[n - 1].len, out) == 0;
    return false;
}

bool k_survives(uint64_t without)
{
    static struct core_config c;
    bool all = keeps(&k.main.config, without);
    for (unsigned i = 0; i < MACHINES; i++)
        if (k.member[i].id && k.member[i].side == &k.main && newest_in(&k.member[i], &c))
            all = all && keeps(&c, without);
    return all;
}

void k_errand(struct side *at, enum errand_kind kind, uint64_t id)
{
    if (k.errands < ERRANDS_MAX && id != 0)
        k.errand[k.errands++] = (struct errand){ kind, id, k_now() + 3000000, at };
}

/* The configuration after the errand; false: there is nothing to change. */
static bool changed(const struct errand *e, const struct core_config *from, struct core_config *to)
{
    unsigned at = 0;
    *to = *from;
    while (at < to->count && to->member[at].id != e->id)
        at++;
    bool there = at < to->count;
    switch (e->kind) {
    case ERRAND_ADD:
        if (there || to->count == CORE_MEMBERS_MAX)
            return false;
        to->member[to->count] = (struct core_member){ .id = e->id, .role = CORE_STANDBY };
        snprintf(to->member[to->count++].address, sizeof to->member[0].address, "m%" PRIu64, e->id);
        return true;
    case ERRAND_PROMOTE:
    case ERRAND_DEMOTE: {
        enum core_role role = e->kind == ERRAND_PROMOTE ? CORE_VOTER : CORE_STANDBY;
        if (!there || to->member[at].role == role)
            return false;
        to->member[at].role = role;
        return true;
    }
    case ERRAND_REMOVE:
        if (!there)
            return false;
        memmove(&to->member[at], &to->member[at + 1], (to->count - at - 1) * sizeof to->member[0]);
        to->count--;
        return true;
    case ERRAND_TRANSFER:
        break;
    }
    return false;
}

static void request(struct kmember *m, const struct errand *e)
{
    static struct core_config to;
    uint64_t index;
    bool removes_leader = e->kind == ERRAND_REMOVE && e->id == m->id;
    if (!changed(e, core_config(m->core), &to))
        return;
    bool second = core_changing(m->core);
    int r = core_change(m->core, &to, &index);
    trace(k.w, "operator: errand %d for %" PRIu64 " at %" PRIu64 ": %d", e->kind, e->id, m->id, r);
    if (r == 0 && second)
        violate(k.w, "change",
                "leader %" PRIu64 " changes the members before its last change is "
                "committed",
                m->id);
    if (r == 0 && k.main.truth[core_committed(m->core)].term != core_term(m->core))
        violate(k.w, "change",
                "leader %" PRIu64 " changes the members before it has committed in "
                "term %" PRIu64,
                m->id, core_term(m->core));
    sometimes.rc_change += r == 0;
    sometimes.rc_change_second += r != 0 && second;
    sometimes.rc_change_unheard += r == FIRN_ECONFLICT;
    sometimes.rc_leader_removed += r == 0 && removes_leader;
    k_after(m);
}

bool k_errand_done(const struct errand *e)
{
    const struct core_member *c = config_member(&e->at->config, e->id);
    switch (e->kind) {
    case ERRAND_ADD:
        return c != NULL;
    case ERRAND_PROMOTE:
        return c && c->role == CORE_VOTER;
    case ERRAND_DEMOTE:
        return c && c->role == CORE_STANDBY;
    case ERRAND_REMOVE:
        return !c;
    case ERRAND_TRANSFER: /* the answer ends it */
        return false;
    }
    return true;
}

/* A machine whose member was removed may be switched off. */
static void retire(void)
{
    for (unsigned i = 0; i < MACHINES; i++) {
        struct kmember *m = &k.member[i];
        if (!m->id || m == k.disaster.survivor || config_member(&m->side->config, m->id) ||
            !m->retired || k.healing || (k.c.whole && m->side->removed[m->id] == 0) ||
            !rand_chance(&k.rng, 5))
            continue;
        bool wanted = false;
        for (size_t j = 0; j < k.errands; j++)
            wanted |= k.errand[j].id == m->id && k.errand[j].kind == ERRAND_ADD;
        if (wanted)
            continue;
        k.id[m->id].dead = true;
        trace(k.w, "operator: member %" PRIu64 " is switched off for good", m->id);
        k_forget(m);
    }
}

void k_operate(void)
{
    for (size_t i = 0; i < k.errands;) {
        struct errand e = k.errand[i];
        if (k_errand_done(&e) || (k_now() > e.until && !k.healing)) {
            struct kmember *m = k_member(e.id);
            if (m && e.at == m->side && e.kind == ERRAND_REMOVE && k_errand_done(&e))
                m->retired = true;
            memmove(&k.errand[i], &k.errand[i + 1], (--k.errands - i) * sizeof e);
            continue;
        }
        unsigned from = (unsigned)rand_below(&k.rng, MACHINES);
        for (unsigned n = 0; n < MACHINES; n++) {
            struct kmember *m = &k.member[(from + n) % MACHINES];
            if (m->side != e.at)
                continue;
            if (k.c.whole ? !m->up : !k_running(m) || core_state(m->core) != CORE_LEADER)
                continue;
            if (k.c.whole)
                whole_change(m, &e);
            else
                request(m, &e);
            if (k.w->failed || rand_chance(&k.rng, 50))
                break;
        }
        i++;
    }
    retire();
    if (k.c.whole)
        lost_operate();
}

static struct kmember *any_leader(void)
{
    unsigned from = (unsigned)rand_below(&k.rng, MACHINES);
    for (unsigned n = 0; n < MACHINES; n++) {
        struct kmember *m = &k.member[(from + n) % MACHINES];
        if (m->side == &k.main && k_running(m) && core_leads(m->core))
            return m;
    }
    return NULL;
}

/* The machine's disk is lost. */
static void wipe(struct kmember *m)
{
    uint64_t old = m->id;
    if (old == 0 || m->side != &k.main || k.next_id + 1 >= IDS_MAX || !k_survives(old))
        return;
    bool founder = m->founder && !k.c.alone;
    bool voter = config_member(&k.main.config, old) &&
                 config_member(&k.main.config, old)->role == CORE_VOTER;
    sometimes.rc_wiped++;
    k_forget(m);
    m->id = old;
    if (!SIM_MUTANT(rc_amnesia)) {
        k.id[old].dead = true;
        m->id = ++k.next_id;
        if (k.c.whole) { /* it joins by itself, and replaces the old one at its address */
            m->standby = !voter;
            m->founder = founder; /* cluster.init is still set */
        } else {
            k_errand(m->side, ERRAND_REMOVE, old);
            k_errand(m->side, ERRAND_ADD, m->id);
            if (voter)
                k_errand(m->side, ERRAND_PROMOTE, m->id);
        }
    }
    k_at(k_now() + (int64_t)rand_below(&k.rng, 300000), K_BOOT, k_machine(m), m->id, NULL);
}

void k_operator_fault(const struct fault *f)
{
    struct kmember *m = &k.member[f->node % MACHINES], *leader = any_leader();
    switch ((enum fault_kind)f->kind) {
    case FAULT_rc_add:
        if (m->id == 0 && k.next_id + 1 < IDS_MAX) {
            m->id = ++k.next_id;
            m->standby = !f->arg;
            k_boot(m);
            if (k.c.whole) /* it asks by itself */
                break;
            k_errand(m->side, ERRAND_ADD, m->id);
            if (f->arg)
                k_errand(m->side, ERRAND_PROMOTE, m->id);
        } else {
            k_errand(m->side, ERRAND_ADD, m->id); /* one that was removed, and is still there */
        }
        break;
    case FAULT_rc_promote:
        k_errand(m->side, ERRAND_PROMOTE, m->id);
        break;
    case FAULT_rc_demote:
        k_errand(m->side, k.c.whole ? ERRAND_PROMOTE : ERRAND_DEMOTE,
                 m->id); /* no request demotes */
        break;
    case FAULT_rc_remove:
        k_errand(m->side, ERRAND_REMOVE, m->id);
        break;
    case FAULT_rc_remove_lead:
        if (leader)
            k_errand(leader->side, ERRAND_REMOVE, leader->id);
        break;
    case FAULT_rc_transfer:
        if (k.c.whole) {
            k_errand(m->side, ERRAND_TRANSFER, m->id);
        } else if (leader) {
            int r = core_transfer(leader->core, f->arg ? m->id : 0);
            trace(k.w, "operator: transfer from %" PRIu64 ": %d", leader->id, r);
            sometimes.rc_transfer += r == 0;
            k_after(leader);
        }
        break;
    case FAULT_rc_wipe:
        wipe(m);
        break;
    case FAULT_rc_mistake:
    case FAULT_rc_disaster:
    case FAULT_rc_corrupt:
        lost_fault(f);
        break;
    default:
        break;
    }
    if (f->arg % 2 == 0) /* at once, not when the operator next looks */
        k_operate();
}
