/* The metrics server of firn audit. */
#include "cli/watch/audit_metrics.h"
#include "cli/say.h"
#include "wire/http.h"
#include "wire/url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { REQUEST_BYTES = 8192, ANSWER_BYTES = 8192, PEER_S = 2, BACKLOG = 16 };

static size_t write_metrics(struct audit_metrics *m, char *out, size_t size)
{
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        { "firn_audit_ids_total", "counter", "IDs that were recorded, duplicates among them.",
          (double)atomic_load(&m->ids) },
        { "firn_audit_duplicates_total", "counter", "IDs that had been recorded before.",
          (double)atomic_load(&m->duplicates) },
        { "firn_audit_malformed_total", "counter", "Lines that hold no ID.",
          (double)atomic_load(&m->malformed) },
        { "firn_audit_commits_total", "counter", "Batches committed by this process.",
          (double)atomic_load(&m->commits) },
        { "firn_audit_errors_total", "counter", "Calls of the database that failed.",
          (double)atomic_load(&m->errors) },
        { "firn_audit_lag_bytes", "gauge", "Bytes of the file that are not recorded yet.",
          (double)atomic_load(&m->lag_bytes) },
        { "firn_audit_last_commit_timestamp_seconds", "gauge", "Unix time of the last commit.",
          (double)atomic_load(&m->last_commit_ms) / 1000 },
    };
    size_t len = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        len += (size_t)snprintf(out + len, size - len, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n",
                                rows[i].name, rows[i].help, rows[i].name, rows[i].type,
                                rows[i].name, rows[i].value);
    return len;
}

static void send_all(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        p += n;
        len -= (size_t)n;
    }
}

/* Serves one request; a slow client is disconnected. */
static void serve(struct audit_metrics *m, int fd)
{
    char bytes[REQUEST_BYTES], body[ANSWER_BYTES], head[256];
    size_t len = 0, body_len;
    struct http_request q;
    struct http_error e = { 0 };
    ssize_t taken;
    struct timeval limit = { .tv_sec = PEER_S };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    do {
        ssize_t n = recv(fd, bytes + len, sizeof bytes - len, 0);
        if (n <= 0)
            return;
        len += (size_t)n;
        taken = http_parse(bytes, len, &q, &e);
    } while (taken == FIRN_EAGAIN && len < sizeof bytes);
    bool get = taken > 0 && q.method == METHOD_GET;
    unsigned status = 200;
    if (get && slice_is(q.path, "/metrics")) {
        body_len = write_metrics(m, body, sizeof body);
    } else if (get && slice_is(q.path, "/healthz")) {
        body_len = (size_t)snprintf(body, sizeof body, "ok\n");
    } else {
        status = get ? 404 : taken > 0 ? 405 : e.status ? e.status : 431;
        body_len = (size_t)snprintf(body, sizeof body, "use GET /metrics or GET /healthz\n");
    }
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 %u %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                     "Content-Length: %zu\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
                     status, http_status_text(status), body_len);
    send_all(fd, head, (size_t)n);
    send_all(fd, body, body_len);
    shutdown(fd, SHUT_WR);
}

static void *run(void *user)
{
    struct audit_metrics *m = user;
    for (;;) {
        struct pollfd p[2] = { { .fd = m->fd, .events = POLLIN },
                               { .fd = m->wake[0], .events = POLLIN } };
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (p[1].revents)
            return NULL;
        if (!(p[0].revents & POLLIN))
            continue;
        int fd = accept4(m->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        serve(m, fd);
        close(fd);
    }
}

static bool loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static int listen_on(struct audit_metrics *m, const struct addrinfo *a, const char *shown)
{
    int on = 1;
    if (!loopback(a->ai_addr))
        return say_trouble(
            "--metrics %s: only loopback addresses are allowed, because the metrics have no "
            "access control: let Prometheus read them through an agent or a tunnel",
            shown);
    m->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (m->fd >= 0)
        setsockopt(m->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (m->fd < 0 || bind(m->fd, a->ai_addr, a->ai_addrlen) != 0 || listen(m->fd, BACKLOG) != 0)
        return say_trouble("--metrics %s: %s: choose another port", shown, strerror(errno));
    return -1;
}

static void tell_bound(const struct audit_metrics *m, char bound[HOST_PORT_BUF])
{
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    char host[48] = "", port[8] = "";
    getsockname(m->fd, (struct sockaddr *)&a, &len);
    getnameinfo((struct sockaddr *)&a, len, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    host_port_write(host, (uint16_t)atoi(port), bound);
}

int audit_metrics_start(struct audit_metrics *m, const char *address, char bound[HOST_PORT_BUF])
{
    char shown[SAY_TEXT_BUF], port[8];
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list = NULL;
    struct host_port at;
    enum host_error e = host_port_read((struct slice){ address, strlen(address) }, &at);
    say_text(address, strlen(address), shown);
    if ((e != HOST_OK && e != HOST_COLONS) || !at.has_port)
        return say_trouble("--metrics %s: give host:port, such as 127.0.0.1:9109", shown);
    snprintf(port, sizeof port, "%u", at.port);
    int r = getaddrinfo(at.host, port, &hints, &list);
    if (r != 0)
        return say_trouble("--metrics %s: %s", shown, gai_strerror(r));
    r = listen_on(m, list, shown);
    freeaddrinfo(list);
    if (r >= 0)
        return r;
    tell_bound(m, bound);
    if (pipe(m->wake) != 0 || pthread_create(&m->thread, NULL, run, m) != 0)
        return say_trouble("--metrics: %s", strerror(errno));
    m->running = true;
    return -1;
}

void audit_metrics_done(struct audit_metrics *m)
{
    if (m->running) {
        ssize_t n = write(m->wake[1], "", 1);
        (void)n;
        pthread_join(m->thread, NULL);
    }
    for (int i = 0; i < 2; i++)
        if (m->wake[i] > 0)
            close(m->wake[i]);
    if (m->fd > 0)
        close(m->fd);
}
