/* Metrics of a member of a Raft cluster, as of its last tick, about 10 ms ago. Tested in
 * tests/integration/cluster.py. */
#include "server/metrics.h"

#ifdef FIRN_HAVE_RAFT
#include "raft/node.h"

#include <inttypes.h>

static void positions(const struct node_view *v, struct metrics *m)
{
    metric(m, "firn_raft_term", "The term that this member is in.", (double)v->term);
    metric(m, "firn_raft_last_index", "The last entry in this member's log.",
           (double)v->last_index);
    metric(m, "firn_raft_commit_index", "The last entry that this member knows to be on a quorum.",
           (double)v->commit_index);
    metric(m, "firn_raft_applied_index", "The last entry that is in this member's registers.",
           (double)v->applied_index);
    metric(m, "firn_raft_snapshot_index", "The last entry in this member's snapshot.",
           (double)v->snapshot_index);
    metric(m, "firn_raft_registers", "Registers that this member has.", (double)v->registers);
}

static void roles(const struct node_view *v, struct metrics *m)
{
    static const char *const states[] = { "unavailable", "follower", "candidate", "leader" };
    static const char *const kinds[] = { "voter", "standby" };
    metric_head(m, "firn_raft_state", "1 for what this member is now.");
    for (int i = NODE_UNAVAILABLE; i <= NODE_LEADER; i++)
        metric_value(m, "firn_raft_state", "state", states[i], (int)v->state == i);
    metric(m, "firn_raft_is_leader", "1 while this member leads.", v->state == NODE_LEADER);
    metric(m, "firn_raft_has_leader", "1 while this member knows of a leader.", v->has_leader);
    metric(m, "firn_raft_log_writable", "0 while the log cannot be written: make room on the disk.",
           !v->stalled);
    metric(m, "firn_raft_leader_silent",
           "1 while this member follows and has heard nothing from a leader for seconds.",
           v->silent);
    metric(m, "firn_raft_registers_differ",
           "1 while this member's registers are not those of its leader: it does not acknowledge "
           "anything then.",
           v->differs);
    metric(m, "firn_raft_removed",
           "1 while this member still runs, though it was removed from the cluster.", v->removed);
    metric_head(m, "firn_raft_members", "Members of the cluster, by role.");
    for (int i = 0; i < NODE_ROLES; i++)
        metric_value(m, "firn_raft_members", "role", kinds[i], v->count[i]);
}

/* Only the leader knows. */
static void peers(const struct node_view *v, struct metrics *m)
{
    if (v->peers == 0)
        return;
    metric_head(m, "firn_raft_peer_lag",
                "Entries that another member lacks; the leader alone knows.");
    for (unsigned i = 0; i < v->peers; i++)
        buf_addf(m->out, "firn_raft_peer_lag{member=\"%016" PRIx64 "\"} %" PRIu64 "\n",
                 v->peer[i].id, v->peer[i].lag);
    metric_head(m, "firn_raft_peer_seen", "1 if the leader heard of that member within a second.");
    for (unsigned i = 0; i < v->peers; i++)
        buf_addf(m->out, "firn_raft_peer_seen{member=\"%016" PRIx64 "\"} %d\n", v->peer[i].id,
                 v->peer[i].seen);
}

void metrics_cluster(struct node *n, struct metrics *m)
{
    struct node_view v;
    if (!n)
        return;
    node_view(n, &v);
    roles(&v, m);
    positions(&v, m);
    metric(m, "firn_raft_leader_changes_total",
           "Leaders, and terms of the same one, that this member saw begin.",
           (double)v.leader_changes);
    metric(m, "firn_raft_leadership_lost_total",
           "Times that this member led and lost the lead without handing it over.",
           (double)v.lead_lost);
    metric(m, "firn_raft_election_timeout_seconds",
           "Shortest time without a leader before this member stands for election.",
           v.election_ms / 1000.0);
    metric(m, "firn_raft_snapshots_total", "Snapshots that this member took or received.",
           (double)v.snapshots);
    metric(m, "firn_raft_entries_total",
           "Entries of writes that this member proposed as the leader.", (double)v.entries);
    metric(m, "firn_raft_writes_total", "Requests to write in those entries: how many share one.",
           (double)v.writes);
    metric_head(m, "firn_raft_forwarded_total",
                "Requests that this member passed on to the leader.");
    metric_value(m, "firn_raft_forwarded_total", "kind", "read", v.forwarded[0]);
    metric_value(m, "firn_raft_forwarded_total", "kind", "write", v.forwarded[1]);
    peers(&v, m);
}
#else
void metrics_cluster(struct node *n, struct metrics *m)
{
    (void)n, (void)m;
}
#endif
