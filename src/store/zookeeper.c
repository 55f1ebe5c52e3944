/*
 * The registers in a ZooKeeper ensemble, through libzookeeper_mt.
 *
 * Names. The key "slot/00012" is the znode ROOT/slot/00012, "meta" is ROOT/_/meta: two levels, so that
 * a scan lists one directory, not the store. Other bytes are escaped as %XX.
 *
 * Writes. A znode's version is compared, not its value: a write reads value and version together,
 * compares the value here and names the version there, all of it in one transaction. Two holes of
 * versions are closed:
 *  - a znode that was deleted and created again counts from 0 anew. firn never deletes what is
 *    rewritten, so after a write czxid must be the one that was read. Otherwise somebody else did: what
 *    the write replaced is not known, and the answer is FIRN_ESTORE although it landed, since only that
 *    keeps the caller from finding its own nonce there and using the grant (PROTOCOL.md section 3).
 *  - registers that are removed have such second lives by design. Each creation therefore counts up a
 *    guard (ROOT/%guards/N, N a hash of the key), and a removal holds only on the guard that was read
 *    before the value.
 *
 * Reads come from one server of the ensemble, which may lag. A fresh read first commits a transaction
 * that changes nothing. zoo_async() would be cheaper, but a leader that has lost its followers and not
 * yet noticed answers it alone.
 *
 * The ensemble may lose its memory (a restored backup, a wiped disk). Every new connection therefore
 * looks whether ROOT is still the same znode, and whether the newest change seen so far, the highest
 * mzxid, is still there: its znode is not older, or was removed since, which its guard tells. The
 * transaction numbers alone do not: the election after a restore lifts them above all that was seen.
 * Whoever notices it marks ROOT by a write. That makes the store's identity another one, for handles
 * that are opened later and could not know, and for all others: every write checks ROOT's version.
 *
 * Time. Each request is asynchronous and has a context on the heap (struct op), which belongs to the
 * completion as soon as the caller has given up. The library may drop completions when a handle is
 * closed, so all contexts are in a list. A write is sent only while connected: what could not even be
 * sent is FIRN_EIO, and FIRN_EUNKNOWN only what was under way. Sessions mean nothing here (there are no
 * ephemeral znodes): an expired one is replaced in the next call, as is one that found no server.
 */
#include "store/engines.h"
#include "id/diag.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zookeeper/zookeeper.h>

enum {
    ROOT_BUF = 160,
    /* The root, two names of at most 3 bytes for each of the key, an empty name, slashes. */
    PATH_BUF = ROOT_BUF + 3 * STORE_KEY_MAX + 8,
    GUARDS = 64,       /* creations in one of them disturb removals in the same one only */
    ENTRIES_MAX = 256, /* registers in one write: far below the server's limit of 1 MB a request */
    SCAN_WINDOW = 256, /* reads under way at once */
    SESSION_MS_MIN = 1000,
    HINT_MS_MAX = 60000, /* an own write older than that says nothing about the store's clock */
};

struct zoo;

struct op { /* one request */
    struct op *next, **at;
    struct zoo *s;
    bool done;
    bool given_up; /* nobody waits any more: the completion frees it */
    bool unsent;   /* the library did not take it */
    int rc;
    struct Stat stat;
    struct String_vector names;
    zoo_op_result_t *result; /* of a transaction, with the Stats behind */
    struct Stat *stats;
    size_t len; /* may be more than fits */
    char value[STORE_VALUE_MAX];
};

struct lineage {      /* what tells this store from another, or from its own past */
    struct Stat root; /* its mzxid is the last mark; czxid 0: take what is there */
    int64_t zxid;     /* the highest mzxid seen */
    char witness[PATH_BUF], guard[PATH_BUF]; /* its znode and the guard of that */
};

struct zoo {
    struct firn_store base;
    uint32_t timeout_ms;
    char root[ROOT_BUF], *hosts, *auth; /* auth NULL: everybody may do everything */
    zhandle_t *zh;
    struct timespec end; /* of the call under way, CLOCK_MONOTONIC */
    struct lineage line;
    char changed[160];          /* what is wrong with the store; empty: nothing */
    bool marked;                /* and everybody can know */
    unsigned inspected;         /* the connection that was looked at */
    int64_t wrote_ms, wrote_at; /* an own write: the leader's clock, our monotonic one */

    pthread_mutex_t lock; /* for what follows, shared with the library's thread */
    pthread_cond_t cond;
    bool connected, dead; /* dead: this handle will never work again */
    unsigned connections, events;
    struct op *ops;
};

/* ---- time ---- */

static int64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct timespec after_ms(uint32_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static bool over(const struct timespec *end)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec > end->tv_sec || (t.tv_sec == end->tv_sec && t.tv_nsec >= end->tv_nsec);
}

/* ---- names ---- */

static const char no_directory[] = "_", empty_name[] = "%-";

/* Append a part of a key as the name of a znode; `out` has room for all of it. */
static char *escape(char *out, const char *p, size_t len, bool directory)
{
    static const char hex[] = "0123456789ABCDEF";
    if (len == 0)
        return stpcpy(out, empty_name);
    bool taken = directory && len == 1 && p[0] == no_directory[0];
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     c == '-' || c == ':' || (c == '_' && !taken) ||
                     (c == '.' && i > 0); /* "." and ".." are no names */
        if (plain) {
            *out++ = (char)c;
        } else {
            *out++ = '%';
            *out++ = hex[c >> 4];
            *out++ = hex[c & 15];
        }
    }
    *out = '\0';
    return out;
}

/* The bytes of a name, at most `size`; -1: not a name that escape() makes. */
static int unescape(const char *name, char *out, size_t size)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    if (strcmp(name, empty_name) == 0)
        return 0;
    for (const char *p = name; *p; p++) {
        char c = *p;
        if (c == '%') {
            const char *a = p[1] ? strchr(hex, p[1]) : NULL,
                       *b = a && p[2] ? strchr(hex, p[2]) : NULL;
            if (!b)
                return -1;
            c = (char)((a - hex) << 4 | (b - hex));
            p += 2;
        }
        if (n == size)
            return -1;
        out[n++] = c;
    }
    return (int)n;
}

static void key_path(const struct zoo *s, struct firn_slice key, char out[PATH_BUF])
{
    const char *slash = memchr(key.p, '/', key.len);
    size_t skip = slash ? (size_t)(slash - key.p) + 1 : 0;
    char *p = stpcpy(stpcpy(out, s->root), "/");
    p = slash ? escape(p, key.p, skip - 1, true) : stpcpy(p, no_directory);
    escape(stpcpy(p, "/"), key.p + skip, key.len - skip, false);
}

static unsigned guard_of(struct firn_slice key)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < key.len; i++)
        h = (h ^ (unsigned char)key.p[i]) * 16777619u;
    return (h ^ h >> 16) % GUARDS;
}

static void guard_path(const struct zoo *s, unsigned guard, char out[PATH_BUF])
{
    snprintf(out, PATH_BUF, "%s/%%guards/%02u", s->root, guard);
}

/* ---- requests ---- */

static void op_free(struct op *o)
{
    for (int i = 0; i < o->names.count; i++)
        free(o->names.data[i]);
    free(o->names.data);
    free(o->result);
    free(o->stats);
    *o->at = o->next;
    if (o->next)
        o->next->at = o->at;
    free(o);
}

/* NULL: no memory. `results` is the number of a transaction's parts. */
static struct op *op_new(struct zoo *s, size_t results)
{
    struct op *o = calloc(1, sizeof *o);
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
static void finish(int rc, const void *data)
{
    struct op *o = (struct op *)(uintptr_t)data;
    struct zoo *s = o->s;
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
    struct op *o = (struct op *)(uintptr_t)data;
    if (rc == ZOK) {
        o->stat = *stat;
        o->len = len > 0 ? (size_t)len : 0;
        if (o->len > 0 && o->len <= sizeof o->value)
            memcpy(o->value, value, o->len);
    }
    finish(rc, o);
}

static void got_names(int rc, const struct String_vector *names, const void *data)
{
    struct op *o = (struct op *)(uintptr_t)data;
    if (rc == ZOK && names->count > 0) {
        o->names.data = calloc((size_t)names->count, sizeof *o->names.data);
        for (int i = 0; o->names.data && i < names->count; i++)
            if (!(o->names.data[o->names.count++] = strdup(names->data[i])))
                rc = ZSYSTEMERROR;
        rc = o->names.data ? rc : ZSYSTEMERROR;
    }
    finish(rc, o);
}

static void got_stat(int rc, const struct Stat *stat, const void *data)
{
    (void)stat;
    finish(rc, data);
}

static void got_path(int rc, const char *path, const void *data)
{
    (void)path;
    finish(rc, data);
}

static struct op *sent(struct op *o, int rc)
{
    if (o && rc != ZOK) {
        o->rc = rc;
        o->unsent = o->done = true;
    }
    return o;
}

static struct op *send_get(struct zoo *s, const char *path)
{
    struct op *o = op_new(s, 0);
    return sent(o, o ? zoo_aget(s->zh, path, 0, got_data, o) : 0);
}

static struct op *send_list(struct zoo *s, const char *path)
{
    struct op *o = op_new(s, 0);
    return sent(o, o ? zoo_aget_children(s->zh, path, 0, got_names, o) : 0);
}

static struct op *send_create(struct zoo *s, const char *path)
{
    struct op *o = op_new(s, 0);
    const struct ACL_vector *acl = s->auth ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
    return sent(o, o ? zoo_acreate(s->zh, path, "", 0, acl, 0, got_path, o) : 0);
}

/* Behind it, reads on this connection show every write that was acknowledged before it was sent. */
static struct op *send_barrier(struct zoo *s)
{
    struct op *o = op_new(s, 1);
    zoo_op_t check;
    zoo_check_op_init(&check, s->root, -1);
    return sent(o, o ? zoo_amulti(s->zh, 1, &check, o->result, finish, o) : 0);
}

/* Wait for the answer, at most until the call's end. */
static int settle(struct op *o)
{
    if (!o)
        return ZSYSTEMERROR;
    struct zoo *s = o->s;
    pthread_mutex_lock(&s->lock);
    while (!o->done && pthread_cond_timedwait(&s->cond, &s->lock, &s->end) != ETIMEDOUT)
        ;
    int rc = o->done ? o->rc : ZOPERATIONTIMEOUT;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static void drop(struct op *o)
{
    if (!o)
        return;
    struct zoo *s = o->s;
    pthread_mutex_lock(&s->lock);
    o->given_up = true;
    if (o->done)
        op_free(o);
    pthread_mutex_unlock(&s->lock);
}

static int settle_and_drop(struct op *o)
{
    int rc = settle(o);
    drop(o);
    return rc;
}

/* The connection went away, and with it the answer: connected() finds another one, or the time is over.
 * The library gives a silent server up after two thirds of the session's time-out. */
static bool lost(int rc)
{
    return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONEXPIRED ||
           rc == ZINVALIDSTATE || rc == ZSESSIONMOVED || rc == ZCLOSING;
}

static int explain(const struct zoo *s, int error, int rc, struct firn_diag *d)
{
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

static void watch(zhandle_t *zh, int type, int state, const char *path, void *user)
{
    (void)zh, (void)path;
    struct zoo *s = user;
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

static void hang_up(struct zoo *s)
{
    if (s->zh)
        zookeeper_close(s->zh); /* after it none of the library's threads is left */
    s->zh = NULL;
    while (s->ops) /* completions that were never called */
        op_free(s->ops);
    s->connected = s->dead = false;
}

static int dial(struct zoo *s, struct firn_diag *d)
{
    hang_up(s);
    int session_ms = s->timeout_ms > SESSION_MS_MIN ? (int)s->timeout_ms : SESSION_MS_MIN;
    s->zh = zookeeper_init2(s->hosts, watch, session_ms, NULL, s, ZOO_NO_LOG_CLIENTENV, silent);
    if (!s->zh)
        return firn__diag(d, FIRN_EIO, 0, "no address for ZooKeeper at %.100s: %s", s->hosts,
                          strerror(errno));
    if (s->auth)
        (void)zoo_add_auth(s->zh, "digest", s->auth, (int)strlen(s->auth), NULL, NULL);
    return 0;
}

/* `marked`: whoever looks at the root sees it. */
static int change(struct zoo *s, bool marked, const char *why, const char *path)
{
    snprintf(s->changed, sizeof s->changed, "%s %.70s: find out why, then fence the store", why,
             path);
    s->marked = marked;
    return FIRN_ESTORE;
}

/* Remember the newest change. */
static void note(struct zoo *s, const char *path, unsigned guard, const struct Stat *stat)
{
    if (stat->mzxid <= s->line.zxid)
        return;
    s->line.zxid = stat->mzxid;
    snprintf(s->line.witness, sizeof s->line.witness, "%s", path);
    guard_path(s, guard, s->line.guard);
}

/* Create a znode and those above it, all persistent and empty, where they are not there. */
static int ensure(struct zoo *s, const char *path)
{
    char part[PATH_BUF];
    for (size_t i = 1;; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        int rc = settle_and_drop(send_create(s, part));
        if (path[i] == '\0' || (rc != ZOK && rc != ZNODEEXISTS && rc != ZNOAUTH))
            return rc == ZNODEEXISTS ? ZOK : rc;
    }
}

/* Settle a read where absence is an answer too. `out` is then all zero. */
static int settle_stat(struct op *o, struct Stat *out)
{
    int rc = settle(o);
    *out = rc == ZOK ? o->stat : (struct Stat){ 0 };
    drop(o);
    return rc == ZNONODE ? ZOK : rc;
}

/* Is this still the store that was opened? Notes it in `changed`; an error says that nobody knows. */
static int inspect(struct zoo *s)
{
    struct lineage *l = &s->line;
    struct Stat root, witness, guard;
    struct op *first = send_barrier(s), *a = send_get(s, s->root),
              *b = l->zxid ? send_get(s, l->witness) : NULL,
              *c = l->zxid ? send_get(s, l->guard) : NULL;
    int rc = settle_and_drop(first), rc_a = settle_stat(a, &root),
        rc_b = l->zxid ? settle_stat(b, &witness) : ZOK,
        rc_c = l->zxid ? settle_stat(c, &guard) : ZOK;
    rc = rc == ZNONODE ? ZOK : rc; /* the root: seen below */
    rc = rc ? rc : rc_a ? rc_a : rc_b ? rc_b : rc_c;
    if (rc == ZOK && l->root.czxid == 0 && root.czxid == 0) {
        rc = ensure(s, s->root);
        rc = rc ? rc : settle_stat(send_get(s, s->root), &root);
    }
    if (rc != ZOK)
        return rc;
    if (l->root.czxid == 0)
        l->root = root;
    if (s->changed[0])
        return ZOK;
    if (root.czxid != l->root.czxid)
        change(s, true, "ZooKeeper forgot the path", s->root);
    else if (root.mzxid > l->root.mzxid)
        change(s, true, "another firn saw ZooKeeper go back in time, at", s->root);
    else if (root.mzxid < l->root.mzxid ||
             (l->zxid && witness.mzxid < l->zxid && (witness.mzxid || guard.mzxid <= l->zxid)))
        change(s, false, "ZooKeeper went back in time: it forgot a change of", l->witness);
    return ZOK;
}

static void begin(struct zoo *s)
{
    s->end = after_ms(s->timeout_ms);
}

/* A connection to a store that was looked at, by the call's end. *out_connection counts them. */
static int connected(struct zoo *s, unsigned *out_connection, struct firn_diag *d)
{
    while (!over(&s->end)) {
        pthread_mutex_lock(&s->lock);
        bool renew = !s->zh || s->dead;
        pthread_mutex_unlock(&s->lock);
        int r = renew ? dial(s, d) : 0;
        if (r != 0)
            return r;
        pthread_mutex_lock(&s->lock);
        while (!s->connected && !s->dead &&
               pthread_cond_timedwait(&s->cond, &s->lock, &s->end) != ETIMEDOUT)
            ;
        bool there = s->connected && !s->dead;
        unsigned connection = s->connections;
        /* A handle never goes to servers that are behind what it saw, which a restored ensemble is
         * for ever: after a call in vain the next one begins with a new handle. */
        if (!s->connected)
            s->dead = true;
        pthread_mutex_unlock(&s->lock);
        if (!there)
            continue;
        int rc = s->inspected == connection ? ZOK : inspect(s);
        if (rc == ZOK) {
            s->inspected = *out_connection = connection;
            return 0;
        }
        if (!lost(rc))
            return explain(s, FIRN_EIO, rc, d);
    }
    return explain(s, FIRN_EIO, ZOPERATIONTIMEOUT, d);
}

/* Give the store another identity, unless somebody has done so since. */
static void mark(struct zoo *s)
{
    struct Stat root;
    int rc = settle_stat(send_get(s, s->root), &root);
    if (rc == ZOK && root.czxid == s->line.root.czxid && root.mzxid <= s->line.root.mzxid) {
        struct op *o = op_new(s, 0);
        o = sent(o, o ? zoo_aset(s->zh, s->root, "", 0, root.version, got_stat, o) : 0);
        rc = settle_and_drop(o);
    }
    s->marked = rc == ZOK || rc == ZBADVERSION;
}

static int not_the_same(struct zoo *s, struct firn_diag *d)
{
    if (!s->marked)
        mark(s);
    return firn__diag(d, FIRN_ESTORE, 0, "%s", s->changed);
}

/* ---- reads ---- */

/* The store's clock: the leader's at our last write, and the time since. Other people's writes say
 * nothing, nobody knows how long ago they were. */
static uint64_t store_ms(const struct zoo *s)
{
    int64_t age = mono_ms() - s->wrote_at;
    return s->wrote_ms > 0 && age <= HINT_MS_MAX ? (uint64_t)(s->wrote_ms + age) : 0;
}

static int take_record(const struct zoo *s, const struct op *o, struct firn_record *out,
                       struct firn_diag *d)
{
    if (o->len > sizeof out->value)
        return firn__diag(d, FIRN_EFORMAT, 0, "a value of %zu bytes below %.80s: not one of firn's",
                          o->len, s->root);
    memcpy(out->value, o->value, o->len);
    out->len = o->len;
    out->store_ms = store_ms(s);
    return 0;
}

static bool equal(const struct op *o, struct firn_slice value)
{
    return o->len == value.len && o->len <= sizeof o->value &&
           memcmp(o->value, value.p, o->len) == 0;
}

static int zoo_read(struct firn_store *base, struct firn_slice key, bool fresh,
                    struct firn_record *out, struct firn_diag *d)
{
    struct zoo *s = (struct zoo *)base;
    char path[PATH_BUF];
    if (key.len > STORE_KEY_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "key too long");
    key_path(s, key, path);
    begin(s);
    for (;;) {
        unsigned connection;
        int r = connected(s, &connection, d);
        if (r != 0)
            return r;
        struct op *barrier = fresh ? send_barrier(s) : NULL, *get = send_get(s, path);
        int rc = fresh ? settle_and_drop(barrier) : ZOK, got = settle(get);
        rc = rc == ZOK || rc == ZNONODE ? got : rc; /* no root: then no register either */
        if (rc == ZOK) {
            note(s, path, guard_of(key), &get->stat);
            r = take_record(s, get, out, d);
        }
        drop(get);
        if (rc == ZNONODE)
            return FIRN_ENOENT;
        if (!lost(rc))
            return rc == ZOK ? r : explain(s, FIRN_EIO, rc, d);
    }
}

static int zoo_wait(struct firn_store *base, struct firn_slice key, struct firn_slice old,
                    uint32_t timeout_ms, struct firn_record *out, struct firn_diag *d)
{
    struct zoo *s = (struct zoo *)base;
    struct timespec end = after_ms(timeout_ms);
    char path[PATH_BUF];
    if (key.len > STORE_KEY_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "key too long");
    key_path(s, key, path);
    for (;;) {
        unsigned connection;
        begin(s);
        int r = connected(s, &connection, d);
        if (r != 0)
            return r;
        pthread_mutex_lock(&s->lock);
        unsigned seen = s->events;
        pthread_mutex_unlock(&s->lock);
        /* The watch first: what changes between the two is announced. The library keeps one watch for
         * the same path, function and context, however often it is set. */
        struct op *set = op_new(s, 0);
        set = sent(set, set ? zoo_awexists(s->zh, path, watch, s, got_stat, set) : 0);
        struct op *get = send_get(s, path);
        int rc = settle_and_drop(set), got = settle(get);
        rc = rc == ZOK || rc == ZNONODE ? got : rc;
        bool same = rc == ZOK ? old.p && equal(get, old) : rc == ZNONODE && !old.p;
        r = rc == ZOK && !same ? take_record(s, get, out, d) : 0;
        drop(get);
        if (rc == ZNONODE && !same)
            return FIRN_ENOENT;
        if (!same && !lost(rc))
            return rc == ZOK ? r : explain(s, FIRN_EIO, rc, d);
        bool late = over(&end);
        pthread_mutex_lock(&s->lock);
        while (same && !late && s->events == seen)
            late = pthread_cond_timedwait(&s->cond, &s->lock, &end) == ETIMEDOUT;
        pthread_mutex_unlock(&s->lock);
        if (late)
            return FIRN_EAGAIN;
    }
}

/* ---- writes ---- */

struct entry { /* one register of a write */
    const struct firn_cas *want;
    struct op *get; /* while it is being read */
    unsigned guard;
    bool conflict;
    int32_t version;
    int64_t czxid;
    char path[PATH_BUF];
};

struct write {
    size_t count;
    bool fresh; /* what is read is ordered after the call's beginning */
    struct {
        bool used, checked;
        int32_t version;
        struct op *get;
        char path[PATH_BUF];
    } guard[GUARDS];
    zoo_op_t op[1 + GUARDS + ENTRIES_MAX];
    struct entry *of[1 + GUARDS + ENTRIES_MAX]; /* NULL: the root's or a guard's */
    struct entry entry[];
};

/* Does it end the life of a register, which only a guard can tell from the next one? */
static bool removes(const struct entry *e)
{
    return !e->want->value.p;
}

/* Read what is to be replaced. ZOK: everything is known that can be. */
static int read_old(struct zoo *s, struct write *w)
{
    int rc = ZOK;
    struct op *barrier = w->fresh ? send_barrier(s) : NULL;
    for (unsigned g = 0; g < GUARDS; g++) /* before the values, or they could be of a later life */
        w->guard[g].get = w->guard[g].checked ? send_get(s, w->guard[g].path) : NULL;
    for (size_t i = 0; i < w->count; i++) {
        struct entry *e = &w->entry[i];
        e->get = e->want->old.p && !e->conflict ? send_get(s, e->path) : NULL;
    }
    if (w->fresh)
        rc = settle_and_drop(barrier);
    if (rc == ZNONODE) { /* no root: that is for inspect() */
        s->inspected = 0;
        rc = ZCONNECTIONLOSS;
    }
    for (unsigned g = 0; g < GUARDS; g++) {
        struct op *o = w->guard[g].get;
        int got = o ? settle(o) : w->guard[g].checked ? ZSYSTEMERROR : ZOK;
        w->guard[g].version = got == ZOK && o ? o->stat.version : -1;
        if (got == ZNONODE) /* a number that it will not have: the write fails and creates it */
            w->guard[g].version = INT32_MAX;
        else
            rc = rc ? rc : got;
        drop(o);
    }
    bool stale = false;
    for (size_t i = 0; i < w->count; i++) {
        struct entry *e = &w->entry[i];
        if (!e->want->old.p || e->conflict)
            continue;
        int got = settle(e->get);
        if (got == ZOK && equal(e->get, e->want->old)) {
            e->version = e->get->stat.version;
            e->czxid = e->get->stat.czxid;
            note(s, e->path, e->guard, &e->get->stat);
        } else if (got == ZOK || got == ZNONODE) {
            e->conflict = w->fresh;
            stale = !w->fresh;
        } else {
            rc = rc ? rc : got;
        }
        drop(e->get);
    }
    if (rc != ZOK || !stale)
        return rc;
    w->fresh = true; /* our server may be behind the others: once more, with all that is known */
    return read_old(s, w);
}

/* The root, then the guards, then the registers. */
static int build(const struct zoo *s, struct write *w, struct op *o)
{
    const struct ACL_vector *acl = s->auth ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
    int n = 0;
    zoo_check_op_init(&w->op[n], s->root, s->line.root.version);
    w->of[n++] = NULL;
    for (unsigned g = 0; g < GUARDS; g++) {
        if (!w->guard[g].used)
            continue;
        /* Without a version it only counts: the one place where that is what we want. */
        zoo_set_op_init(&w->op[n], w->guard[g].path, "", 0, w->guard[g].version, &o->stats[n]);
        w->of[n++] = NULL;
    }
    for (size_t i = 0; i < w->count; i++) {
        struct entry *e = &w->entry[i];
        struct firn_slice value = e->want->value;
        if (e->conflict)
            continue;
        if (!e->want->old.p)
            zoo_create_op_init(&w->op[n], e->path, value.p, (int)value.len, acl, 0, NULL, 0);
        else if (value.p)
            zoo_set_op_init(&w->op[n], e->path, value.p, (int)value.len, e->version, &o->stats[n]);
        else
            zoo_delete_op_init(&w->op[n], e->path, e->version);
        w->of[n++] = e;
    }
    return n;
}

/* Which part refused, and what that means. ZOK: for the next round. */
static int judge(struct zoo *s, struct write *w, const struct op *o, int n)
{
    int i = 0;
    while (i < n && (o->result[i].err == ZOK || o->result[i].err == ZRUNTIMEINCONSISTENCY))
        i++;
    if (i == n)
        return ZSYSTEMERROR;
    int err = o->result[i].err;
    struct entry *e = w->of[i];
    if (i == 0) /* look at the root anew, and find out */
        s->inspected = 0;
    if (i == 0 || (!e && err == ZBADVERSION))
        return ZOK; /* or something was created meanwhile */
    if (e && (err == ZBADVERSION || err == ZNODEEXISTS || (err == ZNONODE && e->want->old.p))) {
        e->conflict = true;
        return ZOK;
    }
    if (err != ZNONODE)
        return err;
    const char *path = e ? e->path : w->op[i].set_op.path;
    char parent[PATH_BUF];
    snprintf(parent, sizeof parent, "%.*s", e ? (int)(strrchr(path, '/') - path) : PATH_BUF, path);
    return ensure(s, parent);
}

/* It was committed. Is it what was meant? */
static int check_commit(struct zoo *s, const struct write *w, const struct op *o, int n)
{
    const char *first = w->op[1].set_op.path; /* a guard or a register, both have a Stat */
    if (o->stats[1].mzxid <= s->line.zxid)
        return change(s, false, "ZooKeeper went back in time, seen at", first);
    for (int i = 1; i < n; i++) {
        const struct entry *e = w->of[i];
        if (e && e->want->old.p && !removes(e) && o->stats[i].czxid != e->czxid)
            return change(s, false, "somebody deleted and created", e->path);
    }
    s->wrote_ms = o->stats[1].mtime;
    s->wrote_at = mono_ms();
    note(s, first, w->of[1] ? w->of[1]->guard : 0, &o->stats[1]);
    return 0;
}

/* One transaction with everything that is not in conflict. FIRN_EAGAIN: nothing happened, once more. */
static int commit(struct zoo *s, struct write *w, unsigned connection, struct firn_diag *d)
{
    struct op *o = op_new(s, 1 + GUARDS + w->count);
    if (!o)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    int n = build(s, w, o), rc, r;
    o = sent(o, zoo_amulti(s->zh, n, w->op, o->result, finish, o));
    rc = settle(o);
    if (rc == ZOK) {
        pthread_mutex_lock(&s->lock);
        bool same = s->connections == connection;
        pthread_mutex_unlock(&s->lock);
        /* It may have gone out on a connection that nobody has looked at yet. */
        r = same ? check_commit(s, w, o, n) : FIRN_EUNKNOWN;
        if (r == FIRN_ESTORE)
            r = not_the_same(s, d);
        else if (r != 0)
            r = explain(s, r, ZCONNECTIONLOSS, d);
    } else if (o->unsent) {
        r = lost(rc) ? FIRN_EAGAIN : explain(s, FIRN_EIO, rc, d);
    } else if (rc == ZBADVERSION || rc == ZNODEEXISTS || rc == ZNONODE) {
        rc = judge(s, w, o, n);
        r = rc == ZOK || lost(rc) ? FIRN_EAGAIN : explain(s, FIRN_EIO, rc, d);
    } else if (rc == ZNOAUTH || rc == ZINVALIDACL || rc == ZNOTEMPTY) {
        r = explain(s, FIRN_EIO, rc, d); /* the server says no */
    } else {
        r = explain(s, FIRN_EUNKNOWN, rc, d);
    }
    drop(o);
    return r;
}

static int write_all(struct zoo *s, struct write *w, struct firn_diag *d)
{
    for (;;) {
        unsigned connection;
        int r = connected(s, &connection, d);
        if (r == 0 && s->changed[0])
            r = not_the_same(s, d);
        if (r != 0)
            return r;
        int rc = read_old(s, w);
        if (lost(rc))
            continue;
        if (rc != ZOK)
            return explain(s, FIRN_EIO, rc, d);
        bool any = false;
        for (unsigned g = 0; g < GUARDS; g++)
            w->guard[g].used = w->guard[g].checked = false;
        for (size_t i = 0; i < w->count; i++) {
            const struct entry *e = &w->entry[i];
            any |= !e->conflict;
            w->guard[e->guard].used |= !e->conflict && (!e->want->old.p || removes(e));
            w->guard[e->guard].checked |= !e->conflict && removes(e);
        }
        r = any ? commit(s, w, connection, d) : 0;
        if (r != FIRN_EAGAIN)
            return r;
    }
}

static int zoo_cas_many(struct firn_store *base, const struct firn_cas *want, size_t count,
                        int *result, struct firn_diag *d)
{
    struct zoo *s = (struct zoo *)base;
    if (count > ENTRIES_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "%zu registers in one transaction", count);
    for (size_t i = 0; i < count; i++)
        if (want[i].key.len > STORE_KEY_MAX || want[i].value.len > STORE_VALUE_MAX ||
            (!want[i].old.p && !want[i].value.p))
            return firn__diag(d, FIRN_EINVAL, 0, "key or value too long, or nothing to remove");
    struct write *w = calloc(1, sizeof *w + count * sizeof w->entry[0]);
    if (!w)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    begin(s);
    w->count = count;
    for (size_t i = 0; i < count; i++) {
        struct entry *e = &w->entry[i];
        e->want = &want[i];
        e->guard = guard_of(want[i].key);
        w->guard[e->guard].checked |= removes(e);
        guard_path(s, e->guard, w->guard[e->guard].path);
        key_path(s, want[i].key, e->path);
    }
    int r = count > 0 ? write_all(s, w, d) : 0;
    for (size_t i = 0; r == 0 && i < count; i++)
        result[i] = w->entry[i].conflict ? FIRN_ECONFLICT : 0;
    free(w);
    return r;
}

static int zoo_cas(struct firn_store *base, const struct firn_cas *want, struct firn_diag *d)
{
    int result, r = zoo_cas_many(base, want, 1, &result, d);
    return r ? r : result;
}

/* ---- scan ---- */

struct name {
    size_t len;
    char key[STORE_KEY_MAX];
};

struct names {
    struct name *name;
    size_t count, size;
};

static int by_bytes(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int r = memcmp(x->key, y->key, x->len < y->len ? x->len : y->len);
    return r ? r : (x->len > y->len) - (x->len < y->len);
}

/* The keys of one directory that begin with the prefix. `name` is the directory's, then the keys'. */
static int add_keys(struct names *all, const struct name *directory, struct firn_slice prefix,
                    const struct String_vector *found)
{
    for (int i = 0; i < found->count; i++) {
        if (all->count == all->size) {
            size_t size = all->size ? 2 * all->size : 256;
            struct name *more = reallocarray(all->name, size, sizeof *more);
            if (!more)
                return ZSYSTEMERROR;
            all->name = more;
            all->size = size;
        }
        struct name *n = &all->name[all->count];
        *n = *directory;
        int len = unescape(found->data[i], n->key + n->len, sizeof n->key - n->len);
        if (len < 0)
            continue; /* not one of ours */
        n->len += (size_t)len;
        all->count += n->len >= prefix.len && memcmp(n->key, prefix.p, prefix.len) == 0;
    }
    return ZOK;
}

/* A directory's part of the keys in it; false: it is none, or none of them can have the prefix. */
static bool directory_of(const char *child, struct firn_slice prefix, struct name *out)
{
    out->len = 0;
    if (strcmp(child, no_directory) == 0)
        return !memchr(prefix.p, '/', prefix.len);
    int len = unescape(child, out->key, sizeof out->key - 1);
    if (len < 0)
        return false;
    out->key[len] = '/';
    out->len = (size_t)len + 1;
    return memcmp(out->key, prefix.p, out->len < prefix.len ? out->len : prefix.len) == 0;
}

static int list_all(struct zoo *s, struct firn_slice prefix, struct names *all)
{
    struct op *top = send_list(s, s->root);
    int rc = settle(top);
    all->count = 0;
    for (int i = 0; rc == ZOK && i < top->names.count; i++) {
        struct name directory;
        char path[PATH_BUF];
        if (strlen(top->names.data[i]) > 3 * STORE_KEY_MAX ||
            !directory_of(top->names.data[i], prefix, &directory))
            continue;
        snprintf(path, sizeof path, "%s/%s", s->root, top->names.data[i]);
        struct op *o = send_list(s, path);
        rc = settle(o);
        if (rc == ZOK)
            rc = add_keys(all, &directory, prefix, &o->names);
        drop(o);
    }
    drop(top);
    return rc == ZNONODE ? ZOK : rc;
}

static int zoo_scan(struct firn_store *base, struct firn_slice prefix, firn_record_fn *each,
                    void *user, struct firn_diag *d)
{
    struct zoo *s = (struct zoo *)base;
    struct names all = { 0 };
    struct op *flying[SCAN_WINDOW];
    unsigned connection;
    char path[PATH_BUF];
    int r, rc = ZOK;
    begin(s);
    do {
        r = connected(s, &connection, d);
        if (r == 0)
            rc = list_all(s, prefix, &all);
    } while (r == 0 && lost(rc));
    if (r == 0 && rc != ZOK)
        r = explain(s, FIRN_EIO, rc, d);
    if (r == 0 && all.count > 0)
        qsort(all.name, all.count, sizeof *all.name, by_bytes);
    size_t asked = 0, done = 0;
    while (r == 0 && done < all.count) {
        for (; asked < all.count && asked - done < SCAN_WINDOW; asked++) {
            key_path(s, firn_slice(all.name[asked].key, all.name[asked].len), path);
            flying[asked % SCAN_WINDOW] = send_get(s, path);
        }
        const struct name *n = &all.name[done];
        struct op *o = flying[done % SCAN_WINDOW];
        rc = settle(o);
        if (lost(rc)) { /* with all that were asked for after it */
            while (asked > done)
                drop(flying[--asked % SCAN_WINDOW]);
            r = connected(s, &connection, d);
            continue;
        }
        if (rc == ZOK && o->len > sizeof o->value) {
            r = firn__diag(d, FIRN_EFORMAT, 0, "a value of %zu bytes below %.80s", o->len, s->root);
        } else if (rc == ZOK) {
            key_path(s, firn_slice(n->key, n->len), path);
            note(s, path, guard_of(firn_slice(n->key, n->len)), &o->stat);
            r = each(user, firn_slice(n->key, n->len), firn_slice(o->value, o->len));
        } else if (rc != ZNONODE) { /* removed meanwhile */
            r = explain(s, FIRN_EIO, rc, d);
        }
        drop(o);
        done++;
    }
    while (asked > done)
        drop(flying[--asked % SCAN_WINDOW]);
    free(all.name);
    return r;
}

/* ---- the store ---- */

/* The root's birth, its transaction and the leader's clock: no other ensemble has both. Then the mark:
 * a copy that was put back gets a new one from whoever had seen more. */
static int zoo_identity(struct firn_store *base, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    struct zoo *s = (struct zoo *)base;
    unsigned connection;
    begin(s);
    s->inspected = 0; /* connections count from 1 */
    int r = connected(s, &connection, d);
    if (r == 0 && s->changed[0]) {
        struct lineage before = s->line;
        r = not_the_same(s, d);
        if (!s->marked)
            return r;
        s->line = (struct lineage){ 0 };
        s->inspected = 0;
        r = connected(s, &connection, d);
        if (r == 0)
            s->changed[0] = '\0';
        else
            s->line = before;
    }
    if (r == 0)
        snprintf(out, STORE_ID_TEXT_BUF, "zookeeper:%llx:%lld:%llx",
                 (unsigned long long)s->line.root.czxid, (long long)s->line.root.ctime,
                 (unsigned long long)s->line.root.mzxid);
    return r;
}

static void zoo_close(struct firn_store *base)
{
    struct zoo *s = (struct zoo *)base;
    hang_up(s);
    pthread_cond_destroy(&s->cond);
    pthread_mutex_destroy(&s->lock);
    free(s->hosts);
    free(s->auth);
    free(s);
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "zookeeper",
    .shared = true,
    .read = zoo_read,
    .cas = zoo_cas,
    .cas_many = zoo_cas_many,
    .scan = zoo_scan,
    .identity = zoo_identity,
    .close = zoo_close,
    .wait = zoo_wait,
};

/* ZooKeeper's rules for paths, and none of its own znodes. */
static bool path_ok(const char *path)
{
    for (const char *p = path;; p++) {
        size_t len = strcspn(p, "/");
        if (len == 0 || (p[0] == '.' && (len == 1 || (len == 2 && p[1] == '.'))) ||
            (p == path && len == 9 && memcmp(p, "zookeeper", 9) == 0))
            return false;
        for (size_t i = 0; i < len; i++)
            if ((unsigned char)p[i] < 0x20 || (unsigned char)p[i] >= 0x7f)
                return false;
        p += len;
        if (*p == '\0')
            return true;
    }
}

static int take_url(struct zoo *s, const struct store_url *u)
{
    size_t size = u->host_n * (sizeof u->host[0].name + 10), n = 0;
    s->hosts = malloc(size);
    if (u->user[0] && asprintf(&s->auth, "%s:%s", u->user, u->password) < 0)
        s->auth = NULL;
    if (!s->hosts || (u->user[0] && !s->auth))
        return FIRN_ENOMEM;
    for (size_t i = 0; i < u->host_n; i++) {
        bool six = strchr(u->host[i].name, ':') != NULL;
        n += (size_t)snprintf(s->hosts + n, size - n, "%s%s%s%s:%u", i ? "," : "", six ? "[" : "",
                              u->host[i].name, six ? "]" : "", u->host[i].port);
    }
    snprintf(s->root, sizeof s->root, "/%s", u->path[0] ? u->path : "firn");
    return 0;
}

int firn_store_zookeeper_open(const struct store_url *u, uint32_t timeout_ms,
                              struct firn_store **out, struct firn_diag *d)
{
    if (u->path[0] && !path_ok(u->path))
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "'/%.80s' is no path for ZooKeeper: give plain names between single '/'",
                          u->path);
    struct zoo *s = calloc(1, sizeof *s);
    if (!s)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->cond, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&s->lock, NULL);
    s->base.ops = &ops;
    s->timeout_ms = timeout_ms;
    unsigned connection;
    int r = take_url(s, u);
    begin(s);
    r = r ? firn__diag(d, r, 0, "out of memory") : connected(s, &connection, d);
    if (r != 0)
        zoo_close(&s->base);
    else
        *out = &s->base;
    return r;
}
