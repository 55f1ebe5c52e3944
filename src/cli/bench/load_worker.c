/*
 * A thread of the load generator. It has an epoll set and its share of the connections. A turn:
 * wait, then for each readable connection one recv(), count the answers in it, one send() for as
 * many requests as were answered.
 *
 * Requests to a target are equal, so the bytes to send are always a range of one buffer that
 * repeats them; a partial send only moves the start of the range. Answers are nearly equal, too:
 * the head of the last plain one is kept, and an answer that begins with the same bytes needs no
 * parsing (the Date header costs one slow parse per second). An incomplete answer at the end of a
 * read is carried over to the next.
 *
 * Every connection numbers its requests: answered <= sent <= released. In the closed loop the times
 * of those in flight are in a ring; in the open loop a request's number gives its time. With
 * attempts the ring holds the times at which requests were due, and a connection that breaks counts
 * its requests as not sent: they are sent when it is connected again, with their old times.
 */
#include "cli/bench/load_worker.h"
#include "wire/http_response.h"
#include "platform/mono.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define RECONNECT_NS (20 * UINT64_C(1000000))
#define EXPIRE_NS    (5 * UINT64_C(1000000))
#define DRAIN_NS     SECOND_NS
enum {
    READ_BYTES = 256 * 1024,
    CARRY_MAX_BYTES = HTTP_RESPONSE_BODY_MAX + HTTP_RESPONSE_HEAD_MAX,
    EVENTS = 256,
};

struct conn {
    int fd; /* -1: broken, to be opened again */
    uint32_t number, target;
    bool writing; /* epoll waits for EPOLLOUT, too */
    bool dirty;   /* on the list of connections that got something to send this turn */
    bool skip_ok; /* the answer being skipped is a success */
    bool has_last;
    uint64_t released, sent, answered;
    /* of requests counted in `sent`; bytes of the first that were sent */
    size_t unsent_bytes, phase;
    size_t skip; /* bytes of a body that is not read */
    char *carry;
    size_t carry_len, carry_room;
    uint64_t *ring;       /* depth times; not in an open loop without attempts */
    uint32_t failed;      /* attempts of the oldest request in flight */
    uint64_t deadline_ns; /* of the last one that was sent */
    uint64_t last_id;
    char last_text[ID_BODY_TEXT_BUF];
    uint8_t last_len; /* of it */
};

static const struct load_target *target_of(const struct worker *w, const struct conn *c)
{
    return &w->plan->target[c->target];
}

/* ---- connections ---- */

int load_dial(const struct load_target *to)
{
    int fd = socket(to->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0)
        return -1;
    struct timeval limit = { .tv_sec = 2 };
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* bounds connect() */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (const struct sockaddr *)&to->address, to->address_len) != 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static bool conn_open(struct worker *w, struct conn *c)
{
    c->fd = load_dial(target_of(w, c));
    if (c->fd < 0)
        return false;
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
    if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->fd, &e) != 0) {
        close(c->fd);
        c->fd = -1;
        return false;
    }
    return true;
}

/* What was in flight is lost, or asked again; the connection is opened again later in the turn. */
static void conn_break(struct worker *w, struct conn *c)
{
    uint64_t lost = c->sent - c->answered;
    close(c->fd);
    c->fd = -1;
    w->down++;
    if (w->plan->attempts && lost > 0) {
        w->retry_ns = mono_ns() + RECONNECT_NS; /* as clients pause before they try again */
        lost = ++c->failed >= w->plan->attempts;
        w->r.retried += !lost;
        if (lost)
            c->failed = 0;
    }
    w->r.lost += lost;
    w->r.share[c->target].lost += lost;
    c->answered += lost;
    c->sent = c->answered;
    c->unsent_bytes = c->phase = c->skip = c->carry_len = 0;
    c->writing = c->has_last = false;
}

static void conn_watch(struct worker *w, struct conn *c, bool writing)
{
    if (c->writing == writing)
        return;
    struct epoll_event e = { .events = EPOLLIN | (writing ? EPOLLOUT : 0u), .data.ptr = c };
    epoll_ctl(w->epoll, EPOLL_CTL_MOD, c->fd, &e);
    c->writing = writing;
}

static void conn_flush(struct worker *w, struct conn *c)
{
    while (c->unsent_bytes > 0) {
        ssize_t n = send(c->fd, w->batch[c->target] + c->phase, c->unsent_bytes, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN) {
                conn_break(w, c);
                return;
            }
            break;
        }
        w->r.bytes_out += (uint64_t)n;
        c->unsent_bytes -= (size_t)n;
        c->phase = (c->phase + (size_t)n) % target_of(w, c)->request_len;
    }
    conn_watch(w, c, c->unsent_bytes > 0);
}

/* Send as much as depth, rate and budget allow. */
static void conn_pump(struct worker *w, struct conn *c, uint64_t now)
{
    const struct load_plan *plan = w->plan;
    if (c->fd < 0)
        return;
    uint64_t n = plan->depth - (c->sent - c->answered);
    if (plan->rate) {
        if (n > c->released - c->sent)
            n = c->released - c->sent;
    } else {
        if (w->phase == DRAINING)
            n = 0;
        if (n > w->budget)
            n = w->budget;
        w->budget -= n;
        for (uint64_t i = 0; i < n; i++)
            c->ring[(c->sent + i) % plan->depth] = now;
        c->released += n;
    }
    if (n == 0)
        return;
    c->deadline_ns = now + plan->attempt_ns;
    c->sent += n;
    c->unsent_bytes += n * target_of(w, c)->request_len;
    if (!c->writing)
        conn_flush(w, c);
}

/* ---- answers ---- */

/* When request `k` of the connection was due, or was sent. */
static uint64_t request_ns(const struct worker *w, const struct conn *c, uint64_t k)
{
    if (c->ring)
        return c->ring[k % w->plan->depth];
    double i = (double)(k * w->conns + c->number);
    return w->start_ns + (uint64_t)((i + (double)w->number / w->plan->threads) * w->interval_ns);
}

static void answered(struct worker *w, struct conn *c, bool ok, uint64_t now)
{
    uint64_t since = request_ns(w, c, c->answered++);
    uint64_t took = now > since ? now - since : 0;
    struct load_share *share = &w->r.share[c->target];
    histogram_add(&w->r.latency, took, 1);
    if (w->plan->live)
        histogram_add(&w->recent, took, 1);
    c->failed = 0;
    if (!ok) {
        w->r.errors++;
        share->errors++;
    } else if (w->phase != DRAINING || w->plan->attempts) {
        w->r.requests++;
        share->requests++;
    }
}

struct taking {
    struct worker *w;
    struct conn *c;
};

static void remember(struct worker *w, uint64_t id)
{
    if (w->plan->log)
        fprintf(w->plan->log, "%" PRIu64 "\n", id);
    else if (w->ids_n < w->ids_room)
        w->ids[w->ids_n++] = id;
    else
        w->r.unchecked++;
}

static void take_id(uint64_t id, void *user)
{
    struct taking *t = user;
    if (t->c->has_last && id <= t->c->last_id)
        t->w->r.falls++;
    t->c->last_id = id;
    t->c->has_last = true;
    remember(t->w, id);
}

/* Equal texts have equal hashes: distinct hashes prove distinct texts. */
static uint64_t text_hash(const char *p, size_t len)
{
    uint64_t h = len, word;
    while (len > 0) {
        size_t n = len < sizeof word ? len : sizeof word;
        word = 0;
        memcpy(&word, p, n);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
        h *= UINT64_C(0xd6e8feb86659fd93);
        h ^= h >> 29;
        p += n;
        len -= n;
    }
    return h;
}

static void take_text(const char *text, size_t len, void *user)
{
    struct taking *t = user;
    struct conn *c = t->c;
    if (c->has_last) {
        int order = memcmp(text, c->last_text, len < c->last_len ? len : c->last_len);
        if (order < 0 || (order == 0 && len <= c->last_len))
            t->w->r.falls++;
    }
    memcpy(c->last_text, text, len);
    c->last_len = (uint8_t)len;
    c->has_last = true;
    if (t->w->plan->log) {
        fprintf(t->w->plan->log, "%.*s\n", (int)len, text);
        return;
    }
    t->w->r.hashed++;
    remember(t->w, text_hash(text, len));
}

static void take_body(struct worker *w, struct conn *c, const char *p, size_t len)
{
    struct taking t = { w, c };
    enum id_body_form form = target_of(w, c)->form;
    if (!w->texts[c->target] && id_body_each(form, p, len, take_id, &t) == 0)
        return;
    if (id_body_each_text(form, p, len, take_text, &t) == 0)
        w->texts[c->target] = true;
    else
        w->r.unreadable++;
}

/* Keep the beginning of the first error, for the report. */
static void keep_sample(struct worker *w, const char *p, size_t len)
{
    if (w->r.sample_len > 0)
        return;
    w->r.sample_len = len < sizeof w->r.sample ? len : sizeof w->r.sample;
    memcpy(w->r.sample, p, w->r.sample_len);
}

/* The result of one answer; `used` is its length, or FIRN_EAGAIN or FIRN_EFORMAT. */
struct got {
    ssize_t used;
    bool close;
};

/* An answer whose head differs from the last one. */
static struct got read_slowly(struct worker *w, struct conn *c, char *p, size_t len, uint64_t now)
{
    struct http_response h;
    ssize_t head = http_response_head(p, len, &h);
    if (head < 0)
        return (struct got){ .used = head };
    size_t rest = len - (size_t)head, body_len = (size_t)h.body_len;
    ssize_t body = (ssize_t)h.body_len;
    bool ok = h.status >= 200 && h.status < 300;
    if (h.framing == FRAMED_BY_CLOSE)
        return (
            /* such a server takes one request per connection */
            struct got){ .used = FIRN_EFORMAT };
    if (h.framing == FRAMED_BY_CHUNKS) {
        ssize_t whole = http_response_read(p, len, false, &h);
        if (whole < 0)
            return (struct got){ .used = whole };
        body = whole - head;
        body_len = h.body.len;
    } else if (ok && !h.close && head <= SHAPE_BYTES) {
        struct shape *s = &w->shape[c->target];
        memcpy(s->head, p, (size_t)head);
        s->len = (size_t)head;
        s->body_len = body_len;
    }
    if (rest < (size_t)body && (w->plan->check || h.close))
        return (struct got){ .used = FIRN_EAGAIN };
    if (rest < (size_t)body) {
        c->skip = (size_t)body - rest;
        c->skip_ok = ok;
        return (struct got){ .used = (ssize_t)len };
    }
    if (!ok)
        keep_sample(w, body_len ? p + head : p, body_len ? body_len : (size_t)head);
    if (!ok && w->plan->attempts)
        return (struct got){ .used = FIRN_EFORMAT };
    if (ok && w->plan->check)
        take_body(w, c, p + head, body_len);
    answered(w, c, ok, now);
    return (struct got){ .used = head + body, .close = h.close };
}

static struct got read_http(struct worker *w, struct conn *c, char *p, size_t len, uint64_t now)
{
    const struct shape *s = &w->shape[c->target];
    if (s->len == 0 || len < s->len || memcmp(p, s->head, s->len) != 0)
        return read_slowly(w, c, p, len, now);
    size_t whole = s->len + s->body_len;
    if (len < whole) {
        if (w->plan->check)
            return (struct got){ .used = FIRN_EAGAIN };
        c->skip = whole - len;
        c->skip_ok = true;
        return (struct got){ .used = (ssize_t)len };
    }
    if (w->plan->check)
        take_body(w, c, p + s->len, s->body_len);
    answered(w, c, true, now);
    return (struct got){ .used = (ssize_t)whole };
}

static struct got read_resp(struct worker *w, struct conn *c, char *p, size_t len, uint64_t now)
{
    struct taking t = { w, c };
    struct resp_answer a = { 0 };
    bool check = w->plan->check, texts = w->texts[c->target];
    ssize_t used = texts ? 0 : id_body_resp(p, len, check ? take_id : NULL, &t, &a);
    if (used >= 0 && check && (texts || (a.other && a.count == 0))) {
        used = id_body_resp_text(p, len, take_text, &t, &a);
        w->texts[c->target] = texts || (used >= 0 && a.count > 0);
    }
    if (used >= 0) {
        if (w->plan->check && !a.error && (a.count == 0 || a.other))
            w->r.unreadable++;
        if (a.error)
            keep_sample(w, p, (size_t)used);
        if (a.error && w->plan->attempts)
            return (struct got){ .used = FIRN_EFORMAT };
        answered(w, c, !a.error, now);
    }
    return (struct got){ .used = used };
}

/* All answers among `len` bytes at w->buf. False: the connection cannot be used any more. */
static bool read_answers(struct worker *w, struct conn *c, size_t len, uint64_t now)
{
    size_t at = 0;
    while (at < len) {
        if (c->skip > 0) {
            size_t n = len - at < c->skip ? len - at : c->skip;
            at += n;
            c->skip -= n;
            if (c->skip == 0)
                answered(w, c, c->skip_ok, now);
            continue;
        }
        if (c->answered == c->sent)
            return false; /* an answer without a request */
        struct got g = target_of(w, c)->resp ? read_resp(w, c, w->buf + at, len - at, now)
                                             : read_http(w, c, w->buf + at, len - at, now);
        if (g.used == FIRN_EAGAIN)
            break;
        if (g.used < 0) {
            w->r.errors += !w->plan->attempts; /* with attempts it is asked again */
            keep_sample(w, w->buf + at, len - at);
            return false;
        }
        at += (size_t)g.used;
        if (g.close)
            return false;
    }
    size_t left = len - at;
    if (left > c->carry_room) {
        char *bigger = left <= CARRY_MAX_BYTES ? realloc(c->carry, 2 * left) : NULL;
        if (!bigger)
            return false;
        c->carry = bigger;
        c->carry_room = 2 * left;
    }
    if (left > 0)
        memcpy(c->carry, w->buf + at, left);
    c->carry_len = left;
    return true;
}

static bool make_room(struct worker *w, size_t need)
{
    if (need <= w->buf_room)
        return true;
    char *bigger = realloc(w->buf, 2 * need);
    if (!bigger)
        return false;
    w->buf = bigger;
    w->buf_room = 2 * need;
    return true;
}

static void conn_readable(struct worker *w, struct conn *c)
{
    if (!make_room(w, c->carry_len + READ_BYTES)) {
        conn_break(w, c);
        return;
    }
    if (c->carry_len > 0)
        memcpy(w->buf, c->carry, c->carry_len);
    ssize_t n = recv(c->fd, w->buf + c->carry_len, READ_BYTES, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_break(w, c);
        return;
    }
    w->r.bytes_in += (uint64_t)n;
    uint64_t now = mono_ns();
    if (!read_answers(w, c, c->carry_len + (size_t)n, now)) {
        conn_break(w, c);
        return;
    }
    conn_pump(w, c, now);
}

/* ---- time ---- */

/* When request `i` of this thread is due. */
static uint64_t due_ns(const struct worker *w, uint64_t i)
{
    return w->start_ns +
           (uint64_t)(((double)i + (double)w->number / w->plan->threads) * w->interval_ns);
}

/* Give requests that are due to connections that are free. */
static void hand_out(struct worker *w, uint64_t now)
{
    for (uint32_t looked = 0; w->taken < w->due && looked < w->conns; w->turn++) {
        struct conn *c = &w->conn[w->turn % w->conns];
        if (c->fd < 0 || c->released - c->answered >= w->plan->depth) {
            looked++;
            continue;
        }
        looked = 0;
        c->ring[c->released++ % w->plan->depth] = due_ns(w, w->taken++);
        conn_pump(w, c, now);
    }
}

/* End the connections whose answers are late. */
static void expire(struct worker *w, uint64_t now)
{
    if (!w->plan->attempt_ns || now < w->expire_ns)
        return;
    w->expire_ns = now + EXPIRE_NS;
    for (uint32_t i = 0; i < w->conns; i++) {
        struct conn *c = &w->conn[i];
        if (c->fd >= 0 && c->sent > c->answered && now >= c->deadline_ns) {
            static const char late[] = "no answer in time";
            keep_sample(w, late, sizeof late - 1);
            conn_break(w, c);
        }
    }
}

/* Open loop: release every request whose time has come, then send them, a connection at a time. */
static void release_due(struct worker *w, uint64_t now)
{
    double offset = w->interval_ns * (double)w->number / w->plan->threads;
    double passed = (double)(now - w->start_ns) - offset;
    if (w->phase == DRAINING || passed < 0)
        return;
    uint64_t due = (uint64_t)(passed / w->interval_ns) + 1, dirty = 0;
    if (due - w->due > w->budget)
        due = w->due + w->budget;
    w->budget -= due - w->due;
    if (w->plan->attempts) {
        w->due = due;
        hand_out(w, now);
        return;
    }
    for (; w->due < due; w->due++) {
        struct conn *c = &w->conn[w->due % w->conns];
        c->released++;
        if (!c->dirty)
            w->dirty[dirty++] = c;
        c->dirty = true;
    }
    w->taken = w->due;
    for (uint64_t i = 0; i < dirty; i++) {
        w->dirty[i]->dirty = false;
        conn_pump(w, w->dirty[i], now);
    }
}

static uint64_t next_due_ns(const struct worker *w)
{
    return due_ns(w, w->due);
}

static void reopen(struct worker *w, uint64_t now)
{
    if (w->down == 0 || now < w->retry_ns)
        return;
    for (uint32_t i = 0; i < w->conns; i++) {
        struct conn *c = &w->conn[i];
        if (c->fd >= 0)
            continue;
        if (!conn_open(w, c)) {
            w->retry_ns = now + RECONNECT_NS; /* the server is down: wait for it */
            return;
        }
        w->down--;
        w->r.reconnects++;
        conn_pump(w, c, mono_ns());
    }
}

static uint64_t in_flight(const struct worker *w)
{
    uint64_t n = w->phase == DRAINING ? 0 : w->due - w->taken;
    for (uint32_t i = 0; i < w->conns; i++)
        n += w->conn[i].released - w->conn[i].answered;
    return n;
}

/* Advance from warm-up to measuring to draining. False: the run is over. */
static bool advance(struct worker *w, uint64_t now)
{
    bool stop = w->plan->stop && *w->plan->stop;
    bool spent = w->budget == 0;
    if (w->phase == WARMING && now >= w->measure_ns) {
        struct load_result *r = &w->r;
        r->requests = r->errors = r->lost = r->reconnects = r->bytes_in = r->bytes_out = 0;
        histogram_reset(&r->latency);
        memset(r->share, 0, sizeof r->share);
        w->phase = MEASURING;
    }
    uint64_t waiting = spent || w->phase == DRAINING || now >= w->end_ns || stop ? in_flight(w) : 1;
    if (w->phase != DRAINING && (now >= w->end_ns || stop || (spent && waiting == 0))) {
        w->phase = DRAINING;
        w->stopped_ns = now;
        if (w->measure_ns > now)
            w->measure_ns = w->start_ns; /* stopped before it really began */
    }
    uint64_t drain_ns = w->plan->attempts * w->plan->attempt_ns + DRAIN_NS;
    return w->phase != DRAINING || (waiting > 0 && now < w->stopped_ns + drain_ns);
}

static uint64_t wake_ns(const struct worker *w, uint64_t now)
{
    uint64_t at = now + RECONNECT_NS; /* also how soon an interrupt is seen */
    if (w->phase != DRAINING && at > w->end_ns)
        at = w->end_ns;
    if (w->phase == WARMING && at > w->measure_ns)
        at = w->measure_ns;
    if (w->plan->rate && w->phase != DRAINING && w->budget > 0 && at > next_due_ns(w))
        at = next_due_ns(w);
    if (w->down > 0 && at > w->retry_ns)
        at = w->retry_ns;
    if (at > w->glimpse_ns)
        at = w->glimpse_ns;
    return at > now ? at - now : 0;
}

/* Requests that were never answered waited at least until now: leaving them out would improve
 * the figures. */
static void count_unanswered(struct worker *w, uint64_t now)
{
    for (uint32_t i = 0; i < w->conns; i++) {
        struct conn *c = &w->conn[i];
        for (uint64_t k = c->answered; k < c->released; k++) {
            uint64_t since = request_ns(w, c, k);
            histogram_add(&w->r.latency, now > since ? now - since : 0, 1);
            w->r.unanswered++;
        }
    }
}

/* Publish the progress for the waiting thread. */
static void let_see(struct worker *w, uint64_t now)
{
    struct glimpse *g = &w->glimpse;
    if (now < w->glimpse_ns)
        return;
    atomic_store_explicit(&g->requests, w->r.requests, memory_order_relaxed);
    atomic_store_explicit(&g->errors, w->r.errors, memory_order_relaxed);
    atomic_store_explicit(&g->lost, w->r.lost, memory_order_relaxed);
    atomic_store_explicit(&g->retried, w->r.retried, memory_order_relaxed);
    atomic_store_explicit(&g->sent, w->taken, memory_order_relaxed);
    atomic_store_explicit(&g->unsent, w->due - w->taken, memory_order_relaxed);
    atomic_store_explicit(&g->p50_ns, histogram_at(&w->recent, 500000), memory_order_relaxed);
    atomic_store_explicit(&g->p99_ns, histogram_at(&w->recent, 990000), memory_order_relaxed);
    histogram_reset(&w->recent);
    w->glimpse_ns = now + LIVE_NS;
}

void *load_worker_run(void *worker)
{
    struct worker *w = worker;
    struct epoll_event events[EVENTS];
    const struct load_plan *plan = w->plan;
    if (plan->cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((unsigned)plan->cpu + w->number, &set);
        pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    }
    prctl(PR_SET_TIMERSLACK, 1UL); /* the open loop sleeps microseconds */
    uint64_t now = mono_ns();
    while (now < w->start_ns) {
        nanosleep(&(struct timespec){ .tv_nsec = (long)(w->start_ns - now) }, NULL);
        now = mono_ns();
    }
    for (uint32_t i = 0; i < w->conns && !plan->rate; i++)
        conn_pump(w, &w->conn[i], mono_ns());
    while (advance(w, now = mono_ns())) {
        if (plan->rate)
            release_due(w, now);
        expire(w, now);
        reopen(w, now);
        let_see(w, now);
        uint64_t wait = wake_ns(w, now);
        struct timespec limit = { .tv_sec = (time_t)(wait / SECOND_NS),
                                  .tv_nsec = (long)(wait % SECOND_NS) };
        int n = epoll_pwait2(w->epoll, events, EVENTS, &limit, NULL);
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            if (events[i].events & EPOLLOUT)
                conn_flush(w, c);
            if (c->fd >= 0 && events[i].events & ~(uint32_t)EPOLLOUT)
                conn_readable(w, c);
        }
    }
    count_unanswered(w, now);
    w->r.sent = w->taken;
    w->r.unsent = w->due - w->taken;
    atomic_store(&w->glimpse.over, true);
    return NULL;
}

/* ---- init and done ---- */

void load_worker_done(struct worker *w)
{
    for (uint32_t i = 0; i < w->conns && w->conn; i++) {
        if (w->conn[i].fd >= 0)
            close(w->conn[i].fd);
        free(w->conn[i].carry);
        free(w->conn[i].ring);
    }
    if (w->epoll >= 0)
        close(w->epoll);
    if (w->ids)
        munmap(w->ids, w->ids_room * sizeof *w->ids);
    free(w->conn);
    free(w->dirty);
    for (uint32_t t = 0; t < w->plan->targets; t++)
        free(w->batch[t]);
    free(w->buf);
}

int load_worker_init(struct worker *w, const struct load_plan *plan, uint32_t number)
{
    uint32_t threads = plan->threads;
    w->plan = plan;
    w->number = number;
    w->conns = plan->connections / threads + (number < plan->connections % threads);
    w->budget = UINT64_MAX;
    if (plan->requests_max)
        w->budget = plan->requests_max / threads + (number < plan->requests_max % threads);
    if (plan->rate)
        w->interval_ns = 1e9 * threads / (double)plan->rate;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->conn = calloc(w->conns, sizeof *w->conn);
    w->dirty = calloc(w->conns, sizeof *w->dirty);
    w->glimpse_ns = plan->live ? 0 : UINT64_MAX;
    if (w->epoll < 0 || !w->conn || !w->dirty)
        return FIRN_ENOMEM;
    for (uint32_t i = 0; i < w->conns; i++) /* load_worker_done() must not close 0 */
        w->conn[i].fd = -1;
    for (uint32_t t = 0; t < plan->targets; t++) {
        size_t len = plan->target[t].request_len;
        w->batch[t] = malloc((plan->depth + 1) * len);
        if (!w->batch[t])
            return FIRN_ENOMEM;
        for (uint32_t i = 0; i <= plan->depth; i++)
            memcpy(w->batch[t] + i * len, plan->target[t].request, len);
    }
    if (plan->check) {
        w->ids_room = (plan->ids_max ? plan->ids_max : LOAD_IDS_MAX) / threads + 1;
        void *p = mmap(NULL, w->ids_room * sizeof *w->ids, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return FIRN_ENOMEM;
        w->ids = p;
    }
    for (uint32_t i = 0; i < w->conns; i++) {
        struct conn *c = &w->conn[i];
        c->number = i;
        c->target = (i * threads + number) % plan->targets;
        bool timed = !plan->rate || plan->attempts; /* else the number of a request is its time */
        c->ring = timed ? calloc(plan->depth, sizeof *c->ring) : NULL;
        if (timed && !c->ring)
            return FIRN_ENOMEM;
        if (!conn_open(w, c)) {
            w->r.failed_target = c->target;
            return FIRN_EIO;
        }
    }
    return 0;
}
