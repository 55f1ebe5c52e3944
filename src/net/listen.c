/*
 * Listening sockets: one per loop on the same address, among which the kernel distributes
 * connections (SO_REUSEPORT). That option would also let a second server take some of the first
 * one's clients unnoticed, so a socket without it is bound first: it fails when the address is in
 * use. Tested in tests/unit/net/conn.c.
 */
#include "net/loop.h"

#include "id/diag.h"
#include "wire/url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LISTEN_BACKLOG = 4096 }; /* the kernel lowers it to somaxconn */

union address {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

static socklen_t address_len(const union address *a)
{
    return a->sa.sa_family == AF_INET6 ? sizeof a->in6 : sizeof a->in;
}

static in_port_t *address_port(union address *a)
{
    return a->sa.sa_family == AF_INET6 ? &a->in6.sin6_port : &a->in.sin_port;
}

static int address_parse(const char *text, union address *a, struct firn_diag *diag)
{
    struct host_port h;
    enum host_error e = host_port_read((struct slice){ text, strlen(text) }, &h);
    if ((e != HOST_OK && e != HOST_EMPTY) || !h.has_port)
        return firn__diag(diag, FIRN_EINVAL, 0, "'%.100s' is not an address like 127.0.0.1:9001",
                          text);
    memset(a, 0, sizeof *a);
    if (h.brackets) {
        a->in6.sin6_family = AF_INET6;
        a->in6.sin6_port = htons(h.port);
        if (inet_pton(AF_INET6, h.host, &a->in6.sin6_addr) == 1)
            return 0;
    } else {
        const char *name = e == HOST_EMPTY || strcmp(h.host, "*") == 0 ? "0.0.0.0"
                           : strcmp(h.host, "localhost") == 0          ? "127.0.0.1"
                                                                       : h.host;
        a->in.sin_family = AF_INET;
        a->in.sin_port = htons(h.port);
        if (inet_pton(AF_INET, name, &a->in.sin_addr) == 1)
            return 0;
    }
    return firn__diag(diag, FIRN_EINVAL, 0,
                      "'%.100s' is not an IP address; names are not looked up here", h.host);
}

/* A socket that listens, or -1 and errno. */
static int open_one(const union address *a, bool shared)
{
    int on = 1, fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0) ||
        (a->sa.sa_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) ||
        bind(fd, &a->sa, address_len(a)) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
        int e = errno;
        close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

/* A socket file that nobody listens on any more is removed: a program that was killed leaves it.
 * False and errno: somebody does, or it is no socket. */
static bool remove_stale(const union address *a)
{
    struct stat st;
    if (lstat(a->un.sun_path, &st) != 0)
        return errno == ENOENT;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool used = fd < 0 || connect(fd, &a->sa, sizeof a->un) == 0 || errno != ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    if (!used && S_ISSOCK(st.st_mode))
        return unlink(a->un.sun_path) == 0;
    errno = EADDRINUSE;
    return false;
}

/* One socket, of which every loop has a copy. */
static int open_unix(const char *path, int *fds, size_t n, struct firn_diag *diag)
{
    union address a = { .un = { .sun_family = AF_UNIX } };
    size_t opened = 0;
    if (!memccpy(a.un.sun_path, path, '\0', sizeof a.un.sun_path))
        return firn__diag(diag, FIRN_EINVAL, 0, "the path of unix:%.60s... is too long", path);
    int fd = remove_stale(&a) ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    if (fd >= 0 && bind(fd, &a.sa, sizeof a.un) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
        for (fds[opened++] = fd; opened < n; opened++)
            if ((fds[opened] = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0)
                break;
    if (opened == n)
        return 0;
    int r = firn__diag(diag, FIRN_EIO, 0, "cannot listen on unix:%.100s: %s", path,
                       strerror(errno));
    if (fd >= 0 && opened == 0)
        close(fd);
    while (opened-- > 0)
        close(fds[opened]);
    return r;
}

int listen_open(const char *address, int *fds, size_t n, struct firn_diag *diag)
{
    if (strncmp(address, "unix:", 5) == 0)
        return open_unix(address + 5, fds, n, diag);
    union address a = { 0 };
    int r = address_parse(address, &a, diag);
    if (r < 0)
        return r;
    size_t opened = 0;
    int probe = open_one(&a, false);
    if (probe < 0)
        goto refused;
    socklen_t len = sizeof a; /* port 0: keep what the system chose */
    getsockname(probe, &a.sa, &len);
    close(probe);
    for (; opened < n; opened++) {
        fds[opened] = open_one(&a, n > 1);
        if (fds[opened] < 0)
            goto refused;
    }
    return 0;

refused:
    r = firn__diag(diag, FIRN_EIO, 0, "cannot listen on %.100s: %s", address, strerror(errno));
    while (opened-- > 0)
        close(fds[opened]);
    return r;
}

void listen_name(int fd, char out[PEER_ADDRESS_BUF])
{
    union address a = { 0 };
    socklen_t len = sizeof a;
    char host[INET6_ADDRSTRLEN];
    snprintf(out, PEER_ADDRESS_BUF, "?");
    if (getsockname(fd, &a.sa, &len) < 0)
        return;
    if (a.sa.sa_family == AF_UNIX) {
        snprintf(out, PEER_ADDRESS_BUF, "unix:%.*s", PEER_ADDRESS_BUF - 6, a.un.sun_path);
        return;
    }
    bool six = a.sa.sa_family == AF_INET6;
    if (!inet_ntop(a.sa.sa_family, six ? (void *)&a.in6.sin6_addr : (void *)&a.in.sin_addr, host,
                   sizeof host))
        return;
    snprintf(out, PEER_ADDRESS_BUF, six ? "[%s]:%u" : "%s:%u", host, ntohs(*address_port(&a)));
}
