/*
 * stub_server.h - a server for tests: a thread per connection, each answering complete requests
 * (HTTP heads, or commands of the Redis protocol) with what the test's function writes.
 */
#ifndef STUB_SERVER_H
#define STUB_SERVER_H

#include "t.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STUB_CONNS_MAX = 64, STUB_ANSWER_BYTES = 4096 };

struct stub {
    int fd;
    uint16_t port;
    struct sockaddr_in address;
    pthread_t thread;
    atomic_uint requests, conns;
    /* Writes the answer of request number `n` (0, 1, ...) to `out`; its length. 0: hang up
     * instead. */
    size_t (*answer)(unsigned n, char out[STUB_ANSWER_BYTES]);
    size_t crumb;     /* send so many bytes at a time; 0: all at once */
    bool close_after; /* hang up after each answer */
};

struct stub_conn {
    struct stub *s;
    int fd;
};

static void stub_send(const struct stub_conn *c, const char *p, size_t len)
{
    while (len > 0) {
        size_t n = c->s->crumb && c->s->crumb < len ? c->s->crumb : len;
        ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        p += sent;
        len -= (size_t)sent;
        if (c->s->crumb)
            usleep(50);
    }
}

static void *stub_talk(void *user)
{
    struct stub_conn *c = user;
    char in[65536], out[STUB_ANSWER_BYTES];
    size_t len = 0;
    bool open = true;
    for (ssize_t n; open && (n = recv(c->fd, in + len, sizeof in - len, 0)) > 0;) {
        len += (size_t)n;
        for (char *end; open && len > 0;) {
            const char *mark = in[0] == '*' ? "x\r\n" : "\r\n\r\n"; /* commands here end in x */
            if (!(end = memmem(in, len, mark, strlen(mark))))
                break;
            size_t used = (size_t)(end - in) + strlen(mark);
            len -= used;
            memmove(in, in + used, len);
            size_t answer = c->s->answer(atomic_fetch_add(&c->s->requests, 1), out);
            stub_send(c, out, answer);
            open = answer > 0 && !c->s->close_after;
        }
    }
    close(c->fd);
    free(c);
    return NULL;
}

static void *stub_accept(void *user)
{
    struct stub *s = user;
    for (int fd; (fd = accept(s->fd, NULL, NULL)) >= 0;) {
        struct stub_conn *c = malloc(sizeof *c);
        pthread_t t;
        atomic_fetch_add(&s->conns, 1);
        *c = (struct stub_conn){ s, fd };
        if (pthread_create(&t, NULL, stub_talk, c) != 0)
            abort();
        pthread_detach(t);
    }
    return NULL;
}

static void stub_start(struct stub *s)
{
    socklen_t len = sizeof s->address;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    s->address = (struct sockaddr_in){ .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&s->address, len) != 0 ||
        listen(s->fd, 128) != 0 || getsockname(s->fd, (struct sockaddr *)&s->address, &len) != 0 ||
        pthread_create(&s->thread, NULL, stub_accept, s) != 0)
        abort();
    s->port = ntohs(s->address.sin_port);
}

/* Connections that are still open are answered on; a struct stub is therefore static. */
static void stub_stop(struct stub *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

#endif
