/* sd_notify(3) and sd_listen_fds(3) without libsystemd. */
#include "daemon/systemd.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_FD = 3, NAME_MAX_BYTES = 64 };

/* A number in the environment; false if there is none, or it is none. */
static bool env_number(const char *name, uint64_t *out)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || *end)
        return false;
    *out = v;
    return true;
}

/* Whether LISTEN_* is meant for this process, not for one that started it. */
static bool for_us(void)
{
    uint64_t pid;
    return env_number("LISTEN_PID", &pid) && pid == (uint64_t)getpid();
}

struct ports { /* the program's, by name */
    const char *const *names;
    size_t n;
};

/* The port with this name, or ports->n. */
static size_t port_of(const struct ports *ports, const char *p, size_t len)
{
    size_t i = 0;
    while (i < ports->n && (strlen(ports->names[i]) != len || memcmp(ports->names[i], p, len) != 0))
        i++;
    return i;
}

static int unknown_name(const struct ports *ports, size_t number, const char *name, size_t len,
                        struct firn_diag *diag)
{
    char list[128] = "";
    for (size_t i = 0, at = 0; i < ports->n && at < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s",
                               i == 0             ? ""
                               : i + 1 < ports->n ? ", "
                                                  : " or ",
                               ports->names[i]);
    return firn__diag(diag, FIRN_EINVAL, 0,
                      "socket %zu from systemd ('%.*s') is for no port; set FileDescriptorName= to "
                      "%s",
                      number, len < NAME_MAX_BYTES ? (int)len : NAME_MAX_BYTES, name, list);
}

static int check_socket(int fd, struct firn_diag *diag)
{
    int type = 0, listening = 0;
    socklen_t size = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
        return firn__diag(diag, FIRN_EINVAL, 0,
                          "descriptor %d from systemd is no stream socket; use ListenStream=", fd);
    size = sizeof listening;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening)
        return firn__diag(diag, FIRN_EINVAL, 0,
                          "descriptor %d from systemd does not listen; set Accept=no", fd);
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) != 0)
        return firn__diag(diag, FIRN_EIO, 0, "descriptor %d: %s", fd, strerror(errno));
    return 0;
}

static int take_sockets(const struct ports *ports, size_t n, const char *names,
                        struct systemd_socket *out, struct firn_diag *diag)
{
    bool named = false;
    size_t len;
    for (const char *p = names; *p; p += len + (p[len] == ':')) {
        len = strcspn(p, ":");
        named |= port_of(ports, p, len) < ports->n;
    }
    for (size_t i = 0; i < n; i++) {
        int fd = FIRST_FD + (int)i;
        size_t port = i;
        len = strcspn(names, ":");
        if (named)
            port = port_of(ports, names, len);
        if (port >= ports->n)
            return unknown_name(ports, i + 1, names, len, diag);
        int r = check_socket(fd, diag);
        if (r)
            return r;
        out[i] = (struct systemd_socket){ fd, port };
        names += len + (names[len] == ':');
    }
    return 0;
}

int systemd_sockets(const char *const *names, size_t names_n,
                    struct systemd_socket out[SYSTEMD_SOCKETS_MAX], size_t *out_n,
                    struct firn_diag *diag)
{
    struct ports ports = { names, names_n };
    uint64_t n = 0;
    int r = 0;
    if (for_us() && env_number("LISTEN_FDS", &n)) {
        const char *given = getenv("LISTEN_FDNAMES");
        if (n > SYSTEMD_SOCKETS_MAX)
            r = firn__diag(diag, FIRN_EINVAL, 0,
                           "too many sockets from systemd (%" PRIu64 ", at most %d)", n,
                           SYSTEMD_SOCKETS_MAX);
        else
            r = take_sockets(&ports, (size_t)n, given ? given : "", out, diag);
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (r == 0)
        *out_n = (size_t)n;
    return r;
}

int systemd_share(const char *const *names, size_t names_n, size_t loops,
                  int (*give)(void *user, size_t loop, size_t port, int fd), void *user,
                  bool *passed, struct firn_diag *diag)
{
    struct systemd_socket sockets[SYSTEMD_SOCKETS_MAX];
    size_t n = 0;
    int r = systemd_sockets(names, names_n, sockets, &n, diag);
    for (size_t i = 0; i < n && r == 0; i++) {
        passed[sockets[i].port] = true;
        for (size_t k = 0; k < loops && r == 0; k++) {
            int fd = k + 1 < loops ? fcntl(sockets[i].fd, F_DUPFD_CLOEXEC, FIRST_FD)
                                   : sockets[i].fd;
            r = fd < 0 ? firn__diag(diag, FIRN_EIO, 0, "socket %zu from systemd: %s", i + 1,
                                    strerror(errno))
                       : give(user, k, sockets[i].port, fd);
        }
    }
    return r;
}

/* One datagram to the socket that NOTIFY_SOCKET names: a path, or with '@' an abstract name. */
static int notify(const char *message)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    if (!path || !*path)
        return 0;
    size_t n = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || n >= sizeof to.sun_path)
        return FIRN_EIO;
    memcpy(to.sun_path, path, n);
    if (path[0] == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return FIRN_EIO;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    ssize_t sent = sendto(fd, message, strlen(message), MSG_NOSIGNAL, (void *)&to, size);
    close(fd);
    return sent < 0 ? FIRN_EIO : 0;
}

/* Fields end at a line break, so a status cannot contain one. */
static int notify_status(const char *state, const char *status)
{
    char message[512];
    int n = snprintf(message, sizeof message, "%s%s%s", state, status ? "STATUS=" : "",
                     status ? status : "");
    size_t from = strlen(state) + (status ? strlen("STATUS=") : 0);
    for (size_t i = from; i < (size_t)n && i < sizeof message && message[i]; i++)
        if (message[i] == '\n')
            message[i] = ' ';
    return notify(message);
}

int systemd_ready(const char *status)
{
    return notify_status("READY=1\n", status);
}

int systemd_stopping(const char *status)
{
    return notify_status("STOPPING=1\n", status);
}

/* Type=notify-reload wants to know when, to tell this reload from the one before. */
int systemd_reloading(void)
{
    char message[64];
    snprintf(message, sizeof message, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, mono_us());
    return notify(message);
}

int systemd_watchdog(void)
{
    return notify("WATCHDOG=1");
}

uint64_t systemd_watchdog_ms(void)
{
    uint64_t us, pid;
    if (!env_number("WATCHDOG_USEC", &us) || us == 0 ||
        (env_number("WATCHDOG_PID", &pid) && pid != (uint64_t)getpid()))
        return 0;
    return us / 2000 ? us / 2000 : 1;
}

int systemd_status(const char *fmt, ...)
{
    char status[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(status, sizeof status, fmt, args);
    va_end(args);
    return notify_status("", status);
}
