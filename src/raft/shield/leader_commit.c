/*
 * Keeps a leader from committing entries of earlier terms by counting replicas.
 * Only an entry of the leader's own term commits, and with it all before it: an older entry can be
 * on a quorum and yet be replaced by a leader that has an entry of a later term in its place
 * (figure 8 of the Raft paper). libraft counts every entry that the leader has on its disk. So as
 * long as that is none of its term, each AppendEntries result is handled with the progress of all
 * other members hidden: no entry has a quorum then, and the progress of the member that answered is
 * noted. A leader begins its term with a barrier entry, so that older entries do not wait for a
 * request.
 */
#include "raft/node_in.h"

enum { COUNTED_MAX = 64 }; /* members; in a larger cluster such results are dropped */

void leader_commit_note(struct node *n)
{
    if (raft_state(&n->raft) != RAFT_LEADER || n->shield.lead.term == n->raft.current_term)
        return;
    firn_assert(n->raft.current_term > n->shield.lead.term, "term=%llu led=%llu",
                n->raft.current_term, n->shield.lead.term);
    n->shield.lead.term = n->raft.current_term;
    n->shield.lead.first = raft_last_index(&n->raft) + 1;
    firn_assert(n->raft.commit_index < n->shield.lead.first, "commit=%llu first=%llu",
                n->raft.commit_index, n->shield.lead.first);
}

static bool has_only_older(const struct node *n)
{
    return n->raft.state == RAFT_LEADER && n->raft.last_stored < n->shield.lead.first;
}

void leader_commit_recv(struct node *n, struct raft_message *message)
{
    if (message->type != RAFT_IO_APPEND_ENTRIES_RESULT || !has_only_older(n)) {
        n->shield.libraft.recv(&n->io, message);
        return;
    }
    const struct raft_configuration *c = &n->raft.configuration;
    struct raft_progress *p = n->raft.leader_state.progress;
    raft_index hidden[COUNTED_MAX], commit = n->raft.commit_index;
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
        return; /* it no longer leads */
    firn_assert(n->raft.commit_index == commit, "commit=%llu before=%llu", n->raft.commit_index,
                commit);
    for (unsigned i = 0; i < count; i++)
        if (c->servers[i].id != from)
            p[i].match_index = hidden[i];
}
