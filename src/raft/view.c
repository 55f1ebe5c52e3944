/* The member's view for metrics and health, made anew at each tick. */
#include "raft/member_in.h"

#include <inttypes.h>

enum node_state view_state(const struct member *m)
{
    static const enum node_state states[] = { [CORE_FOLLOWER] = NODE_FOLLOWER,
                                              [CORE_CANDIDATE] = NODE_CANDIDATE,
                                              [CORE_LEADER] = NODE_LEADER };
    return m->health.stopped ? NODE_UNAVAILABLE : states[core_state(m->core)];
}

/* The lead has changed when another member leads, or the same one in a new term. */
static void count_changes(struct member *m, uint64_t leader)
{
    uint64_t term = core_term(m->core);
    if (leader == 0 || (leader == m->election.counted_id && term == m->election.counted_term))
        return;
    firn_assert(term >= m->election.counted_term, "term=%" PRIu64 " counted=%" PRIu64, term,
                m->election.counted_term);
    m->election.changes++;
    m->election.counted_id = leader;
    m->election.counted_term = term;
}

static void view_members(struct member *m, struct node_view *v)
{
    const struct core_config *c = core_config(m->core);
    for (unsigned i = 0; i < c->count; i++) {
        struct core_peer peer;
        uint64_t id = c->member[i].id;
        v->count[c->member[i].role == CORE_VOTER ? NODE_VOTER : NODE_STANDBY]++;
        if (id == m->self.id || !core_peer(m->core, id, &peer))
            continue;
        firn_assert(v->peers < NODE_PEERS_MAX, "peers=%u", v->peers);
        v->peer[v->peers++] =
            (struct node_peer){ .id = id,
                                .lag = v->last_index > peer.match ? v->last_index - peer.match : 0,
                                .seen = status_heard(m, id) };
    }
}

void view_tick(struct member *m)
{
    uint64_t leader = core_leader(m->core);
    count_changes(m, leader);
    struct node_view v = { .state = view_state(m),
                           .has_leader = leader != 0,
                           .term = core_term(m->core),
                           .last_index = core_last(m->core),
                           .commit_index = core_committed(m->core),
                           .applied_index = core_applied(m->core),
                           .snapshot_index = core_snapshot_index(m->core),
                           .registers = m->fsm.map.count,
                           .snapshots = m->applied.snapshots,
                           .entries = m->proposals.entries,
                           .writes = m->proposals.writes,
                           .forwarded = { m->forward.requests[0], m->forward.requests[1] },
                           .leader_changes = m->election.changes,
                           .lead_lost = m->election.lost,
                           .election_ms = core_election_ms(m->core),
                           .stalled = m->health.stalled || m->health.stopped,
                           .removed = m->removal.removed,
                           .silent = m->election.silent,
                           .differs = check_differs(m) };
    view_members(m, &v);
    firn_assert(v.writes >= v.entries && v.entries >= m->view.entries,
                "writes=%" PRIu64 " entries=%" PRIu64, v.writes, v.entries);
    firn_assert(v.leader_changes >= m->view.leader_changes);
    m->view = v;
}
