/* A client's connection to one firnd server: a non-blocking socket, behind TLS in memory. Tested by
 * tests/integration/client.py. */
#include "client/channel.h"
#include "id/diag.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 * 1024,
    IN_MAX = 80 * 1024 * 1024,
    SEAL_BYTES = 16 * 1024,    /* plaintext that is sealed at once: a record */
    OUT_BYTES_MAX = 64 * 1024, /* a record that was sealed, or a flight of a handshake */
};

_Static_assert(READ_BYTES >= (int)TLS_PLAIN_BYTES, "channel_recv() makes so much room");

/* --- bytes --- */

/* The error of a socket call that returned `n`. */
static int socket_says(struct channel *c, ssize_t n, short wants, char why[WHY_BUF])
{
    c->wants = wants;
    if (n >= 0)
        return 0;
    if (errno == EAGAIN || errno == EINTR)
        return FIRN_EAGAIN;
    snprintf(why, WHY_BUF, "%s", strerror(errno));
    return FIRN_EIO;
}

/* Send what is sealed. 0: all of it went. */
static int flush(struct channel *c, char why[WHY_BUF])
{
    while (c->out.len > 0) {
        ssize_t n = send(c->fd, c->out.p, c->out.len, MSG_NOSIGNAL);
        int r = socket_says(c, n, POLLOUT, why);
        if (r)
            return r;
        buf_consume(&c->out, (size_t)n);
    }
    return 0;
}

static int room_to_read(struct channel *c)
{
    if (c->in_cap - c->in_len >= READ_BYTES)
        return 0;
    size_t cap = c->in_cap ? c->in_cap * 2 : READ_BYTES * 2;
    char *grown = cap <= IN_MAX * (size_t)2 ? realloc(c->in, cap) : NULL;
    if (!grown)
        return FIRN_ENOMEM;
    c->in = grown;
    c->in_cap = cap;
    return 0;
}

/* Hand bytes of the network to TLS; plaintext is appended to c->in. */
static int unseal(struct channel *c, const char *p, size_t len, char why[WHY_BUF])
{
    size_t n = 0;
    int r = room_to_read(c);
    if (r)
        return r;
    r = tls_read(c->tls, p, len, c->in + c->in_len, c->in_cap - c->in_len, &n, &c->out);
    c->in_len += n;
    if (r == FIRN_EFORMAT) {
        (void)flush(c, why); /* the alert tells the server why */
        snprintf(why, WHY_BUF, "TLS: %s", tls_why(c->tls));
        return FIRN_EIO;
    }
    c->ended |= r == FIRN_ECLOSED;
    return c->out.failed ? FIRN_ENOMEM : r == FIRN_ECLOSED ? 0 : r;
}

/* Take what the socket has, once. */
static int take(struct channel *c, char why[WHY_BUF])
{
    char sealed[TLS_READ_BYTES];
    int r = c->tls ? 0 : room_to_read(c);
    if (r)
        return r;
    if (c->ended)
        return FIRN_ECLOSED;
    ssize_t n = c->tls ? recv(c->fd, sealed, sizeof sealed, 0)
                       : recv(c->fd, c->in + c->in_len, c->in_cap - c->in_len, 0);
    r = socket_says(c, n, POLLIN, why);
    if (r || n == 0)
        return r ? r : FIRN_ECLOSED;
    if (c->tls)
        return unseal(c, sealed, (size_t)n, why);
    c->in_len += (size_t)n;
    return 0;
}

static int greet(struct channel *c, char why[WHY_BUF])
{
    for (;;) {
        int r = flush(c, why);
        if (r == 0 && tls_ready(c->tls)) {
            c->state = CHANNEL_OPEN;
            return 0;
        }
        if (r == 0)
            r = take(c, why);
        if (r == FIRN_ECLOSED) {
            snprintf(why, WHY_BUF, "TLS: the server closed the connection in the handshake");
            r = FIRN_EIO;
        }
        if (r)
            return r;
    }
}

/* --- connecting --- */

/* Try the addresses from c->at on. 0: connected, FIRN_EAGAIN: on the way. */
static int connect_next(struct channel *c, char why[WHY_BUF])
{
    for (; c->at; c->at = c->at->ai_next) {
        if (c->fd >= 0)
            close(c->fd);
        c->fd = socket(c->at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (c->fd < 0) {
            snprintf(why, WHY_BUF, "no socket: %s", strerror(errno));
            continue;
        }
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        if (connect(c->fd, c->at->ai_addr, c->at->ai_addrlen) == 0)
            return 0;
        if (errno == EINPROGRESS) {
            c->wants = POLLOUT;
            return FIRN_EAGAIN;
        }
        snprintf(why, WHY_BUF, "%s", strerror(errno));
    }
    return FIRN_EIO;
}

static int connected(struct channel *c, char why[WHY_BUF])
{
    freeaddrinfo(c->found);
    c->found = c->at = NULL;
    if (!c->tls) {
        c->state = CHANNEL_OPEN;
        return 0;
    }
    c->state = CHANNEL_GREETING;
    int r = unseal(c, NULL, 0, why); /* begins the handshake */
    return r ? r : greet(c, why);
}

int channel_ready(struct channel *c, char why[WHY_BUF])
{
    if (c->state == CHANNEL_OPEN)
        return 0;
    if (c->state == CHANNEL_GREETING)
        return greet(c, why);
    struct pollfd p = { c->fd, POLLOUT, 0 };
    if (poll(&p, 1, 0) <= 0)
        return FIRN_EAGAIN;
    int e = 0;
    socklen_t len = sizeof e;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &len);
    if (e == 0)
        return connected(c, why);
    snprintf(why, WHY_BUF, "%s", strerror(e));
    c->at = c->at->ai_next;
    int r = connect_next(c, why);
    return r ? r : connected(c, why);
}

int channel_open(const struct server_name *to, struct tls_context *tls, struct channel **out,
                 char why[WHY_BUF])
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    char port[8];
    struct channel *c = calloc(1, sizeof *c);
    if (!c)
        return FIRN_ENOMEM;
    c->fd = c->watch = -1;
    buf_init(&c->out, OUT_BYTES_MAX);
    snprintf(port, sizeof port, "%u", to->port);
    int r = getaddrinfo(to->host, port, &hints, &c->found);
    if (r) {
        snprintf(why, WHY_BUF, "cannot resolve the name: %s", gai_strerror(r));
        free(c);
        return FIRN_EIO;
    }
    c->at = c->found;
    r = tls ? tls_connect(tls, to->host, &c->tls) : 0;
    if (r == FIRN_EINVAL) {
        snprintf(why, WHY_BUF, "TLS: the name cannot be checked");
        r = FIRN_EIO;
    }
    if (r == 0)
        r = connect_next(c, why);
    if (r == 0)
        r = connected(c, why);
    if (r && r != FIRN_EAGAIN) {
        channel_close(c);
        return r;
    }
    *out = c;
    return 0;
}

void channel_close(struct channel *c)
{
    if (!c)
        return;
    tls_free(c->tls);
    buf_done(&c->out);
    if (c->found)
        freeaddrinfo(c->found);
    if (c->watch >= 0)
        epoll_ctl(c->watch, EPOLL_CTL_DEL, c->fd, NULL);
    if (c->fd >= 0)
        close(c->fd);
    free(c->in);
    free(c);
}

/* --- an open channel --- */

long channel_send(struct channel *c, const char *p, size_t len, char why[WHY_BUF])
{
    if (!c->tls) {
        ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL);
        int r = socket_says(c, n, POLLOUT, why);
        return r ? r : n;
    }
    int r = flush(c, why);
    if (r == 0 && c->sealing == 0) {
        size_t n = len < SEAL_BYTES ? len : SEAL_BYTES;
        if (tls_write(c->tls, p, n, &c->out) != 0) {
            snprintf(why, WHY_BUF, "TLS: %s", tls_why(c->tls));
            return FIRN_EIO;
        }
        if (c->out.failed)
            return FIRN_ENOMEM;
        c->sealing = n;
        r = flush(c, why);
    }
    if (r)
        return r;
    long n = (long)c->sealing;
    c->sealing = 0;
    return n;
}

int channel_recv(struct channel *c, char why[WHY_BUF])
{
    size_t before = c->in_len;
    int r = 0;
    while (r == 0 && c->in_len == before) /* records of TLS may carry no plaintext */
        r = take(c, why);
    return r;
}

bool channel_is_quiet(struct channel *c)
{
    struct pollfd p = { c->fd, POLLIN, 0 };
    if (poll(&p, 1, 0) == 0)
        return true;
    if (!c->tls || p.revents != POLLIN)
        return false;
    char why[WHY_BUF]; /* TLS 1.3 sends tickets when it likes */
    return channel_recv(c, why) == FIRN_EAGAIN;
}
