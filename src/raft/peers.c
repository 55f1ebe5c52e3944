/*
 * Connections that carry Raft's messages. A member connects to every other member of its
 * configuration and sends over that connection; over the one that the other member made it answers
 * where it has none of its own, as a process does that has no configuration yet. A message that
 * cannot be sent is dropped: Raft sends it again.
 *
 * A member may name any id: with TLS it has shown a certificate of the cluster's authority, and
 * without TLS the port is for this machine alone or for a network that was declared trusted.
 */
#include "raft/member_in.h"

#include <stdlib.h>

enum {
    RECONNECT_MS = 100,
    UNSENT_BYTES_MAX = 4 << 20, /* more than a few messages: the peer is slow, or partitioned off */
};
_Static_assert(FRAME_RAFT_MAX >= FRAME_HEAD + CORE_MESSAGE_BYTES_MAX, "a message fits a frame");
_Static_assert((int)CORE_ADDRESS_MAX == (int)FRAME_ADDRESS_MAX, "one length of an address");

static struct peer *find(struct member *m, uint64_t id)
{
    for (unsigned i = 0; i < PEERS_MAX; i++)
        if (m->peer[i].id == id)
            return &m->peer[i];
    return NULL;
}

/* NULL: there are too many. */
static struct peer *find_or_add(struct member *m, uint64_t id)
{
    struct peer *p = find(m, id);
    if (!p && (p = find(m, 0)))
        *p = (struct peer){ .id = id };
    return p;
}

/* ---- this member's own connections ---- */

static struct peer *of_out(struct wire *w)
{
    struct member *m = wire_user(w);
    for (unsigned i = 0; i < PEERS_MAX; i++)
        if (m->peer[i].out == w)
            return &m->peer[i];
    firn_assert(false, "an event of a connection that was closed");
    return NULL;
}

static void on_up(struct wire *w)
{
    const struct member *m = wire_user(w);
    char room[FRAME_HEAD + FRAME_ADDRESS_MAX + 32];
    struct frame_out o = { .p = room, .cap = sizeof room };
    frame_hello(&o, FRAME_MEMBER, m->self.id, m->self.address);
    firn_assert(!o.full && m->self.id != 0, "len=%zu", o.len);
    wire_send(w, o.p, o.len);
}

static void out_ends(struct member *m, struct peer *p)
{
    p->out = NULL;
    p->up = false;
    p->retry_ms = m->now_ms + RECONNECT_MS;
}

static void on_frame(struct wire *w, const struct frame *f)
{
    struct peer *p = of_out(w);
    if (f->type == FRAME_WELCOME && !p->up) {
        p->up = true;
    } else if (f->type == FRAME_RAFT && p->up) {
        member_message(wire_user(w), f, p->id);
    } else {
        out_ends(wire_user(w), p);
        wire_close(w);
    }
}

static void on_gone(struct wire *w, const char *why)
{
    (void)why;
    out_ends(wire_user(w), of_out(w));
}

static const struct wire_events events = { on_up, on_frame, on_gone };

void peers_tick(struct member *m)
{
    const struct core_config *c = core_config(m->core);
    for (unsigned i = 0; i < c->count; i++) {
        const struct core_member *to = &c->member[i];
        struct peer *p = to->id == m->self.id ? NULL : find_or_add(m, to->id);
        if (!p || p->out || m->now_ms < p->retry_ms)
            continue;
        p->retry_ms = m->now_ms + RECONNECT_MS;
        if (m->opts.plain || address_loopback(to->address)) /* the error came with the change */
            p->out = wire_connect(m->opts.wires, to->address, &events, m);
    }
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        struct peer *p = &m->peer[i];
        if (p->id == 0 || config_member(c, p->id))
            continue;
        if (p->out)
            wire_close(p->out);
        p->out = NULL;
        p->up = false;
        if (!p->in)
            p->id = 0;
    }
}

void peers_close(struct member *m)
{
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        if (m->peer[i].out)
            wire_close(m->peer[i].out);
        m->peer[i] = (struct peer){ 0 };
    }
}

/* ---- connections that come in ---- */

uint64_t peers_id(const struct member *m, const struct wire *w)
{
    for (unsigned i = 0; i < PEERS_MAX; i++)
        if (m->peer[i].in == w)
            return m->peer[i].id;
    return 0;
}

bool peers_greet(struct member *m, struct wire *w, uint64_t id)
{
    struct peer *p = id != 0 && id != m->self.id ? find_or_add(m, id) : NULL;
    if (!p)
        return false;
    if (p->in) /* the peer has made another one, since this one is broken */
        wire_close(p->in);
    p->in = w;
    return true;
}

void peers_forget(struct member *m, const struct wire *w)
{
    for (unsigned i = 0; i < PEERS_MAX; i++)
        if (m->peer[i].in == w)
            m->peer[i].in = NULL;
}

/* ---- messages ---- */

void peers_send(struct member *m, const struct core_message *msg)
{
    const struct peer *p = find(m, msg->to);
    struct wire *w = !p ? NULL : p->up ? p->out : p->in;
    bool answers = msg->type == MESSAGE_APPEND_RESULT || msg->type == MESSAGE_SNAPSHOT_RESULT;
    if (!w || wire_unsent(w) > UNSENT_BYTES_MAX || (answers && check_differs(m)))
        return;
    struct frame_out o = { .p = m->requests.room, .cap = FRAME_RAFT_MAX };
    frame_begin(&o, FRAME_RAFT, 0, 0, 0);
    size_t len = message_write(msg, o.p + o.len, o.cap - o.len);
    firn_assert(len > 0, "a message of type %d does not fit", (int)msg->type);
    o.len += len;
    frame_end(&o);
    wire_send(w, o.p, o.len);
}
