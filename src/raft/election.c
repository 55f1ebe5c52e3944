/*
 * This member's election time-out, and how often it lost the lead.
 * libraft's tick passes here first. A loop that did not run has heard nothing, but that says
 * nothing about the leader: its messages lie unread, and libuv runs timers before it reads. So the
 * time in which this process did not run does not count as the leader's silence, and time-outs
 * follow the pauses that are measured (pace.h). Tests: tests/unit/raft/pace.c,
 * tests/integration/cluster.py.
 */
#include "raft/node_in.h"

void election_begin(struct node *n, uint32_t base_ms)
{
    pace_init(&n->election.pace, base_ms);
}

void election_heard(struct node *n, const struct raft_message *m)
{
    raft_term term = m->type == RAFT_IO_APPEND_ENTRIES          ? m->append_entries.term
                     : m->type == RAFT_IO_INSTALL_SNAPSHOT      ? m->install_snapshot.term
                     : m->type == RAFT_IO_APPEND_ENTRIES_RESULT ? m->append_entries_result.term
                                                                : 0;
    bool result = m->type == RAFT_IO_APPEND_ENTRIES_RESULT;
    if (term == 0 || term != n->raft.current_term ||
        result != (raft_state(&n->raft) == RAFT_LEADER))
        return;
    pace_heard(&n->election.pace, term, uv_now(&n->loop.uv));
}

void election_tick(struct node *n)
{
    struct node_election *e = &n->election;
    uint64_t now = uv_now(&n->loop.uv), due = e->ticked_ms + n->raft.heartbeat_timeout;
    if (e->ticked_ms != 0 && now > due) {
        uint64_t late = now - due;
        pace_paused(&e->pace, late < UINT32_MAX ? (uint32_t)late : UINT32_MAX, now);
        if (late >= n->raft.heartbeat_timeout) {
            raft_time start = n->raft.election_timer_start + late;
            n->raft.election_timer_start = start < now ? start : now;
        }
    }
    e->ticked_ms = now;
    uint32_t timeout = pace_timeout(&e->pace, now);
    if (timeout == n->raft.election_timeout)
        return;
    node_say(n, NODE_INFO, "election_timeout", "ms=%u configured_ms=%u cause=%s", timeout,
             e->pace.base_ms,
             timeout > n->raft.election_timeout ? "pauses of this machine or of the network"
                                                : "the pauses have become shorter");
    raft_set_election_timeout(&n->raft, timeout);
}

/* libraft has no callback for it. A transfer is no loss. */
void election_watch_lead(struct node *n)
{
    struct node_election *e = &n->election;
    bool leads = raft_state(&n->raft) == RAFT_LEADER;
    raft_term term = n->raft.current_term;
    if (e->led && (!leads || term != e->led_term) && !e->handing_over) {
        e->lost++;
        node_say(n, NODE_WARN, "leadership_lost", "term=%llu election_timeout_ms=%u cause=%s",
                 e->led_term, n->raft.election_timeout,
                 "it did not hear from a quorum in time, or another member stood for election");
    }
    e->handing_over = n->change.transferring;
    e->led = leads;
    e->led_term = term;
}
