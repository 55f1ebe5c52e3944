/*
 * The node as a whole: its thread and loop, libraft's life, and the functions for other threads.
 *
 * Start: check settings, open folder and port; libraft loads snapshot and log on the caller's
 * thread, so that node_start() returns every error; then the loop's thread runs. Stop: the reverse,
 * on the loop's thread. libraft has no callback for a change of the leader: on_tick() looks.
 */
#include "raft/node_in.h"
#include "wire/tls_context.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ELECTION_MS = 150, RECONNECT_MS = 100, LATE_MS = 1000 };

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

/* ---- libraft's state machine ---- */

static int to_raft(int r)
{
    return r == 0 ? 0 : r == FIRN_ENOMEM ? RAFT_NOMEM : RAFT_CORRUPT;
}

static int on_apply(struct raft_fsm *f, const struct raft_buffer *b, void **result)
{
    struct node *n = f->data;
    firn_assert(raft_last_applied(&n->raft) < n->raft.commit_index, "applied=%llu commit=%llu",
                raft_last_applied(&n->raft), n->raft.commit_index);
    int r = n->applied.failed;
    if (r == 0 && !fsm_entry_at(b->base, b->len, raft_last_applied(&n->raft) + 1))
        r = FIRN_EFORMAT;
    if (r == 0)
        r = fsm_apply(&n->fsm, b->base, b->len);
    if (r != 0 && !n->applied.failed) {
        /* libraft would apply the entry again, and with it the requests that were applied. */
        n->applied.failed = r;
        log_failed(n, r == FIRN_ENOMEM ? "out of memory" : "a log entry is damaged",
                   r == FIRN_ENOMEM ? "restart firnd"
                                    : "remove this member, delete its folder, join again");
    }
    if (n->fsm.check.term)
        check_applied(n);
    *result = n->fsm.result; /* valid until the next entry: libraft passes it on before that */
    return to_raft(r);
}

/* libraft sends a snapshot that was lost on its way to a member again after 30 s, and the member
 * would get nothing until then. Here it is 3 s, plus 1 s per megabyte of the snapshot. */
static void set_resend(struct node *n, size_t bytes)
{
    raft_set_install_snapshot_timeout(&n->raft, SNAPSHOT_AGAIN_MS + (unsigned)(bytes / 1000));
}

static int on_snapshot(struct raft_fsm *f, struct raft_buffer *bufs[], unsigned *n_bufs)
{
    struct node *n = f->data;
    if (n->applied.failed) /* libraft takes one even so, of a state that may have half an entry */
        return RAFT_CORRUPT;
    if (n->raft.configuration_uncommitted_index != 0) /* libraft would put the change into it */
        return RAFT_BUSY;
    struct raft_buffer *b = raft_malloc(sizeof *b);
    if (!b)
        return RAFT_NOMEM;
    b->len = fsm_snapshot_size(&n->fsm);
    b->base = raft_malloc(b->len);
    if (!b->base || fsm_snapshot(&n->fsm, b->base, b->len) != 0) {
        raft_free(b->base);
        raft_free(b);
        return RAFT_NOMEM;
    }
    n->applied.snapshots++;
    set_resend(n, b->len);
    *bufs = b;
    *n_bufs = 1;
    return 0;
}

static int on_restore(struct raft_fsm *f, struct raft_buffer *b)
{
    struct node *n = f->data;
    int r = fsm_restore(&n->fsm, b->base, b->len);
    if (r == 0) {
        firn_assert(n->fsm.requests == 0 || n->fsm.dedup.row, "requests without their results");
        set_resend(n, b->len);
        raft_free(b->base);
        n->applied.snapshots++;
        n->check.differs = 0; /* these registers are the leader's */
    } else {
        node_say(n, NODE_ERROR, "snapshot_refused",
                 "cause=wrong checksum cure=remove this member, delete its folder, join again");
    }
    return to_raft(r);
}

/* ---- the loop ---- */

static void on_raft_closed(struct raft *r)
{
    struct node *n = r->data;
    firn_assert(n->loop.closing && n->requests.count == 0, "requests=%zu", n->requests.count);
    n->health.raft_open = false;
    uv_close((uv_handle_t *)&n->loop.wake, NULL);
    uv_close((uv_handle_t *)&n->loop.tick, NULL);
    if (n->net.listener.data)
        uv_close((uv_handle_t *)&n->net.listener, NULL);
    wire_close_all(&n->loop.uv);
}

static void begin_end(struct node *n)
{
    if (n->loop.closing)
        return;
    firn_assert(n->health.raft_open, "libraft is closed already");
    n->loop.closing = true;
    node_end_requests(n);
    raft_close(&n->raft, on_raft_closed);
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
    io_order_run(n);
    while (h) {
        struct hand_in *next = h->next;
        if (n->loop.closing || stop)
            h->done(h->user, NULL, 0);
        else
            node_take(n, h->bytes, h->len, NULL, h->done, h->user);
        free(h);
        h = next;
    }
    if (stop)
        begin_end(n);
    else
        node_pump(n);
}

static void watch_lead(struct node *n)
{
    raft_id id = 0;
    const char *address = NULL;
    raft_leader(&n->raft, &id, &address);
    if (id != n->election.logged) {
        n->election.logged = id;
        if (id)
            node_say(n, NODE_INFO, "leader", "member=%llx address=%s term=%llu%s", id,
                     address ? address : "?", n->raft.current_term,
                     id == n->self.id ? " this_member=yes" : "");
        else
            node_say(n, NODE_WARN, "no_leader", "term=%llu", n->raft.current_term);
    }
    bool unavailable = raft_state(&n->raft) == RAFT_UNAVAILABLE;
    if (id || unavailable) /* libraft has stopped here; the other members may have a leader */
        n->election.leaderless_ms = 0;
    else if (n->election.leaderless_ms == 0)
        n->election.leaderless_ms = uv_now(&n->loop.uv);
    if (n->forward.wire && !unavailable &&
        (id == n->self.id || id == 0)) { /* it may never answer what it has not answered yet */
        wire_close(n->forward.wire);
        node_leader_lost(n);
    }
    if (unavailable && !n->health.stopped) {
        n->health.stopped = true;
        const char *why = raft_errmsg(&n->raft);
        node_say(n, NODE_ERROR, "member_stopped", "cause=%s cure=repair that and restart firnd",
                 *why ? why : "unknown; see the log lines before this one");
    }
}

/* What libraft keeps true between two callbacks. After a snapshot that could not be stored it does
 * not: the log has failed then, and nothing is applied any more. */
static void check_indexes(struct node *n)
{
    raft_index last = raft_last_index(&n->raft), commit = n->raft.commit_index;
    raft_index applied = raft_last_applied(&n->raft), snapshot = n->raft.log.snapshot.last_index;
    const struct node_view *before = &n->published.view; /* only this thread writes it */
    firn_assert(n->raft.current_term >= before->term, "term=%llu before=%" PRIu64,
                n->raft.current_term, before->term);
    firn_assert(n->shield.vote.last.term >= n->raft.current_term, "stored term=%llu term=%llu",
                n->shield.vote.last.term, n->raft.current_term);
    if (n->health.stalled || raft_state(&n->raft) == RAFT_UNAVAILABLE)
        return;
    firn_assert(applied <= commit, "applied=%llu commit=%llu", applied, commit);
    firn_assert(commit <= last, "commit=%llu last=%llu", commit, last);
    firn_assert(snapshot <= last, "snapshot=%llu last=%llu", snapshot, last);
    firn_assert(applied >= before->applied_index, "applied=%llu before=%" PRIu64, applied,
                before->applied_index);
    firn_assert(commit >= before->commit_index, "commit=%llu before=%" PRIu64, commit,
                before->commit_index);
}

static void on_tick(uv_timer_t *t)
{
    struct node *n = t->data;
    if (n->loop.closing)
        return;
    check_indexes(n);
    watch_lead(n);
    election_watch_lead(n);
    silent_leader_tick(n);
    status_note_heard(n);
    view_publish(n);
    node_pump(n);
    node_expire(n);
    membership_join(n);
    removed_tick(n);
    append_failure_hand_over(n);
}

static void *run(void *arg)
{
    struct node *n = arg;
    uv_run(&n->loop.uv, UV_RUN_DEFAULT);
    return NULL;
}

/* ---- start ---- */

static int explain(struct node *n, int r, const char *what, struct firn_diag *d)
{
    const char *why = raft_errmsg(&n->raft);
    why = why && *why ? why : raft_strerror(r);
    if (!what) /* loading: libraft has many errors for data that it cannot decode */
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "%.40s is damaged (%.80s): remove this member, delete its folder, join "
                          "again",
                          n->self.dir, why);
    return firn__diag(d, FIRN_EIO, 0, "cannot %s in %.80s: %.80s", what, n->self.dir, why);
}

static int bootstrap(struct node *n, bool recover)
{
    struct raft_configuration c;
    raft_configuration_init(&c);
    int r = raft_configuration_add(&c, n->self.id, n->self.address, RAFT_VOTER);
    if (r == 0)
        r = recover ? raft_recover(&n->raft, &c) : raft_bootstrap(&n->raft, &c);
    raft_configuration_close(&c);
    return r == RAFT_CANTBOOTSTRAP ? 0
                                   : r; /* the folder has a cluster's data: continue with them */
}

static int start_raft(struct node *n, struct firn_diag *d)
{
    char log[4200];
    snprintf(log, sizeof log, "%s/log", n->self.dir);
    node_transport(n);
    int r = raft_uv_init(&n->io, &n->loop.uv, log, &n->net.transport);
    if (r != 0)
        return firn__diag(d, FIRN_EIO, 0, "cannot use %.120s: %s", log, raft_strerror(r));
    raft_uv_set_auto_recovery(&n->io, false); /* an operator decides about a damaged log */
    raft_uv_set_connect_retry_delay(&n->io, RECONNECT_MS);
    n->applied.hooks = (struct raft_fsm){
        .version = 1, .data = n, .apply = on_apply, .snapshot = on_snapshot, .restore = on_restore
    };
    r = raft_init(&n->raft, &n->io, &n->applied.hooks, n->self.id, n->self.address);
    if (r != 0) {
        r = firn__diag(d, FIRN_EIO, 0, "cannot use %.100s: %.60s", log, n->io.errmsg);
        raft_uv_close(&n->io);
        return r;
    }
    n->raft.data = n;
    n->health.raft_open = true;
    uint32_t election = n->opts.election_ms ? n->opts.election_ms : ELECTION_MS;
    election_begin(n, election);
    raft_set_election_timeout(&n->raft, election);
    raft_set_heartbeat_timeout(&n->raft, election / 5 ? election / 5 : 1);
    raft_set_pre_vote(&n->raft, true); /* a member that comes back does not depose the leader */
    set_resend(n, 0);
    raft_set_snapshot_threshold(&n->raft,
                                n->opts.snapshot_every ? n->opts.snapshot_every : SNAPSHOT_EVERY);
    raft_set_snapshot_trailing(&n->raft,
                               n->opts.snapshot_keep ? n->opts.snapshot_keep : SNAPSHOT_KEEP);
    shield_install(n);
    r = shield_repair(n, log, d);
    if (r != 0)
        return r;
    if (n->opts.init || n->opts.restore)
        r = bootstrap(n, n->opts.restore);
    if (r != 0)
        return explain(n, r, n->opts.restore ? "restore" : "begin a cluster", d);
    r = raft_start(&n->raft);
    if (r != 0 && n->shield.vote.damaged)
        return firn__diag(
            d, FIRN_EFORMAT, 0,
            "%.80s: term and vote are damaged: remove this member, delete its folder, "
            "join again",
            n->self.dir);
    return r ? explain(n, r, r == RAFT_NOMEM || r == RAFT_NOSPACE ? "go on" : NULL, d) : 0;
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
    const char *other = o->restore ? "restore" : o->join_n ? "join" : o->standby ? "standby" : NULL;
    if (o->init && other)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "cluster.init and cluster.%s exclude each other: set cluster.init on the "
                          "first member only, and only until there is a second one",
                          other);
    return 0;
}

static void node_free(struct node *n)
{
    for (size_t i = 0; i < n->opts.join_n && n->join.members; i++)
        free(n->join.members[i]);
    free(n->join.members);
    if (n->self.lock_fd >= 0)
        close(n->self.lock_fd);
    fsm_done(&n->fsm);
    tls_context_free(n->net.tls);
    configuration_done(n);
    pthread_mutex_destroy(&n->inbox.mutex);
    pthread_mutex_destroy(&n->published.mutex);
    free(n->self.address);
    free(n->self.dir);
    free(n->requests.room);
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
    n->requests.room = malloc(FRAME_MAX);
    n->join.members = calloc(o->join_n + 1, sizeof *n->join.members);
    bool ok = n->self.address && n->self.dir && n->requests.room && n->join.members &&
              uv_random(NULL, NULL, &n->self.boot, sizeof n->self.boot, 0, NULL) == 0;
    for (size_t i = 0; i < o->join_n && ok; i++)
        ok = (n->join.members[i] = strdup(o->join[i])) != NULL;
    if (!ok) {
        node_free(n);
        return NULL;
    }
    return n;
}

/* Closes the handles, and runs the loop until they are closed. */
static void close_loop(struct node *n)
{
    if (n->health.raft_open) {
        begin_end(n);
    } else {
        uv_close((uv_handle_t *)&n->loop.wake, NULL);
        uv_close((uv_handle_t *)&n->loop.tick, NULL);
        if (n->net.listener.data)
            uv_close((uv_handle_t *)&n->net.listener, NULL);
    }
    uv_run(&n->loop.uv, UV_RUN_DEFAULT);
}

int node_start(const struct node_opts *o, struct node **out, struct firn_diag *d)
{
    int r = node_check(o, d);
    if (r != 0)
        return r;
    struct node *n = node_new(o);
    if (!n || uv_loop_init(&n->loop.uv) != 0) {
        if (n)
            node_free(n);
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    }
    uv_async_init(&n->loop.uv, &n->loop.wake, on_wake);
    uv_timer_init(&n->loop.uv, &n->loop.tick);
    n->loop.wake.data = n->loop.tick.data = n;
    bool uv = false;
    if (o->cert)
        r = tls_context_open(TLS_MEMBER, &(struct tls_files){ o->cert, o->key, o->ca, TLS_AREA },
                             &n->net.tls, d);
    if (r == 0)
        r = identity_open(n, d);
    if (r == 0)
        r = node_listen(n, o->listen, d);
    if (r == 0) {
        r = start_raft(n, d);
        uv = n->health.raft_open;
    }
    if (r == 0)
        uv_timer_start(&n->loop.tick, on_tick, NODE_TICK_MS, NODE_TICK_MS);
    if (r == 0 && pthread_create(&n->loop.thread, NULL, run, n) != 0)
        r = firn__diag(d, FIRN_ENOMEM, 0, "cannot start the cluster's thread");
    if (r != 0) {
        close_loop(n);
        if (uv)
            raft_uv_close(&n->io);
        uv_loop_close(&n->loop.uv);
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
    uv_async_send(&n->loop.wake);
    pthread_join(n->loop.thread, NULL);
    raft_uv_close(&n->io);
    uv_loop_close(&n->loop.uv);
    node_free(n);
}

int node_renew_tls(struct node *n, const char *cert, const char *key, const char *ca,
                   struct firn_diag *d)
{
    if (!n->net.tls)
        return firn__diag(d, FIRN_EINVAL, 0, TLS_SETTINGS " take effect after a restart");
    if (!cert || !key || !ca)
        return firn__diag(d, FIRN_EINVAL, 0, "TLS needs all three: " TLS_SETTINGS);
    return tls_context_load(n->net.tls, &(struct tls_files){ cert, key, ca, TLS_AREA }, d);
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
    uv_async_send(&n->loop.wake);
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
