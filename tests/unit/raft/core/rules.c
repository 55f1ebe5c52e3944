/* The rules of Raft one by one, with a few cores and a network that does what the case needs. */
#include "members.h"

static void cut_off(struct cluster *k, uint64_t id, bool cut)
{
    for (unsigned i = 1; i <= MEMBERS; i++)
        k->cut[id][i] = k->cut[i][id] = cut;
}

static struct member *elected(struct cluster *k)
{
    run(k, 1000);
    struct member *m = leader_of(k);
    T_OK(m && core_settled(m->c));
    return m;
}

T_TEST(three_elect_and_commit)
{
    struct cluster *k = cluster_of("123", 1);
    struct member *m = elected(k);
    for (unsigned i = 0; i < 1000; i++)
        T_EQ(propose(k, m, i), 0);
    run(k, 100);
    for (unsigned i = 1; i <= 3; i++)
        T_EQ(core_applied(k->m[i].c), core_last(m->c));
    cluster_free(k);
}

T_TEST(one_alone_does_not_wait)
{
    struct cluster *k = cluster_of("1", 1);
    run(k, 20);
    T_OK(core_settled(k->m[1].c));
    uint64_t ask = core_ask(k->m[1].c);
    T_EQ(core_shown(k->m[1].c), ask);
    cluster_free(k);
}

T_TEST(a_snapshot_catches_up)
{
    struct cluster *k = cluster_of("123", 2);
    struct member *m = elected(k), *late = &k->m[m->id % 3 + 1];
    cut_off(k, late->id, true);
    for (unsigned i = 0; i < 100; i++)
        T_EQ(propose(k, m, i), 0);
    run(k, 50);
    T_EQ(take_snapshot(k, m, 3, 4000), 0);
    run(k, 50);
    T_EQ(core_snapshot_index(m->c), core_last(m->c));
    T_EQ(core_first(m->c), core_last(m->c) - 2);
    cut_off(k, late->id, false);
    run(k, 1000);
    T_EQ(late->sum, leader_of(k)->sum);
    T_EQ(core_snapshot_index(late->c), core_snapshot_index(m->c));
    cluster_free(k);
}

T_TEST(the_lead_is_handed_over)
{
    struct cluster *k = cluster_of("123", 3);
    struct member *m = elected(k), *to = &k->m[m->id % 3 + 1];
    T_EQ(core_transfer(m->c, 9), FIRN_ENOENT);
    T_EQ(core_transfer(m->c, m->id), FIRN_ENOENT);
    T_EQ(core_transfer(m->c, to->id), 0);
    T_OK(!core_leads(m->c) && core_transferring(m->c));
    T_EQ(propose(k, m, 1), FIRN_EAGAIN);
    pump(k, m);
    run(k, 50);
    T_EQ(core_state(to->c), CORE_LEADER);
    T_EQ(core_leader(m->c), to->id);
    cut_off(k, m->id, true); /* a target that does not answer: it ends */
    T_EQ(core_transfer(to->c, m->id), 0);
    run(k, 120);
    T_OK(core_leads(to->c) && propose(k, to, 1) == 0);
    cluster_free(k);
}
