/* Pipelining to servers: one write for a turn's requests, answers in order, and what becomes of
 * those behind an answer that fails. With real sockets; the server is the test. */
#include "t.h"

#include "net/alarm.h"
#include "net/upstream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PROBES = 6, NOT_YET = -1 };

struct probe { /* an exchange, and what came of it */
    struct world *w;
    struct exchange *x;
    char target[16];
    bool refuse; /* body() says stop */
    int end;
    unsigned status;
    size_t body_len;
    char body[32];
};

struct world {
    struct service service;
    struct places places;
    struct loop *loop;
    struct upstream *up;
    pthread_t thread;
    struct sockaddr_in at;
    int server; /* listens */
    struct loop_task task;
    struct probe probe[PROBES];
    unsigned todo, cancel; /* how many to begin; which to cancel, bits */
    bool not_repeatable;
    unsigned ended, ready; /* read by the test's thread */
};

static void no_service(struct service_ctx *ctx, const struct http_request *req, struct reply *r)
{
    (void)ctx;
    (void)req;
    reply_http(r, 404, "", "", 0);
}

static void on_ready(void *user)
{
    struct probe *p = user;
    (void)__atomic_add_fetch(&p->w->ready, 1, __ATOMIC_RELEASE);
}

static void on_head(void *user, const struct exchange_answer *a)
{
    struct probe *p = user;
    p->status = a->head->status;
}

static bool on_body(void *user, const char *bytes, size_t len)
{
    struct probe *p = user;
    size_t room = sizeof p->body - 1 - p->body_len;
    memcpy(p->body + p->body_len, bytes, len < room ? len : room);
    p->body_len += len < room ? len : room;
    return !p->refuse;
}

static void on_done(void *user, enum exchange_end end, const char *why, struct slice trailers)
{
    struct probe *p = user;
    T_OK(why != NULL);
    (void)trailers;
    p->x = NULL;
    p->end = (int)end;
    (void)__atomic_add_fetch(&p->w->ended, 1, __ATOMIC_RELEASE);
}

static const struct exchange_calls calls = {
    .ready = on_ready, .head = on_head, .body = on_body, .done = on_done
};

static void begin_all(struct loop_task *t)
{
    struct world *w = (struct world *)((char *)t - offsetof(struct world, task));
    for (unsigned i = 0; i < w->todo; i++) {
        struct probe *p = &w->probe[i];
        const bool refuse = p->refuse;
        *p = (struct probe){ .w = w, .end = NOT_YET, .refuse = refuse };
        snprintf(p->target, sizeof p->target, "/%u", i);
        struct exchange_request req = { .method = { "GET", 3 },
                                        .target = { p->target, strlen(p->target) },
                                        .fields = { "Host: a\r\n", 9 },
                                        .repeatable = !w->not_repeatable };
        T_EQ(exchange_begin(w->up, &req, &calls, p, &p->x), 0);
    }
}

static void cancel_some(struct loop_task *t)
{
    struct world *w = (struct world *)((char *)t - offsetof(struct world, task));
    for (unsigned i = 0; i < w->todo; i++)
        if (w->cancel & 1u << i) {
            exchange_cancel(w->probe[i].x);
            (void)__atomic_add_fetch(&w->ended, 1, __ATOMIC_RELEASE);
        }
}

static void free_pool(struct loop_task *t)
{
    struct world *w = (struct world *)((char *)t - offsetof(struct world, task));
    upstream_free(w->up);
    w->up = NULL;
}

static void call(struct world *w, void (*fn)(struct loop_task *))
{
    w->task.fn = fn;
    loop_call(w->loop, &w->task);
}

static void *run(void *arg)
{
    struct world *w = arg;
    T_EQ(loop_run(w->loop), 0);
    return NULL;
}

static void start(struct world *w, const struct upstream_opts *opts)
{
    char address[64];
    memset(w, 0, sizeof *w);
    w->service.http = no_service;
    places_init(&w->places, 1000, 0, 1);
    T_EQ(loop_new(NULL, &w->service, &w->places, &w->loop), 0);
    T_EQ(listen_open("127.0.0.1:0", &w->server, 1, NULL), 0);
    socklen_t len = sizeof w->at;
    getsockname(w->server, (struct sockaddr *)&w->at, &len);
    snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(w->at.sin_port));
    T_EQ(upstream_new(w->loop, address, opts, &w->up), 0);
    T_EQ(pthread_create(&w->thread, NULL, run, w), 0);
}

static void stop(struct world *w)
{
    loop_drain(w->loop);
    pthread_join(w->thread, NULL);
    upstream_free(w->up);
    loop_free(w->loop);
    close(w->server);
}

static void begin(struct world *w, unsigned n)
{
    w->todo = n;
    w->ended = w->ready = 0;
    call(w, begin_all);
}

static void wait_for(const unsigned *counter, unsigned n)
{
    for (int i = 0; i < 60000 && __atomic_load_n(counter, __ATOMIC_ACQUIRE) < n; i++)
        usleep(1000);
    T_EQ(__atomic_load_n(counter, __ATOMIC_ACQUIRE), n);
}

static int take(const struct world *w)
{
    struct pollfd p = { w->server, POLLIN, 0 };
    T_EQ(poll(&p, 1, 60000), 1);
    int fd = accept4(w->server, NULL, NULL, SOCK_CLOEXEC);
    T_OK(fd >= 0);
    return fd;
}

static void say(int fd, const char *text)
{
    T_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Exactly this must come. */
static void hear(int fd, const char *text)
{
    char got[1024] = "";
    size_t n = 0, want = strlen(text);
    while (n < want) {
        struct pollfd p = { fd, POLLIN, 0 };
        T_EQ(poll(&p, 1, 60000), 1, "'%s' instead of '%s'", got, text);
        ssize_t r = recv(fd, got + n, want - n, 0);
        T_OK(r > 0, "'%s' instead of '%s'", got, text);
        n += (size_t)r;
    }
    T_STR(got, text);
}

static void hear_end(int fd)
{
    char c;
    struct pollfd p = { fd, POLLIN, 0 };
    T_EQ(poll(&p, 1, 60000), 1);
    T_OK(recv(fd, &c, 1, 0) <= 0);
    close(fd);
}

#define ASK(n) "GET /" #n " HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"

/* Connected, idle, and nothing served by it counts as early. */
static int warm(struct world *w)
{
    begin(w, 1);
    int s = take(w);
    hear(s, ASK(0));
    say(s, OK "0");
    wait_for(&w->ended, 1);
    T_EQ(w->probe[0].end, EXCHANGE_OK);
    return s;
}

static void expect_ends(const struct world *w, const int *ends)
{
    for (unsigned i = 0; i < w->todo; i++)
        T_EQ(w->probe[i].end, ends[i], "request %u", i);
}

static const struct upstream_opts eight = { .pipeline = 8 };

T_TEST(pipeline_answers_in_order)
{
    static struct world w;
    start(&w, &eight);
    begin(&w, 5);
    int s = take(&w);
    hear(s, ASK(0) ASK(1) ASK(2) ASK(3) ASK(4)); /* before any answer */
    say(s, OK "a" OK "b" OK "cHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 20");
    wait_for(&w.ended, 4);
    T_EQ(w.probe[4].end, NOT_YET);
    say(s, "0 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\ne\r\n0\r\n\r\n");
    wait_for(&w.ended, 5);
    const char *want[] = { "a", "b", "c", "", "e" };
    for (unsigned i = 0; i < 5; i++) {
        T_EQ(w.probe[i].end, EXCHANGE_OK);
        T_STR(w.probe[i].body, want[i]);
        T_EQ(w.probe[i].status, i == 3 ? 204 : 200);
    }
    struct upstream_stats u;
    upstream_stats(w.up, &u);
    T_EQ(u.connects, 1);
    T_EQ(u.pipelined, 4);
    T_EQ(u.in_flight, 0);
    begin(&w, 2); /* the connection goes on */
    hear(s, ASK(0) ASK(1));
    say(s, OK "x" OK "y" OK "z"); /* one that answers nothing */
    hear_end(s);
    wait_for(&w.ended, 2);
    T_STR(w.probe[1].body, "y");
    stop(&w);
}

T_TEST(pipeline_depth_and_repeatable)
{
    static struct world w;
    const struct upstream_opts two = { .pipeline = 2 };
    start(&w, &two);
    begin(&w, 3);
    int a = take(&w), b = take(&w);
    hear(a, ASK(0) ASK(1));
    hear(b, ASK(2));
    say(a, OK "0" OK "1");
    wait_for(&w.ended, 2);
    say(b, OK "2");
    wait_for(&w.ended, 3);
    T_STR(w.probe[2].body, "2");
    w.not_repeatable = true;
    begin(&w, 2);
    hear(b, ASK(0)); /* the one that was used last is first, and each has one */
    hear(a, ASK(1));
    say(a, OK "a");
    say(b, OK "b");
    wait_for(&w.ended, 2);
    T_STR(w.probe[1].body, "a");
    close(a);
    close(b);
    stop(&w);
}

T_TEST(pipeline_breaks)
{
    static struct world w;
    start(&w, &eight);
    static const struct {
        const char *answer;
        int first, second;
    } cases[] = {
        { "", EXCHANGE_STALE, EXCHANGE_STALE },
        { "HTTP/1.1 200 OK\r\nContent-Le", EXCHANGE_BROKEN, EXCHANGE_STALE },
        { OK, EXCHANGE_BROKEN, EXCHANGE_STALE },
        { OK "0", EXCHANGE_OK, EXCHANGE_STALE },
        { OK "0HTTP/1.1 2", EXCHANGE_OK, EXCHANGE_BROKEN },
        { "nonsense\r\n\r\n", EXCHANGE_BAD_ANSWER, EXCHANGE_STALE },
        { OK "0nonsense\r\n\r\n", EXCHANGE_OK, EXCHANGE_BAD_ANSWER },
        { "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n0" OK "1", EXCHANGE_OK,
          EXCHANGE_STALE },
        { "HTTP/1.1 200 OK\r\n\r\nto the end" OK "1", EXCHANGE_OK, EXCHANGE_STALE },
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        begin(&w, 1); /* alone, whatever rests */
        int s = take(&w);
        for (int k = 0; k < 8; k++) { /* so that an end is not an early one */
            hear(s, ASK(0));
            say(s, OK "0");
            wait_for(&w.ended, 1);
            if (k < 7)
                begin(&w, 1);
        }
        begin(&w, 3);
        hear(s, ASK(0) ASK(1) ASK(2));
        say(s, cases[i].answer);
        shutdown(s, SHUT_WR);
        wait_for(&w.ended, 3);
        const int want[] = { cases[i].first, cases[i].second, EXCHANGE_STALE };
        expect_ends(&w, want);
        close(s);
    }
    struct upstream_stats u;
    upstream_stats(w.up, &u);
    T_EQ(u.in_flight + u.waiting, 0);
    stop(&w);
}

T_TEST(pipeline_rests_when_it_is_closed_early)
{
    static struct world w;
    start(&w, &eight);
    begin(&w, 3);
    int s = take(&w), more[3];
    hear(s, ASK(0) ASK(1) ASK(2));
    say(s, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n0");
    wait_for(&w.ended, 3);
    const int want[] = { EXCHANGE_OK, EXCHANGE_STALE, EXCHANGE_STALE };
    expect_ends(&w, want);
    close(s);
    begin(&w, 3);
    for (int i = 0; i < 3; i++) { /* on a busy machine the rest may be over: then on one */
        struct pollfd p = { w.server, POLLIN, 0 };
        more[i] = i == 0 || poll(&p, 1, 50) == 1 ? take(&w) : -1;
    }
    for (int i = 0; i < 3; i++)
        if (more[i] >= 0)
            close(more[i]);
    wait_for(&w.ended, 3);
    stop(&w);
}

T_TEST(pipeline_timeout_and_no_server)
{
    static struct world w;
    const struct upstream_opts soon = { .pipeline = 8, .head_ms = 20 };
    start(&w, &soon);
    begin(&w, 3);
    wait_for(&w.ended, 3); /* the system accepts for a server that never does */
    const int late[] = { EXCHANGE_TIMEOUT, EXCHANGE_STALE, EXCHANGE_STALE };
    expect_ends(&w, late);
    stop(&w);

    start(&w, &eight);
    close(w.server);
    begin(&w, 3);
    wait_for(&w.ended, 3);
    const int none[] = { EXCHANGE_NO_CONNECT, EXCHANGE_NO_CONNECT, EXCHANGE_NO_CONNECT };
    expect_ends(&w, none);
    w.server = -1;
    stop(&w);
}

T_TEST(pipeline_slow_reader)
{
    static struct world w;
    start(&w, &eight);
    int s = warm(&w);
    w.probe[0].refuse = true;
    begin(&w, 3);
    hear(s, ASK(0) ASK(1) ASK(2));
    say(s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n0");
    wait_for(&w.ended, 2); /* those behind do not wait for it */
    T_EQ(w.probe[0].end, NOT_YET);
    T_EQ(w.probe[1].end, EXCHANGE_STALE);
    T_EQ(w.probe[2].end, EXCHANGE_STALE);
    w.cancel = 1;
    call(&w, cancel_some);
    hear_end(s);
    stop(&w);
}

T_TEST(pipeline_cancel)
{
    static struct world w;
    start(&w, &eight);
    int s = warm(&w);
    begin(&w, 3);
    hear(s, ASK(0) ASK(1) ASK(2));
    w.cancel = 1 | 2;
    call(&w, cancel_some);
    wait_for(&w.ended, 2);
    say(s, OK "0" OK "1" OK "2"); /* the first two are read and forgotten */
    wait_for(&w.ended, 3);
    T_EQ(w.probe[2].end, EXCHANGE_OK);
    T_STR(w.probe[2].body, "2");
    T_EQ(w.probe[0].end, NOT_YET);
    T_EQ(w.probe[0].body_len, 0);

    begin(&w, 2); /* too long to be forgotten */
    hear(s, ASK(0) ASK(1));
    w.cancel = 1;
    call(&w, cancel_some);
    wait_for(&w.ended, 1);
    say(s, "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n");
    static char much[70000];
    size_t sent = 0;
    while (sent < sizeof much) {
        ssize_t n = send(s, much + sent, sizeof much - sent, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    wait_for(&w.ended, 2);
    T_EQ(w.probe[1].end, EXCHANGE_STALE);
    close(s);

    begin(&w, 1);
    s = take(&w);
    hear(s, ASK(0));
    w.cancel = 1; /* all: the connection ends */
    call(&w, cancel_some);
    hear_end(s);
    stop(&w);
}

T_TEST(pipeline_pool_ends)
{
    static struct world w;
    start(&w, &eight);
    int s = warm(&w);
    begin(&w, 4);
    hear(s, ASK(0) ASK(1));
    call(&w, free_pool);
    wait_for(&w.ended, 4);
    for (int i = 0; i < 4; i++)
        T_EQ(w.probe[i].end, EXCHANGE_CLOSED);
    close(s);
    stop(&w);
}
