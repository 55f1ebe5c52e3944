/* Cores on a bad network with bad disks, from many seeds: election safety, log matching, leader
 * completeness, state machine safety and reads that miss nothing; and it goes on afterwards. */
#include "members.h"

#include <stdio.h>

static void random_change(struct cluster *k, struct member *m)
{
    struct core_config c = *core_config(m->c);
    uint64_t id = 1 + below(k, MEMBERS), index;
    unsigned i = 0;
    while (i < c.count && c.member[i].id != id)
        i++;
    if (i == c.count)
        c.member[c.count++] = (struct core_member){ id, below(k, 4) ? CORE_STANDBY : CORE_VOTER,
                                                    "a" };
    else if (below(k, 2))
        c.member[i] = c.member[--c.count];
    else
        c.member[i].role = c.member[i].role == CORE_VOTER ? CORE_STANDBY : CORE_VOTER;
    if (core_change(m->c, &c, &index) == 0) {
        k->changes++;
        pump(k, m);
    }
}

static void random_step(struct cluster *k, bool changes)
{
    struct member *m = &k->m[1 + below(k, MEMBERS)];
    uint64_t what = below(k, 1000);
    if (what < 450 && k->wires) {
        deliver(k, (unsigned)below(k, k->wires), below(k, 20) == 0);
    } else if (what < 480 && k->wires) {
        drop(k, (unsigned)below(k, k->wires));
    } else if (what < 700) {
        save_some(k, m, 1 + (unsigned)below(k, 3));
    } else if (what < 850) {
        tick(k, 1 + below(k, 10));
    } else if (what < 925) {
        if (m->c)
            (void)propose(k, m, below(k, 1 << 20));
    } else if (what < 930) {
        if (m->c) {
            save_some(k, m, (unsigned)below(k, 4));
            stop(k, m, below(k, 2));
        }
    } else if (what < 945) {
        if (!m->c)
            start(k, m->id);
    } else if (what < 952) {
        uint64_t other = 1 + below(k, MEMBERS);
        bool cut = below(k, 3) == 0;
        k->cut[m->id][other] = k->cut[other][m->id] = cut;
    } else if (what < 960) {
        for (unsigned a = 1; a <= MEMBERS; a++)
            for (unsigned b = 1; b <= MEMBERS; b++)
                k->cut[a][b] = false;
    } else if (what < 970) {
        if (m->c)
            (void)take_snapshot(k, m, below(k, 5), (size_t)below(k, 100));
    } else if (what < 980) {
        if (m->c && changes)
            random_change(k, m);
    } else if (what < 982) {
        k->paused[m->id] = !k->paused[m->id];
    } else if (what < 985) {
        if (m->c && core_transfer(m->c, below(k, MEMBERS + 1)) == 0)
            pump(k, m);
    } else if (m->c && !m->ask && core_state(m->c) == CORE_LEADER) {
        m->ask = core_ask(m->c);
        m->ask_term = core_term(m->c);
        m->ask_floor = k->last;
        m->ask_commit = 0;
        pump(k, m);
    }
}

static void show(struct cluster *k)
{
    for (unsigned i = 1; i <= MEMBERS; i++) {
        struct core *c = k->m[i].c;
        fprintf(stderr,
                "member %u state %d term %d leader %d first %d last %d saved %d commit %d snapshot "
                "%d config:",
                i, core_state(c), (int)core_term(c), (int)core_leader(c), (int)core_first(c),
                (int)core_last(c), (int)core_last_saved(c), (int)core_committed(c),
                (int)core_snapshot_index(c));
        for (unsigned n = 0; n < core_config(c)->count; n++)
            fprintf(stderr, " %d%c", (int)core_config(c)->member[n].id,
                    core_config(c)->member[n].role == CORE_VOTER ? 'v' : 's');
        fprintf(stderr, "\n");
    }
}

static void world(uint64_t seed, struct cluster *sum)
{
    static const char *const voters[] = { "123", "12345", "1", "1234" };
    struct cluster *k = cluster_of(voters[seed % T_LEN(voters)], seed);
    bool changes = seed % 3 != 0;
    for (unsigned i = 1; i <= MEMBERS; i++)
        if (!k->m[i].c)
            start(k, i);
    for (unsigned i = 0; i < 2500; i++) {
        random_step(k, changes);
        if (i % 64 == 0)
            check_matching(k);
    }
    /* All is well again: one leader, and all members have all. */
    memset(k->cut, 0, sizeof k->cut);
    memset(k->paused, 0, sizeof k->paused);
    for (unsigned i = 1; i <= MEMBERS; i++)
        if (!k->m[i].c)
            start(k, i);
    run(k, 3000);
    struct member *m = leader_of(k);
    if (!m || !core_settled(m->c) || getenv("SHOW"))
        show(k);
    T_OK(m && core_settled(m->c), "seed %d: no leader", (int)seed);
    T_EQ(propose(k, m, 7), 0);
    run(k, 500);
    check_matching(k);
    const struct core_config *config = core_config(m->c);
    for (unsigned i = 0; i < config->count; i++) {
        struct member *other = &k->m[config->member[i].id];
        T_EQ(core_applied(other->c), core_last(m->c), "seed %d: member %d", (int)seed,
             (int)other->id);
        T_EQ(other->sum, m->sum);
    }
    sum->applied_total += k->applied_total;
    sum->leaders += k->leaders;
    sum->snapshots += k->snapshots;
    sum->changes += k->changes;
    sum->reads += k->reads;
    cluster_free(k);
}

T_TEST(a_bad_network_and_bad_disks)
{
    static struct cluster sum;
    uint64_t from = t_random(), n = t_scale(300) < 100 ? 100 : 300;
    for (uint64_t i = 0; i < n; i++)
        world(from + i, &sum);
    T_OK(sum.applied_total > 100 * n && sum.leaders > 2 * n && sum.snapshots > n &&
             sum.changes > n / 2 && sum.reads > n,
         "applied %d leaders %d snapshots %d changes %d reads %d", (int)sum.applied_total,
         (int)sum.leaders, (int)sum.snapshots, (int)sum.changes, (int)sum.reads);
}
