/*
 * What a leader may count as safe: entries of its own term that a majority has, and all before them. An older one
 * can be on a majority and yet be replaced by a leader who has a later term's in its place (figure 8 of the
 * Raft paper). libraft counts whatever the leader has on its disk. So as long as that is nothing of its term,
 * answers are taken with everybody else's progress hidden: nothing is a majority then, and the one who answered
 * has still made progress. That the older ones do not wait for the next request, a leader begins with an empty
 * entry.
 */
#include "raft/node_in.h"

enum { COUNTED_MAX = 64 }; /* members; answers in a larger cluster are not taken then */

void leader_commit_note(struct node *n)
{
    if (raft_state(&n->raft) != RAFT_LEADER || n->shield.lead.term == n->raft.current_term)
        return;
    n->shield.lead.term = n->raft.current_term;
    n->shield.lead.first = raft_last_index(&n->raft) + 1;
}

static bool only_older(const struct node *n)
{
    return n->raft.state == RAFT_LEADER && n->raft.last_stored < n->shield.lead.first;
}

void leader_commit_recv(struct node *n, struct raft_message *message)
{
    if (message->type != RAFT_IO_APPEND_ENTRIES_RESULT || !only_older(n)) {
        n->shield.libraft.recv(&n->io, message);
        return;
    }
    const struct raft_configuration *c = &n->raft.configuration;
    struct raft_progress *p = n->raft.leader_state.progress;
    raft_index hidden[COUNTED_MAX];
    unsigned count = c->n;
    raft_id from = message->server_id;
    if (count > COUNTED_MAX)
        return;
    for (unsigned i = 0; i < count; i++) {
        hidden[i] = p[i].match_index;
        if (c->servers[i].id != from)
            p[i].match_index = 0;
    }
    n->shield.libraft.recv(&n->io, message);
    if (raft_state(&n->raft) != RAFT_LEADER || n->raft.leader_state.progress != p || c->n != count)
        return; /* it leads no more */
    for (unsigned i = 0; i < count; i++)
        if (c->servers[i].id != from)
            p[i].match_index = hidden[i];
}
