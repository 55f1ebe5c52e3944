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

struct pending {       /* one call under way */
    struct trip *trip; /* NULL: it waits for a block or a window */
    uint64_t deadline_ms;
    uint64_t failures; /* of blocks or leases when the call was made */
    bool text, done;
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
    m->answer.error = error;
    if (error)
        snprintf(m->answer.text, sizeof m->answer.text, "%.*s", (int)sizeof m->answer.text - 1,
                 text);
}

/* Serves the call from a block or from the generator, if there is a number at once. */
static bool serve_here(struct core *c, struct pending *m)
{
    struct run run;
    uint64_t stale;
    size_t n;
    struct firn_diag d = { 0, "" };
    int r = c->opts->mode == MODE_LEASED ? lending_fill(c, &m->answer.id, 1, 0, &n, &d)
                                         : prefetch_take(c, 1, 0, &run, &stale, &d);
    const struct failure *last = c->lending ? lending_failure(c) : &c->fetched;
    bool failed = r == FIRN_EAGAIN && last->count != m->failures; /* while it waited */
    if (r == FIRN_EAGAIN && !failed && mono_ms() < m->deadline_ms)
        return false;
    if (failed)
        r = firn__diag(&d, last->error, 0, "%s", last->why);
    if (r == 0 && c->opts->mode == MODE_PREFETCH)
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
    struct trip *own[CORE_TRIPS];
    size_t own_n = core_trips(c, own);
    for (size_t i = 0; i < own_n; i++) {
        int fd;
        short events;
        uint64_t until;
        trip_wants(own[i], &fd, &events, &until);
        at = until < at ? until : at;
    }
    for (struct pending *m = w->first; m; m = m->next) {
        int fd;
        short events;
        uint64_t until = m->deadline_ms;
        lies |= m->done;
        if (m->trip)
            trip_wants(m->trip, &fd, &events, &until);
        else if (!m->done && own_n == 0)
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

/* Takes over the names of the caller's own request; they become header lines. */
static int name_request(const struct firn_client_ask *a, struct request *q, struct firn_diag *d)
{
    struct trace_parent parent;
    struct slice id = { a->request_id, a->request_id ? strlen(a->request_id) : 0 };
    struct slice trace = { a->traceparent, a->traceparent ? strlen(a->traceparent) : 0 };
    if (id.p && !request_id_ok(id))
        return firn__diag(d, FIRN_EINVAL, 0,
                          "request_id is not 1 to 128 letters, digits and -._~:/+=@|");
    if (trace.p && trace_parent_read(trace, &parent) != 0)
        return firn__diag(d, FIRN_EINVAL, 0, "traceparent is not in the form of W3C Trace Context");
    if (id.p)
        memcpy(q->id, id.p, id.len + 1);
    if (trace.p)
        trace_parent_write(&parent, q->traceparent);
    return 0;
}

/* --- the public calls --- */

int firn_client_submit(struct firn_client *f, const struct firn_client_ask *ask,
                       struct firn_diag *d)
{
    struct firn_client_ask a = FIRN_CLIENT_ASK_INIT;
    struct core *c;
    struct request q;
    if (!f || !ask)
        return firn__diag(d, FIRN_EINVAL, 0, "the client or the ask is NULL");
    int r = firn__sized_copy(&a, sizeof a, ask, ask->size,
                             SIZE_UP_TO(struct firn_client_ask, user));
    if (r)
        return firn__diag(d, r, 0,
                          r == FIRN_EINVAL ? "ask.size is not set: start from FIRN_CLIENT_ASK_INIT"
                                           : "the ask is newer than this library");
    r = handle_core(f, &c, d);
    if (r == 0)
        r = handle_request(f, a.text ? REQUEST_TEXT : REQUEST_NUMBERS, 1, a.key, &q, d);
    if (r == 0)
        r = name_request(&a, &q, d);
    if (r)
        return r;
    pthread_mutex_lock(&c->mutex);
    r = ready(c);
    if (r)
        firn__diag(d, r, 0, "no descriptor, or no memory, to wait with");
    else if (c->async->n >= UNDER_WAY_MAX)
        r = firn__diag(d, FIRN_EAGAIN, 0, "%d calls are under way: take answers first",
                       UNDER_WAY_MAX);
    struct pending *m = r == 0 ? calloc(1, sizeof *m) : NULL;
    bool here = c->opts->mode != MODE_REMOTE && !a.key;
    if (m && !here && !(m->trip = malloc(sizeof *m->trip))) {
        free(m);
        m = NULL;
    }
    if (r == 0 && !m)
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    if (r == 0) {
        m->text = a.text != 0;
        m->answer.user = a.user;
        m->deadline_ms = mono_ms() + c->opts->deadline_ms;
        m->failures = c->lending ? lending_failure(c)->count : c->fetched.count;
        m->next = c->async->first;
        c->async->first = m;
        c->async->n++;
        if (m->trip) {
            trip_start(m->trip, c, &q);
            /* A sequence of unknown mode is treated as gapless. */
            m->trip->once = c->opts->seq[0] && !a.key &&
                            atomic_load(&c->sequence) != SEQUENCE_RANGE;
        }
        step_pending(c, m);
        set_timer(c);
    }
    pthread_mutex_unlock(&c->mutex);
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
