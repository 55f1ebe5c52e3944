/*
 * Keeps libraft from standing for election while it stores a snapshot from the leader.
 * libraft counts the snapshot as its log from the first moment, but its state machine has it only
 * when it is on the disk. A member that is elected in between would continue from a state that it
 * does not have. So the election timeout does not end meanwhile.
 */
#include "raft/node_in.h"

#include <limits.h>

static void stored(struct raft_io_snapshot_put *req, int status)
{
    struct node *n = req->data;
    struct raft_io_snapshot_put *theirs = n->shield.install.theirs;
    firn_assert(theirs && req == &n->shield.install.req);
    n->shield.install.theirs = NULL;
    if (status != 0 &&
        status != RAFT_CANCELED) /* libraft would take it for stored when it is sent again */
        log_failed(n, "the leader's snapshot cannot be stored",
                   "free disk space or repair the disk, then restart firnd");
    if (status == 0)
        match_show(&n->shield.match, n->shield.install.shown.term, n->shield.install.shown.index);
    theirs->cb(theirs, status);
    if (status == 0) /* libraft still thinks of a change that the snapshot has replaced */
        n->raft.configuration_uncommitted_index = 0;
    unsigned *timeout = &n->raft.follower_state.randomized_election_timeout;
    if (raft_state(&n->raft) == RAFT_FOLLOWER && *timeout == UINT_MAX) {
        int least = (int)n->raft.election_timeout;
        *timeout = (unsigned)n->io.random(&n->io, least, 2 * least);
        n->raft.election_timer_start = n->io.time(&n->io);
    }
}

static int on_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
                  const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    struct node *n = node_of(io);
    int r = configuration_save(n, snapshot);
    if (r != 0)
        return r;
    if (trailing != 0 || n->shield.install.theirs) /* this member's own: entries stay behind it */
        return n->shield.libraft.put(io, trailing, req, snapshot, cb);
    req->cb = cb;
    n->shield.install.req.data = n;
    n->shield.install.theirs = req;
    n->shield.install.shown = n->shield.shown;
    r = n->shield.libraft.put(io, trailing, &n->shield.install.req, snapshot, stored);
    if (r != 0)
        n->shield.install.theirs = NULL;
    else if (raft_state(&n->raft) == RAFT_FOLLOWER)
        n->raft.follower_state.randomized_election_timeout = UINT_MAX;
    return r;
}

void install_snapshot_watch(struct node *n)
{
    n->shield.libraft.put = n->io.snapshot_put;
    n->io.snapshot_put = on_put;
}
