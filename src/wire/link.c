/* A client's byte stream with deadlines. The socket never blocks; poll() waits for the time left.
 * Tested by tests/store/redis.py and tests/integration/cluster_peers.py. */
#include "wire/link.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "platform/mono.h"
#include "wire/tls.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 16 * 1024,    /* plaintext that is sealed at once: a record */
    SEALED_BYTES_MAX = 1 << 20, /* a chunk, sealed; a flight of the handshake */
};

struct link {
    int fd;
    char peer[80];
    struct tls *tls;   /* NULL: plain */
    struct buf sealed; /* to be sent within the call that made it */
    char *plain;       /* TLS_PLAIN_BYTES, of which plain_at..plain_len are not yet taken */
    size_t plain_at, plain_len;
};

static int broken(const struct link *l, struct firn_diag *d, const char *why)
{
    return firn__diag(d, FIRN_EIO, 0, "%s: %.100s", l->peer, why);
}

static int wait_for(const struct link *l, short events, int64_t until_ms, struct firn_diag *d)
{
    for (;;) {
        int64_t left = until_ms - mono_now_ms();
        if (left <= 0)
            return broken(l, d, "did not answer in time");
        struct pollfd p = { .fd = l->fd, .events = events };
        int n = poll(&p, 1, left < INT_MAX ? (int)left : INT_MAX);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return broken(l, d, strerror(errno));
    }
}

static int plain_send(struct link *l, const char *p, size_t len, int64_t until_ms,
                      struct firn_diag *d)
{
    while (len > 0) {
        ssize_t n = send(l->fd, p, len, MSG_NOSIGNAL);
        if (n >= 0) {
            p += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            int r = wait_for(l, POLLOUT, until_ms, d);
            if (r != 0)
                return r;
        } else if (errno != EINTR) {
            return broken(l, d, strerror(errno));
        }
    }
    return 0;
}

static int plain_recv(struct link *l, char *p, size_t cap, size_t *out_n, int64_t until_ms,
                      struct firn_diag *d)
{
    for (;;) {
        ssize_t n = recv(l->fd, p, cap, 0);
        if (n > 0) {
            *out_n = (size_t)n;
            return 0;
        }
        if (n == 0)
            return broken(l, d, "closed the connection");
        if (errno == EAGAIN) {
            int r = wait_for(l, POLLIN, until_ms, d);
            if (r != 0)
                return r;
        } else if (errno != EINTR) {
            return broken(l, d, strerror(errno));
        }
    }
}

/* ---- TLS ---- */

static int flush(struct link *l, int64_t until_ms, struct firn_diag *d)
{
    if (l->sealed.failed)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    int r = plain_send(l, l->sealed.p, l->sealed.len, until_ms, d);
    l->sealed.len = 0;
    return r;
}

static int tls_error(const struct link *l, struct firn_diag *d)
{
    return firn__diag(d, FIRN_EIO, 0, "%s: TLS: %.100s", l->peer, tls_why(l->tls));
}

/* Hand bytes of the server to TLS, send its reply, and keep the plaintext for link_recv(). */
static int unseal(struct link *l, const char *p, size_t len, int64_t until_ms, struct firn_diag *d)
{
    firn_assert(l->plain_at == l->plain_len, "at=%zu len=%zu", l->plain_at, l->plain_len);
    l->plain_at = l->plain_len = 0;
    int r = tls_read(l->tls, p, len, l->plain, TLS_PLAIN_BYTES, &l->plain_len, &l->sealed);
    int sent = flush(l, until_ms, d); /* an alert, too: it tells the server why */
    if (r == FIRN_ECLOSED && l->plain_len == 0)
        return broken(l, d, "closed the connection");
    return r && r != FIRN_ECLOSED ? tls_error(l, d) : sent;
}

static int tls_take(struct link *l, int64_t until_ms, struct firn_diag *d)
{
    char some[TLS_READ_BYTES];
    size_t n = 0;
    int r = plain_recv(l, some, sizeof some, &n, until_ms, d);
    return r ? r : unseal(l, some, n, until_ms, d);
}

static int tls_start(struct link *l, struct tls_context *tls, const char *host, int64_t until_ms,
                     struct firn_diag *d)
{
    l->plain = malloc(TLS_PLAIN_BYTES);
    int r = l->plain ? tls_connect(tls, host, &l->tls) : FIRN_ENOMEM;
    if (r == FIRN_EINVAL)
        return broken(l, d, "TLS: the name cannot be checked");
    if (r)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    r = unseal(l, NULL, 0, until_ms, d); /* begins the handshake */
    while (r == 0 && !tls_ready(l->tls))
        r = tls_take(l, until_ms, d);
    return r;
}

int link_tls_new(const char *ca, const char *cert, const char *key, struct tls_context **out,
                 struct firn_diag *d)
{
    if (!cert != !key)
        return firn__diag(d, FIRN_EFORMAT, 0, "cert= and key= belong together: give both or none");
    return tls_context_open(TLS_CLIENT, &(struct tls_files){ cert, key, ca, "" }, out, d);
}

/* ---- the link ---- */

static int connect_to(struct link *l, const struct addrinfo *a, int64_t until_ms,
                      struct firn_diag *d)
{
    int error = 0, on = 1;
    socklen_t size = sizeof error;
    l->fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
    if (l->fd < 0)
        return broken(l, d, strerror(errno));
    (void)setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int r = 0;
    if (connect(l->fd, a->ai_addr, a->ai_addrlen) != 0) {
        error = errno;
        if (error == EINPROGRESS || error == EINTR) {
            r = wait_for(l, POLLOUT, until_ms, d);
            if (r == 0 && getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
                error = errno;
        }
    }
    if (r == 0 && error != 0)
        r = broken(l, d, strerror(error));
    if (r != 0) {
        close(l->fd);
        l->fd = -1;
    }
    return r;
}

int link_open(const char *host, uint16_t port, struct tls_context *tls, int64_t until_ms,
              struct link **out, struct firn_diag *d)
{
    struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *found, *a;
    struct link *l = calloc(1, sizeof *l);
    char service[8];
    if (!l)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    l->fd = -1;
    buf_init(&l->sealed, SEALED_BYTES_MAX);
    snprintf(l->peer, sizeof l->peer, "%.70s:%u", host, port);
    snprintf(service, sizeof service, "%u", port);
    int error = getaddrinfo(host, service, &want, &found);
    int r = error ? broken(l, d, gai_strerror(error)) : FIRN_EIO, left = 0;
    for (a = error ? NULL : found; a; a = a->ai_next)
        left++;
    for (a = error ? NULL : found; a && r != 0; a = a->ai_next, left--) {
        int64_t now = mono_now_ms(); /* each address has its share of the time */
        r = connect_to(l, a, now + (until_ms - now) / left, d);
    }
    if (!error)
        freeaddrinfo(found);
    if (r == 0 && tls)
        r = tls_start(l, tls, host, until_ms, d);
    if (r != 0) {
        link_close(l);
        return r;
    }
    *out = l;
    return 0;
}

void link_close(struct link *l)
{
    if (!l)
        return;
    tls_free(l->tls);
    buf_done(&l->sealed);
    free(l->plain);
    if (l->fd >= 0)
        close(l->fd);
    free(l);
}

int link_send(struct link *l, const char *p, size_t len, int64_t until_ms, struct firn_diag *d)
{
    if (!l->tls)
        return plain_send(l, p, len, until_ms, d);
    for (size_t some; len > 0; p += some, len -= some) {
        some = len < CHUNK_BYTES ? len : CHUNK_BYTES;
        int r = tls_write(l->tls, p, some, &l->sealed) ? tls_error(l, d) : flush(l, until_ms, d);
        if (r != 0)
            return r;
    }
    return 0;
}

int link_recv(struct link *l, char *p, size_t cap, size_t *out_n, int64_t until_ms,
              struct firn_diag *d)
{
    if (!l->tls)
        return plain_recv(l, p, cap, out_n, until_ms, d);
    while (l->plain_at == l->plain_len) {
        int r = tls_take(l, until_ms, d);
        if (r != 0)
            return r;
    }
    firn_assert(l->plain_at < l->plain_len && l->plain_len <= TLS_PLAIN_BYTES, "at=%zu len=%zu",
                l->plain_at, l->plain_len);
    size_t n = l->plain_len - l->plain_at;
    *out_n = n < cap ? n : cap;
    memcpy(p, l->plain + l->plain_at, *out_n);
    l->plain_at += *out_n;
    return 0;
}

bool link_quiet(const struct link *l)
{
    struct pollfd p = { .fd = l->fd, .events = POLLIN };
    return l->plain_at == l->plain_len && poll(&p, 1, 0) == 0;
}
