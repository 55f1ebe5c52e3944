/*
 * Drops entries from a leader's AppendEntries that this member has committed already.
 * A leader without a snapshot sends its whole log to a member that was away. libraft on a member
 * whose log begins later, behind a snapshot, takes the first of those entries for new ones and
 * appends them behind its last. Committed entries are the same on all members, so they can be
 * dropped.
 */
#include "raft/node_in.h"

#include <string.h>

void committed_prefix_drop(const struct node *n, struct raft_append_entries *a)
{
    if (a->n_entries == 0 || a->prev_log_index >= n->raft.log.offset ||
        a->prev_log_index >= n->raft.commit_index)
        return;
    raft_index committed = n->raft.commit_index - a->prev_log_index;
    unsigned drop = committed < a->n_entries ? (unsigned)committed : a->n_entries;
    a->prev_log_index += drop;
    a->prev_log_term = a->entries[drop - 1].term;
    a->n_entries -= drop;
    firn_assert(a->prev_log_index <= n->raft.commit_index, "previous=%llu commit=%llu",
                a->prev_log_index, n->raft.commit_index);
    if (a->n_entries > 0) {
        memmove(a->entries, a->entries + drop, a->n_entries * sizeof *a->entries);
        return;
    }
    raft_free(a->entries[0].batch);
    raft_free(a->entries);
    a->entries = NULL;
}
