/*
 * What a member answers to its leader. libraft names the last entry that is stored, whatever it has in common with
 * the leader, and sends to whoever it takes for the leader, also when there is none. So what comes in and what
 * goes out passes here: an answer names what the leader has shown to be its own too (match.h), and one to nobody
 * is not sent; nor one to a leader with other registers (state_check.c).
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
        shows = (struct match){ a->term, a->prev_log_index + a->n_entries };
    } else if (message->type == RAFT_IO_INSTALL_SNAPSHOT) {
        shows = (struct match){ message->install_snapshot.term,
                                message->install_snapshot.last_index };
    }
    n->shield.shown = shows;
    n->shield.appended = false;
    leader_commit_note(n);
    leader_commit_recv(n, message);
    leader_commit_note(n);
    if (shows.term != 0 && shows.term == n->raft.current_term)
        n->shield.leader.spoke = true;
    if (append && n->shield.appended) /* into the log; it is answered when that is on the disk */
        match_show(&n->shield.match, shows.term, shows.index);
    n->shield.shown = (struct match){ 0, 0 };
}

static int on_start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb recv)
{
    struct node *n = node_of(io);
    n->shield.libraft.recv = recv;
    return n->shield.libraft.start(io, msecs, tick, on_recv);
}

/* The leader's address, read where another state has other bytes: libraft does that when it has become a candidate
 * while it stored something. */
static bool to_nobody(const struct node *n, const struct raft_message *message)
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
    if (to_nobody(n, message) || check_differs(n))
        return RAFT_NOCONNECTION;
    struct raft_message known = *message;
    struct raft_append_entries_result *r = &known.append_entries_result;
    if (r->rejected == 0) {
        if (n->shield.shown.term == r->term) /* at once: it fits, and brought nothing to write */
            match_show(&n->shield.match, n->shield.shown.term, n->shield.shown.index);
        r->last_log_index = match_answer(&n->shield.match, r->term, r->last_log_index);
    }
    return n->shield.libraft.send(io, req, &known, cb);
}

void append_result_watch(struct node *n)
{
    n->shield.libraft.start = n->io.start;
    n->shield.libraft.send = n->io.send;
    n->io.start = on_start;
    n->io.send = on_send;
}
