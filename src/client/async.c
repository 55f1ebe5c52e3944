/*
 * Calls that do not wait, for event loops.
 * One epoll instance watches every connection that a trip waits for, and one timer for all
 * deadlines; the caller's event loop polls its descriptor. While answers are ready to be taken the
 * timer rings, so that the descriptor stays readable.
 */
#include "client/internal.h"
#include "client/handle.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { UNDER_WAY_MAX = 1024, TEND_MS = 1000 };

struct pending {         /* one call under way */
    struct trip *trip;   /* NULL: it waits for a block or a window */
    struct shelf *shelf; /* prefetch: of its shard; held until it is done */
    uint64_t failures;   /* of blocks or leases when the call was made */
    bool text, done;
    struct order order;
    struct firn_client_answer answer;
    struct pending *next;
};

struct async {
    int epoll, timer;
    struct pending *first; /* the newest first */
    uint32_t n;
};

static int async_new(struct core *c)
{
    struct async *w = calloc(1, sizeof *w);
    if (!w)
        return FIRN_ENOMEM;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event e = { .events = EPOLLIN };
    if (w->epoll < 0 || w->timer < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->timer, &e) != 0) {
        if (w->epoll >= 0)
            close(w->epoll);
        if (w->timer >= 0)
            close(w->timer);
        free(w);
        return FIRN_EIO;
    }
    c->async = w;
    return 0;
}

static void pending_free(struct pending *m)
{
    if (m->trip)
        trip_done(m->trip);
    free(m->trip);
    free(m);
}

void async_free(struct core *c)
{
    struct async *w = c->async;
    if (!w)
        return;
    while (w->first) {
        struct pending *m = w->first;
        w->first = m->next;
        pending_free(m);
    }
    close(w->epoll);
    close(w->timer);
    free(w);
    c->async = NULL;
}

void async_watch(struct core *c, struct trip *t)
{
    struct channel *ch = t->channel;
    if (!c->async || !ch)
        return;
    struct epoll_event e = { .events = ch->wants == POLLOUT ? EPOLLOUT : EPOLLIN };
    if (ch->watch < 0) {
        if (epoll_ctl(c->async->epoll, EPOLL_CTL_ADD, ch->fd, &e) == 0)
            ch->watch = c->async->epoll;
    } else {
        epoll_ctl(ch->watch, EPOLL_CTL_MOD, ch->fd, &e);
    }
}

/* --- pending calls --- */

static void conclude(struct pending *m, int error, const char *text)
{
    m->done = true;
    if (m->shelf)
        m->shelf->users--;
    m->shelf = NULL;
    m->answer.error = error;
    if (error)
        snprintf(m->answer.text, sizeof m->answer.text, "%.*s", (int)sizeof m->answer.text - 1,
                 text);
}

/* Serves the call from a block or from the generator, if there is a number at once. */
static bool serve_here(struct core *c, struct pending *m)
{
    struct prefetch p = { 1, 0, &m->order.q };
    struct run run;
    uint64_t stale;
    size_t n;
    struct firn_diag d = { 0, "" };
    int r = m->shelf ? prefetch_take(c, m->shelf, &p, &run, &stale, &d)
                     : lending_fill(c, m->order.q.shard, &m->answer.id, 1, 0, &n, &d);
    const struct failure *last = m->shelf ? &m->shelf->fetched : lending_failure(c);
    bool failed = r == FIRN_EAGAIN && last->count != m->failures; /* while it waited */
    if (r == FIRN_EAGAIN && !failed && mono_ms() < m->order.end_ms)
        return false;
    if (failed)
        r = firn__diag(&d, last->error, 0, "%s", last->why);
    if (r == 0 && m->shelf)
        m->answer.id = run.first;
    if (r == 0 && m->text)
        snprintf(m->answer.text, sizeof m->answer.text, "%llu", (unsigned long long)m->answer.id);
    conclude(m, r, d.text);
    return true;
}

static void step_pending(struct core *c, struct pending *m)
{
    struct trip *t = m->trip;
    if (m->done || (!t && serve_here(c, m)) || !t)
        return;
    if (!trip_step(t)) {
        async_watch(c, t);
        return;
    }
    if (t->error == 0 && m->text)
        memcpy(m->answer.text, t->answer.text, sizeof m->answer.text);
    else if (t->error == 0)
        m->answer.id = t->answer.numbers.v[0].first;
    conclude(m, t->error, t->why);
    trip_done(t);
    free(t);
    m->trip = NULL;
}

/* Sets the timer to the earliest deadline, or to now while there are answers to take. */
static void set_timer(struct core *c)
{
    struct async *w = c->async;
    uint64_t at = mono_ms() + TEND_MS;
    bool lies = false;
    uint64_t own_until;
    struct trip *own = core_trip(c, &own_until);
    if (own && own_until < at)
        at = own_until;
    for (struct pending *m = w->first; m; m = m->next) {
        int fd;
        short events;
        uint64_t until = m->order.end_ms;
        lies |= m->done;
        if (m->trip)
            trip_wants(m->trip, &fd, &events, &until);
        else if (!m->done && !own)
            until = mono_ms() + 1; /* the generator's next millisecond */
        at = until < at ? until : at;
    }
    struct itimerspec s = { .it_value = { (time_t)(at / 1000), (long)(at % 1000) * 1000000 } };
    if (lies)
        s.it_value = (struct timespec){ 0, 1 };
    timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &s, NULL);
}

static int ready(struct core *c)
{
    return c->async ? 0 : async_new(c);
}

/* --- the public calls --- */

/* What the call waits for: a block, the generator, or a trip of its own. */
static int begin(struct core *c, struct pending *m, struct firn_diag *d)
{
    const struct order *o = &m->order;
    int r = 0;
    if (o->here && c->opts->mode == MODE_PREFETCH) {
        r = prefetch_shelf(c, o->q.shard, &m->shelf, d);
        if (r)
            return r;
        m->shelf->users++;
        m->failures = m->shelf->fetched.count;
    } else if (o->here) {
        m->failures = lending_failure(c)->count;
    } else {
        m->trip = malloc(sizeof *m->trip);
        if (!m->trip)
            return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
        trip_start(m->trip, c, &o->q);
        m->trip->user = o->user;
        m->trip->deadline_ms = o->end_ms;
        /* A sequence of unknown mode is treated as gapless. */
        m->trip->once = c->opts->seq[0] && !o->q.key[0] &&
                        atomic_load(&c->sequence) != SEQUENCE_RANGE;
    }
    m->text = o->q.kind == REQUEST_TEXT;
    m->answer.user = o->user;
    return r;
}

/* Locked. */
static int submit(struct core *c, struct pending *m, struct firn_diag *d)
{
    int r = ready(c);
    if (r)
        return firn__diag(d, r, 0, "no descriptor, or no memory, to wait with");
    if (c->async->n >= UNDER_WAY_MAX)
        return firn__diag(d, FIRN_EAGAIN, 0, "%d calls are under way: take answers first",
                          UNDER_WAY_MAX);
    r = begin(c, m, d);
    if (r)
        return r;
    m->next = c->async->first;
    c->async->first = m;
    c->async->n++;
    step_pending(c, m);
    set_timer(c);
    return 0;
}

int firn_client_submit(struct firn_client *f, const struct firn_client_ask *ask,
                       struct firn_diag *d)
{
    struct core *c;
    if (!f || !ask)
        return firn__diag(d, FIRN_EINVAL, 0, "the client or the ask is NULL");
    struct pending *m = calloc(1, sizeof *m);
    if (!m)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    int r = order_take(f, ask, false, &m->order, d);
    if (r == 0)
        r = handle_core(f, &c, d);
    if (r == 0) {
        pthread_mutex_lock(&c->mutex);
        r = submit(c, m, d);
        pthread_mutex_unlock(&c->mutex);
    }
    if (r)
        pending_free(m);
    return r;
}

int firn_client_take(struct firn_client *f, struct firn_client_answer *out)
{
    struct core *c;
    if (!f || !out || out->size < offsetof(struct firn_client_answer, text))
        return FIRN_EINVAL;
    int r = handle_core(f, &c, NULL);
    if (r)
        return r;
    r = FIRN_EAGAIN;
    pthread_mutex_lock(&c->mutex);
    for (struct pending **at = c->async ? &c->async->first : NULL; at && *at; at = &(*at)->next) {
        struct pending *m = *at;
        if (!m->done)
            continue;
        uint32_t size = out->size < sizeof *out ? out->size : (uint32_t)sizeof *out;
        m->answer.size = out->size;
        memcpy(out, &m->answer, size);
        *at = m->next;
        c->async->n--;
        pending_free(m);
        r = 0;
        break;
    }
    if (c->async)
        set_timer(c);
    pthread_mutex_unlock(&c->mutex);
    return r;
}

int firn_client_fd(struct firn_client *f)
{
    struct core *c;
    if (!f)
        return FIRN_EINVAL;
    int r = handle_core(f, &c, NULL);
    if (r)
        return r;
    pthread_mutex_lock(&c->mutex);
    r = ready(c);
    if (r == 0)
        r = c->async->epoll;
    pthread_mutex_unlock(&c->mutex);
    return r;
}

short firn_client_events(const struct firn_client *f)
{
    (void)f;
    return POLLIN;
}

int firn_client_pump(struct firn_client *f)
{
    struct core *c;
    uint64_t rings;
    if (!f)
        return FIRN_EINVAL;
    int r = handle_core(f, &c, NULL), done = 0;
    if (r)
        return r;
    pthread_mutex_lock(&c->mutex);
    r = ready(c);
    if (r == 0) {
        ssize_t n = read(c->async->timer, &rings, sizeof rings);
        (void)n; /* the timer need not have rung */
        core_tend(c);
        for (struct pending *m = c->async->first; m; m = m->next) {
            step_pending(c, m);
            done += m->done;
        }
        set_timer(c);
    }
    pthread_mutex_unlock(&c->mutex);
    return r ? r : done;
}
