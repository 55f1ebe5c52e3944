/*
 * Checks term, vote and log entries that libraft loads, and keeps a second copy of term and vote.
 * libraft stores term and vote without a checksum (vote.h), and takes the entries of an open
 * segment for those that follow the last closed one, whatever their index was. A member that forgot
 * its vote could vote twice in one term; an entry at another index would give this member other
 * registers than the cluster's.
 */
#include "raft/node_in.h"

#include <stdio.h>

static int remember(struct node *n, struct vote v)
{
    firn_assert(v.term >= n->shield.vote.last.term, "term=%llu stored=%llu", v.term,
                n->shield.vote.last.term);
    n->shield.vote.last = v;
    return vote_write(n->shield.vote.path, &v) == 0 ? 0 : RAFT_IOERR;
}

static int on_term(struct raft_io *io, raft_term term)
{
    struct node *n = node_of(io);
    int r = n->shield.libraft.set_term(io, term);
    return r ? r : remember(n, (struct vote){ term, 0 });
}

static int on_vote(struct raft_io *io, raft_id id)
{
    struct node *n = node_of(io);
    int r = n->shield.libraft.set_vote(io, id);
    return r ? r : remember(n, (struct vote){ n->shield.vote.last.term, id });
}

/* Does each entry have the index that libraft has given it? */
static bool in_place(const struct raft_entry *e, size_t n, raft_index first)
{
    for (size_t i = 0; i < n; i++)
        if (e[i].type == RAFT_COMMAND && !fsm_entry_at(e[i].buf.base, e[i].buf.len, first + i))
            return false;
    return true;
}

static int on_load(struct raft_io *io, raft_term *term, raft_id *voted_for,
                   struct raft_snapshot **snapshot, raft_index *start_index,
                   struct raft_entry *entries[], size_t *n_entries)
{
    struct node *n = node_of(io);
    struct vote ours;
    int r = vote_read(n->shield.vote.path, &ours);
    int loaded = n->shield.libraft.load(io, term, voted_for, snapshot, start_index, entries,
                                        n_entries);
    if (loaded != 0)
        return loaded;
    n->shield.vote.last = (struct vote){ *term, *voted_for };
    /* Without a copy of ours the member must be new; clusters begin with term 1. */
    bool good = r == FIRN_ENOENT ? *term <= 1 : r == 0 && vote_follows(&ours, &n->shield.vote.last);
    n->shield.vote.damaged = !good;
    /* From the first start on: a crash between libraft's next term and our copy of it must not
     * look like a lost copy. */
    bool kept = r != FIRN_ENOENT || !good ||
                vote_write(n->shield.vote.path, &n->shield.vote.last) == 0;
    kept = kept && (!*snapshot || configuration_save(n, *snapshot) == 0);
    if (good && kept && in_place(*entries, *n_entries, *start_index)) {
        firn_assert(*start_index > 0 || *n_entries == 0, "entries=%zu", *n_entries);
        io_order_start(n, *start_index + *n_entries);
        return 0;
    }
    snprintf(io->errmsg, sizeof io->errmsg, "%s",
             !good  ? "term and vote"
             : kept ? "entries are not in their places"
                    : "the vote cannot be written, or there is no memory");
    for (size_t i = 0; i < *n_entries; i++) /* as libraft's own loading does when it fails */
        if (i == 0 || (*entries)[i].batch != (*entries)[i - 1].batch)
            raft_free((*entries)[i].batch);
    raft_free(*entries);
    *entries = NULL;
    *n_entries = 0;
    if (*snapshot) {
        raft_configuration_close(&(*snapshot)->configuration);
        raft_free((*snapshot)->bufs[0].base);
        raft_free((*snapshot)->bufs);
        raft_free(*snapshot);
        *snapshot = NULL;
    }
    return good && !kept ? RAFT_IOERR : RAFT_CORRUPT;
}

void load_watch(struct node *n)
{
    n->shield.libraft.set_term = n->io.set_term;
    n->shield.libraft.set_vote = n->io.set_vote;
    n->shield.libraft.load = n->io.load;
    n->io.set_term = on_term;
    n->io.set_vote = on_vote;
    n->io.load = on_load;
    snprintf(n->shield.vote.path, sizeof n->shield.vote.path, "%s/vote", n->self.dir);
}
