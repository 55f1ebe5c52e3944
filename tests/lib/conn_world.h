/*
 * conn_world.h - loops and connections with real sockets: one loop in a thread, a service that
 * answers at once or when the test says so, clients that are nice, slow or gone.
 */
#ifndef CONN_WORLD_H
#define CONN_WORLD_H

#include "t.h"

#include "net/loop.h"
#include "wire/url.h"

#include <strings.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { DEFERRED_MAX = 4096, BIG_BYTES = 1000 * 1000, EXPECTED_BYTES = 100 * 1000 };

struct service_ctx {
    struct reply *deferred[DEFERRED_MAX];
    size_t deferred_len;
    unsigned numbers[DEFERRED_MAX]; /* what their answers say */
    unsigned closed, turns, retries;
};

struct world {
    struct service service;
    struct service_ctx ctx;
    struct places places;
    struct loop *loop;
    pthread_t thread;
    struct sockaddr_in address;
};

static inline void answer(struct reply *r, unsigned n)
{
    char text[32];
    int len = snprintf(text, sizeof text, "%u\n", n);
    if (r->peer && r->peer->proto == 1)
        reply_http(r, 200, "", text, (size_t)len);
    else
        resp_int(r->out, n);
}

static inline void defer(struct service_ctx *x, struct reply *r, unsigned n, enum defer_mode mode)
{
    struct reply *d = reply_defer(r, mode);
    if (!d) {
        answer(r, 99999);
        return;
    }
    x->numbers[x->deferred_len] = n;
    x->deferred[x->deferred_len++] = d;
}

/* When it is handed over for the fourth time. */
static inline void answer_later(struct service_ctx *x, struct reply *r, unsigned n)
{
    T_EQ(r->waited_ms > 0, x->retries % 4 > 0);
    if (x->retries++ % 4 == 3)
        answer(r, n);
    else
        T_OK(reply_retry(r, 1));
}

/* /n/5 answers 5; /r/5 the same, when it is asked again; /d/5 the same, deferred; /e/5 the same,
 * expected to be long; /s/5 serial; /big a megabyte; /none nothing. */
static inline void on_http(struct service_ctx *x, const struct http_request *req, struct reply *r)
{
    struct slice rest = req->path, kind, number;
    uint64_t n = 0;
    url_path_next(&rest, &kind);
    if (url_path_next(&rest, &number) && http_u64(number, 1000000, &n) < 0)
        n = 0;
    if (kind.len == 1 && kind.p[0] == 'd')
        defer(x, r, (unsigned)n, DEFER_PIPELINED);
    else if (kind.len == 1 && kind.p[0] == 'e') {
        defer(x, r, (unsigned)n, DEFER_PIPELINED);
        reply_expect(x->deferred[x->deferred_len - 1], EXPECTED_BYTES);
    } else if (kind.len == 1 && kind.p[0] == 's')
        defer(x, r, (unsigned)n, DEFER_SERIAL);
    else if (kind.len == 1 && kind.p[0] == 'n')
        answer(r, (unsigned)n);
    else if (kind.len == 1 && kind.p[0] == 'r')
        answer_later(x, r, (unsigned)n);
    else if (kind.len == 3) {
        reply_begin(r, 200, "");
        for (int i = 0; i < BIG_BYTES / 100; i++)
            buf_addf(r->out, "%099d\n", i);
        reply_end(r);
    } else if (kind.len == 4 && req->body.len > 0 && kind.p[0] == 'o') {
        answer(r, reply_retry(r, 1));
    } else if (kind.len == 4 && req->body.len > 0) {
        reply_http(r, 200, "", req->body.p, req->body.len);
    }
}

static inline void on_resp(struct service_ctx *x, const struct resp_request *req, struct reply *r)
{
    int64_t n = 0;
    if (req->argc > 1 && resp_i64(req->argv[1], &n) < 0)
        n = -1;
    if (n == -1)
        r->peer->flags = 1;
    if (resp_is(req, 0, "N"))
        answer(r, (unsigned)n);
    else if (resp_is(req, 0, "O"))
        answer(r, reply_retry(r, 1));
    else if (resp_is(req, 0, "R"))
        answer_later(x, r, (unsigned)n);
    else if (resp_is(req, 0, "D"))
        defer(x, r, (unsigned)n, DEFER_PIPELINED);
    else if (resp_is(req, 0, "PING"))
        resp_simple(r->out, "PONG");
    else if (resp_is(req, 0, "QUIT")) {
        resp_simple(r->out, "OK");
        r->close = true;
    }
}

static inline bool is_command(const char *p, size_t len)
{
    static const char *const words[] = { "N", "D", "GET", "GETSET", "FIRN.NEXT" };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (len == strlen(words[i]) && strncasecmp(p, words[i], len) == 0)
            return true;
    return false;
}

static inline void on_turn(struct service_ctx *x)
{
    x->turns++;
}

static inline void on_closed(struct service_ctx *x, struct peer *p)
{
    if (p->id > 0)
        x->closed++;
}

/* /n/0 stands for health. */
static inline bool is_vital(const struct http_request *req)
{
    return req->path.len == 4 && memcmp(req->path.p, "/n/0", 4) == 0;
}

/* N -1 takes the right to idle away. */
static inline bool may_idle(struct service_ctx *x, const struct peer *p)
{
    (void)x;
    return p->flags == 0;
}

static inline void *run(void *loop)
{
    return loop_run(loop) == 0 ? loop : NULL;
}

/* At most `conns_max` connections, each network `per_network` of them (0: any number). */
static inline void world_start_limited(struct world *w, const struct loop_opts *opts,
                                       uint32_t conns_max, uint32_t per_network)
{
    int fd;
    struct firn_diag diag;
    socklen_t len = sizeof w->address;
    memset(w, 0, sizeof *w);
    w->service = (struct service){ .ctx = &w->ctx,
                                   .http = on_http,
                                   .resp = on_resp,
                                   .turn = on_turn,
                                   .closed = on_closed,
                                   .command = is_command,
                                   .vital = is_vital,
                                   .may_idle = may_idle };
    places_init(&w->places, conns_max, per_network, 42);
    T_EQ(listen_open("127.0.0.1:0", &fd, 1, &diag), 0);
    T_EQ(getsockname(fd, (struct sockaddr *)&w->address, &len), 0);
    T_EQ(loop_new(opts, &w->service, &w->places, &w->loop), 0);
    T_EQ(loop_listen(w->loop, fd, 7, false), 0);
    T_EQ(pthread_create(&w->thread, NULL, run, w->loop), 0);
}

static inline void world_start(struct world *w, const struct loop_opts *opts)
{
    world_start_limited(w, opts, 10000, 0);
}

static inline void world_stop(struct world *w)
{
    loop_drain(w->loop);
    pthread_join(w->thread, NULL);
    loop_free(w->loop);
    T_EQ(w->places.open, 0);
}

static inline void ask(struct world *w, void (*fn)(struct world *w, void *arg), void *arg);

static inline int dial(const struct world *w)
{
    struct timeval patience = { 10, 0 };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    T_OK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    T_EQ(connect(fd, (const struct sockaddr *)&w->address, sizeof w->address), 0, "%s",
         strerror(errno));
    return fd;
}

static inline void say_n(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        T_OK(n > 0, "send: %s", strerror(errno));
        p += n;
        len -= (size_t)n;
    }
}

static inline void say(int fd, const char *text)
{
    say_n(fd, text, strlen(text));
}

static inline void hear(int fd, const char *expect)
{
    char got[4096] = "";
    size_t len = strlen(expect), at = 0;
    T_OK(len < sizeof got);
    while (at < len) {
        ssize_t n = recv(fd, got + at, len - at, 0);
        T_OK(n > 0, "after '%s': %s", got, n == 0 ? "end" : strerror(errno));
        at += (size_t)n;
        got[at] = 0;
        T_OK(memcmp(got, expect, at) == 0, "heard '%s' instead of '%s'", got, expect);
    }
}

/* One HTTP answer; returns its status and body. Date is checked to be there and left out of it. */
static inline int hear_http(int fd, char *body, size_t cap)
{
    char head[2048];
    size_t at = 0;
    while (at < 4 || memcmp(head + at - 4, "\r\n\r\n", 4) != 0) {
        T_OK(at < sizeof head - 1);
        ssize_t n = recv(fd, head + at, 1, 0);
        T_OK(n == 1, "in a head: %s", n == 0 ? "end" : strerror(errno));
        at++;
    }
    head[at] = 0;
    int status = atoi(head + 9);
    T_OK(memcmp(head, "HTTP/1.1 ", 9) == 0, "%s", head);
    if (status >= 200)
        T_OK(strstr(head, "\r\nDate: ") && strstr(head, " GMT\r\n"), "%s", head);
    const char *length = strstr(head, "Content-Length: ");
    size_t len = length ? strtoul(length + 16, NULL, 10) : 0;
    T_OK(!body || len < cap, "%zu", len);
    for (at = 0; at < len;) {
        char dump[4096];
        ssize_t n = recv(fd, body ? body + at : dump,
                         body || len - at < sizeof dump ? len - at : sizeof dump, 0);
        T_OK(n > 0, "in a body: %s", n == 0 ? "end" : strerror(errno));
        at += (size_t)n;
    }
    if (body)
        body[len] = 0;
    return status;
}

static inline void hear_number(int fd, unsigned n)
{
    char body[4096];
    T_EQ(hear_http(fd, body, sizeof body), 200, "waiting for %u: %s", n, body);
    T_EQ(strtoul(body, NULL, 10), n);
}

static inline void hear_end(int fd)
{
    char c;
    ssize_t n = recv(fd, &c, 1, 0);
    T_OK(n == 0, "expected the end, got %zd (%s)", n, n < 0 ? strerror(errno) : "");
    close(fd);
}

/* An answer that says that it is the last, and the end. */
static inline void hear_last_number(int fd, unsigned n)
{
    char got[4096] = "";
    size_t at = 0;
    ssize_t more;
    while (at < sizeof got - 1 && (more = recv(fd, got + at, sizeof got - 1 - at, 0)) > 0)
        at += (size_t)more;
    T_OK(more == 0, "after '%s': %s", got, strerror(errno));
    T_OK(strstr(got, "HTTP/1.1 200 OK\r\n") == got, "%s", got);
    T_OK(strstr(got, "\r\nConnection: close\r\n"), "%s", got);
    const char *body = strstr(got, "\r\n\r\n");
    T_OK(body, "%s", got);
    T_EQ(strtoul(body + 4, NULL, 10), n);
    close(fd);
}

static inline bool silent(int fd, int ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return poll(&p, 1, ms) == 0;
}

/* Runs fn on the loop's thread and waits for it. */
struct question {
    struct loop_task task;
    struct world *w;
    void (*fn)(struct world *w, void *arg);
    void *arg;
    sem_t done;
};

static inline void on_question(struct loop_task *t)
{
    struct question *q = (struct question *)t;
    q->fn(q->w, q->arg);
    sem_post(&q->done);
}

static inline void ask(struct world *w, void (*fn)(struct world *w, void *arg), void *arg)
{
    struct question q = { .task.fn = on_question, .w = w, .fn = fn, .arg = arg };
    sem_init(&q.done, 0, 0);
    loop_call(w->loop, &q.task);
    while (sem_wait(&q.done) < 0)
        continue;
    sem_destroy(&q.done);
}

static inline void nothing(struct world *w, void *arg)
{
    (void)w;
    (void)arg;
}

static inline void count_deferred(struct world *w, void *arg)
{
    *(size_t *)arg = w->ctx.deferred_len;
}

static inline void wait_deferred(struct world *w, size_t n)
{
    size_t have = 0;
    for (int i = 0; i < 10000 && have != n; i++) {
        ask(w, count_deferred, &have);
        usleep(have == n ? 0 : 500);
    }
    T_EQ(have, n);
}

static inline void release_one(struct world *w, void *arg)
{
    size_t i = *(const size_t *)arg;
    answer(w->ctx.deferred[i], w->ctx.numbers[i]);
    reply_done(w->ctx.deferred[i]);
}

static inline void release_all_backwards(struct world *w, void *arg)
{
    (void)arg;
    for (size_t i = w->ctx.deferred_len; i-- > 0;)
        release_one(w, &i);
    w->ctx.deferred_len = 0;
}

#define GET(path)      "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_LAST(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

#endif
