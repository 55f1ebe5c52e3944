/* Both sides of a proxy on a loop: an edge whose requests go to an upstream, with real sockets. */
#include "t.h"

#include "net/alarm.h"
#include "net/edge.h"
#include "net/upstream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct world {
    struct service service;
    struct places places;
    struct loop *loop;
    struct edge *edge;
    struct upstream *up;
    pthread_t thread;
    struct sockaddr_in edge_at, server_at;
    int server; /* listens */
    struct loop_task task;
    struct alarm alarm[3];
    unsigned rang[3], rings;
};

struct trip { /* a request on its way */
    struct world *w;
    struct edge_request *q;
    struct exchange *x;
};

static void no_service(struct service_ctx *ctx, const struct http_request *req, struct reply *r)
{
    (void)ctx;
    (void)req;
    reply_http(r, 404, "", "", 0);
}

static void on_ready(void *user)
{
    struct trip *t = user;
    edge_want_body(t->q);
    edge_resume(t->q);
}

static void on_head(void *user, const struct exchange_answer *a)
{
    struct trip *t = user;
    edge_head(t->q, a->head->status, a->head->reason, (struct slice){ NULL, 0 }, a->body_len);
}

static bool on_answer_body(void *user, const char *p, size_t len)
{
    struct trip *t = user;
    return edge_body(t->q, p, len);
}

static void refuse(struct edge_request *q, unsigned status)
{
    edge_head(q, status, (struct slice){ NULL, 0 }, (struct slice){ NULL, 0 }, 0);
    edge_end(q, (struct slice){ NULL, 0 });
}

static void on_done(void *user, enum exchange_end end, const char *why, struct slice trailers)
{
    struct trip *t = user;
    T_OK(why != NULL);
    if (end == EXCHANGE_OK)
        edge_end(t->q, trailers);
    else if (edge_answered(t->q))
        edge_abort(t->q);
    else
        refuse(t->q, 500 + (unsigned)end);
    free(t);
}

static const struct exchange_calls exchange = {
    .ready = on_ready, .head = on_head, .body = on_answer_body, .done = on_done
};

static void on_request(void *ctx, struct edge_request *q)
{
    struct world *w = ctx;
    struct trip *t = calloc(1, sizeof *t);
    bool chunked = q->head.framing == FRAMED_BY_CHUNKS;
    struct exchange_request req = { .method = q->head.method,
                                    .target = q->head.path,
                                    .fields = { "Host: a\r\n", 9 },
                                    .body_len = chunked ? -1 : (int64_t)q->head.body_len };
    *t = (struct trip){ w, q, NULL };
    q->user = t;
    if (slice_is(q->head.path, "/bad-field"))
        req.fields = (struct slice){ "A: b\r\nC d\r\n", 11 };
    int r = exchange_begin(w->up, &req, &exchange, t, &t->x);
    if (r == 0)
        return;
    free(t);
    refuse(q, r == FIRN_EAGAIN ? 503 : 400);
}

static bool on_body(void *ctx, struct edge_request *q, const char *p, size_t len)
{
    (void)ctx;
    return exchange_write(((struct trip *)q->user)->x, p, len);
}

static void on_body_end(void *ctx, struct edge_request *q)
{
    (void)ctx;
    exchange_end(((struct trip *)q->user)->x);
}

static void on_writable(void *ctx, struct edge_request *q)
{
    (void)ctx;
    exchange_resume(((struct trip *)q->user)->x);
}

static void on_gone(void *ctx, struct edge_request *q, unsigned status, const char *why)
{
    struct trip *t = q->user;
    (void)ctx;
    (void)status;
    T_OK(why != NULL);
    exchange_cancel(t->x);
    free(t);
}

static const struct edge_calls calls = { .request = on_request,
                                         .body = on_body,
                                         .body_end = on_body_end,
                                         .writable = on_writable,
                                         .gone = on_gone };

static void *run(void *arg)
{
    struct world *w = arg;
    T_EQ(loop_run(w->loop), 0);
    return NULL;
}

static void start(struct world *w, const struct upstream_opts *opts)
{
    int fd;
    socklen_t len = sizeof w->edge_at;
    char address[64];
    memset(w, 0, sizeof *w);
    w->service.http = no_service;
    places_init(&w->places, 1000, 0, 1);
    T_EQ(loop_new(NULL, &w->service, &w->places, &w->loop), 0);
    T_EQ(edge_new(w->loop, NULL, &calls, w, &w->edge), 0);
    T_EQ(listen_open("127.0.0.1:0", &fd, 1, NULL), 0);
    getsockname(fd, (struct sockaddr *)&w->edge_at, &len);
    T_EQ(edge_listen(w->edge, fd, 0, false, NULL), 0);
    T_EQ(listen_open("127.0.0.1:0", &w->server, 1, NULL), 0);
    len = sizeof w->server_at;
    getsockname(w->server, (struct sockaddr *)&w->server_at, &len);
    snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(w->server_at.sin_port));
    T_EQ(upstream_new(w->loop, address, opts, &w->up), 0);
    T_EQ(pthread_create(&w->thread, NULL, run, w), 0);
}

static void stop(struct world *w)
{
    loop_drain(w->loop);
    pthread_join(w->thread, NULL);
    edge_free(w->edge);
    upstream_free(w->up);
    for (int i = 0; i < 3; i++)
        alarm_clear(&w->alarm[i]);
    loop_free(w->loop);
    close(w->server);
}

static int dial(const struct world *w)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_EQ(connect(fd, (const struct sockaddr *)&w->edge_at, sizeof w->edge_at), 0);
    return fd;
}

static int take(const struct world *w) /* the connection that the pool made */
{
    struct pollfd p = { w->server, POLLIN, 0 };
    T_EQ(poll(&p, 1, 60000), 1);
    int fd = accept4(w->server, NULL, NULL, SOCK_CLOEXEC);
    T_OK(fd >= 0);
    return fd;
}

static bool nobody(const struct world *w)
{
    struct pollfd p = { w->server, POLLIN, 0 };
    return poll(&p, 1, 50) == 0; /* a wrong connection would most likely be there by then */
}

static void say(int fd, const char *text)
{
    T_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads up to the text, which must come. */
static void hear(int fd, const char *text)
{
    char got[65536] = "";
    for (size_t n = 0; !strstr(got, text); n++) {
        struct pollfd p = { fd, POLLIN, 0 };
        T_OK(n < sizeof got - 1 && poll(&p, 1, 60000) == 1, "'%s' instead of '%s'", got, text);
        T_EQ(recv(fd, got + n, 1, 0), 1, "'%s' instead of '%s'", got, text);
    }
}

static void hear_end(int fd)
{
    char c;
    struct pollfd p = { fd, POLLIN, 0 };
    T_EQ(poll(&p, 1, 60000), 1);
    T_OK(recv(fd, &c, 1, 0) <= 0);
    close(fd);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK(body)  "HTTP/1.1 200 OK\r\nContent-Length: " #body "\r\n\r\n"

T_TEST(proxy_reuses_connections)
{
    static struct world w;
    start(&w, NULL);
    int c = dial(&w);
    say(c, GET("/1"));
    int s = take(&w);
    hear(s, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    say(s, OK(3) "one");
    hear(c, "Content-Length: 3\r\n\r\none");
    say(c, "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi" GET("/3"));
    hear(s, "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    say(s, "HTTP/1.1 100 Continue\r\n\r\n" OK(0));
    hear(c, "Content-Length: 0\r\n\r\n");
    hear(s, "GET /3");
    hear(s, "\r\n\r\n");
    say(s, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n");
    hear(c, "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    T_OK(nobody(&w));
    struct upstream_stats u;
    upstream_stats(w.up, &u);
    T_EQ(u.requests, 3);
    T_EQ(u.connects, 1);
    T_EQ(u.reused, 2);
    say(s, "HTTP/1.1 200 OK\r\n"); /* nobody asked: the connection is not used again */
    hear_end(s);
    say(c, GET("/4"));
    s = take(&w);
    hear(s, "GET /4");
    close(s); /* unread input: it is reset */
    hear(c, "HTTP/1.1 50");
    close(c);
    stop(&w);
}

T_TEST(proxy_waits_in_order)
{
    static struct world w;
    const struct upstream_opts one = { .conns_max = 1, .waiting_max = 2 };
    start(&w, &one);
    int c[4], s;
    for (int i = 0; i < 3; i++) {
        char text[64];
        c[i] = dial(&w);
        snprintf(text, sizeof text, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
        say(c[i], text);
        struct upstream_stats u;
        do /* they have to arrive in order */
            upstream_stats(w.up, &u);
        while (u.requests < (uint64_t)i + 1);
    }
    c[3] = dial(&w);
    say(c[3], GET("/too-many"));
    hear(c[3], "HTTP/1.1 503");
    s = take(&w);
    T_OK(nobody(&w));
    hear(s, "GET /0");
    hear(s, "\r\n\r\n");
    close(c[1]); /* goes away while it waits: the next one has its turn */
    say(s, OK(1) "0");
    hear(c[0], "\r\n\r\n0");
    hear(s, "GET /");
    hear(s, "\r\n\r\n");
    say(s, OK(1) "x");
    close(c[0]);
    close(c[2]);
    close(c[3]);
    close(s);
    stop(&w);
}

T_TEST(proxy_refuses_what_http_does_not_allow)
{
    static struct world w;
    start(&w, NULL);
    int c = dial(&w);
    say(c, GET("/bad-field"));
    hear(c, "HTTP/1.1 400");
    say(c, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n");
    hear(c, "HTTP/1.1 400");
    hear(c, "\r\n\r\n{\"error\":\"Content-Length and Transfer-Encoding exclude each other\"}\n");
    hear_end(c);
    T_OK(nobody(&w));
    static const char *const bad[] = { "127.0.0.1", "name.example:80", "", "[::1:80" };
    struct upstream *u;
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(upstream_new(w.loop, bad[i], NULL, &u), FIRN_EINVAL, "%s", bad[i]);
    stop(&w);
}

T_TEST(proxy_no_server)
{
    static struct world w;
    start(&w, NULL);
    close(w.server);
    int c = dial(&w);
    say(c, GET("/"));
    char want[32];
    snprintf(want, sizeof want, "HTTP/1.1 %d", 500 + EXCHANGE_NO_CONNECT);
    hear(c, want);
    close(c);
    w.server = -1;
    stop(&w);
}

static struct world *ringing;

static void ring(struct alarm *a)
{
    struct world *w = ringing;
    w->rang[w->rings] = (unsigned)(a - w->alarm);
    (void)__atomic_add_fetch(&w->rings, 1, __ATOMIC_RELEASE);
    if (a == &w->alarm[0])
        alarm_clear(&w->alarm[1]); /* that is due as well, or rang before */
}

static void set_alarms(struct loop_task *t)
{
    struct world *w = (struct world *)((char *)t - offsetof(struct world, task));
    T_EQ(alarm_set(w->loop, &w->alarm[0], 100, ring), 0);
    T_EQ(alarm_set(w->loop, &w->alarm[1], 60000, ring), 0);
    T_EQ(alarm_set(w->loop, &w->alarm[2], 1, ring), 0);
    T_EQ(alarm_set(w->loop, &w->alarm[2], 2, ring), 0);
}

T_TEST(proxy_alarms)
{
    static struct world w;
    start(&w, NULL);
    ringing = &w;
    w.task.fn = set_alarms;
    loop_call(w.loop, &w.task);
    while (__atomic_load_n(&w.rings, __ATOMIC_ACQUIRE) < 2)
        usleep(1000);
    stop(&w);
    T_EQ(w.rings, 2);
    T_EQ(w.rang[0], 2);
    T_EQ(w.rang[1], 0);
}
