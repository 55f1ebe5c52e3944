/*
 * The node's view for metrics and health: the loop's thread publishes it at each tick, other
 * threads copy it. Its mutex guards nothing else, so that no request waits for a reader.
 */
#include "raft/node_in.h"

#include <inttypes.h>

_Static_assert((int)NODE_UNAVAILABLE == RAFT_UNAVAILABLE && (int)NODE_FOLLOWER == RAFT_FOLLOWER &&
                   (int)NODE_CANDIDATE == RAFT_CANDIDATE && (int)NODE_LEADER == RAFT_LEADER,
               "libraft's states are published as they are");

/* libraft has no callback for it: the lead has changed when another member leads, or the same one
 * in a new term. */
static void count_changes(struct node *n, raft_id leader)
{
    if (leader == 0 ||
        (leader == n->election.counted_id && n->raft.current_term == n->election.counted_term))
        return;
    firn_assert(n->raft.current_term >= n->election.counted_term, "term=%llu counted=%llu",
                n->raft.current_term, n->election.counted_term);
    n->election.changes++;
    n->election.counted_id = leader;
    n->election.counted_term = n->raft.current_term;
}

static void view_members(struct node *n, struct node_view *v)
{
    static const enum node_role roles[] = { NODE_STANDBY, NODE_VOTER, NODE_SPARE };
    const struct raft_configuration *c = &n->raft.configuration;
    bool leads = raft_state(&n->raft) == RAFT_LEADER;
    for (unsigned i = 0; i < c->n; i++) {
        enum node_role role = roles[c->servers[i].role % 3];
        v->count[role]++;
        if (!leads || i >= NODE_PEERS_MAX || c->servers[i].id == n->self.id)
            continue;
        raft_index match = n->raft.leader_state.progress[i].match_index;
        firn_assert(v->peers < NODE_PEERS_MAX, "peers=%u", v->peers);
        struct node_peer *p = &v->peer[v->peers++];
        p->id = c->servers[i].id;
        p->lag = v->last_index > match ? v->last_index - match : 0;
        p->seen = status_heard(n, i);
    }
}

void view_publish(struct node *n)
{
    struct node_view v = { .state = (enum node_state)(raft_state(&n->raft) & 3),
                           .term = n->raft.current_term,
                           .last_index = raft_last_index(&n->raft),
                           .commit_index = n->raft.commit_index,
                           .applied_index = raft_last_applied(&n->raft),
                           .snapshot_index = n->raft.log.snapshot.last_index,
                           .registers = n->fsm.map.count,
                           .snapshots = n->applied.snapshots,
                           .entries = n->proposals.entries,
                           .writes = n->proposals.writes,
                           .forwarded = { n->forward.requests[0], n->forward.requests[1] },
                           .stalled = n->health.stalled || n->health.stopped,
                           .removed = n->removal.removed,
                           .silent = n->shield.leader.silent,
                           .differs = check_differs(n) };
    raft_id leader = 0;
    const char *address;
    raft_leader(&n->raft, &leader, &address);
    v.has_leader = leader != 0;
    count_changes(n, leader);
    v.leader_changes = n->election.changes;
    v.lead_lost = n->election.lost;
    v.election_ms = n->raft.election_timeout;
    view_members(n, &v);
    firn_assert(v.count[NODE_VOTER] + v.count[NODE_STANDBY] + v.count[NODE_SPARE] ==
                n->raft.configuration.n);
    firn_assert(v.writes >= v.entries && v.entries >= n->published.view.entries,
                "writes=%" PRIu64 " entries=%" PRIu64, v.writes, v.entries);
    firn_assert(v.leader_changes >= n->published.view.leader_changes);
    pthread_mutex_lock(&n->published.mutex);
    n->published.view = v;
    pthread_mutex_unlock(&n->published.mutex);
}

void node_view(struct node *n, struct node_view *out)
{
    pthread_mutex_lock(&n->published.mutex);
    *out = n->published.view;
    pthread_mutex_unlock(&n->published.mutex);
}
