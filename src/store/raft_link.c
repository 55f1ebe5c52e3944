/*
 * A client's connection to a Raft cluster: to one member at a time, which forwards what it cannot
 * answer itself. After a failure the next member of the URL's list is used. Tested by
 * tests/conformance and tests/integration/cluster.py.
 */
#include "store/raft.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "platform/mono.h"
#include "wire/link.h"
#include "wire/tls_context.h"

#include <stdlib.h>
#include <string.h>

struct raft_link {
    struct raft_channel base;
    struct link *link; /* NULL: connect before the next call */
    struct tls_context *tls;
    size_t host; /* that is, or will be, asked */
    struct store_url url;
};

static void drop(struct raft_link *c)
{
    link_close(c->link);
    c->link = NULL;
    firn_assert(c->host < c->url.host_n, "host=%zu of %zu", c->host, c->url.host_n);
    c->host = (c->host + 1) % c->url.host_n;
}

/* One whole frame. */
static int receive(struct raft_link *c, char *to, size_t *out_len, struct frame *f, int64_t until,
                   struct firn_diag *d)
{
    size_t len = 0;
    for (;;) {
        size_t n = 0;
        firn_assert(len <= FRAME_MAX, "len=%zu", len);
        ssize_t used = frame_parse(to, len, f);
        if (used > 0 && (size_t)used == len) {
            *out_len = len;
            return 0;
        }
        if (used != 0 || len == FRAME_MAX)
            return firn__diag(d, FIRN_EIO, 0, "%s:%u speaks another language than a firnd cluster",
                              c->url.host[c->host].name, c->url.host[c->host].port);
        int r = link_recv(c->link, to + len, FRAME_MAX - len, &n, until, d);
        if (r != 0)
            return r;
        len += n;
    }
}

static int greet(struct raft_link *c, char *room, int64_t until, struct firn_diag *d)
{
    struct frame_out o = { .p = room, .cap = FRAME_MAX };
    struct frame f;
    size_t len;
    frame_hello(&o, FRAME_CLIENT, 0, "");
    int r = link_send(c->link, o.p, o.len, until, d);
    if (r == 0)
        r = receive(c, room, &len, &f, until, d);
    if (r == 0 && f.type != FRAME_WELCOME)
        r = firn__diag(d, FIRN_EIO, 0, "%s:%u does not welcome us", c->url.host[c->host].name,
                       c->url.host[c->host].port);
    return r;
}

/* A connection that is fit for a request. Each member has its share of the time. */
static int connected(struct raft_link *c, char *room, int64_t until, struct firn_diag *d)
{
    if (c->link && !link_quiet(c->link)) {
        link_close(c->link);
        c->link = NULL;
    }
    for (size_t left = c->url.host_n; !c->link; left--) {
        int64_t now = mono_now_ms(), share = now + (until - now) / (int64_t)left;
        int r = link_open(c->url.host[c->host].name, c->url.host[c->host].port, c->tls, share,
                          &c->link, d);
        if (r == 0)
            r = greet(c, room, share, d);
        if (r != 0) {
            drop(c);
            if (left == 1)
                return r;
        }
    }
    return 0;
}

/* "Nothing was done": a member that finds no leader, or was removed, may be the only one. */
static bool refuses(const struct frame *f)
{
    struct frame_in in = { f->body, f->len, false };
    struct frame_answer a;
    return f->type == FRAME_REPLY && frame_get_reply(&in, &a) == 0 && a.result == FIRN_EIO;
}

/* A request that changes nothing may meet a silent member: then there is half of the time left. */
static int link_call(struct raft_channel *base, const char *frame, size_t len, bool again,
                     int64_t until, char *reply, size_t *out_len, struct firn_diag *d)
{
    struct raft_link *c = (struct raft_link *)base;
    for (bool last = !again;; last = true) {
        int64_t now = mono_now_ms(), end = last ? until : now + (until - now) / 2;
        struct frame f;
        int r = connected(c, reply, end, d);
        if (r != 0) {
            if (last)
                return FIRN_EIO;
            continue;
        }
        r = link_send(c->link, frame, len, end, d);
        if (r == 0)
            r = receive(c, reply, out_len, &f, end, d);
        if (r == 0 && !refuses(&f))
            return 0;
        drop(c); /* the next call asks another member */
        if (r == 0)
            return 0;
        if (last)
            return FIRN_EUNKNOWN;
    }
}

static void link_channel_close(struct raft_channel *base)
{
    struct raft_link *c = (struct raft_link *)base;
    link_close(c->link);
    tls_context_free(c->tls);
    free(c);
}

int raft_link_new(const struct store_url *u, struct raft_channel **out, struct firn_diag *d)
{
    struct raft_link *c = calloc(1, sizeof *c);
    if (!c)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    const char *tls = store_url_param(u, "tls"), *ca = store_url_param(u, "ca");
    const char *cert = store_url_param(u, "cert"), *key = store_url_param(u, "key");
    c->base = (struct raft_channel){ link_call, link_channel_close };
    c->url = *u;
    int r = 0;
    if (tls && strcmp(tls, "yes") != 0 && strcmp(tls, "no") != 0)
        r = firn__diag(d, FIRN_EFORMAT, 0, "tls=%.20s: say yes or no", tls);
    else if (ca || cert || key || (tls && strcmp(tls, "yes") == 0))
        r = link_tls_new(ca, cert, key, &c->tls, d);
    if (r != 0) {
        free(c);
        return r;
    }
    *out = &c->base;
    return 0;
}
