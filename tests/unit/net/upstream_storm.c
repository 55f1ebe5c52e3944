/* Pipelining under a storm: requests of every kind to a server that answers in every framing, in
 * pieces, late, not at all, or with what is no HTTP, while owners cancel and stop reading. No byte
 * of an answer may reach another request, and a request that does no harm itself is always
 * answered: by its first connection or, after EXCHANGE_STALE, by one of its own. The seed replays
 * the kinds; how they meet on connections differs from run to run. */
#include "t.h"

#include "net/alarm.h"
#include "net/upstream.h"
#include "wire/buf.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SLOTS = 64, DEPTH = 8, CONNS = 300, IN_BYTES = 64 * 1024, TICK_MS = 1 };

/* What a request asks for. From BREAKS on, its connection does not survive it. */
enum kind {
    LENGTH,
    CHUNKS,
    HEAD,
    EMPTY,
    SAME,
    LONG,
    INTERIM,
    LAST,
    TO_END,
    BREAKS,
    NOTHING = BREAKS,
    HALF,
    NONSENSE,
    SHORT_CHUNK,
    KINDS
};

static uint64_t seed;

static uint64_t mixed(uint64_t id)
{
    uint64_t z = (id + seed) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return z ^ z >> 29;
}

static enum kind kind_of(uint64_t id)
{
    static const uint8_t of_100[] = { 40, 60, 66, 71, 76, 80, 86, 90, 92, 94, 96, 98, 100 };
    uint64_t roll = mixed(id) % 100;
    unsigned k = 0;
    while (roll >= of_100[k])
        k++;
    return (enum kind)k;
}

static size_t length_of(uint64_t id)
{
    return kind_of(id) == LONG ? 100000 + mixed(id) % 50000 : 2 + mixed(id) % 300;
}

/* The n-th byte of the answer to `id`. */
static char byte_of(uint64_t id, size_t n)
{
    return (char)('a' + (mixed(id) >> n % 40) % 26);
}

/* --- the server, a thread --- */

struct far {
    int fd; /* -1: free */
    char in[IN_BYTES];
    size_t in_len;
    struct buf out;
    size_t sent;
    bool ends, shut;
};

struct server {
    int fd;
    pthread_t thread;
    struct far peer[CONNS];
    uint64_t random;
    unsigned most; /* requests of one read */
    bool stop;
};

static void add_body(struct buf *b, uint64_t id, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        char c = byte_of(id, i);
        buf_add(b, &c, 1);
    }
}

static void add_answer(struct far *p, uint64_t id)
{
    struct buf *b = &p->out;
    size_t len = length_of(id), half = len / 2;
    const enum kind k = kind_of(id);
    char echo[64];
    snprintf(echo, sizeof echo, "X-Echo: %llu\r\n", (unsigned long long)id);
    if (k == INTERIM)
        buf_add_str(b, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n");
    if (k == NOTHING || k == NONSENSE)
        buf_add_str(b, k == NOTHING ? "" : "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n");
    else if (k == EMPTY || k == SAME)
        buf_addf(b, "HTTP/1.1 %s\r\n%s\r\n",
                 k == EMPTY ? "204 No Content" : "304 Not Modified\r\nContent-Length: 500", echo);
    else if (k == CHUNKS || k == SHORT_CHUNK) {
        buf_addf(b, "HTTP/1.1 200 OK\r\n%sTransfer-Encoding: chunked\r\n\r\n%zx\r\n", echo, half);
        add_body(b, id, 0, half);
        buf_addf(b, "\r\n%zx\r\n", len - half);
        add_body(b, id, half, k == CHUNKS ? len : len - 1);
        buf_add_str(b, k == CHUNKS ? "\r\n0\r\nX-Sum: 1\r\n\r\n" : "");
    } else {
        buf_addf(b, "HTTP/1.1 200 OK\r\n%s", echo);
        if (k == LAST)
            buf_add_str(b, "Connection: close\r\n");
        if (k != TO_END)
            buf_addf(b, "Content-Length: %zu\r\n", len);
        buf_add_str(b, "\r\n");
        if (k != HEAD)
            add_body(b, id, 0, k == HALF ? half : len);
    }
    p->ends = k >= BREAKS || k == LAST || k == TO_END;
}

/* Whole requests; what follows one that ends the connection is not answered. */
static void take_requests(struct server *s, struct far *p)
{
    unsigned n = 0;
    size_t at = 0;
    for (char *end; !p->ends; at = (size_t)(end + 4 - p->in), n++) {
        end = memmem(p->in + at, p->in_len - at, "\r\n\r\n", 4);
        if (!end)
            break;
        const char *slash = memchr(p->in + at, '/', (size_t)(end - p->in) - at);
        T_OK(slash != NULL);
        add_answer(p, strtoull(slash + 1, NULL, 10));
    }
    s->most = n > s->most ? n : s->most;
    memmove(p->in, p->in + at, p->in_len - at);
    p->in_len = p->ends ? 0 : p->in_len - at;
}

static void peer_end(struct far *p)
{
    close(p->fd);
    p->fd = -1;
    buf_done(&p->out);
}

/* All that there is, or a small piece of it. */
static void peer_write(struct server *s, struct far *p)
{
    s->random = s->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    size_t n = p->out.len - p->sent, piece = 1 + (s->random >> 40) % 200;
    if (n > piece && s->random >> 63)
        n = piece;
    ssize_t r = n ? send(p->fd, p->out.p + p->sent, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    if (r > 0)
        p->sent += (size_t)r;
    if (p->sent == p->out.len) {
        p->out.len = p->sent = 0;
        if (p->ends && !p->shut)
            shutdown(p->fd, SHUT_WR);
        p->shut = p->ends;
    }
}

static void peer_read(struct server *s, struct far *p)
{
    ssize_t r = recv(p->fd, p->in + p->in_len, sizeof p->in - p->in_len, MSG_DONTWAIT);
    if (r <= 0) {
        peer_end(p);
        return;
    }
    p->in_len += (size_t)r;
    if (p->ends)
        p->in_len = 0;
    else
        take_requests(s, p);
}

static void *serve(void *arg)
{
    struct server *s = arg;
    struct pollfd at[CONNS + 1];
    while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
        at[CONNS] = (struct pollfd){ s->fd, POLLIN, 0 };
        for (int i = 0; i < CONNS; i++) {
            const struct far *p = &s->peer[i];
            bool write = p->sent < p->out.len || (p->ends && !p->shut);
            at[i] = (struct pollfd){ p->fd, (short)(write ? POLLIN | POLLOUT : POLLIN), 0 };
        }
        if (poll(at, CONNS + 1, 10) <= 0)
            continue;
        for (int i = 0; i < CONNS; i++) {
            struct far *p = &s->peer[i];
            if (p->fd >= 0 && at[i].revents & POLLOUT)
                peer_write(s, p);
            if (p->fd >= 0 && at[i].revents & (POLLIN | POLLHUP | POLLERR))
                peer_read(s, p);
        }
        if (!(at[CONNS].revents & POLLIN))
            continue;
        int i = 0;
        while (i < CONNS && s->peer[i].fd >= 0)
            i++;
        if (i == CONNS)
            continue;
        struct far *p = &s->peer[i];
        p->fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
        p->in_len = p->sent = 0;
        p->ends = p->shut = false;
        buf_init(&p->out, 16 * 1024 * 1024);
    }
    return NULL;
}

/* --- the owners, on the loop --- */

struct slot {
    struct world *w;
    struct exchange *x;
    uint64_t id;
    size_t got;
    bool fresh, headed, paused, over;
};

struct world {
    struct service service;
    struct places places;
    struct loop *loop;
    struct upstream *up;
    pthread_t thread;
    struct server server;
    struct loop_task task;
    struct alarm alarm;
    struct slot slot[SLOTS];
    uint64_t next, total, random;
    uint64_t ok, stale, failed, cancelled; /* ends */
    unsigned busy;
    const char *wrong; /* the first thing that must not be */
    uint64_t wrong_id;
};

static void start(struct slot *s);

static void blame(struct slot *s, const char *what)
{
    if (!s->w->wrong) {
        s->w->wrong = what;
        s->w->wrong_id = s->id;
    }
}

static bool chance(struct world *w, unsigned of)
{
    w->random = w->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (w->random >> 33) % of == 0;
}

static void give_up(struct slot *s)
{
    exchange_cancel(s->x);
    s->w->cancelled++;
    s->over = true; /* the next one is begun by the tick, not inside of this one's callback */
}

static void on_ready(void *user)
{
    struct slot *s = user;
    if (chance(s->w, 100))
        give_up(s);
}

static void on_head(void *user, const struct exchange_answer *a)
{
    struct slot *s = user;
    const enum kind k = kind_of(s->id);
    char want[32];
    snprintf(want, sizeof want, "%llu", (unsigned long long)s->id);
    if (!slice_is(http_response_header(a->head, "x-echo"), want))
        blame(s, "the head of another answer");
    if (a->head->status != (k == EMPTY ? 204 : k == SAME ? 304 : 200) || s->headed)
        blame(s, "another status, or two heads");
    s->headed = true;
    if (chance(s->w, 60))
        give_up(s);
}

static bool on_body(void *user, const char *p, size_t len)
{
    struct slot *s = user;
    for (size_t i = 0; i < len; i++, s->got++)
        if (p[i] != byte_of(s->id, s->got)) {
            blame(s, "a byte of another answer");
            break;
        }
    if (chance(s->w, 80)) {
        give_up(s);
        return true;
    }
    s->paused = chance(s->w, 30);
    return !s->paused;
}

static void on_done(void *user, enum exchange_end end, const char *why, struct slice trailers)
{
    struct slot *s = user;
    struct world *w = s->w;
    const enum kind k = kind_of(s->id);
    (void)why;
    (void)trailers;
    if (end == EXCHANGE_OK) {
        bool none = k == HEAD || k == EMPTY || k == SAME;
        w->ok++;
        if (!s->headed || s->got != (none ? 0 : length_of(s->id)) || k >= BREAKS)
            blame(s, "an answer that is not whole ended well");
    } else if (end == EXCHANGE_STALE && !s->fresh) {
        w->stale++;
        if (s->headed)
            blame(s, "told to repeat after its head");
        s->fresh = true;
        start(s);
        return;
    } else {
        w->failed++;
        if (k < BREAKS)
            blame(s, "a harmless request failed");
    }
    s->fresh = false;
    s->id = w->next++;
    start(s);
}

static const struct exchange_calls calls = {
    .ready = on_ready, .head = on_head, .body = on_body, .done = on_done
};

static void start(struct slot *s)
{
    struct world *w = s->w;
    char target[32];
    s->got = 0;
    s->headed = s->paused = false;
    if (s->id >= w->total) {
        w->busy--;
        s->x = NULL;
        return;
    }
    bool head = kind_of(s->id) == HEAD;
    int n = snprintf(target, sizeof target, "/%llu", (unsigned long long)s->id);
    struct exchange_request req = { .method = { head ? "HEAD" : "GET", head ? 4 : 3 },
                                    .target = { target, (size_t)n },
                                    .fields = { "Host: a\r\n", 9 },
                                    .repeatable = mixed(s->id) % 16 != 0,
                                    .fresh = s->fresh };
    if (exchange_begin(w->up, &req, &calls, s, &s->x) != 0)
        blame(s, "cannot begin");
}

/* Readers go on, and those that gave up begin anew. */
static void on_tick(struct alarm *a)
{
    struct world *w = (struct world *)((char *)a - offsetof(struct world, alarm));
    for (int i = 0; i < SLOTS; i++) {
        struct slot *s = &w->slot[i];
        if (s->over) {
            s->over = s->fresh = false;
            s->id = w->next++;
            start(s);
        } else if (s->x && s->paused) {
            s->paused = false;
            exchange_resume(s->x);
        }
    }
    if (w->busy > 0)
        T_EQ(alarm_set(w->loop, a, TICK_MS, on_tick), 0);
    else
        loop_drain(w->loop);
}

static void begin_all(struct loop_task *t)
{
    struct world *w = (struct world *)((char *)t - offsetof(struct world, task));
    for (int i = 0; i < SLOTS; i++) {
        w->slot[i] = (struct slot){ .w = w, .id = w->next++ };
        w->busy++;
        start(&w->slot[i]);
    }
    T_EQ(alarm_set(w->loop, &w->alarm, TICK_MS, on_tick), 0);
}

static void no_service(struct service_ctx *ctx, const struct http_request *req, struct reply *r)
{
    (void)ctx;
    (void)req;
    reply_http(r, 404, "", "", 0);
}

T_TEST(pipeline_storm)
{
    static struct world w;
    const struct upstream_opts opts = { .pipeline = DEPTH, .rest_ms = 1 };
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    char address[64];
    memset(&w, 0, sizeof w);
    const char *more = getenv("STORM"); /* for a long one by hand */
    w.total = more ? strtoull(more, NULL, 10) : t_scale(30000);
    seed = t_random();
    w.random = t_random();
    w.server.random = t_random();
    w.service.http = no_service;
    places_init(&w.places, 1000, 0, 1);
    T_EQ(loop_new(NULL, &w.service, &w.places, &w.loop), 0);
    T_EQ(listen_open("127.0.0.1:0", &w.server.fd, 1, NULL), 0);
    getsockname(w.server.fd, (struct sockaddr *)&at, &len);
    snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(at.sin_port));
    for (int i = 0; i < CONNS; i++)
        w.server.peer[i].fd = -1;
    T_EQ(upstream_new(w.loop, address, &opts, &w.up), 0);
    T_EQ(pthread_create(&w.server.thread, NULL, serve, &w.server), 0);
    w.task.fn = begin_all;
    loop_call(w.loop, &w.task);
    T_EQ(loop_run(w.loop), 0); /* ends when all are done */
    struct upstream_stats u;
    upstream_stats(w.up, &u);
    upstream_free(w.up);
    alarm_clear(&w.alarm);
    loop_free(w.loop);
    __atomic_store_n(&w.server.stop, true, __ATOMIC_RELEASE);
    pthread_join(w.server.thread, NULL);
    for (int i = 0; i < CONNS; i++)
        if (w.server.peer[i].fd >= 0)
            peer_end(&w.server.peer[i]);
    close(w.server.fd);
    printf("     %llu answered, %llu told to repeat, %llu failed, %llu given up, %llu pipelined, "
           "at most %u at once\n",
           (unsigned long long)w.ok, (unsigned long long)w.stale, (unsigned long long)w.failed,
           (unsigned long long)w.cancelled, (unsigned long long)u.pipelined, w.server.most);
    T_OK(!w.wrong, "request %llu, kind %d: %s", (unsigned long long)w.wrong_id,
         (int)kind_of(w.wrong_id), w.wrong);
    T_EQ(w.ok + w.failed + w.cancelled, w.total);
    T_EQ(u.in_flight + u.waiting, 0);
    T_OK(w.ok > w.total / 2 && u.pipelined > 0 && w.stale > 0 && w.server.most <= DEPTH);
}
