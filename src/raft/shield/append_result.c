/*
 * Corrects the AppendEntries results that libraft sends to its leader.
 * libraft names the last entry that is stored, whether the leader has the same one or not, and
 * sends to the member that it takes for the leader, also when there is none. So every message in
 * and out passes here: a result names only entries that the leader has shown to be its own too
 * (match.h). It is not sent if there is no leader, or if the leader has other registers
 * (state_check.c).
 */
#include "raft/node_in.h"

static void on_recv(struct raft_io *io, struct raft_message *message)
{
    struct node *n = node_of(io);
    bool append = message->type == RAFT_IO_APPEND_ENTRIES;
    struct match shows = { 0, 0 };
    if (append) {
        struct raft_append_entries *a = &message->append_entries;
        committed_prefix_drop(n, a);
        configuration_recv(n, a);
        shows = (struct match){ a->term, a->prev_log_index + a->n_entries };
    } else if (message->type == RAFT_IO_INSTALL_SNAPSHOT) {
        shows = (struct match){ message->install_snapshot.term,
                                message->install_snapshot.last_index };
    }
    election_heard(n, message);
    if (message->type == RAFT_IO_REQUEST_VOTE &&
        configuration_votes_again(n, &message->request_vote))
        return;
    firn_assert(n->shield.shown.term == 0, "a message inside another one");
    n->shield.shown = shows;
    n->shield.appended = false;
    leader_commit_note(n);
    leader_commit_recv(n, message);
    leader_commit_note(n);
    if (shows.term != 0 && shows.term == n->raft.current_term)
        n->shield.leader.spoke = true;
    if (append && n->shield.appended) /* the result is sent when the entries are on the disk */
        match_show(&n->shield.match, shows.term, shows.index);
    n->shield.shown = (struct match){ 0, 0 };
}

static void on_tick(struct raft_io *io)
{
    struct node *n = node_of(io);
    election_tick(n);
    n->shield.libraft.tick(io);
}

static int on_start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb recv)
{
    struct node *n = node_of(io);
    n->shield.libraft.recv = recv;
    n->shield.libraft.tick = tick;
    configuration_loaded(n);
    return n->shield.libraft.start(io, msecs, on_tick, on_recv);
}

/* libraft has become a candidate while it stored something, and reads the leader's address from a
 * union that now has another state's bytes. */
static bool has_no_receiver(const struct node *n, const struct raft_message *message)
{
    return !message->server_address ||
           (n->raft.state != RAFT_FOLLOWER &&
            message->server_address == n->raft.follower_state.current_leader.address);
}

static int on_send(struct raft_io *io, struct raft_io_send *req, const struct raft_message *message,
                   raft_io_send_cb cb)
{
    struct node *n = node_of(io);
    if (message->type != RAFT_IO_APPEND_ENTRIES_RESULT)
        return n->shield.libraft.send(io, req, message, cb);
    if (has_no_receiver(n, message) || check_differs(n))
        return RAFT_NOCONNECTION;
    struct raft_message corrected = *message;
    struct raft_append_entries_result *r = &corrected.append_entries_result;
    if (r->rejected == 0) {
        if (n->shield.shown.term == r->term) /* it matched, and had nothing to write */
            match_show(&n->shield.match, n->shield.shown.term, n->shield.shown.index);
        raft_index stored = r->last_log_index;
        r->last_log_index = match_answer(&n->shield.match, r->term, stored);
        firn_assert(r->last_log_index <= stored, "index=%llu stored=%llu", r->last_log_index,
                    stored);
    }
    return n->shield.libraft.send(io, req, &corrected, cb);
}

void append_result_watch(struct node *n)
{
    n->shield.libraft.start = n->io.start;
    n->shield.libraft.send = n->io.send;
    n->io.start = on_start;
    n->io.send = on_send;
}
