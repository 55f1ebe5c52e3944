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
#include "raft/mutant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECONNECT_MS = 100,
    NAME_BYTES = 17,            /* of a cluster, and the space before it */
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

static void out_close(struct peer *p)
{
    if (p->out)
        wire_close(p->out);
    p->out = NULL;
    p->up = false;
}

/* Where there are too many, one that is no member has to go: it may connect again. */
static struct peer *find_or_add(struct member *m, uint64_t id)
{
    struct peer *p = find(m, id);
    if (p)
        return p;
    p = find(m, 0);
    for (unsigned i = 0; !p; i++) {
        firn_assert(i < PEERS_MAX, "more members than a configuration has");
        if (!config_member(core_config(m->core), m->peer[i].id))
            p = &m->peer[i];
    }
    out_close(p);
    if (p->in)
        wire_close(p->in);
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
    char room[FRAME_HEAD + FRAME_ADDRESS_MAX + 32], address[FRAME_ADDRESS_MAX + 1];
    struct frame_out o = { .p = room, .cap = sizeof room };
    int len = snprintf(address, sizeof address, "%s", m->self.address);
    if (m->cluster && len + NAME_BYTES < (int)sizeof address)
        snprintf(address + len, sizeof address - (size_t)len, " %016" PRIx64, m->cluster);
    frame_hello(&o, FRAME_MEMBER, m->self.id, address);
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

static bool foreign(const struct member *m, uint64_t cluster)
{
    return cluster && m->cluster && cluster != m->cluster;
}

/* Its own name is another one now, mostly once in its life: peers hear it with a new connection,
 * and those of another cluster have to go. */
static void renamed(struct member *m)
{
    for (unsigned i = 0; i < PEERS_MAX; i++) {
        struct peer *p = &m->peer[i];
        out_close(p);
        if (p->in && foreign(m, p->cluster) && !MEMBER_MUTANT(rm_foreign_let_in)) {
            wire_close(p->in);
            p->in = NULL;
        }
    }
}

void peers_tick(struct member *m)
{
    uint64_t name = membership_cluster(m);
    if (name && name != m->cluster) {
        m->cluster = name;
        renamed(m);
    }
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
        out_close(p);
        if (!p->in)
            p->id = 0;
    }
}

bool peers_up(const struct member *m, uint64_t id)
{
    for (unsigned i = 0; i < PEERS_MAX; i++)
        if (m->peer[i].id == id)
            return m->peer[i].up || m->peer[i].in;
    return false;
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

/* Two clusters meet where one has added a member of the other, or has an old address: messages of
 * the other one would depose the leader here, or replace the log. */
static void refuse_foreign(struct member *m, const struct frame_greeting *g, uint64_t cluster)
{
    if (m->foreign == g->member)
        return;
    m->foreign = g->member;
    member_say(m, NODE_ERROR, "foreign_member",
               "member=%016" PRIx64 " address=%s cause=it is a member of the cluster %016" PRIx64
               ", and this one of %016" PRIx64 " cure=remove this member's address from that "
               "cluster (firn cluster remove)",
               g->member, g->address, cluster, m->cluster);
}

bool peers_greet(struct member *m, struct wire *w, const struct frame_greeting *g)
{
    const char *name = strchr(g->address, ' ');
    uint64_t id = g->member, cluster = name ? strtoull(name + 1, NULL, 16) : 0;
    if (foreign(m, cluster) && !MEMBER_MUTANT(rm_foreign_let_in)) {
        refuse_foreign(m, g, cluster);
        return false;
    }
    struct peer *p = id != 0 && id != m->self.id ? find_or_add(m, id) : NULL;
    if (!p)
        return false;
    if (p->in) /* the peer has made another one, since this one is broken */
        wire_close(p->in);
    p->in = w;
    p->cluster = cluster;
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
    if (!w || wire_unsent(w) > UNSENT_BYTES_MAX ||
        (answers && check_differs(m) && !MEMBER_MUTANT(rm_differs_answers)))
        return;
    struct frame_out o = { .p = m->requests.room, .cap = FRAME_RAFT_MAX };
    frame_begin(&o, FRAME_RAFT, 0, 0, 0);
    size_t len = message_write(msg, o.p + o.len, o.cap - o.len);
    firn_assert(len > 0, "a message of type %d does not fit", (int)msg->type);
    o.len += len;
    frame_end(&o);
    wire_send(w, o.p, o.len);
}
