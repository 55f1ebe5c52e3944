/*
 * The peer port, and libraft's transport on it. The first frame of a connection is HELLO: a
 * member's connection then becomes a stream of libraft's, a client's connection stays here and
 * carries requests.
 *
 * A member may name any id: with TLS it has shown a certificate of the cluster's authority, and
 * without TLS the port is for this machine alone or for a network that was declared trusted.
 */
#include "raft/node_in.h"
#include "id/diag.h"
#include "wire/url.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dial { /* a connection that libraft asked for */
    struct node *node;
    struct raft_uv_connect *req;
    struct wire *wire;
    struct dial *next;
};

/* ---- out ---- */

static void dial_end(struct dial *d, uv_stream_t *stream, int status)
{
    struct dial **at = &d->node->net.dials;
    while (*at != d) {
        firn_assert(*at, "a connection attempt that is not in the list");
        at = &(*at)->next;
    }
    *at = d->next;
    d->req->cb(d->req, stream, status);
    free(d);
}

static void dial_up(struct wire *w)
{
    struct dial *d = wire_user(w);
    char room[FRAME_HEAD + FRAME_ADDRESS_MAX + 32];
    struct frame_out o = { .p = room, .cap = sizeof room };
    frame_hello(&o, FRAME_MEMBER, d->node->self.id, d->node->self.address);
    firn_assert(!o.full && d->node->self.id != 0, "len=%zu", o.len);
    wire_send(w, o.p, o.len);
}

static void dial_frame(struct wire *w, const struct frame *f)
{
    struct dial *d = wire_user(w);
    uv_stream_t *s = NULL;
    firn_assert(w == d->wire && d->req);
    if (f->type == FRAME_WELCOME)
        s = wire_hand_over(w);
    else
        wire_close(w);
    dial_end(d, s, s ? 0 : RAFT_NOCONNECTION);
}

static void dial_gone(struct wire *w, const char *why)
{
    (void)why;
    dial_end(wire_user(w), NULL, RAFT_NOCONNECTION);
}

static const struct wire_events dial_events = { dial_up, dial_frame, dial_gone };

static int transport_connect(struct raft_uv_transport *t, struct raft_uv_connect *req, raft_id id,
                             const char *address, raft_uv_connect_cb cb)
{
    (void)id;
    struct node *n = t->impl;
    struct dial *d = calloc(1, sizeof *d);
    req->cb = cb;
    if (!d)
        return RAFT_NOMEM;
    if (!n->net.tls && !n->opts.plain && !address_loopback(address)) {
        free(d);
        return RAFT_NOCONNECTION; /* the error was given when the member was added */
    }
    d->node = n;
    d->req = req;
    d->wire = wire_connect(&n->loop.uv, address, n->net.tls, &dial_events, d);
    if (!d->wire) {
        free(d);
        return RAFT_NOCONNECTION;
    }
    d->next = n->net.dials;
    n->net.dials = d;
    return 0;
}

/* ---- in ---- */

static void client_frame(struct wire *w, const struct frame *f)
{
    struct node *n = wire_user(w);
    struct frame_greeting g;
    if (n->loop.closing)
        return;
    if ((f->type == FRAME_HELLO) !=
        wire_first(w)) { /* requests before a second HELLO would never be answered */
        wire_close(w);
        node_forget(n, w);
        return;
    }
    if (f->type != FRAME_HELLO) {
        /* One pass for all frames that arrive together: it walks over all requests, and a client
         * that sends thousands must not take the loop from the others. */
        node_take(n, f->body - FRAME_HEAD, f->len + FRAME_HEAD, w, NULL, NULL);
        node_pump_soon(n);
        return;
    }
    char room[FRAME_HEAD];
    struct frame_out o = { .p = room, .cap = sizeof room };
    if (frame_get_hello(f, &g) != 0 || (g.kind == FRAME_MEMBER && !n->net.accept)) {
        wire_close(w);
        return;
    }
    frame_begin(&o, FRAME_WELCOME, 0, 0, 0);
    frame_end(&o);
    wire_send(w, o.p, o.len);
    if (g.kind != FRAME_MEMBER)
        return;
    uv_stream_t *s = wire_hand_over(w);
    firn_assert(!n->loop.closing && n->net.accept);
    if (s)
        n->net.accept(&n->net.transport, g.member, g.address, s);
}

static void client_gone(struct wire *w, const char *why)
{
    (void)why;
    node_forget(wire_user(w), w);
}

static const struct wire_events client_events = { NULL, client_frame, client_gone };

static void on_connection(uv_stream_t *listener, int status)
{
    struct node *n = listener->data;
    if (status == 0)
        (void)wire_accept(listener, n->net.tls, &client_events, n);
}

/* ---- for libraft ---- */

static int transport_init(struct raft_uv_transport *t, raft_id id, const char *address)
{
    (void)t, (void)id, (void)address;
    return 0;
}

static int transport_listen(struct raft_uv_transport *t, raft_uv_accept_cb cb)
{
    struct node *n = t->impl;
    n->net.accept = cb;
    return 0;
}

static void transport_close(struct raft_uv_transport *t, raft_uv_transport_close_cb cb)
{
    struct node *n = t->impl;
    n->net.accept = NULL;
    while (n->net.dials) {
        wire_close(n->net.dials->wire);
        dial_end(n->net.dials, NULL, RAFT_CANCELED);
    }
    firn_assert(!n->net.dials && !n->net.accept);
    cb(t);
}

void node_transport(struct node *n)
{
    n->net.transport = (struct raft_uv_transport){ .impl = n,
                                                   .init = transport_init,
                                                   .listen = transport_listen,
                                                   .connect = transport_connect,
                                                   .close = transport_close };
}

int node_listen(struct node *n, const char *address, struct firn_diag *d)
{
    struct host_port at;
    char port[8];
    enum host_error e = host_port_read((struct slice){ address, strlen(address) }, &at);
    if ((e != HOST_OK && e != HOST_EMPTY && e != HOST_COLONS) || !at.has_port)
        return firn__diag(d, FIRN_EINVAL, 0, "cluster.listen: '%.80s' is no host:port", address);
    snprintf(port, sizeof port, "%u", at.port);
    struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *found;
    bool any = e == HOST_EMPTY || strcmp(at.host, "*") == 0;
    int wrong = getaddrinfo(any ? NULL : at.host, port, &want, &found);
    if (wrong)
        return firn__diag(d, FIRN_EINVAL, 0, "cluster.listen: %.80s: %s", address,
                          gai_strerror(wrong));
    uv_tcp_init(&n->loop.uv, &n->net.listener);
    n->net.listener.data = n;
    int r = uv_tcp_bind(&n->net.listener, found->ai_addr, 0);
    freeaddrinfo(found);
    if (r == 0)
        r = uv_listen((uv_stream_t *)&n->net.listener, 64, on_connection);
    return r < 0 ? firn__diag(d, FIRN_EIO, 0, "cluster.listen: %.80s: %s", address, uv_strerror(r))
                 : 0;
}
