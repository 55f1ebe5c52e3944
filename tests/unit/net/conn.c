/* Loops and connections with real sockets: one loop in a thread, a service that answers at once or
 * when the test says so, clients that are nice, slow or gone. */
#include "t.h"

#include "net/loop.h"

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
    unsigned closed, turns;
};

struct world {
    struct service service;
    struct service_ctx ctx;
    _Atomic uint32_t conns_open;
    struct loop *loop;
    pthread_t thread;
    struct sockaddr_in address;
};

static void answer(struct reply *r, unsigned n)
{
    char text[32];
    int len = snprintf(text, sizeof text, "%u\n", n);
    if (r->peer && r->peer->proto == 1)
        reply_http(r, 200, "", text, (size_t)len);
    else
        resp_int(r->out, n);
}

static void defer(struct service_ctx *x, struct reply *r, unsigned n, enum defer_mode mode)
{
    struct reply *d = reply_defer(r, mode);
    if (!d) {
        answer(r, 99999);
        return;
    }
    x->numbers[x->deferred_len] = n;
    x->deferred[x->deferred_len++] = d;
}

/* /n/5 answers 5; /d/5 the same, deferred; /e/5 the same, expected to be long; /s/5 serial; /big a megabyte; /none nothing. */
static void on_http(struct service_ctx *x, const struct http_request *req, struct reply *r)
{
    struct slice rest = req->path, kind, number;
    uint64_t n = 0;
    http_path_next(&rest, &kind);
    if (http_path_next(&rest, &number) && http_u64(number, 1000000, &n) < 0)
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
    else if (kind.len == 3) {
        reply_begin(r, 200, "");
        for (int i = 0; i < BIG_BYTES / 100; i++)
            buf_addf(r->out, "%099d\n", i);
        reply_end(r);
    } else if (kind.len == 4 && req->body.len > 0) {
        reply_http(r, 200, "", req->body.p, req->body.len);
    }
}

static void on_resp(struct service_ctx *x, const struct resp_request *req, struct reply *r)
{
    int64_t n = 0;
    if (req->argc > 1 && resp_i64(req->argv[1], &n) < 0)
        n = -1;
    if (resp_is(req, 0, "N"))
        answer(r, (unsigned)n);
    else if (resp_is(req, 0, "D"))
        defer(x, r, (unsigned)n, DEFER_PIPELINED);
    else if (resp_is(req, 0, "PING"))
        resp_simple(r->out, "PONG");
    else if (resp_is(req, 0, "QUIT")) {
        resp_simple(r->out, "OK");
        r->close = true;
    }
}

static void on_turn(struct service_ctx *x)
{
    x->turns++;
}

static void on_closed(struct service_ctx *x, struct peer *p)
{
    if (p->id > 0)
        x->closed++;
}

static void *run(void *loop)
{
    return loop_run(loop) == 0 ? loop : NULL;
}

static void world_start(struct world *w, const struct loop_opts *opts)
{
    int fd;
    struct firn_diag diag;
    socklen_t len = sizeof w->address;
    memset(w, 0, sizeof *w);
    w->service = (struct service){ &w->ctx, on_http, on_resp, on_turn, on_closed };
    T_EQ(listen_open("127.0.0.1:0", &fd, 1, &diag), 0);
    T_EQ(getsockname(fd, (struct sockaddr *)&w->address, &len), 0);
    T_EQ(loop_new(opts, &w->service, &w->conns_open, &w->loop), 0);
    T_EQ(loop_listen(w->loop, fd, 7), 0);
    T_EQ(pthread_create(&w->thread, NULL, run, w->loop), 0);
}

static void world_stop(struct world *w)
{
    loop_drain(w->loop);
    pthread_join(w->thread, NULL);
    loop_free(w->loop);
    T_EQ(w->conns_open, 0);
}

static void ask(struct world *w, void (*fn)(struct world *w, void *arg), void *arg);

static int dial(const struct world *w)
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

static void say_n(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        T_OK(n > 0, "send: %s", strerror(errno));
        p += n;
        len -= (size_t)n;
    }
}

static void say(int fd, const char *text)
{
    say_n(fd, text, strlen(text));
}

static void hear(int fd, const char *expect)
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
static int hear_http(int fd, char *body, size_t cap)
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

static void hear_number(int fd, unsigned n)
{
    char body[4096];
    T_EQ(hear_http(fd, body, sizeof body), 200, "waiting for %u: %s", n, body);
    T_EQ(strtoul(body, NULL, 10), n);
}

static void hear_end(int fd)
{
    char c;
    ssize_t n = recv(fd, &c, 1, 0);
    T_OK(n == 0, "expected the end, got %zd (%s)", n, n < 0 ? strerror(errno) : "");
    close(fd);
}

/* An answer that says that it is the last, and the end. */
static void hear_last_number(int fd, unsigned n)
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

static bool silent(int fd, int ms)
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

static void on_question(struct loop_task *t)
{
    struct question *q = (struct question *)t;
    q->fn(q->w, q->arg);
    sem_post(&q->done);
}

static void ask(struct world *w, void (*fn)(struct world *w, void *arg), void *arg)
{
    struct question q = { .task.fn = on_question, .w = w, .fn = fn, .arg = arg };
    sem_init(&q.done, 0, 0);
    loop_call(w->loop, &q.task);
    while (sem_wait(&q.done) < 0)
        continue;
    sem_destroy(&q.done);
}

static void nothing(struct world *w, void *arg)
{
    (void)w;
    (void)arg;
}

static void count_deferred(struct world *w, void *arg)
{
    *(size_t *)arg = w->ctx.deferred_len;
}

static void wait_deferred(struct world *w, size_t n)
{
    size_t have = 0;
    for (int i = 0; i < 10000 && have != n; i++) {
        ask(w, count_deferred, &have);
        usleep(have == n ? 0 : 500);
    }
    T_EQ(have, n);
}

static void release_one(struct world *w, void *arg)
{
    size_t i = *(const size_t *)arg;
    answer(w->ctx.deferred[i], w->ctx.numbers[i]);
    reply_done(w->ctx.deferred[i]);
}

static void release_all_backwards(struct world *w, void *arg)
{
    (void)arg;
    for (size_t i = w->ctx.deferred_len; i-- > 0;)
        release_one(w, &i);
    w->ctx.deferred_len = 0;
}

#define GET(path)      "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_LAST(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

T_TEST(conn_pipelined_and_in_pieces)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd, GET("/n/1") GET("/n/2") GET("/n/3"));
    for (unsigned i = 1; i <= 3; i++)
        hear_number(fd, i);
    static const char text[] = GET(
        "/n/4") "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n5"
                "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n6\r\n0\r\n\r\n";
    for (size_t i = 0; i < sizeof text - 1; i++) {
        say_n(fd, text + i, 1);
        if (i % 16 == 0)
            usleep(200); /* so that the pieces are not joined on the way */
    }
    for (unsigned i = 4; i <= 6; i++)
        hear_number(fd, i);
    say(fd, "HEAD /n/77 HTTP/1.1\r\nHost: a\r\n\r\n" GET_LAST("/n/8") GET("/n/9"));
    char head[2048] = "";
    for (size_t at = 0; !strstr(head, "\r\n\r\n"); at++)
        T_EQ(recv(fd, head + at, 1, 0), 1);
    T_OK(strstr(head, "Content-Length: 3\r\n"), "HEAD says what GET would send: %s", head);
    hear_number(fd, 8);
    hear_end(fd);
    world_stop(&w);
    T_EQ(w.ctx.closed, 1);
    T_OK(w.ctx.turns > 0);
}

T_TEST(conn_http_10)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd, "GET /n/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    hear(fd, "HTTP/1.1 200 OK\r\nDate: ");
    char rest[512];
    usleep(20000);
    ssize_t n = recv(fd, rest, sizeof rest - 1, 0);
    T_OK(n > 0);
    rest[n] = 0;
    T_OK(strstr(rest, "Connection: keep-alive\r\n"), "%s", rest);
    say(fd, "GET /n/2 HTTP/1.0\r\n\r\n");
    hear_number(fd, 2);
    hear_end(fd);
    world_stop(&w);
}

T_TEST(conn_resp)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd,
        "*1\r\n$4\r\nPING\r\n*2\r\n$1\r\nN\r\n$2\r\n-1\r\n\r\nPING\r\n*0\r\n*1\r\n$7\r\nunknown\r\n");
    hear(fd, "+PONG\r\n:4294967295\r\n+PONG\r\n-ERR the handler gave no answer\r\n");
    say(fd, "*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n");
    hear(fd, "+OK\r\n");
    hear_end(fd);

    fd = dial(&w); /* inline from the first byte on, in pieces */
    for (const char *p = "ping\r\n"; *p; p++) {
        say_n(fd, p, 1);
        usleep(1000);
    }
    hear(fd, "+PONG\r\n");
    say(fd, "*1\r\n$-5\r\n");
    hear(fd, "-ERR Protocol error: invalid bulk length\r\n");
    hear_end(fd);

    fd = dial(&w); /* POST begins like PING */
    say(fd, "P");
    usleep(2000);
    say(fd, "OST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n3");
    hear_number(fd, 3);
    close(fd);
    world_stop(&w);
}

T_TEST(conn_refusals_reach_the_peer)
{
    static const struct {
        const char *text;
        int status;
    } bad[] = {
        { "GET / HTTP/1.1\r\n\r\n", 400 },
        { "GET / HTTP/9.9\r\nHost: a\r\n\r\n", 505 },
        { "\x16\x03\x01\x02\x03\x04\x05", 400 },
        { "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999\r\n\r\n", 413 },
    };
    static struct world w;
    static char junk[300000];
    world_start(&w, NULL);
    memset(junk, 'x', sizeof junk);
    for (size_t i = 0; i < T_LEN(bad); i++) {
        char body[4096];
        int fd = dial(&w);
        say(fd, GET("/n/1"));
        say(fd, bad[i].text);
        send(fd, junk, sizeof junk,
             MSG_NOSIGNAL | MSG_DONTWAIT); /* unread input must not kill it */
        hear_number(fd, 1);
        T_EQ(hear_http(fd, body, sizeof body), bad[i].status, "%s", body);
        T_OK(strstr(body, "\"detail\":\""), "%s", body);
        hear_end(fd);
    }
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.http_errors, T_LEN(bad));
    world_stop(&w);
}

T_TEST(conn_expect_continue)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    for (int i = 0; i < 2; i++) {
        say(fd,
            "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
        hear(fd, "HTTP/1.1 100 Continue\r\n\r\n");
        say(fd, "1");
        usleep(2000);
        say(fd, "2");
        hear_number(fd, 12);
    }
    close(fd);
    world_stop(&w);
}

/* Whoever is done first, answers leave in the order of their requests. */
T_TEST(conn_deferred_keep_their_order)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w), other = dial(&w);
    say(fd, GET("/n/1") GET("/d/2") GET("/n/3") GET("/d/4")
                GET("/n/5") "GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
    say(other, "*2\r\n$1\r\nD\r\n$1\r\n6\r\n*1\r\n$4\r\nPING\r\n");
    wait_deferred(&w, 3);
    hear_number(fd, 1);
    T_OK(silent(fd, 20) && silent(other, 0));
    ask(&w, release_all_backwards, NULL);
    for (unsigned i = 2; i <= 5; i++)
        hear_number(fd, i);
    T_EQ(hear_http(fd, NULL, 0), 500);
    hear(other, ":6\r\n+PONG\r\n");
    /* A last request that is deferred, with another behind it that must not be answered. */
    say(fd, GET("/d/7") GET_LAST("/d/8") GET("/n/9"));
    wait_deferred(&w, 2);
    ask(&w, release_all_backwards, NULL);
    hear_number(fd, 7);
    hear_number(fd, 8);
    hear_end(fd);
    /* Errors wait their turn too. */
    say(other, "*2\r\n$1\r\nD\r\n$2\r\n10\r\n*1\r\n!");
    wait_deferred(&w, 1);
    T_OK(silent(other, 20));
    ask(&w, release_all_backwards, NULL);
    hear(other, ":10\r\n-ERR Protocol error: expected '$', got '!'\r\n");
    hear_end(other);
    world_stop(&w);
}

/* Answers that will be long are not collected by the thousand: the next requests wait for them. */
T_TEST(conn_expected_answers_count)
{
    static struct world w;
    world_start(&w, NULL); /* 256 KiB unsent are enough */
    int fd = dial(&w), other = dial(&w);
    say(fd, GET("/e/1") GET("/e/2") GET("/e/3") GET("/e/4") GET("/e/5") GET("/e/6") GET("/n/7"));
    wait_deferred(&w, 3);
    say(other, GET("/n/1"));
    hear_number(other, 1);
    wait_deferred(&w, 3);
    ask(&w, release_all_backwards, NULL);
    for (unsigned i = 1; i <= 3; i++)
        hear_number(fd, i);
    wait_deferred(&w, 3);
    say(fd, GET("/n/8"));
    ask(&w, release_all_backwards, NULL);
    for (unsigned i = 4; i <= 8; i++)
        hear_number(fd, i);
    /* Nor do those count for ever that nobody is left to read. */
    say(fd, GET("/e/1") GET("/e/2") GET("/e/3"));
    wait_deferred(&w, 3);
    close(fd);
    ask(&w, release_all_backwards, NULL);
    say(other, GET("/e/9"));
    wait_deferred(&w, 1);
    ask(&w, release_all_backwards, NULL);
    hear_number(other, 9);
    close(other);
    world_stop(&w);
}

T_TEST(conn_serial_waits)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd, GET("/s/1") GET("/s/2") GET("/n/3"));
    for (unsigned i = 1; i <= 2; i++) {
        wait_deferred(&w, 1);
        ask(&w, release_all_backwards, NULL);
        hear_number(fd, i);
    }
    hear_number(fd, 3);
    close(fd);
    world_stop(&w);
}

static void count_closed(struct world *w, void *arg)
{
    *(unsigned *)arg = w->ctx.closed;
}

T_TEST(conn_peer_gone_before_the_answer)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd, GET("/d/1") GET("/d/2") GET("/n/3"));
    wait_deferred(&w, 2);
    struct linger reset = { 1, 0 };
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    unsigned closed = 0;
    for (int i = 0; i < 5000 && closed == 0; i++, usleep(500))
        ask(&w, count_closed, &closed);
    T_EQ(closed, 1);
    ask(&w, release_all_backwards, NULL);
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.deferred, 0);
    world_stop(&w);
}

T_TEST(conn_half_closed_peer_is_answered)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd, GET("/n/1") GET("/d/2") GET("/n/3") "GET /unfinished");
    shutdown(fd, SHUT_WR);
    wait_deferred(&w, 1);
    ask(&w, release_all_backwards, NULL);
    for (unsigned i = 1; i <= 3; i++)
        hear_number(fd, i);
    hear_end(fd);
    world_stop(&w);
}

T_TEST(conn_deadlines)
{
    static struct world w;
    struct loop_opts opts = { .header_ms = 100, .body_ms = 150, .idle_http_ms = 200 };
    char body[4096];
    world_start(&w, &opts);
    int never = dial(&w), idle = dial(&w), loris = dial(&w), half = dial(&w), redis = dial(&w);
    say(idle, GET("/n/1"));
    hear_number(idle, 1);
    say(half, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345");
    say(redis, "*1\r\n$4\r\nPING\r\n");
    hear(redis, "+PONG\r\n");
    for (int i = 0; i < 100 && silent(loris, 10); i++) /* a byte now and then wins no time */
        if (send(loris, &"GET /very/slow"[i % 14], 1, MSG_NOSIGNAL) < 0)
            break;
    T_EQ(hear_http(loris, body, sizeof body), 408, "%s", body);
    hear_end(loris);
    T_EQ(hear_http(half, body, sizeof body), 408, "%s", body);
    hear_end(half);
    hear_end(idle);
    hear_end(never);
    T_OK(silent(redis, 300), "RESP may idle");
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.timeouts, 4);
    close(redis);
    world_stop(&w);
}

T_TEST(conn_too_many)
{
    static struct world w;
    struct loop_opts opts = { .conns_max = 2 };
    char body[4096];
    world_start(&w, &opts);
    int a = dial(&w), b = dial(&w);
    say(a, GET("/n/1"));
    hear_number(a, 1);
    say(b, GET("/n/2"));
    hear_number(b, 2);
    int c = dial(&w), d = dial(&w);
    say(c, GET("/n/3"));
    T_EQ(hear_http(c, body, sizeof body), 503, "%s", body);
    hear_end(c);
    say(d, "*1\r\n$4\r\nPING\r\n");
    hear(d, "-ERR max number of clients reached\r\n");
    hear_end(d);
    close(a);
    for (int i = 0; i < 2000 && atomic_load(&w.conns_open) > 1; i++)
        usleep(1000);
    a = dial(&w);
    say(a, GET("/n/4"));
    hear_number(a, 4);
    close(a);
    close(b);
    world_stop(&w);
}

/* A peer that asks a lot and reads nothing costs the marks, not what it asked for; then it reads and
 * gets everything. */
T_TEST(conn_backpressure)
{
    static struct world w;
    enum { REQUESTS = 100000 };
    struct loop_opts opts = { .out_high_bytes = 32 * 1024, .out_low_bytes = 8 * 1024 };
    world_start(&w, &opts);
    int fd = dial(&w);
    static const char one[] = "*2\r\n$1\r\nN\r\n$1\r\n7\r\n";
    char *all = malloc(REQUESTS * (sizeof one - 1));
    T_OK(all != NULL);
    for (size_t i = 0; i < REQUESTS; i++)
        memcpy(all + i * (sizeof one - 1), one, sizeof one - 1);
    size_t sent = 0, total = REQUESTS * (sizeof one - 1), heard = 0;
    static char got[65536];
    while (heard < REQUESTS * 4u) {
        struct pollfd p = { .fd = fd, .events = (short)(sent < total ? POLLIN | POLLOUT : POLLIN) };
        T_OK(poll(&p, 1, 10000) == 1);
        if (p.revents & POLLOUT) {
            ssize_t n = send(fd, all + sent, total - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
            T_OK(n > 0 || errno == EAGAIN);
            sent += n > 0 ? (size_t)n : 0;
        } else if (p.revents & POLLIN) { /* reads only when it cannot send */
            ssize_t n = recv(fd, got, sizeof got, 0);
            T_OK(n > 0);
            for (ssize_t i = 0; i < n; i++)
                T_EQ(got[i], ":7\r\n"[(heard + (size_t)i) % 4]);
            heard += (size_t)n;
        }
    }
    free(all);
    close(fd);
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.resp_requests, REQUESTS);
    T_EQ(stats.overruns, 0);
    world_stop(&w);
}

T_TEST(conn_big_answers)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    static char body[BIG_BYTES + 1];
    for (int i = 0; i < 20; i++)
        say(fd, GET("/big"));
    usleep(50000);
    for (int i = 0; i < 20; i++) {
        T_EQ(hear_http(fd, body, sizeof body), 200);
        T_EQ(strlen(body), BIG_BYTES);
        T_OK(atoi(body + BIG_BYTES - 100) == BIG_BYTES / 100 - 1);
    }
    close(fd);
    world_stop(&w);
}

T_TEST(conn_bounds_on_unsent_bytes)
{
    static struct world w;
    struct loop_opts opts = { .out_max_bytes = 128 * 1024 };
    world_start(&w, &opts);
    int fd = dial(&w), other = dial(&w);
    say(fd, GET("/big")); /* one answer above the bound */
    hear_end(fd);
    say(other, GET("/n/1"));
    hear_number(other, 1);
    /* Answers that wait behind a deferred one are bounded too. */
    fd = dial(&w);
    say(fd, GET("/d/1") GET("/big") GET("/big"));
    wait_deferred(&w, 1);
    ask(&w, release_all_backwards, NULL);
    hear_end(fd);
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.overruns, 2);
    close(other);
    world_stop(&w);
}

T_TEST(conn_silent_reader_is_dropped)
{
    static struct world w;
    struct loop_opts opts = { .write_ms = 150 };
    world_start(&w, &opts);
    int fd = dial(&w);
    for (int i = 0; i < 20; i++)
        say(fd, GET("/big"));
    struct loop_stats stats = { 0 };
    for (int i = 0; i < 5000 && stats.timeouts == 0; i++, usleep(1000))
        loop_stats(w.loop, &stats);
    T_EQ(stats.timeouts, 1);
    close(fd);
    world_stop(&w);
}

/* Some of what is deferred, in any order. */
static void release_some(struct world *w, void *arg)
{
    struct service_ctx *x = &w->ctx;
    uint64_t n = arg ? x->deferred_len : t_random_below(x->deferred_len + 1);
    while (n-- > 0) {
        size_t i = (size_t)t_random_below(x->deferred_len);
        release_one(w, &i);
        x->deferred_len--;
        x->deferred[i] = x->deferred[x->deferred_len];
        x->numbers[i] = x->numbers[x->deferred_len];
    }
}

/* Requests of all kinds, cut anywhere, done in any order: the answers come in order, each once. */
T_TEST(conn_random_pipelines)
{
    static struct world w;
    world_start(&w, NULL);
    for (uint64_t round = 0, rounds = t_scale(400); round < rounds; round++) {
        bool http = t_random_below(2);
        unsigned n = 1 + (unsigned)t_random_below(60);
        struct buf text;
        buf_init(&text, 1 << 20);
        for (unsigned i = 0; i < n; i++) {
            char kind = "nd"[t_random_below(2)];
            if (http && t_random_below(10) == 0)
                kind = 's';
            if (http)
                buf_addf(&text, "GET /%c/%u HTTP/1.1\r\nHost: a\r\n\r\n", kind, 1000 + i);
            else
                buf_addf(&text, "*2\r\n$1\r\n%c\r\n$4\r\n%u\r\n", kind, 1000 + i);
        }
        int fd = dial(&w);
        for (size_t at = 0; at < text.len;) {
            size_t part = 1 + (size_t)t_random_below(t_random_below(3) ? 200 : text.len);
            part = part < text.len - at ? part : text.len - at;
            say_n(fd, text.p + at, part);
            at += part;
            if (t_random_below(4) == 0)
                ask(&w, release_some, NULL);
        }
        for (unsigned i = 0; i < n; i++) {
            while (silent(fd, 1)) /* a serial one may be in the way of others */
                ask(&w, release_some, &w);
            if (http) {
                hear_number(fd, 1000 + i);
            } else {
                char expect[16];
                snprintf(expect, sizeof expect, ":%u\r\n", 1000 + i);
                hear(fd, expect);
            }
        }
        T_OK(silent(fd, 0));
        close(fd);
        buf_done(&text);
    }
    world_stop(&w);
}

T_TEST(conn_drain_finishes_what_is_in_flight)
{
    static struct world w;
    world_start(&w, NULL);
    int idle = dial(&w), busy = dial(&w), half = dial(&w), redis = dial(&w);
    say(idle, GET("/n/1"));
    hear_number(idle, 1);
    say(redis, "PING\r\n");
    hear(redis, "+PONG\r\n");
    say(half, "GET /n/4 HTTP/1.1\r\n");
    say(busy, GET("/d/2"));
    wait_deferred(&w, 1);
    loop_drain(w.loop);
    hear_end(idle);
    hear_end(redis);
    int late = socket(AF_INET, SOCK_STREAM, 0);
    T_OK(connect(late, (struct sockaddr *)&w.address, sizeof w.address) < 0);
    close(late);
    say(half, "Host: a\r\n\r\n");
    hear_number(half, 4);
    hear_end(half);
    T_OK(silent(busy, 20));
    ask(&w, release_all_backwards, NULL);
    hear_number(busy, 2);
    hear_end(busy);
    pthread_join(w.thread, NULL);
    loop_free(w.loop);
    T_EQ(w.conns_open, 0);
}

T_TEST(conn_leave_ends_connections_with_an_answer)
{
    static struct world w;
    world_start(&w, NULL);
    int kept = dial(&w), redis = dial(&w);
    say(kept, GET("/n/1"));
    hear_number(kept, 1);
    say(redis, "PING\r\n");
    hear(redis, "+PONG\r\n");
    loop_leave(w.loop);
    ask(&w, nothing, NULL); /* the loop has seen it */
    T_OK(silent(kept, 20), "a connection without a request stays");
    say(kept, GET("/n/2"));
    hear_last_number(kept, 2);
    int late = dial(&w);
    say(late, GET("/n/3"));
    hear_last_number(late, 3);
    say(redis, "PING\r\n");
    hear(redis, "+PONG\r\n");
    loop_drain(w.loop);
    hear_end(redis);
    pthread_join(w.thread, NULL);
    loop_free(w.loop);
    T_EQ(w.conns_open, 0);
}

struct arrived {
    int kept, late, redis;
};

/* On the loop's thread: it sees nothing of this before it hears that it is to drain. */
static void arrive_and_drain(struct world *w, void *arg)
{
    struct arrived *a = arg;
    say(a->kept, GET("/n/7"));
    say(a->redis, "PING\r\n");
    a->late = dial(w);
    say(a->late, GET("/n/8"));
    loop_drain(w->loop);
}

T_TEST(conn_drain_answers_what_had_arrived)
{
    static struct world w;
    world_start(&w, NULL);
    struct arrived a = { .kept = dial(&w), .redis = dial(&w) };
    say(a.kept, GET("/n/1"));
    hear_number(a.kept, 1);
    say(a.redis, "PING\r\n");
    hear(a.redis, "+PONG\r\n");
    ask(&w, arrive_and_drain, &a);
    hear_last_number(a.kept, 7);
    hear_last_number(a.late, 8);
    hear(a.redis, "+PONG\r\n");
    hear_end(a.redis);
    pthread_join(w.thread, NULL);
    loop_free(w.loop);
    T_EQ(w.conns_open, 0);
}

T_TEST(conn_drain_does_not_wait_for_ever)
{
    static struct world w;
    struct loop_opts opts = { .drain_ms = 100 };
    world_start(&w, &opts);
    int fd = dial(&w);
    say(fd, GET("/d/1"));
    wait_deferred(&w, 1);
    loop_drain(w.loop);
    pthread_join(w.thread, NULL);
    release_all_backwards(&w, NULL); /* the loop's thread is gone: this is as good as it */
    loop_free(w.loop);
    hear_end(fd);
}

T_TEST(listen_addresses)
{
    int fds[3], more;
    char name[PEER_ADDRESS_BUF];
    struct firn_diag diag;
    static const char *const bad[] = { "",
                                       "9001",
                                       "127.0.0.1",
                                       "127.0.0.1:",
                                       "127.0.0.1:65536",
                                       "127.0.0.1:x",
                                       "example.com:80",
                                       "[::1:80",
                                       "[]:80",
                                       "1.2.3:80",
                                       "::1:80" };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(listen_open(bad[i], fds, 1, &diag), FIRN_EINVAL, "%s", bad[i]);
    T_EQ(listen_open("127.0.0.1:0", fds, 3, &diag), 0, "%s", diag.text);
    listen_name(fds[2], name);
    T_OK(strncmp(name, "127.0.0.1:", 10) == 0 && strcmp(name + 10, "0") != 0, "%s", name);
    T_EQ(listen_open(name, &more, 1, &diag), FIRN_EIO, "somebody listens there");
    T_OK(strstr(diag.text, name), "%s", diag.text);
    int shared[2];
    T_EQ(listen_open(name, shared, 2, &diag), FIRN_EIO, "also when both would share");
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    T_EQ(listen_open(name, &more, 1, &diag), 0, "%s", diag.text);
    close(more);
}
