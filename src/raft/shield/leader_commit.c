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

struct hidden { /* the progress of all members but one */
    raft_id shown;
    raft_index match[COUNTED_MAX], commit;
    struct raft_progress *progress;
    unsigned n;
};

static void hide(struct node *n, raft_id shown, struct hidden *h)
{
    const struct raft_configuration *c = &n->raft.configuration;
    h->shown = shown;
    h->commit = n->raft.commit_index;
    h->progress = n->raft.leader_state.progress;
    h->n = c->n;
    firn_assert(h->n <= COUNTED_MAX, "members=%u", h->n);
    for (unsigned i = 0; i < h->n; i++) {
        h->match[i] = h->progress[i].match_index;
        if (c->servers[i].id != shown)
            h->progress[i].match_index = 0;
    }
}

static void show(struct node *n, const struct hidden *h)
{
    const struct raft_configuration *c = &n->raft.configuration;
    if (raft_state(&n->raft) != RAFT_LEADER || n->raft.leader_state.progress != h->progress ||
        c->n != h->n)
        return; /* it no longer leads */
    firn_assert(n->raft.commit_index == h->commit, "commit=%llu before=%llu", n->raft.commit_index,
                h->commit);
    for (unsigned i = 0; i < h->n; i++)
        if (c->servers[i].id != h->shown)
            h->progress[i].match_index = h->match[i];
}

void leader_commit_recv(struct node *n, struct raft_message *message)
{
    struct hidden h;
    if (message->type != RAFT_IO_APPEND_ENTRIES_RESULT || !has_only_older(n)) {
        n->shield.libraft.recv(&n->io, message);
    } else if (n->raft.configuration.n <= COUNTED_MAX) {
        hide(n, message->server_id, &h);
        n->shield.libraft.recv(&n->io, message);
        show(n, &h);
    }
}

static unsigned voters(const struct raft_configuration *c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++)
        n += c->servers[i].role == RAFT_VOTER;
    return n;
}

/* Entries that this member appended in an earlier term, and that are on its disk only now that it
 * leads again. A lone voter's are committed, whatever their term. */
void leader_commit_append(struct node *n, raft_index last, struct raft_io_append *req, int status)
{
    struct hidden h;
    bool older = status == 0 && has_only_older(n) && last < n->shield.lead.first &&
                 n->raft.configuration.n <= COUNTED_MAX && voters(&n->raft.configuration) > 1;
    if (older)
        hide(n, n->self.id, &h);
    req->cb(req, status);
    if (older)
        show(n, &h);
}
