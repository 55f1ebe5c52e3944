/*
 * Membership changes: members are added, promoted and removed, and the lead is handed over.
 * The leader makes one change at a time. A process that starts without data asks to join until it
 * is a member.
 *
 * JOIN and ADD add the process as a spare, then make it a standby, which gets the log; ADD ends
 * there. JOIN makes it a voter when it has caught up. Each step is one change of libraft's
 * configuration, which is a log entry. A request names the state to reach, so another leader can
 * begin it again.
 */
#include "raft/node_in.h"
#include "wire/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOIN_EVERY_MS = 300, JOIN_BUDGET_MS = 30 * 1000 };

struct change {
    struct raft_change req;
    struct node *node;
    uint64_t number; /* of the request */
    enum frame_change what;
    bool begun; /* one step is done */
    uint64_t id;
    char address[FRAME_ADDRESS_MAX + 1];
};

const struct raft_server *node_member(const struct node *n, uint64_t id)
{
    for (unsigned i = 0; i < n->raft.configuration.n; i++)
        if (n->raft.configuration.servers[i].id == id)
            return &n->raft.configuration.servers[i];
    return NULL;
}

static struct request *request_of(const struct change *c)
{
    return node_request(c->node, c->number);
}

static void finish(struct change *c, int result, const char *why)
{
    struct node *n = c->node;
    struct request *q = request_of(c);
    firn_assert(n->change.under_way && !n->change.transferring);
    firn_assert(!q || q->state == REQUEST_PROPOSED, "request=%" PRIu64 " state=%d", c->number,
                (int)q->state);
    n->change.under_way = false;
    if (q && result == FIRN_EAGAIN) {
        request_wait(n, q, 50);
    } else if (q && result == 0) {
        struct frame_out o = { .p = n->requests.room, .cap = FRAME_MAX };
        frame_reply(&o, q->frame.number, 0, raft_last_applied(&n->raft), 0);
        frame_end(&o);
        node_answer(n, q, o.p, o.len);
    } else if (q) {
        node_refuse(n, q, result, why);
    }
    free(c);
    node_pump_soon(n);
}

static void finish_raft(struct change *c, int r)
{
    switch (r) {
    case RAFT_CANTCHANGE:
    case RAFT_NOTLEADER:
    case RAFT_BUSY:
    case RAFT_LEADERSHIPLOST: /* the next leader finds it done, or does it */
    case RAFT_SHUTDOWN:
        finish(c, FIRN_EAGAIN, "");
        break;
    case RAFT_DUPLICATEADDRESS:
        finish(c, FIRN_ECONFLICT,
               "another member has this address: remove that one first (firn cluster remove)");
        break;
    case RAFT_NOCONNECTION:
        finish(c, FIRN_EIO,
               "the member does not catch up: see whether the leader reaches its peer port");
        break;
    default:
        finish(c, FIRN_EINVAL, raft_strerror(r));
    }
}

static void step(struct change *c);

static void stepped(struct raft_change *req, int status)
{
    struct change *c = req->data;
    struct request *q = request_of(c);
    firn_assert(c->node->change.under_way && !c->node->change.transferring);
    if (status != 0) {
        if (q) /* it is in the log: the next leader may find it done */
            q->maybe = true;
        finish_raft(c, status);
        return;
    }
    c->begun = true;
    const struct raft_server *s = node_member(c->node, c->id);
    static const char *const roles[] = { "standby", "voter", "spare" };
    node_say(c->node, NODE_INFO, "members_changed", "member=%" PRIx64 " role=%s", c->id,
             s ? roles[s->role % 3] : "removed");
    step(c);
}

static void finish_unknown(struct change *c)
{
    char why[128];
    snprintf(why, sizeof why, "no member has the id %016" PRIx64 "%s: see firn cluster status",
             c->id, c->what == CHANGE_REMOVE ? "; it may have been removed already" : "");
    finish(c, FIRN_ENOENT, why);
}

/* The next change towards the requested state; if none is left, the request is done. */
static void step(struct change *c)
{
    struct node *n = c->node;
    const struct raft_server *s = node_member(n, c->id);
    const struct request *q = request_of(c);
    int r = 0;
    if (!s && c->what == CHANGE_REMOVE && (c->begun || (q && q->maybe)))
        finish(c, 0, "");
    else if (!s && (c->what == CHANGE_REMOVE || c->what == CHANGE_PROMOTE))
        finish_unknown(c);
    else if (c->what == CHANGE_REMOVE)
        r = raft_remove(&n->raft, &c->req, c->id, stepped);
    else if (!s)
        r = raft_add(&n->raft, &c->req, c->id, c->address, stepped);
    else if (c->address[0] && strcmp(s->address, c->address) != 0)
        finish(c, FIRN_ECONFLICT,
               "this member has another address: remove it, and let it join again");
    else if (s->role == RAFT_SPARE)
        r = raft_assign(&n->raft, &c->req, c->id, RAFT_STANDBY, stepped);
    else if (s->role == RAFT_STANDBY && c->what != CHANGE_ADD)
        r = raft_assign(&n->raft, &c->req, c->id, RAFT_VOTER, stepped);
    else
        finish(c, 0, "");
    if (r != 0)
        finish_raft(c, r);
}

/* ---- handing over the lead ---- */

static void transferred(struct raft_transfer *req)
{
    struct change *c = req->data;
    struct node *n = c->node;
    firn_assert(n->change.under_way && n->change.transferring);
    n->change.transferring = false;
    if (raft_state(&n->raft) == RAFT_LEADER)
        finish(c, FIRN_EIO, "the lead could not be handed over in time: try again");
    else if (c->what == CHANGE_TRANSFER)
        finish(c, 0, "");
    else
        finish(c, FIRN_EAGAIN, ""); /* the new leader removes this member */
}

static void transfer(struct change *c, uint64_t to)
{
    struct node *n = c->node;
    firn_assert(!n->change.transferring);
    n->change.transfer.data = c;
    n->change.transferring = n->election.handing_over = true;
    int r = raft_transfer(&n->raft, &n->change.transfer, to, transferred);
    if (r == 0)
        return;
    n->change.transferring = false;
    finish(c, r == RAFT_NOTFOUND || r == RAFT_BADID ? FIRN_ENOENT : FIRN_EIO,
           r == RAFT_NOTFOUND ? "there is no other voter to hand over to"
           : r == RAFT_BADID  ? "that member is no voter, or is the leader already"
                              : raft_strerror(r));
}

void membership_change(struct node *n, struct request *q)
{
    struct frame_in in = { q->frame.body, q->frame.len, false };
    struct host_port to;
    struct change *c = calloc(1, sizeof *c);
    firn_assert(!n->change.under_way && q->state == REQUEST_WAITING, "state=%d", (int)q->state);
    if (!c)
        return;
    c->node = n;
    c->req.data = c;
    c->number = q->number;
    c->what = (enum frame_change)frame_get_u8(&in);
    c->id = frame_get_u64(&in);
    struct firn_slice address = frame_get_text(&in, FRAME_ADDRESS_MAX);
    memcpy(c->address, address.p, address.len);
    request_move(q, REQUEST_PROPOSED);
    n->change.under_way = true;
    bool adds = c->what == CHANGE_JOIN || c->what == CHANGE_ADD;
    if (c->what < CHANGE_JOIN || c->what > CHANGE_TRANSFER ||
        (c->id == 0 && c->what != CHANGE_TRANSFER) || (adds && address.len == 0))
        finish(c, FIRN_EINVAL, "unknown membership change, or one without a member");
    else if (adds && (strlen(c->address) != address.len || !host_port_full(c->address, &to)))
        finish(c, FIRN_EINVAL, "the member's address is no host:port");
    else if (adds && !n->net.tls && !n->opts.plain && !address_loopback(c->address))
        finish(c, FIRN_EAUTH,
               "the address is on another machine: set cluster.tls_cert, cluster.tls_key and "
               "cluster.tls_ca, or cluster.plain in a trusted network");
    else if (c->what == CHANGE_TRANSFER && c->id == n->self.id)
        finish(c, 0, "");
    else if (c->what == CHANGE_TRANSFER || (c->what == CHANGE_REMOVE && c->id == n->self.id))
        transfer(c, c->what == CHANGE_TRANSFER ? c->id : 0);
    else
        step(c);
}

/* ---- joining ---- */

static void join_end(struct node *n)
{
    firn_assert(n->opts.join_n > 0);
    n->join.wire = NULL;
    n->join.next++; /* wraps around the list */
    n->join.retry_ms = uv_now(&n->loop.uv) + JOIN_EVERY_MS;
}

static void join_frame(struct wire *w, const struct frame *f)
{
    struct node *n = wire_user(w);
    char room[FRAME_HEAD + FRAME_ADDRESS_MAX + 32];
    struct frame_out o = { .p = room, .cap = sizeof room };
    firn_assert(w == n->join.wire && n->self.id != 0);
    if (f->type == FRAME_WELCOME) {
        frame_begin(&o, FRAME_CHANGE, 0, JOIN_BUDGET_MS, 1);
        frame_u8(&o, n->opts.standby ? CHANGE_ADD : CHANGE_JOIN);
        frame_u64(&o, n->self.id);
        frame_text(&o, firn_slice(n->self.address, strlen(n->self.address)));
        frame_end(&o);
        firn_assert(!o.full, "len=%zu", o.len);
        wire_send(w, o.p, o.len);
        return;
    }
    struct frame_in in = { f->body, f->len, false };
    struct frame_answer a;
    if (f->type == FRAME_REPLY && frame_get_reply(&in, &a) == 0 && a.result != 0) {
        struct firn_slice why = frame_get_text(&in, FRAME_MAX);
        node_say(n, NODE_WARN, "join_refused", "%.*s", (int)why.len, why.p ? why.p : "");
    }
    wire_close(w);
    join_end(n);
}

static void join_gone(struct wire *w, const char *why)
{
    struct node *n = wire_user(w);
    node_say(n, NODE_INFO, "join_failed", "member=%s cause=%s",
             n->join.members[n->join.next % n->opts.join_n], why);
    join_end(n);
}

static const struct wire_events join_events = { node_greet, join_frame, join_gone };

void membership_join(struct node *n)
{
    const struct raft_server *me = node_member(n, n->self.id);
    n->self.newcomer &= me == NULL;
    /* A process that the configuration lacks was removed, and must not join again by itself; a
     * newcomer never was in it. */
    bool in = me ? me->role == RAFT_VOTER || (me->role == RAFT_STANDBY && n->opts.standby)
                 : n->raft.configuration.n > 0 && !n->self.newcomer;
    if (in || n->opts.join_n == 0 || n->join.wire || uv_now(&n->loop.uv) < n->join.retry_ms)
        return;
    n->join.wire = wire_connect(&n->loop.uv, n->join.members[n->join.next % n->opts.join_n],
                                n->net.tls, &join_events, n);
    if (!n->join.wire)
        join_end(n);
}
