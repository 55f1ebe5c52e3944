/*
 * The node as a whole: the thread and the loop that run the member, and the functions for other
 * threads.
 *
 * Start: check settings, open folder, port and disk and the member on the caller's thread, so that
 * node_start() returns every error; then the loop's thread runs. Stop: the reverse, on the loop's
 * thread. The member is settled once for all that one turn of the loop brought.
 */
#include "raft/node_in.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "platform/mono.h"
#include "wire/tls_context.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LATE_MS = 1000 };

void node_say(const struct node *n, enum node_level level, const char *event, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n->opts.say)
        n->opts.say(n->opts.user, level, event, text);
}

int node_random(uint64_t *out, struct firn_diag *d)
{
    *out = 0;
    while (*out == 0)
        if (uv_random(NULL, NULL, out, sizeof *out, 0, NULL) != 0)
            return firn__diag(d, FIRN_EIO, 0, "cannot read random bytes from the system");
    return 0;
}

/* ---- the loop ---- */

static uint64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Something reaches the member: what time is it? */
static void enter(void *user)
{
    struct node *n = user;
    if (!n->member)
        return;
    n->settles = true;
    member_time(n->member, uv_now(&n->loop), wall_ms());
}

static void settle(struct node *n)
{
    if (!n->settles || !n->member)
        return;
    n->settles = false;
    member_settle(n->member);
}

static void on_before(uv_prepare_t *p)
{
    settle(p->data);
}

static void on_after(uv_check_t *c)
{
    settle(c->data);
}

static void close_handles(struct node *n)
{
    force_end(n);
    member_end(n->member); /* first, since it uses wires and disk */
    n->member = NULL;
    wire_close_all(&n->wires);
    disk_close(n->disk); /* its thread wakes the loop */
    n->disk = NULL;
    uv_close((uv_handle_t *)&n->wake, NULL);
    uv_close((uv_handle_t *)&n->tick, NULL);
    uv_close((uv_handle_t *)&n->before, NULL);
    uv_close((uv_handle_t *)&n->after, NULL);
    if (n->listener.data)
        uv_close((uv_handle_t *)&n->listener, NULL);
}

static void on_wake(uv_async_t *a)
{
    struct node *n = a->data;
    pthread_mutex_lock(&n->inbox.mutex);
    struct hand_in *h = n->inbox.first;
    n->inbox.first = NULL;
    n->inbox.last = &n->inbox.first;
    bool stop = n->inbox.stop;
    pthread_mutex_unlock(&n->inbox.mutex);
    enter(n);
    while (h) {
        struct hand_in *next = h->next;
        if (n->member && !stop && force_take(n, h)) {
            h = next;
            continue;
        }
        if (!n->member || stop)
            h->done(h->user, NULL, 0);
        else
            member_take(n->member, h->bytes, h->len, h->done, h->user);
        free(h);
        h = next;
    }
    if (stop) /* once: it closes what calls this */
        close_handles(n);
}

static void on_tick(uv_timer_t *t)
{
    struct node *n = t->data;
    enter(n);
    if (!n->member)
        return;
    member_tick(n->member);
    force_tick(n);
    if (!n->member)
        return;
    listen_tick(n);
    uint64_t name = member_cluster(n->member);
    if (name && name != n->self.cluster && n->self.log_begun)
        identity_note_cluster(n, name);
    if (!n->self.log_begun && disk_saved(n->disk) > 0)
        identity_note_log(n);
    if (n->self.restored)
        identity_note_restore(n);
    pthread_mutex_lock(&n->published.mutex);
    n->published.view = *member_view(n->member);
    pthread_mutex_unlock(&n->published.mutex);
}

void node_view(struct node *n, struct node_view *out)
{
    pthread_mutex_lock(&n->published.mutex);
    *out = n->published.view;
    pthread_mutex_unlock(&n->published.mutex);
}

static void on_moved(void *user)
{
    uv_async_send(&((struct node *)user)->wake); /* from the disk's thread */
}

static void *run(void *arg)
{
    struct node *n = arg;
    uv_run(&n->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* ---- start ---- */

static void on_say(void *user, enum node_level level, const char *event, const char *text)
{
    node_say(user, level, event, "%s", text);
}

static void on_restored(void *user)
{
    struct node *n = user;
    identity_note_restore(n);
    n->force.named = n->force.begun;
}

int node_open_member(struct node *n, struct firn_diag *d)
{
    char log[4200];
    struct disk_loaded loaded;
    snprintf(log, sizeof log, "%s/log", n->self.dir);
    int r = disk_open(&(struct disk_opts){ .dir = log, .moved = on_moved, .user = n }, &n->disk,
                      &loaded, d);
    if (r != 0)
        return r;
    const struct node_opts *o = &n->opts;
    if (o->restore)
        n->self.cluster = 0; /* it gets another name */
    struct member_opts m = { .id = n->self.id,
                             .cluster = n->self.cluster,
                             .address = n->self.address,
                             .newcomer = n->self.newcomer || !loaded.any,
                             .init = o->init,
                             .fresh = o->fresh,
                             .restore = o->restore,
                             .join = o->join,
                             .join_n = o->join_n,
                             .standby = o->standby,
                             .plain = o->plain || n->wires.tls,
                             .election_ms = o->election_ms,
                             .snapshot_every = o->snapshot_every,
                             .snapshot_keep = o->snapshot_keep,
                             .wires = &n->wires,
                             .disk = n->disk,
                             .loaded = &loaded,
                             .say = on_say,
                             .restored = on_restored,
                             .user = n };
    r = loaded.any ? 0 : identity_check_log(n, d);
    if (r == 0)
        r = node_random(&m.random, d);
    uv_update_time(&n->loop); /* loading may have taken a while */
    if (r == 0)
        r = member_start(&m, uv_now(&n->loop), wall_ms(), &n->member, d);
    disk_loaded_done(&loaded);
    n->opts.join = NULL; /* the caller's, and done with */
    n->opts.join_n = 0;
    return r;
}

#define TLS_AREA     "cluster.tls_"
#define TLS_SETTINGS "cluster.tls_cert, cluster.tls_key and cluster.tls_ca"

int node_check(const struct node_opts *o, struct firn_diag *d)
{
    bool tls = o->cert && o->key && o->ca;
    const char *address = o->address ? o->address : o->listen;
    if (!o->listen || !*o->listen)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "cluster.listen is required: host:port of the peer port");
    if (strlen(address) > FRAME_ADDRESS_MAX)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "cluster.listen or cluster.address is too long (at most %d bytes)",
                          FRAME_ADDRESS_MAX);
    if (!tls && (o->cert || o->key || o->ca))
        return firn__diag(d, FIRN_EINVAL, 0, "TLS needs all three: " TLS_SETTINGS);
    if (!tls && !o->plain && (!address_loopback(o->listen) || !address_loopback(address)))
        return firn__diag(d, FIRN_EINVAL, 0,
                          "cluster.listen %.39s can be reached from other machines: "
                          "set " TLS_SETTINGS ", or cluster.plain in a trusted network",
                          o->listen);
    const char *other = o->restore ? "restore" : o->standby ? "standby" : NULL;
    if (o->init && other)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "cluster.init and cluster.%s exclude each other: set cluster.init on the "
                          "first member only, and only until there is a second one",
                          other);
    return 0;
}

static void node_free(struct node *n)
{
    if (n->self.lock_fd >= 0)
        close(n->self.lock_fd);
    tls_context_free(n->wires.tls);
    pthread_mutex_destroy(&n->inbox.mutex);
    pthread_mutex_destroy(&n->published.mutex);
    free(n->self.address);
    free(n->self.dir);
    free(n);
}

static struct node *node_new(const struct node_opts *o)
{
    struct node *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->opts = *o;
    n->self.lock_fd = -1;
    n->inbox.last = &n->inbox.first;
    pthread_mutex_init(&n->inbox.mutex, NULL);
    pthread_mutex_init(&n->published.mutex, NULL);
    n->self.address = strdup(o->address && *o->address ? o->address : o->listen);
    n->self.dir = strdup(o->dir);
    if (!n->self.address || !n->self.dir || uv_loop_init(&n->loop) != 0) {
        node_free(n);
        return NULL;
    }
    n->wires = (struct wire_host){ .loop = &n->loop, .enter = enter, .user = n };
    uv_async_init(&n->loop, &n->wake, on_wake);
    uv_timer_init(&n->loop, &n->tick);
    uv_prepare_init(&n->loop, &n->before);
    uv_check_init(&n->loop, &n->after);
    n->wake.data = n->tick.data = n->before.data = n->after.data = n;
    return n;
}

int node_start(const struct node_opts *o, struct node **out, struct firn_diag *d)
{
    int r = node_check(o, d);
    if (r != 0)
        return r;
    struct node *n = node_new(o);
    if (!n)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    if (o->cert)
        r = tls_context_open(TLS_MEMBER, &(struct tls_files){ o->cert, o->key, o->ca, TLS_AREA },
                             &n->wires.tls, d);
    if (r == 0)
        r = identity_open(n, d);
    if (r == 0)
        r = node_listen(n, o->listen, d);
    if (r == 0)
        r = node_open_member(n, d);
    if (r == 0) {
        n->published.view = *member_view(n->member);
        uv_timer_start(&n->tick, on_tick, MEMBER_TICK_MS, MEMBER_TICK_MS);
        uv_prepare_start(&n->before, on_before);
        uv_check_start(&n->after, on_after);
        if (pthread_create(&n->thread, NULL, run, n) != 0)
            r = firn__diag(d, FIRN_ENOMEM, 0, "cannot start the cluster's thread");
    }
    if (r != 0) {
        close_handles(n);
        uv_run(&n->loop, UV_RUN_DEFAULT);
        uv_loop_close(&n->loop);
        node_free(n);
        return r;
    }
    *out = n;
    return 0;
}

void node_stop(struct node *n)
{
    if (!n)
        return;
    pthread_mutex_lock(&n->inbox.mutex);
    n->inbox.stop = true;
    pthread_mutex_unlock(&n->inbox.mutex);
    uv_async_send(&n->wake);
    pthread_join(n->thread, NULL);
    for (struct hand_in *h = n->inbox.first, *next; h; h = next) { /* too late for the thread */
        next = h->next;
        h->done(h->user, NULL, 0);
        free(h);
    }
    uv_loop_close(&n->loop);
    node_free(n);
}

int node_renew_tls(struct node *n, const char *cert, const char *key, const char *ca,
                   struct firn_diag *d)
{
    if (!n->wires.tls)
        return firn__diag(d, FIRN_EINVAL, 0, TLS_SETTINGS " take effect after a restart");
    if (!cert || !key || !ca)
        return firn__diag(d, FIRN_EINVAL, 0, "TLS needs all three: " TLS_SETTINGS);
    return tls_context_load(n->wires.tls, &(struct tls_files){ cert, key, ca, TLS_AREA }, d);
}

uint64_t node_id(const struct node *n)
{
    return n->self.id;
}

/* ---- for other threads ---- */

void node_submit(struct node *n, const char *frame, size_t len,
                 void (*done)(void *user, const char *reply, size_t len), void *user)
{
    struct hand_in *h = malloc(sizeof *h + len);
    if (!h) {
        done(user, NULL, 0);
        return;
    }
    firn_assert(len <= FRAME_MAX, "len=%zu", len);
    *h = (struct hand_in){ .done = done, .user = user, .len = len };
    memcpy(h->bytes, frame, len);
    pthread_mutex_lock(&n->inbox.mutex);
    *n->inbox.last = h;
    n->inbox.last = &h->next;
    pthread_mutex_unlock(&n->inbox.mutex);
    uv_async_send(&n->wake);
}

struct channel {
    struct raft_channel base;
    struct node *node;
};

struct waiting { /* one call; caller and node both hold it, and the later one frees it */
    pthread_mutex_t mutex;
    pthread_cond_t come;
    bool answered, left;
    size_t len;
    char *reply; /* NULL: the node stopped */
};

static void waiting_free(struct waiting *w)
{
    pthread_mutex_destroy(&w->mutex);
    pthread_cond_destroy(&w->come);
    free(w->reply);
    free(w);
}

static void waiting_done(void *user, const char *reply, size_t len)
{
    struct waiting *w = user;
    pthread_mutex_lock(&w->mutex);
    firn_assert(!w->answered && len <= FRAME_MAX, "len=%zu", len);
    w->answered = true;
    w->reply = reply ? malloc(len) : NULL;
    if (w->reply) {
        memcpy(w->reply, reply, len);
        w->len = len;
    }
    bool left = w->left;
    pthread_cond_signal(&w->come);
    pthread_mutex_unlock(&w->mutex);
    if (left)
        waiting_free(w);
}

static struct waiting *waiting_new(void)
{
    struct waiting *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    mono_cond_init(&w->come);
    pthread_mutex_init(&w->mutex, NULL);
    return w;
}

/* The node answers by the deadline. If it does not, the call ends LATE_MS after it. */
static int channel_call(struct raft_channel *base, const char *frame, size_t len, bool again,
                        int64_t until, char *reply, size_t *out_len, struct firn_diag *d)
{
    struct channel *c = (struct channel *)base;
    struct waiting *w = waiting_new();
    (void)again;
    if (!w)
        return firn__diag(d, FIRN_EIO, 0, "out of memory");
    node_submit(c->node, frame, len, waiting_done, w);
    int64_t end = until + LATE_MS;
    struct timespec t = { end / 1000, end % 1000 * 1000000 };
    pthread_mutex_lock(&w->mutex);
    while (!w->answered && pthread_cond_timedwait(&w->come, &w->mutex, &t) != ETIMEDOUT)
        ;
    bool answered = w->answered;
    w->left = true;
    if (answered && w->reply) {
        memcpy(reply, w->reply, w->len);
        *out_len = w->len;
    }
    int r = answered && w->reply
                ? 0
                : firn__diag(d, FIRN_EUNKNOWN, 0,
                             answered ? "this process's cluster member has stopped"
                                      : "this process's cluster member does not answer");
    pthread_mutex_unlock(&w->mutex);
    if (answered)
        waiting_free(w);
    return r;
}

static void channel_close(struct raft_channel *base)
{
    free(base);
}

struct raft_channel *node_channel(struct node *n)
{
    struct channel *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->base = (struct raft_channel){ channel_call, channel_close };
    c->node = n;
    return &c->base;
}
