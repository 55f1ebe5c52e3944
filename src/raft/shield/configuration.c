/*
 * Undoes membership changes that were not committed, also after a restart or behind a snapshot.
 * libraft takes the newest configuration of a loaded log for a committed one, so that removing that
 * entry from the log leaves it in force, and a second change could begin before the first is
 * committed: two majorities. It goes back to the last committed configuration by reading its entry,
 * and uses no memory at all, NULL, if a snapshot has replaced that entry. It puts a configuration
 * that is not committed into its snapshots, and still thinks of a change as open after a snapshot
 * from the leader has replaced it.
 *
 * At most one change is open at a time. So of a loaded log every configuration but the newest is
 * committed, and the configuration of the last snapshot is, too: it is kept here.
 */
#include "raft/node_in.h"

/* The entry at `index`; NULL: it is not in the log, or no longer. */
static const struct raft_entry *entry_at(const struct raft_log *l, raft_index index)
{
    size_t n = l->front <= l->back ? l->back - l->front : l->size - l->front + l->back;
    if (index <= l->offset || index - l->offset > n)
        return NULL;
    return &l->entries[(l->front + (size_t)(index - l->offset - 1)) % l->size];
}

static raft_term term_at(const struct raft_log *l, raft_index index)
{
    const struct raft_entry *e = entry_at(l, index);
    if (e)
        return e->term;
    return index == l->snapshot.last_index ? l->snapshot.last_term : 0;
}

static int copy(const struct raft_configuration *from, struct raft_configuration *to)
{
    int r = 0;
    raft_configuration_init(to);
    for (unsigned i = 0; i < from->n && r == 0; i++)
        r = raft_configuration_add(to, from->servers[i].id, from->servers[i].address,
                                   from->servers[i].role);
    if (r != 0)
        raft_configuration_close(to);
    return r;
}

void configuration_done(struct node *n)
{
    raft_configuration_close(&n->shield.saved.configuration);
    n->shield.saved.index = 0;
    raft_configuration_init(&n->shield.saved.configuration);
}

int configuration_save(struct node *n, const struct raft_snapshot *s)
{
    struct raft_configuration c;
    int r = copy(&s->configuration, &c);
    if (r != 0)
        return r;
    configuration_done(n);
    n->shield.saved.configuration = c;
    n->shield.saved.index = s->configuration_index;
    return 0;
}

void configuration_loaded(struct node *n)
{
    struct raft *r = &n->raft;
    raft_index newest = 0, before = 0;
    for (raft_index i = raft_last_index(r); entry_at(&r->log, i) && before == 0; i--)
        if (entry_at(&r->log, i)->type == RAFT_CHANGE) {
            before = newest ? i : 0;
            newest = newest ? newest : i;
        }
    if (newest <= r->commit_index) /* that of the first entry, or of the snapshot */
        return;
    before = before ? before : n->shield.saved.index;
    if (before == 0) /* a log without its beginning: there is nothing to go back to */
        return;
    firn_assert(before < newest, "newest=%llu before=%llu", newest, before);
    r->configuration_index = before;
    r->configuration_uncommitted_index = newest;
}

/* Will libraft remove the open change from the log for this message? As it decides itself. */
static bool undoes_change(const struct raft *r, const struct raft_append_entries *a)
{
    if (r->configuration_uncommitted_index == 0 || a->term < r->current_term ||
        (a->prev_log_index > 0 && term_at(&r->log, a->prev_log_index) != a->prev_log_term))
        return false;
    for (unsigned i = 0; i < a->n_entries; i++) {
        raft_index index = a->prev_log_index + 1 + i;
        raft_term term = term_at(&r->log, index);
        if (term == 0)
            return false;
        if (term != a->entries[i].term)
            return index <= r->configuration_uncommitted_index;
    }
    return false;
}

static void drop_entries(struct raft_append_entries *a)
{
    raft_free(a->entries[0].batch);
    raft_free(a->entries);
    a->entries = NULL;
    a->n_entries = 0;
}

void configuration_recv(struct node *n, struct raft_append_entries *a)
{
    struct raft *r = &n->raft;
    struct raft_configuration c;
    if (undoes_change(r, a) && !entry_at(&r->log, r->configuration_index)) {
        if (r->state != RAFT_FOLLOWER) { /* it steps down first; the leader sends them again */
            drop_entries(a);
        } else if (r->configuration_index != n->shield.saved.index ||
                   copy(&n->shield.saved.configuration, &c) != 0) {
            log_failed(n, "the members before a change that was undone are not known",
                       "remove this member from the cluster, empty its folder and add it again");
            drop_entries(a);
        } else {
            raft_configuration_close(&r->configuration);
            r->configuration = c;
            r->configuration_uncommitted_index = 0;
        }
    }
    /* Entries that the leader has not shown to be its own are not committed (Raft, figure 2). */
    raft_index shown = a->prev_log_index + a->n_entries;
    a->leader_commit = a->leader_commit < shown ? a->leader_commit : shown;
}

bool configuration_votes_again(const struct node *n, const struct raft_request_vote *v)
{
    const struct raft *r = &n->raft;
    return !v->pre_vote && v->term == r->current_term && r->voted_for != 0 &&
           r->voted_for != v->candidate_id;
}
