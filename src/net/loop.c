/*
 * An event loop on libuv. A turn: libuv polls and calls conn.c for input; then the answers that
 * were gathered are sent; then, before it sleeps again, on_prepare() flushes the deferred replies
 * that are done, lets connections with left-over requests go on and tells the service that the turn
 * is over. One coarse timer checks all deadlines: they stand side by side in an array, so ten
 * thousand idle connections cost microseconds per second. Tested in tests/unit/net/conn.c.
 */
#include "net/alarm.h"
#include "net/conn.h"
#include "net/edge.h"
#include "net/stream.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/filter.h>
#include <time.h>
#include <unistd.h>

enum {
    SWEEP_MS = 1000,
    LISTEN_BACKLOG = 4096, /* the kernel lowers it to somaxconn */
    OUT_MAX_EXTRA = 64 * 1024 + GATHER_MAX * GATHER_BYTES_MAX,
    DRAIN_TURNS = 3, /* one poll accepts what waits in the backlog, the next reads what it sent */
};

static void loop_date(struct loop *l)
{
    static const char day[] = "SunMonTueWedThuFriSat";
    static const char month[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    int n = snprintf(l->date, sizeof l->date, "Date: %.3s, %02u %.3s %04u %02u:%02u:%02u GMT\r\n",
                     day + 3 * tm.tm_wday, (unsigned)tm.tm_mday % 100u, month + 3 * tm.tm_mon,
                     (unsigned)(tm.tm_year + 1900) % 10000u, (unsigned)tm.tm_hour % 100u,
                     (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u);
    firn_assert(n > 0 && (size_t)n < sizeof l->date, "%d characters", n);
    l->date_len = (size_t)n;
}

static void run_tasks(struct loop *l)
{
    struct loop_task *t = atomic_exchange_explicit(&l->tasks, NULL, memory_order_acquire);
    struct loop_task *oldest = NULL;
    while (t) { /* they were pushed newest first */
        struct loop_task *next = t->next;
        t->next = oldest;
        oldest = t;
        t = next;
    }
    while (oldest) {
        t = oldest;
        oldest = t->next; /* before fn: from then on it may be used again */
        t->fn(t);
    }
}

void loop_call(struct loop *l, struct loop_task *t)
{
    struct loop_task *head = atomic_load_explicit(&l->tasks, memory_order_relaxed);
    do
        t->next = head;
    while (!atomic_compare_exchange_weak_explicit(&l->tasks, &head, t, memory_order_release,
                                                  memory_order_relaxed));
    if (!head) /* the first caller has woken the loop already */
        uv_async_send(&l->wake);
}

void loop_leave(struct loop *l)
{
    atomic_store(&l->leave_asked, true);
    uv_async_send(&l->wake);
}

void loop_drain(struct loop *l)
{
    atomic_store(&l->drain_asked, true);
    uv_async_send(&l->wake);
}

static void listener_accept(struct listener *s, int fd)
{
    if (s->accept)
        s->accept(s, fd);
    else
        conn_accept(s, fd);
}

static void drain_all(struct loop *l)
{
    edge_drain(l->edge);
    for (uint32_t i = l->slots_len; i-- > 0;) /* closing moves the last one into the gap */
        conn_drain(l->slots[i].conn);
}

/* Begin no more connections: a filter drops their first packet (SYN), which clients send again
 * until they are refused. Other packets pass: a handshake under way must end, or its client, which
 * sees it ended, is reset. A shared socket does not end. Without filters the gap is short. */
static void refuse_more(const struct listener *s)
{
    struct sock_filter no_syn[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13), /* the flags of a TCP header */
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x02, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = { sizeof no_syn / sizeof no_syn[0], no_syn };
    uv_os_fd_t fd;
    if (s->open && !s->shared && uv_fileno((const uv_handle_t *)&s->tcp, &fd) == 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

/* Take what waits in the kernel, then close: connections that are not accepted when their listener
 * closes are reset. */
static void close_listener(struct listener *s)
{
    uv_os_fd_t fd;
    int in;
    if (!s->open || uv_fileno((uv_handle_t *)&s->tcp, &fd) != 0)
        return;
    if (s->stuck)
        listener_accept(s, -1);
    while (!s->shared && (in = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        listener_accept(s, in);
    s->open = false;
    uv_close((uv_handle_t *)&s->tcp, NULL);
}

/* By now handshakes that had begun have ended: on a busy machine the kernel takes milliseconds for
 * their last packet. Clients whose connection was made just now have yet to send their request. */
static void on_grace(uv_timer_t *h)
{
    struct loop *l = h->data;
    if (l->ports_open) {
        l->ports_open = false;
        for (struct listener *s = l->listeners; s; s = s->next)
            close_listener(s);
        uv_timer_start(h, on_grace, DRAIN_FIRST_MS, 0);
    }
    drain_all(l);
}

/* No new connection from now on. A client that keeps one open and asks one request after another
 * may have sent the next one already: it gets an answer that ends the connection. */
static void loop_begin_drain(struct loop *l)
{
    firn_assert(!l->draining && l->leaving);
    l->draining = true;
    l->drain_until_ms = uv_now(&l->uv) + l->opts.drain_ms;
    l->ports_open = true;
    uv_timer_start(&l->grace, on_grace, DRAIN_GRACE_MS, 0);
    drain_all(l);
}

static void on_wake(uv_async_t *h)
{
    struct loop *l = h->data;
    run_tasks(l);
    bool drain = atomic_load(&l->drain_asked);
    l->leaving |= drain || atomic_load(&l->leave_asked);
    if (drain && !l->draining && l->drain_turns == 0) {
        l->drain_turns = DRAIN_TURNS;
        for (struct listener *s = l->listeners; s; s = s->next)
            refuse_more(s);
    }
}

static void on_busy(uv_idle_t *h)
{
    (void)h; /* that it runs is enough: the poll does not wait */
}

static void on_polled(uv_check_t *h)
{
    conn_flush(h->data);
}

static void on_prepare(uv_prepare_t *h)
{
    struct loop *l = h->data;
    firn_assert(l->out_from == 0 && l->gathered_n == 0, "from=%zu n=%u", l->out_from,
                l->gathered_n);
    /* Only what is there now: a connection that has more left joins again, after the poll. */
    struct conn *c = l->todo;
    l->todo = NULL;
    if (c) {
        c->todo_prev = &c; /* the list hangs on this variable, from which removals work too */
        l->settle_ns = mono_ns();
        l->turn_ns = l->turn_ns ? l->turn_ns : l->settle_ns;
    }
    while (c)
        conn_settle(c);
    firn_assert(l->out.len == 0 && l->sealed.len == 0, "out=%zu sealed=%zu", l->out.len,
                l->sealed.len);
    if (l->handed_over && l->service->turn)
        l->service->turn(l->service->ctx);
    l->handed_over = false;
    conn_time(l);
    l->turn_ns = 0;
    if (l->drain_turns > 0 && --l->drain_turns == 0)
        loop_begin_drain(l);
    if (l->draining && !l->ports_open && l->slots_len == 0 && l->stats.deferred == 0 &&
        edge_open(l->edge) == 0)
        uv_stop(&l->uv);
    if (l->todo || l->drain_turns > 0)
        uv_idle_start(&l->busy, on_busy);
    else
        uv_idle_stop(&l->busy);
}

static void on_sweep(uv_timer_t *h)
{
    struct loop *l = h->data;
    uint64_t now = uv_now(&l->uv);
    loop_date(l);
    for (uint32_t i = l->slots_len; i-- > 0;)
        if (l->slots[i].deadline_ms != 0 && l->slots[i].deadline_ms <= now) {
            firn_assert(l->slots[i].conn->slot == i, "slot=%u at %u", l->slots[i].conn->slot, i);
            conn_expire(l->slots[i].conn);
        }
    for (struct listener *s = l->listeners; s; s = s->next)
        if (s->open && s->stuck)
            listener_accept(s, -1);
    if (l->draining && now >= l->drain_until_ms) {
        for (uint32_t i = l->slots_len; i-- > 0;)
            conn_close(l->slots[i].conn);
        edge_close(l->edge);
        uv_stop(&l->uv);
    }
}

static void on_connection(uv_stream_t *s, int status)
{
    if (status == 0)
        listener_accept(s->data, -1);
}

static void set_default(uint32_t *v, uint32_t preset)
{
    if (*v == 0)
        *v = preset;
}

static void opts_complete(struct loop_opts *o)
{
    set_default(&o->header_ms, 10 * 1000);
    set_default(&o->body_ms, 30 * 1000);
    set_default(&o->idle_http_ms, 60 * 1000);
    set_default(&o->write_ms, 30 * 1000);
    set_default(&o->drain_ms, 10 * 1000);
    set_default(&o->out_high_bytes, 256 * 1024);
    set_default(&o->out_low_bytes, 64 * 1024);
    set_default(&o->out_max_bytes, 16 * 1024 * 1024);
    if (o->loop_out_max_bytes == 0)
        o->loop_out_max_bytes = 256u * 1024 * 1024;
    if (o->out_low_bytes > o->out_high_bytes)
        o->out_low_bytes = o->out_high_bytes;
}

/* Often enough for the shortest deadline, once a second normally. */
static uint32_t sweep_ms(const struct loop_opts *o)
{
    const uint32_t some[] = { o->header_ms, o->body_ms,  o->idle_http_ms,
                              o->write_ms,  o->drain_ms, o->idle_resp_ms };
    uint32_t ms = SWEEP_MS;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        if (some[i] > 0 && some[i] / 4 < ms)
            ms = some[i] / 4;
    return ms > 0 ? ms : 1;
}

int loop_new(const struct loop_opts *opts, const struct service *service, struct places *places,
             struct loop **out)
{
    if (!service || !service->http || !places || !out)
        return FIRN_EINVAL;
    struct loop *l = calloc(1, sizeof *l);
    if (!l)
        return FIRN_ENOMEM;
    l->opts = opts ? *opts : (struct loop_opts){ 0 };
    opts_complete(&l->opts);
    l->service = service;
    l->places = places;
    buf_init(&l->out, (size_t)l->opts.out_max_bytes + OUT_MAX_EXTRA);
    buf_init(&l->sealed, l->out.max + l->out.max / 256 + OUT_MAX_EXTRA); /* 16 KiB a record */
    loop_date(l);
    if (uv_loop_init(&l->uv) < 0) {
        free(l);
        return FIRN_EIO;
    }
    l->polled.data = l->wake.data = l->prepare.data = l->busy.data = l->sweep.data = l->retry.data =
        l;
    l->grace.data = l;
    l->paused_last = &l->paused;
    if (uv_async_init(&l->uv, &l->wake, on_wake) < 0) {
        uv_loop_close(&l->uv);
        free(l);
        return FIRN_EIO;
    }
    uv_prepare_init(&l->uv, &l->prepare); /* these and the starts below cannot fail */
    uv_check_init(&l->uv, &l->polled);
    uv_idle_init(&l->uv, &l->busy);
    uv_timer_init(&l->uv, &l->sweep);
    uv_timer_init(&l->uv, &l->retry);
    uv_timer_init(&l->uv, &l->grace);
    uv_prepare_start(&l->prepare, on_prepare);
    uv_check_start(&l->polled, on_polled);
    uv_timer_start(&l->sweep, on_sweep, sweep_ms(&l->opts), sweep_ms(&l->opts));
    *out = l;
    return 0;
}

int loop_listen(struct loop *l, int fd, int tag, bool shared)
{
    return loop_listen_for(l, fd, tag, shared, NULL, NULL);
}

int loop_listen_for(struct loop *l, int fd, int tag, bool shared,
                    void (*accept)(struct listener *from, int fd), void *user)
{
    struct listener *s = calloc(1, sizeof *s);
    if (!s || uv_tcp_init(&l->uv, &s->tcp) < 0) {
        free(s);
        close(fd);
        return FIRN_ENOMEM;
    }
    s->loop = l;
    s->tag = tag;
    s->shared = shared;
    s->accept = accept;
    s->user = user;
    s->tcp.data = s;
    s->open = true;
    s->next = l->listeners;
    l->listeners = s; /* from here on loop_free() has it */
    if (uv_tcp_open(&s->tcp, fd) < 0) {
        close(fd);
        return FIRN_EIO;
    }
    return uv_listen((uv_stream_t *)&s->tcp, LISTEN_BACKLOG, on_connection) < 0 ? FIRN_EIO : 0;
}

int loop_run(struct loop *l)
{
    sigset_t pipe_signal; /* a peer that went away is an error of the write, not a reason to die */
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    if (pthread_sigmask(SIG_BLOCK, &pipe_signal, NULL) != 0)
        return FIRN_EIO;
    uv_run(&l->uv, UV_RUN_DEFAULT);
    return 0;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    for (uint32_t i = l->slots_len; i-- > 0;)
        conn_close(l->slots[i].conn);
    run_tasks(l); /* late completions find their connections gone */
    streams_free(l);
    alarms_free(l);
    for (struct listener *s = l->listeners; s; s = s->next)
        if (s->open)
            uv_close((uv_handle_t *)&s->tcp, NULL);
    uv_close((uv_handle_t *)&l->wake, NULL);
    uv_close((uv_handle_t *)&l->prepare, NULL);
    uv_close((uv_handle_t *)&l->polled, NULL);
    uv_close((uv_handle_t *)&l->busy, NULL);
    uv_close((uv_handle_t *)&l->sweep, NULL);
    uv_close((uv_handle_t *)&l->retry, NULL);
    uv_close((uv_handle_t *)&l->grace, NULL);
    uv_run(&l->uv, UV_RUN_DEFAULT);
    uv_loop_close(&l->uv);
    firn_assert(l->slots_len == 0 && l->stats.conns == 0 && !l->todo, "conns=%" PRIu64,
                l->stats.conns);
    firn_assert(l->held_bytes == 0 || l->stats.deferred > 0, "held=%" PRIu64, l->held_bytes);
    for (struct listener *s = l->listeners, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    for (struct reply *r = l->spare, *next; r; r = next) {
        next = r->next;
        buf_done(&r->own);
        free(r);
    }
    buf_done(&l->out);
    buf_done(&l->sealed);
    free(l->slots);
    free(l);
}

uint64_t loop_now_ms(const struct loop *l)
{
    return uv_now(&l->uv);
}

struct uv_loop_s *loop_uv(struct loop *l)
{
    return &l->uv;
}

void loop_stats(const struct loop *l, struct loop_stats *out)
{
    const uint64_t *from = (const uint64_t *)&l->stats;
    uint64_t *to = (uint64_t *)out;
    _Static_assert(sizeof *out % sizeof *to == 0, "a struct of uint64_t only");
    for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
        to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

void loop_latency(const struct loop *l, bool resp, unsigned kind, struct latency *into)
{
    firn_assert(kind < LATENCY_KINDS, "%u", kind);
    latency_merge(into, &l->latency[kind + (resp ? LATENCY_KINDS : 0)]);
}
