/*
 * Detects a follower that hears nothing from its leader and starts no election either.
 * That should not happen, and libraft does not report it. The time is counted in ticks of the loop,
 * since a process that was stopped has a good reason to have heard nothing. It changes nothing
 * else: it is logged and shown.
 */
#include "raft/node_in.h"

enum { SILENT_MS = 5000 }; /* plus the time of some elections */

static unsigned patience(const struct node *n)
{
    return (SILENT_MS + 10 * n->raft.election_timeout) / NODE_TICK_MS;
}

void silent_leader_tick(struct node *n)
{
    const struct raft_server *me = node_member(n, n->self.id);
    bool follows = raft_state(&n->raft) == RAFT_FOLLOWER && me && n->raft.configuration.n > 1 &&
                   !n->health.stalled;
    if (!follows || n->shield.leader.spoke) {
        if (n->shield.leader.silent)
            node_say(n, NODE_INFO, "leader_heard", "term=%llu", n->raft.current_term);
        n->shield.leader.silent = n->shield.leader.spoke = false;
        n->shield.leader.ticks = 0;
        return;
    }
    if (n->shield.leader.silent || ++n->shield.leader.ticks < patience(n))
        return;
    firn_assert(follows && n->shield.leader.ticks >= patience(n), "ticks=%u",
                n->shield.leader.ticks);
    n->shield.leader.silent = true;
    node_say(
        n, NODE_ERROR, "leader_silent",
        "term=%llu index=%llu voter=%s storing_snapshot=%s cure=check that the leader reaches this "
        "member's peer port; else restart this firnd",
        n->raft.current_term, raft_last_index(&n->raft),
        me && me->role == RAFT_VOTER ? "yes" : "no", n->shield.install.theirs ? "yes" : "no");
}
