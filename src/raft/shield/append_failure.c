/*
 * Append failures: stops the log for good after a failed write (disk full or broken).
 * libraft does not survive that as a leader (with a second entry under way it uses freed memory),
 * and no later write could follow the gap. So after the first failure nothing more is written, and
 * libraft's appends are never answered. To the cluster this member then looks like one that does
 * not acknowledge: as a leader it commits what the other members have, and hands over the lead; as
 * a follower it stands still. It forwards requests to the leader until firnd is restarted with
 * space on the disk.
 */
#include "raft/node_in.h"

#include <stdlib.h>

enum {
    HELD_MAX = 1024, /* appends that are never answered; each keeps its entries in memory */
    HAND_OVER_EVERY_MS = 500,
};

struct append {
    struct raft_io_append req;
    struct raft_io_append *theirs;
    struct node *node;
    raft_index last; /* of its entries */
};

void log_failed(struct node *n, const char *why, const char *cure)
{
    if (n->health.stalled)
        return;
    n->health.stalled = true;
    node_say(n, NODE_ERROR, "log_not_written", "cause=%s cure=%s; the other members continue", why,
             cure);
}

static void stall(struct node *n, int r)
{
    log_failed(n, n->io.errmsg[0] ? n->io.errmsg : raft_strerror(r),
               "free disk space or repair the disk, then restart firnd");
}

static void appended(struct raft_io_append *req, int status)
{
    struct append *a = req->data;
    struct node *n = a->node;
    firn_assert(req == &a->req && a->theirs, "an append of another kind");
    if (status != 0 && status != RAFT_CANCELED)
        stall(n, status);
    if (!n->health.stalled || status == RAFT_CANCELED)
        leader_commit_append(n, a->last, a->theirs, status);
    free(a);
}

static int on_append(struct raft_io *io, struct raft_io_append *req,
                     const struct raft_entry entries[], unsigned count, raft_io_append_cb cb)
{
    struct node *n = node_of(io);
    struct append *a = n->health.stalled ? NULL : calloc(1, sizeof *a);
    firn_assert(count > 0);
    req->cb = cb;
    n->shield.appended = true;
    if (a) {
        *a = (struct append){
            .req.data = a, .theirs = req, .node = n, .last = raft_last_index(&n->raft)
        };
        int r = n->shield.libraft.append(io, &a->req, entries, count, appended);
        if (r == 0)
            return 0;
        free(a);
        stall(n, r);
    } else if (!n->health.stalled) {
        return RAFT_NOMEM;
    }
    return ++n->shield.failure.held > HELD_MAX ? RAFT_NOSPACE : 0;
}

void append_failure_watch(struct node *n)
{
    n->shield.libraft.append = n->io.append;
    n->io.append = on_append;
}

static void handed_over(struct raft_transfer *req)
{
    struct node *n = req->data;
    firn_assert(n->change.transferring && !n->change.under_way);
    n->change.transferring = false;
    node_pump_soon(n);
}

void append_failure_hand_over(struct node *n)
{
    if (!n->health.stalled || n->change.transferring || n->change.under_way ||
        uv_now(&n->loop.uv) < n->shield.failure.hand_over_ms || raft_state(&n->raft) != RAFT_LEADER)
        return;
    n->shield.failure.hand_over_ms = uv_now(&n->loop.uv) + HAND_OVER_EVERY_MS;
    n->shield.failure.transfer.data = n;
    n->election.handing_over = true;
    n->change.transferring = raft_transfer(&n->raft, &n->shield.failure.transfer, 0, handed_over) ==
                             0;
}
