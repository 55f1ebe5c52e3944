/*
 * Worlds of whole members in which more goes wrong than a cluster is made for.
 *
 * Two clusters meet: an operator takes a member of one for a member of the other, and adds it
 * there. Each cluster keeps its members, its log and its name, and both serve.
 *
 * A majority is lost for good: one member goes on alone, as firn cluster remove --force has it
 * (raft/force.c): ended, and started again as the only member of a cluster with another name. The
 * other machines come back with empty folders and join; in some worlds one comes back with its old
 * folder, which is no majority of the old cluster. What only lost members had acknowledged may come
 * again, so the history of tickets begins anew; no slot stamps a tick twice all the same.
 *
 * A disk that stays full: the member leads no longer, and writes go on.
 *
 * Registers that change: a ticket of a follower goes back in its memory. It must not be given
 * again, whoever leads.
 */
#include "member_in.h"

#include "store/map.h"

#include <stdio.h>

enum { CURE_US = 6000000, DEATHS = 2 };

/* ---- two clusters meet ---- */

static void mistake(const struct kmember *m, bool promote)
{
    struct side *at = m->side == &k.main ? &k.other : &k.main;
    if (!k.c.meets || m->id == 0 || m->name == 0) /* one that is no member yet may join any */
        return;
    sometimes.rm_mistaken++;
    k_errand(at, ERRAND_ADD, m->id);
    if (promote)
        k_errand(at, ERRAND_PROMOTE, m->id);
}

/* ---- registers that change ---- */

static void corrupt(struct kmember *m, unsigned reg)
{
    char old[16], new[16];
    int result = 0;
    if (!k.c.corrupts || !m->up || m->side != &k.main || core_state(m->core) == CORE_LEADER)
        return;
    for (unsigned i = 0; i < MACHINES; i++)
        if (k.member[i].corrupt) /* else they might agree */
            return;
    uint32_t value = k_value(k_fsm(m), reg);
    if (value == 0)
        return;
    struct firn_cas want = { .key = k_key(reg) };
    want.old = firn_slice(old, (size_t)snprintf(old, sizeof old, "%u", value));
    want.value = firn_slice(new, (size_t)snprintf(new, sizeof new, "%u", value - 1));
    struct map *map = (struct map *)&k_fsm(m)->map; /* as a bug or a bit would */
    if (map_cas(map, &want, 1, &result) != 0 || result != 0)
        abort();
    m->corrupt = true;
    sometimes.rm_corrupted++;
    trace(k.w, "member %" PRIu64 " has register %u at %u in place of %u", m->id, reg, value - 1,
          value);
}

/* The cure that the log names. The others can serve before that, unless one more is lost. */
static void replace_corrupt(void)
{
    for (unsigned i = 0; i < MACHINES; i++)
        if (k.member[i].corrupt && (k.healed_writes > 0 || k_now() > k.healing_since + CURE_US))
            k_crash(&k.member[i], false, 50000);
}

/* ---- a disk that stays full ---- */

/* Voters that run, of those that this member counts. */
static unsigned voters_up(const struct kmember *of)
{
    const struct core_config *c = core_config(of->core);
    unsigned n = 0;
    for (unsigned i = 0; i < c->count; i++) {
        const struct kmember *m = k_member(c->member[i].id);
        n += c->member[i].role == CORE_VOTER && m && m->side == of->side && m->up;
    }
    return n;
}

/* The leader's, at the end of the faults, if the others have a majority. */
void lost_begin_healing(void)
{
    struct kmember *leader = NULL;
    for (unsigned i = 0; i < MACHINES; i++) {
        struct kmember *m = &k.member[i];
        if (m->side == &k.main && m->up && core_state(m->core) == CORE_LEADER &&
            (!leader || m->term > leader->term))
            leader = m;
    }
    if (!k.c.full_end || !leader || !k_survives(leader->id))
        return;
    leader->full_until = INT64_MAX;
    k.full = leader;
    sometimes.rm_full_leads++;
}

static bool leads_elsewhere(const struct kmember *than)
{
    for (unsigned i = 0; i < MACHINES; i++) {
        const struct kmember *m = &k.member[i];
        if (m != than && m->side == &k.main && m->up && core_settled(m->core) &&
            m->term >= than->term)
            return true;
    }
    return false;
}

/* Then there is room again. */
static const char *stays_full(void)
{
    if (!k.full)
        return NULL;
    /* Two voters need both disks; one of three may have been removed when it began. */
    bool must = k.full->up && voters_up(k.full) >= 3;
    if (must && !leads_elsewhere(k.full))
        return "a member whose disk is full does not hand over";
    if (must && k.healed_writes == 0)
        return "a disk is full, and no write is committed";
    k.full->full_until = 0;
    k.full = NULL;
    return NULL;
}

/* ---- a majority is lost for good ---- */

static bool majority_alone(const struct core_config *c, uint64_t id)
{
    const struct core_member *m = config_member(c, id);
    unsigned voters = 0;
    for (unsigned i = 0; i < c->count; i++)
        voters += c->member[i].role == CORE_VOTER;
    return m && m->role == CORE_VOTER && voters == 1;
}

/* Whether any configuration that some member has would let it lead alone. */
static bool may_lead_alone(uint64_t id)
{
    bool may = majority_alone(&k.main.config, id);
    for (unsigned i = 0; i < MACHINES; i++)
        if (k.member[i].up && k.member[i].side == &k.main)
            may |= majority_alone(core_config(k.member[i].core), id);
    return may;
}

static struct kmember *pick_survivor(bool longest)
{
    struct kmember *s = NULL;
    unsigned from = (unsigned)rand_below(&k.rng, MACHINES);
    for (unsigned n = 0; n < MACHINES; n++) {
        struct kmember *m = &k.member[(from + n) % MACHINES];
        if (!m->up || m->side != &k.main || m->name == 0 ||
            !config_member(core_config(m->core), m->id) || !config_member(&k.main.config, m->id) ||
            may_lead_alone(m->id))
            continue;
        if (!s || (longest && core_last(m->core) > core_last(s->core)))
            s = m;
    }
    return s;
}

static struct kmember *pick_returning(const struct kmember *survivor)
{
    for (unsigned i = 0; i < MACHINES; i++) {
        struct kmember *m = &k.member[i];
        if (m != survivor && m->up && m->side == &k.main && m->name != 0 &&
            config_member(&k.main.config, m->id) && !may_lead_alone(m->id))
            return m;
    }
    return NULL;
}

static void lose(struct kmember *m)
{
    if (m->id == 0)
        return;
    k.id[m->id].dead = true;
    k_forget(m);
}

static void disaster(int64_t arg)
{
    struct disaster *d = &k.disaster;
    if (!k.c.disaster || d->survivor || k.main.config.count < 2)
        return;
    struct kmember *s = pick_survivor(arg & 1), *back = s && arg & 2 ? pick_returning(s) : NULL;
    if (!s)
        return;
    trace(k.w, "disaster: %" PRIu64 " survives", s->id);
    *d = (struct disaster){ .survivor = s, .returns = back };
    sometimes.rm_disaster++;
    for (unsigned i = 0; i < MACHINES; i++) {
        struct kmember *m = &k.member[i];
        if (m == s || m->side != &k.main)
            continue;
        k_crash(m, true, -1);
        if (m != back)
            lose(m);
    }
    k.errands = 0;
}

/* What the old cluster's members know stays true for the one that comes back. */
static void new_cluster(struct kmember *s, uint64_t committed)
{
    struct disaster *d = &k.disaster;
    if (d->returns && d->returns->side == &k.main) {
        k.other = k.main;
        d->returns->side = &k.other;
    }
    memset(&k.main.truth[committed + 1], 0, (INDEX_MAX - committed - 1) * sizeof k.main.truth[0]);
    memset(k.main.leader, 0, sizeof k.main.leader);
    k.main.committed = committed;
    k.main.config_index = k.main.name = k.main.healed_index = 0;
    k.epoch++;
    d->old_id = s->id;
    d->old_name = s->name;
}

static void lose_others(const struct kmember *s)
{
    for (unsigned i = 0; i < MACHINES; i++)
        if (&k.member[i] != s && k.member[i].side == &k.main && &k.member[i] != k.disaster.returns)
            lose(&k.member[i]);
}

/* raft/force.c */
static void go_on_alone(struct kmember *s)
{
    lose_others(s); /* it began to join what is no more */
    new_cluster(s, core_committed(s->core));
    s->restarts = true; /* the process goes on */
    k_crash(s, false, -1);
    s->restores = true;
    s->restored = s->id_noted = false;
    s->id = ++k.next_id;
    s->name = 0;
    k_boot(s);
    if (k.disaster.tries++ < DEATHS && rand_chance(&k.rng, 60))
        s->dies_in = rand_between(&k.rng, 1, 12); /* steps of I/O, and then the same once more */
}

/* The machines that were lost come back. */
static void come_back(const struct kmember *s)
{
    k.disaster.over = true;
    for (unsigned i = 0; i < MACHINES; i++) {
        struct kmember *m = &k.member[i];
        bool empty = m->id == 0;
        if (m == s || (empty && (i >= k.c.members || k.next_id + 1 >= IDS_MAX)))
            continue;
        if (empty) {
            m->id = ++k.next_id;
            m->standby = false;
        }
        k_at(k_now() + (int64_t)rand_below(&k.rng, 500000), K_BOOT, i, m->id, NULL);
    }
}

static void ask_to_force(struct kmember *s)
{
    if (k.disaster.tries == 0 && core_settled(s->core) &&
        majority_alone(core_config(s->core), s->id)) {
        k.disaster.averted = true;
        come_back(s);
        return;
    }
    char lost[CORE_MEMBERS_MAX * 17 + 1] = "";
    size_t len = 0;
    struct firn_diag d = { 0 };
    const struct core_config *c = core_config(s->core);
    for (unsigned i = 0; i < c->count; i++)
        if (c->member[i].id != s->id)
            len += (size_t)snprintf(lost + len, sizeof lost - len, "%s%" PRIx64, len ? "," : "",
                                    c->member[i].id);
    whole_enter(s);
    int r = member_may_force(s->whole, lost, &d);
    trace(k.w, "operator: remove --force %s at %" PRIu64 ": %d %s", lost, s->id, r, d.text);
    if (r == 0 && k.next_id + 1 < IDS_MAX)
        go_on_alone(s);
    if (r == FIRN_ECONFLICT && strstr(d.text, "Stop it first"))
        lose_others(s); /* started too early, with an empty folder */
}

/* The registers of the new cluster are as its only member has them. */
void lost_named(struct kmember *m)
{
    trace(k.w, "member %" PRIu64 " goes on alone", m->id);
    m->restored = true;
    whole_clients_era();
    k_check_history(false);
    memset(k.given, 0, sizeof k.given);
    memset(k.maybe, 0, sizeof k.maybe);
    for (unsigned reg = 0; reg < REGISTERS; reg++)
        k.value[reg] = k_value(k.disaster.fsm, reg);
    k.ops = 0;
    k.healed_writes = k.main.healed_index = 0;
    firnds_era();
}

void lost_noted(struct kmember *s)
{
    s->restores = s->restored = false;
    k.id[k.disaster.old_id].dead = true;
    sometimes.rm_alone++;
    come_back(s);
}

/* ---- the operator ---- */

/* Again, what was done before: a member that is gone. */
static void remove_again(void)
{
    struct errand e = { .kind = ERRAND_REMOVE, .at = &k.main };
    struct kmember *m = &k.member[rand_below(&k.again, MACHINES)];
    uint64_t from = rand_below(&k.again, k.next_id);
    for (uint64_t i = 0; i < k.next_id; i++) {
        e.id = 1 + (from + i) % k.next_id;
        if (!m->up || m->side != e.at || e.at->removed[e.id] == 0 || e.at->joined[e.id])
            continue;
        sometimes.rm_removed_again++;
        whole_change(m, &e);
        return;
    }
}

void lost_operate(void)
{
    struct disaster *d = &k.disaster;
    if (rand_chance(&k.again, k.c.repeats ? 40 : 5))
        remove_again();
    if (d->survivor && !d->over && k_running(d->survivor) && !d->survivor->restores)
        ask_to_force(d->survivor);
}

void lost_fault(const struct fault *f)
{
    struct kmember *m = &k.member[f->node % MACHINES];
    if (!k.c.whole)
        return;
    if (f->kind == FAULT_rc_mistake)
        mistake(m, f->arg & 1);
    else if (f->kind == FAULT_rc_disaster)
        disaster(f->arg);
    else
        corrupt(m, (unsigned)f->arg % REGISTERS);
}

const char *lost_not_healed(void)
{
    if (k.disaster.survivor && !k.disaster.over)
        return "the member that survived has not gone on alone";
    replace_corrupt();
    return stays_full();
}
