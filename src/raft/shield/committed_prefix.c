/*
 * What a leader sends that this member has for good. A leader that has no snapshot yet sends its whole log to who was
 * away. A member whose log begins later, for it has one, would take the first entries for new ones and write them
 * behind its last. What is committed here is the same everywhere: it is taken off before libraft sees it.
 */
#include "raft/node_in.h"

#include <string.h>

void committed_prefix_drop(const struct node *n, struct raft_append_entries *a)
{
    if (a->n_entries == 0 || a->prev_log_index >= n->raft.log.offset ||
        a->prev_log_index >= n->raft.commit_index)
        return;
    raft_index known = n->raft.commit_index - a->prev_log_index;
    unsigned off = known < a->n_entries ? (unsigned)known : a->n_entries;
    a->prev_log_index += off;
    a->prev_log_term = a->entries[off - 1].term;
    a->n_entries -= off;
    if (a->n_entries > 0) {
        memmove(a->entries, a->entries + off, a->n_entries * sizeof *a->entries);
        return;
    }
    raft_free(a->entries[0].batch);
    raft_free(a->entries);
    a->entries = NULL;
}
