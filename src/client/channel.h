/*
 * channel.h - a connection to one server, plain or TLS, that never blocks except to look up
 * a name. The trip that took it out of the pool (core.h) owns it; it has no lock.
 */
#ifndef FIRN_CLIENT_CHANNEL_H
#define FIRN_CLIENT_CHANNEL_H

#include <stdbool.h>

#include "client/url.h"
#include "wire/tls.h"

struct addrinfo;

struct channel {
    int fd;
    struct tls *tls; /* NULL: plain */
    struct buf out;  /* TLS: sealed and not yet sent */
    size_t sealing;  /* TLS: how much of what channel_send() was given is in `out` */
    bool ended;      /* TLS: the server said that no more will come */
    enum { CHANNEL_CONNECTING, CHANNEL_GREETING, CHANNEL_OPEN } state;
    short wants;  /* POLLIN or POLLOUT: what the last step waits for */
    bool resp;    /* which protocol is spoken on it */
    bool used;    /* a response was read from it before */
    bool greeted; /* RESP: AUTH was sent on it */
    int watch;    /* epoll that watches it, or -1 */
    uint64_t idle_since_ms;
    char *in; /* received bytes that are not parsed yet */
    size_t in_len, in_cap;
    struct addrinfo *found, *at; /* addresses of the name, and the one in hand */
    struct channel *next;        /* in the pool */
};

enum { WHY_BUF = 160 };

/* Begins to connect. `tls` NULL: plain. FIRN_EIO: `why` says what is wrong; FIRN_ENOMEM. */
FIRN_MUSTUSE int channel_open(const struct server_name *to, struct tls_context *tls,
                              struct channel **out, char why[WHY_BUF]);
/* Sends no close_notify: in a child of fork() the connection is the parent's, too. */
void channel_close(struct channel *c);

/* Goes on connecting. 0: open. FIRN_EAGAIN: wait for `wants`. FIRN_EIO: `why`. */
FIRN_MUSTUSE int channel_ready(struct channel *c, char why[WHY_BUF]);

/* How many bytes went, FIRN_EAGAIN (call again with the same bytes), FIRN_EIO or FIRN_ENOMEM. */
FIRN_MUSTUSE long channel_send(struct channel *c, const char *p, size_t len, char why[WHY_BUF]);

/* Appends received bytes to `in`. 0: there are more now. FIRN_EAGAIN, FIRN_ECLOSED (by the server),
 * FIRN_EIO, FIRN_ENOMEM. */
FIRN_MUSTUSE int channel_recv(struct channel *c, char why[WHY_BUF]);

/* Whether an idle channel can be used: no byte arrived on it, and it was not closed. */
bool channel_is_quiet(struct channel *c);

#endif
