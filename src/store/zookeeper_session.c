/* Connection and requests of the ZooKeeper store (zookeeper_session.h).
 * Tested by tests/store/zookeeper.py. */
#include "store/zookeeper_session.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "platform/mono.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SESSION_MS_MIN = 1000,
    REDIAL_MS = 3000, /* so long in vain: then a new handle */
};

/* ---- time ---- */

int64_t zk_boot_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct timespec zk_after_ms(uint32_t ms)
{
    return mono_timespec(mono_ns() + (uint64_t)ms * 1000000);
}

bool zk_over(const struct timespec *end)
{
    struct timespec t = mono_timespec(mono_ns());
    return t.tv_sec > end->tv_sec || (t.tv_sec == end->tv_sec && t.tv_nsec >= end->tv_nsec);
}

/* ---- requests ---- */

static void op_free(struct zk_op *o)
{
    for (int i = 0; i < o->names.count; i++)
        free(o->names.data[i]);
    free(o->names.data);
    free(o->result);
    free(o->stats);
    firn_assert(*o->at == o); /* it is in the list, so no completion frees it again */
    *o->at = o->next;
    if (o->next)
        o->next->at = o->at;
    free(o);
}

struct zk_op *zk_op_new(struct zk *s, size_t results)
{
    struct zk_op *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    if (results > 0) {
        o->result = calloc(results, sizeof *o->result);
        o->stats = calloc(results, sizeof *o->stats);
        if (!o->result || !o->stats) {
            free(o->result);
            free(o->stats);
            free(o);
            return NULL;
        }
    }
    o->s = s;
    pthread_mutex_lock(&s->lock);
    o->next = s->ops;
    o->at = &s->ops;
    if (s->ops)
        s->ops->at = &o->next;
    s->ops = o;
    pthread_mutex_unlock(&s->lock);
    return o;
}

/* Every completion ends here. */
void zk_finish(int rc, const void *data)
{
    struct zk_op *o = (struct zk_op *)(uintptr_t)data;
    struct zk *s = o->s;
    pthread_mutex_lock(&s->lock);
    o->rc = rc;
    o->done = true;
    if (o->given_up)
        op_free(o);
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->lock);
}

static void got_data(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
    struct zk_op *o = (struct zk_op *)(uintptr_t)data;
    if (rc == ZOK) {
        o->stat = *stat;
        o->len = len > 0 ? (size_t)len : 0;
        if (o->len > 0 && o->len <= sizeof o->value)
            memcpy(o->value, value, o->len);
    }
    zk_finish(rc, o);
}

static void got_names(int rc, const struct String_vector *names, const void *data)
{
    struct zk_op *o = (struct zk_op *)(uintptr_t)data;
    if (rc == ZOK && names->count > 0) {
        o->names.data = calloc((size_t)names->count, sizeof *o->names.data);
        for (int i = 0; o->names.data && i < names->count; i++)
            if (!(o->names.data[o->names.count++] = strdup(names->data[i])))
                rc = ZSYSTEMERROR;
        rc = o->names.data ? rc : ZSYSTEMERROR;
    }
    zk_finish(rc, o);
}

void zk_got_stat(int rc, const struct Stat *stat, const void *data)
{
    (void)stat;
    zk_finish(rc, data);
}

static void got_path(int rc, const char *path, const void *data)
{
    (void)path;
    zk_finish(rc, data);
}

struct zk_op *zk_sent(struct zk_op *o, int rc)
{
    if (o && rc != ZOK && rc != ZMARSHALLINGERROR) {
        o->rc = rc;
        o->unsent = o->done = true;
    }
    return o;
}

struct zk_op *zk_send_get(struct zk *s, const char *path)
{
    struct zk_op *o = zk_op_new(s, 0);
    return zk_sent(o, o ? zoo_aget(s->zh, path, 0, got_data, o) : 0);
}

struct zk_op *zk_send_list(struct zk *s, const char *path)
{
    struct zk_op *o = zk_op_new(s, 0);
    return zk_sent(o, o ? zoo_aget_children(s->zh, path, 0, got_names, o) : 0);
}

const struct ACL_vector *zk_acl(const struct zk *s)
{
    return s->auth ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
}

static struct zk_op *send_create(struct zk *s, const char *path)
{
    struct zk_op *o = zk_op_new(s, 0);
    return zk_sent(o, o ? zoo_acreate(s->zh, path, "", 0, zk_acl(s), 0, got_path, o) : 0);
}

struct zk_op *zk_send_barrier(struct zk *s)
{
    struct zk_op *o = zk_op_new(s, 1);
    zoo_op_t check;
    zoo_check_op_init(&check, s->root, -1);
    return zk_sent(o, o ? zoo_amulti(s->zh, 1, &check, o->result, zk_finish, o) : 0);
}

/* A server may answer pings and no request any more: ZooKeeper 3.8.0 now and then forgets what
 * one session waits for. Then only another session helps. */
static int settle(struct zk_op *o, const struct timespec *until)
{
    if (!o)
        return ZSYSTEMERROR;
    struct zk *s = o->s;
    pthread_mutex_lock(&s->lock);
    while (!o->done && pthread_cond_timedwait(&s->cond, &s->lock, until) != ETIMEDOUT)
        ;
    int rc = o->done ? o->rc : ZOPERATIONTIMEOUT;
    s->dead |= !o->done;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int zk_settle(struct zk_op *o)
{
    return settle(o, o ? &o->s->until : NULL);
}

int zk_settle_write(struct zk_op *o)
{
    return settle(o, o ? &o->s->end : NULL);
}

void zk_drop(struct zk_op *o)
{
    if (!o)
        return;
    struct zk *s = o->s;
    pthread_mutex_lock(&s->lock);
    o->given_up = true;
    if (o->done)
        op_free(o);
    pthread_mutex_unlock(&s->lock);
}

int zk_settle_and_drop(struct zk_op *o)
{
    int rc = zk_settle(o);
    zk_drop(o);
    return rc;
}

bool zk_lost(int rc)
{
    return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONEXPIRED ||
           rc == ZINVALIDSTATE || rc == ZSESSIONMOVED || rc == ZCLOSING;
}

int zk_explain(const struct zk *s, int error, int rc, struct firn_diag *d)
{
    if (rc == ZNONODE && s->existing)
        return firn__diag(d, FIRN_ENOENT, 0, STORE_NONE_TEXT, s->root);
    if (rc == ZNOAUTH)
        return firn__diag(d, error, 0, "ZooKeeper refuses access to %.80s: %s", s->root,
                          s->auth ? "another user or password is needed"
                                  : "it wants zookeeper://user:password@host");
    if (rc == ZOPERATIONTIMEOUT)
        return firn__diag(d, error, 0, "ZooKeeper at %.100s did not answer within %u ms", s->hosts,
                          s->timeout_ms);
    return firn__diag(d, error, 0, "ZooKeeper at %.100s: %.60s", s->hosts, zerror(rc));
}

/* ---- the connection ---- */

static void silent(const char *message)
{
    (void)message; /* the library would tell standard error about every reconnect */
}

void zk_watch(zhandle_t *zh, int type, int state, const char *path, void *user)
{
    (void)zh, (void)path;
    struct zk *s = user;
    pthread_mutex_lock(&s->lock);
    s->events++;
    if (type == ZOO_SESSION_EVENT) {
        bool connected = state == ZOO_CONNECTED_STATE;
        s->connections += connected && !s->connected;
        s->connected = connected;
        s->dead |= state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE;
    }
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->lock);
}

static void hang_up(struct zk *s)
{
    if (s->zh)
        zookeeper_close(s->zh); /* after it none of the library's threads is left */
    s->zh = NULL;
    while (s->ops) /* completions that were never called */
        op_free(s->ops);
    s->connected = s->dead = false;
}

static int dial(struct zk *s, struct firn_diag *d)
{
    hang_up(s);
    /* The library gives a silent server up after two thirds of it: not before a call does, since
     * what was under way is lost then, but no later either. */
    uint32_t session_ms = s->timeout_ms + s->timeout_ms / 2;
    session_ms = session_ms > SESSION_MS_MIN ? session_ms : SESSION_MS_MIN;
    s->tried_at = zk_boot_ms();
    s->zh = zookeeper_init2(s->hosts, zk_watch, (int)session_ms, NULL, s, ZOO_NO_LOG_CLIENTENV,
                            silent);
    if (!s->zh)
        return firn__diag(d, FIRN_EIO, 0, "no address for ZooKeeper at %.100s: %s", s->hosts,
                          strerror(errno));
    /* Else its thread asks for the addresses at each turn, and a fork() finds it in getaddrinfo()
     * with a lock of the C library that nobody gives back in the child. A lost connection and a
     * new handle ask anyway. */
    (void)zoo_set_servers_resolution_delay(s->zh, -1);
    if (s->auth)
        (void)zoo_add_auth(s->zh, "digest", s->auth, (int)strlen(s->auth), NULL, NULL);
    return 0;
}

int zk_change(struct zk *s, bool marked, const char *why, const char *path)
{
    snprintf(s->changed, sizeof s->changed, "%s %.70s: find out why, then fence the store", why,
             path);
    s->marked = marked;
    return FIRN_ESTORE;
}

void zk_note(struct zk *s, const char *path, unsigned guard, const struct Stat *stat)
{
    if (stat->mzxid <= s->line.zxid)
        return;
    s->line.zxid = stat->mzxid;
    snprintf(s->line.witness, sizeof s->line.witness, "%s", path);
    zk_guard_path(s->root, guard, s->line.guard);
}

int zk_ensure(struct zk *s, const char *path, size_t there)
{
    char part[ZK_PATH_BUF];
    for (size_t i = there + 1;; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        int rc = zk_settle_and_drop(send_create(s, part));
        if (path[i] == '\0' || (rc != ZOK && rc != ZNODEEXISTS && rc != ZNOAUTH))
            return rc == ZNODEEXISTS ? ZOK : rc;
    }
}

/* Settle a read where absence is an answer too. `out` is then all zero. */
static int settle_stat(struct zk_op *o, struct Stat *out)
{
    int rc = zk_settle(o);
    *out = rc == ZOK ? o->stat : (struct Stat){ 0 };
    zk_drop(o);
    return rc == ZNONODE ? ZOK : rc;
}

/* Is this still the store that was opened? Notes it in `changed`; an error: it is unknown. */
static int inspect(struct zk *s)
{
    struct zk_lineage *l = &s->line;
    struct Stat root, witness, guard;
    struct zk_op *first = zk_send_barrier(s), *a = zk_send_get(s, s->root),
                 *b = l->zxid ? zk_send_get(s, l->witness) : NULL,
                 *c = l->zxid ? zk_send_get(s, l->guard) : NULL;
    int rc = zk_settle_and_drop(first), rc_a = settle_stat(a, &root),
        rc_b = l->zxid ? settle_stat(b, &witness) : ZOK,
        rc_c = l->zxid ? settle_stat(c, &guard) : ZOK;
    rc = rc == ZNONODE ? ZOK : rc; /* the root: seen below */
    rc = rc ? rc : rc_a ? rc_a : rc_b ? rc_b : rc_c;
    if (rc == ZOK && l->root.czxid == 0 && root.czxid == 0) {
        rc = s->existing ? ZNONODE : zk_ensure(s, s->root, 0);
        rc = rc ? rc : settle_stat(zk_send_get(s, s->root), &root);
    }
    if (rc != ZOK)
        return rc;
    if (l->root.czxid == 0)
        l->root = root;
    if (s->changed[0])
        return ZOK;
    if (root.czxid != l->root.czxid)
        zk_change(s, true, "ZooKeeper forgot the path", s->root);
    else if (root.mzxid > l->root.mzxid)
        zk_change(s, true, "another firn saw ZooKeeper go back in time, at", s->root);
    else if (root.mzxid < l->root.mzxid ||
             (l->zxid && witness.mzxid < l->zxid && (witness.mzxid || guard.mzxid <= l->zxid)))
        zk_change(s, false, "ZooKeeper went back in time: it forgot a change of", l->witness);
    return ZOK;
}

void zk_begin(struct zk *s)
{
    s->end = zk_after_ms(s->timeout_ms);
    s->until = zk_after_ms(s->timeout_ms / 2);
}

int zk_connected(struct zk *s, unsigned *out_connection, struct firn_diag *d)
{
    while (!zk_over(&s->end)) {
        pthread_mutex_lock(&s->lock);
        bool renew = !s->zh || s->dead;
        pthread_mutex_unlock(&s->lock);
        int r = renew ? dial(s, d) : 0;
        if (r != 0)
            return r;
        if (zk_over(&s->until))
            s->until = s->end;
        pthread_mutex_lock(&s->lock);
        while (!s->connected && !s->dead &&
               pthread_cond_timedwait(&s->cond, &s->lock, &s->end) != ETIMEDOUT)
            ;
        bool there = s->connected && !s->dead;
        unsigned connection = s->connections;
        /* A handle never goes to servers that are behind what it saw, which a restored ensemble is
         * for ever: after a while in vain the next call begins with a new handle. */
        if (!s->connected && zk_boot_ms() - s->tried_at >= REDIAL_MS)
            s->dead = true;
        pthread_mutex_unlock(&s->lock);
        if (!there)
            continue;
        int rc = s->inspected == connection ? ZOK : inspect(s);
        if (rc == ZOK) {
            s->inspected = *out_connection = connection;
            s->tried_at = zk_boot_ms();
            return 0;
        }
        if (!zk_lost(rc))
            return zk_explain(s, FIRN_EIO, rc, d);
    }
    return zk_explain(s, FIRN_EIO, ZOPERATIONTIMEOUT, d);
}

/* Give the store another identity, unless another handle has done so since. */
static void mark(struct zk *s)
{
    struct Stat root;
    int rc = settle_stat(zk_send_get(s, s->root), &root);
    if (rc == ZOK && root.czxid == s->line.root.czxid && root.mzxid <= s->line.root.mzxid) {
        struct zk_op *o = zk_op_new(s, 0);
        o = zk_sent(o, o ? zoo_aset(s->zh, s->root, "", 0, root.version, zk_got_stat, o) : 0);
        rc = zk_settle_and_drop(o);
    }
    s->marked = rc == ZOK || rc == ZBADVERSION;
}

int zk_not_the_same(struct zk *s, struct firn_diag *d)
{
    if (!s->marked)
        mark(s);
    return firn__diag(d, FIRN_ESTORE, 0, "%s", s->changed);
}

void zk_init(struct zk *s)
{
    mono_cond_init(&s->cond);
    pthread_mutex_init(&s->lock, NULL);
}

void zk_done(struct zk *s)
{
    hang_up(s);
    pthread_cond_destroy(&s->cond);
    pthread_mutex_destroy(&s->lock);
    free(s->hosts);
    free(s->auth);
}
