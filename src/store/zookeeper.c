/*
 * The registers in a ZooKeeper ensemble, through libzookeeper_mt.
 *
 * Writes. A znode's version is compared, not its value: a write reads value and version together,
 * compares the value here and names the version there, all of it in one transaction. Two holes of
 * versions are closed:
 *  - a znode that was deleted and created again counts from 0 anew. firn never deletes what is
 *    rewritten, so after a write czxid must be the one that was read. Otherwise another program
 *    did: what the write replaced is not known, and the answer is FIRN_ESTORE although it landed,
 *    since only that keeps the caller from finding its own nonce there and using the grant
 *    (docs/protocol.md section 6).
 *  - registers that are removed have such second lives by design. Each creation therefore counts
 *    up a guard (ROOT/%guards/N, N a hash of the key), and a removal holds only on the guard that
 *    was read before the value.
 *
 * Reads come from one server of the ensemble, which may lag. A fresh read first commits a
 * transaction that changes nothing. zoo_async() would be cheaper, but a leader that has lost its
 * followers and not yet noticed answers it alone.
 *
 * A write is sent only on a connection that was looked at (zookeeper_session.h): what could not
 * even be sent is FIRN_EIO, and FIRN_EUNKNOWN only what was under way.
 *
 * Tested by tests/store/zookeeper.py.
 */
#include "store/check.h"
#include "store/engines.h"
#include "store/zookeeper_session.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ENTRIES_MAX = 256, /* registers in one write: far below the server's limit of 1 MB a request */
    SCAN_WINDOW = 256, /* reads under way at once */
    HINT_MS_MAX = 60000, /* an own write older than that says nothing about the store's clock */
};

/* ---- reads ---- */

/* The store's clock: the leader's at our last write, and the time since. Other clients' writes say
 * nothing: their age is unknown. */
static uint64_t store_ms(const struct zk *s)
{
    int64_t age = zk_boot_ms() - s->wrote_at;
    return s->wrote_ms > 0 && age <= HINT_MS_MAX ? (uint64_t)(s->wrote_ms + age) : 0;
}

static int take_record(const struct zk *s, const struct zk_op *o, struct firn_record *out,
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

static bool equal(const struct zk_op *o, struct firn_slice value)
{
    return o->len == value.len && o->len <= sizeof o->value &&
           memcmp(o->value, value.p, o->len) == 0;
}

static int register_read(struct firn_store *base, struct firn_slice key, bool fresh,
                         struct firn_record *out, struct firn_diag *d)
{
    struct zk *s = (struct zk *)base;
    char path[ZK_PATH_BUF];
    if (key.len > STORE_KEY_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "key too long");
    zk_key_path(s->root, key, path);
    zk_begin(s);
    for (;;) {
        unsigned connection;
        int r = zk_connected(s, &connection, d);
        if (r != 0)
            return r;
        struct zk_op *barrier = fresh ? zk_send_barrier(s) : NULL, *get = zk_send_get(s, path);
        int rc = fresh ? zk_settle_and_drop(barrier) : ZOK, got = zk_settle(get);
        rc = rc == ZOK || rc == ZNONODE ? got : rc; /* no root: then no register either */
        if (rc == ZOK) {
            zk_note(s, path, zk_guard_of(key), &get->stat);
            r = take_record(s, get, out, d);
        }
        zk_drop(get);
        if (rc == ZNONODE)
            return FIRN_ENOENT;
        if (!zk_lost(rc))
            return rc == ZOK ? r : zk_explain(s, FIRN_EIO, rc, d);
    }
}

static int register_wait(struct firn_store *base, struct firn_slice key, struct firn_slice old,
                         uint32_t timeout_ms, struct firn_record *out, struct firn_diag *d)
{
    struct zk *s = (struct zk *)base;
    struct timespec end = zk_after_ms(timeout_ms);
    char path[ZK_PATH_BUF];
    if (key.len > STORE_KEY_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "key too long");
    zk_key_path(s->root, key, path);
    for (;;) {
        unsigned connection;
        zk_begin(s);
        int r = zk_connected(s, &connection, d);
        if (r != 0)
            return r;
        pthread_mutex_lock(&s->lock);
        unsigned seen = s->events;
        pthread_mutex_unlock(&s->lock);
        /* The watch first: what changes between the two is announced. The library keeps one
         * watch for the same path, function and context, however often it is set. */
        struct zk_op *set = zk_op_new(s, 0);
        set = zk_sent(set, set ? zoo_awexists(s->zh, path, zk_watch, s, zk_got_stat, set) : 0);
        struct zk_op *get = zk_send_get(s, path);
        int rc = zk_settle_and_drop(set), got = zk_settle(get);
        rc = rc == ZOK || rc == ZNONODE ? got : rc;
        bool same = rc == ZOK ? old.p && equal(get, old) : rc == ZNONODE && !old.p;
        r = rc == ZOK && !same ? take_record(s, get, out, d) : 0;
        zk_drop(get);
        if (rc == ZNONODE && !same)
            return FIRN_ENOENT;
        if (!same && !zk_lost(rc))
            return rc == ZOK ? r : zk_explain(s, FIRN_EIO, rc, d);
        bool late = zk_over(&end);
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
    struct zk_op *get; /* while it is being read */
    unsigned guard;
    bool conflict;
    int32_t version;
    int64_t czxid;
    char path[ZK_PATH_BUF];
};

struct write {
    size_t count;
    bool fresh; /* what is read is ordered after the call's beginning */
    struct {
        bool used, checked;
        int32_t version;
        struct zk_op *get;
        char path[ZK_PATH_BUF];
    } guard[ZK_GUARDS];
    zoo_op_t op[1 + ZK_GUARDS + ENTRIES_MAX];
    struct entry *of[1 + ZK_GUARDS + ENTRIES_MAX]; /* NULL: the root's or a guard's */
    struct entry entry[];
};

/* Does it end the life of a register, which only a guard can tell from the next one? */
static bool removes(const struct entry *e)
{
    return !e->want->value.p;
}

/* Read what is to be replaced. ZOK: everything is known that can be. */
static int read_old(struct zk *s, struct write *w)
{
    int rc = ZOK;
    struct zk_op *barrier = w->fresh ? zk_send_barrier(s) : NULL;
    /* The guards before the values, or these could be of a later life than those. */
    for (unsigned g = 0; g < ZK_GUARDS; g++)
        w->guard[g].get = w->guard[g].checked ? zk_send_get(s, w->guard[g].path) : NULL;
    for (size_t i = 0; i < w->count; i++) {
        struct entry *e = &w->entry[i];
        e->get = e->want->old.p && !e->conflict ? zk_send_get(s, e->path) : NULL;
    }
    if (w->fresh)
        rc = zk_settle_and_drop(barrier);
    if (rc == ZNONODE) { /* no root: that is for inspect() */
        s->inspected = 0;
        rc = ZCONNECTIONLOSS;
    }
    for (unsigned g = 0; g < ZK_GUARDS; g++) {
        struct zk_op *o = w->guard[g].get;
        int got = o ? zk_settle(o) : w->guard[g].checked ? ZSYSTEMERROR : ZOK;
        w->guard[g].version = got == ZOK && o ? o->stat.version : -1;
        if (got == ZNONODE) /* a number that it will not have: the write fails and creates it */
            w->guard[g].version = INT32_MAX;
        else
            rc = rc ? rc : got;
        zk_drop(o);
    }
    bool stale = false;
    for (size_t i = 0; i < w->count; i++) {
        struct entry *e = &w->entry[i];
        if (!e->want->old.p || e->conflict)
            continue;
        int got = zk_settle(e->get);
        if (got == ZOK && equal(e->get, e->want->old)) {
            e->version = e->get->stat.version;
            e->czxid = e->get->stat.czxid;
            zk_note(s, e->path, e->guard, &e->get->stat);
        } else if (got == ZOK || got == ZNONODE) {
            e->conflict = w->fresh;
            stale = !w->fresh;
        } else {
            rc = rc ? rc : got;
        }
        zk_drop(e->get);
    }
    if (rc != ZOK || !stale)
        return rc;
    w->fresh = true; /* our server may be behind the ensemble: once more, with all that is known */
    return read_old(s, w);
}

/* The root, then the guards, then the registers. */
static int build(const struct zk *s, struct write *w, struct zk_op *o)
{
    const struct ACL_vector *acl = zk_acl(s);
    int n = 0;
    zoo_check_op_init(&w->op[n], s->root, s->line.root.version);
    w->of[n++] = NULL;
    for (unsigned g = 0; g < ZK_GUARDS; g++) {
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
static int judge(struct zk *s, struct write *w, const struct zk_op *o, int n)
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
    char parent[ZK_PATH_BUF];
    snprintf(parent, sizeof parent, "%.*s", e ? (int)(strrchr(path, '/') - path) : ZK_PATH_BUF,
             path);
    return zk_ensure(s, parent, strlen(s->root));
}

/* It was committed. Is it what was meant? */
static int check_commit(struct zk *s, const struct write *w, const struct zk_op *o, int n)
{
    const char *first = w->op[1].set_op.path; /* a guard or a register, both have a Stat */
    if (o->stats[1].mzxid <= s->line.zxid)
        return zk_change(s, false, "ZooKeeper went back in time, seen at", first);
    for (int i = 1; i < n; i++) {
        const struct entry *e = w->of[i];
        if (e && e->want->old.p && !removes(e) && o->stats[i].czxid != e->czxid)
            return zk_change(s, false, "another program deleted and created", e->path);
    }
    s->wrote_ms = o->stats[1].mtime;
    s->wrote_at = zk_boot_ms();
    zk_note(s, first, w->of[1] ? w->of[1]->guard : 0, &o->stats[1]);
    return 0;
}

/* One transaction with everything that is not in conflict. FIRN_EAGAIN: nothing happened, once
 * more. */
static int commit(struct zk *s, struct write *w, unsigned connection, struct firn_diag *d)
{
    struct zk_op *o = zk_op_new(s, 1 + ZK_GUARDS + w->count);
    if (!o)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    int n = build(s, w, o), rc, r;
    firn_assert(n >= 2 && (size_t)n <= 1 + ZK_GUARDS + w->count, "n=%d", n); /* root, and a write */
    o = zk_sent(o, zoo_amulti(s->zh, n, w->op, o->result, zk_finish, o));
    rc = zk_settle_write(o);
    if (rc == ZOK) {
        pthread_mutex_lock(&s->lock);
        bool same = s->connections == connection;
        pthread_mutex_unlock(&s->lock);
        /* It may have gone out on a connection that was not inspected yet. */
        r = same ? check_commit(s, w, o, n) : FIRN_EUNKNOWN;
        if (r == FIRN_ESTORE)
            r = zk_not_the_same(s, d);
        else if (r != 0)
            r = zk_explain(s, r, ZCONNECTIONLOSS, d);
    } else if (o->unsent) {
        r = zk_lost(rc) ? FIRN_EAGAIN : zk_explain(s, FIRN_EIO, rc, d);
    } else if (rc == ZBADVERSION || rc == ZNODEEXISTS || rc == ZNONODE) {
        rc = judge(s, w, o, n);
        r = rc == ZOK || zk_lost(rc) ? FIRN_EAGAIN : zk_explain(s, FIRN_EIO, rc, d);
    } else if (rc == ZNOAUTH || rc == ZINVALIDACL || rc == ZNOTEMPTY) {
        r = zk_explain(s, FIRN_EIO, rc, d); /* the server says no */
    } else {
        r = zk_explain(s, FIRN_EUNKNOWN, rc, d);
    }
    zk_drop(o);
    return r;
}

static int write_all(struct zk *s, struct write *w, struct firn_diag *d)
{
    for (;;) {
        unsigned connection;
        int r = zk_connected(s, &connection, d);
        if (r == 0 && s->changed[0])
            r = zk_not_the_same(s, d);
        if (r != 0)
            return r;
        int rc = read_old(s, w);
        if (zk_lost(rc))
            continue;
        if (rc != ZOK)
            return zk_explain(s, FIRN_EIO, rc, d);
        bool any = false;
        for (unsigned g = 0; g < ZK_GUARDS; g++)
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

static int register_cas_many(struct firn_store *base, const struct firn_cas *want, size_t count,
                             int *result, struct firn_diag *d)
{
    struct zk *s = (struct zk *)base;
    int r = store_check_writes(want, count, ENTRIES_MAX, d);
    if (r != 0)
        return r;
    struct write *w = calloc(1, sizeof *w + count * sizeof w->entry[0]);
    if (!w)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    zk_begin(s);
    w->count = count;
    for (size_t i = 0; i < count; i++) {
        struct entry *e = &w->entry[i];
        e->want = &want[i];
        e->guard = zk_guard_of(want[i].key);
        w->guard[e->guard].checked |= removes(e);
        zk_guard_path(s->root, e->guard, w->guard[e->guard].path);
        zk_key_path(s->root, want[i].key, e->path);
    }
    r = count > 0 ? write_all(s, w, d) : 0;
    for (size_t i = 0; r == 0 && i < count; i++)
        result[i] = w->entry[i].conflict ? FIRN_ECONFLICT : 0;
    free(w);
    return r;
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
    return store_compare(firn_slice(x->key, x->len), firn_slice(y->key, y->len));
}

/* The keys of one directory that begin with the prefix and come behind `after`. */
static int add_keys(struct names *all, const struct name *directory, struct firn_slice prefix,
                    struct firn_slice after, const struct String_vector *found)
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
        int len = zk_unescape(found->data[i], n->key + n->len, sizeof n->key - n->len);
        if (len < 0)
            continue; /* not one of ours */
        n->len += (size_t)len;
        struct firn_slice key = { n->key, n->len };
        all->count += store_begins(key, prefix) && (!after.p || store_compare(key, after) > 0);
    }
    return ZOK;
}

/* A directory's part of the keys in it; false: it is none, or none of them can have the prefix. */
static bool directory_of(const char *child, struct firn_slice prefix, struct name *out)
{
    out->len = 0;
    if (strcmp(child, ZK_NO_DIRECTORY) == 0)
        return !memchr(prefix.p, '/', prefix.len);
    int len = zk_unescape(child, out->key, sizeof out->key - 1);
    if (len < 0)
        return false;
    out->key[len] = '/';
    out->len = (size_t)len + 1;
    return memcmp(out->key, prefix.p, out->len < prefix.len ? out->len : prefix.len) == 0;
}

static int list_all(struct zk *s, struct firn_slice prefix, struct firn_slice after,
                    struct names *all)
{
    struct zk_op *top = zk_send_list(s, s->root);
    int rc = zk_settle(top);
    all->count = 0;
    for (int i = 0; rc == ZOK && i < top->names.count; i++) {
        struct name directory;
        char path[ZK_PATH_BUF];
        if (strlen(top->names.data[i]) > 3 * STORE_KEY_MAX ||
            !directory_of(top->names.data[i], prefix, &directory))
            continue;
        snprintf(path, sizeof path, "%s/%s", s->root, top->names.data[i]);
        struct zk_op *o = zk_send_list(s, path);
        rc = zk_settle(o);
        if (rc == ZOK)
            rc = add_keys(all, &directory, prefix, after, &o->names);
        else if (rc == ZNONODE)
            rc = ZOK;
        zk_drop(o);
    }
    zk_drop(top);
    return rc == ZNONODE ? ZOK : rc;
}

static int register_scan(struct firn_store *base, struct firn_slice prefix, struct firn_slice after,
                         firn_record_fn *each, void *user, struct firn_diag *d)
{
    struct zk *s = (struct zk *)base;
    struct names all = { 0 };
    struct zk_op *flying[SCAN_WINDOW];
    unsigned connection;
    char path[ZK_PATH_BUF];
    int r, rc = ZOK;
    zk_begin(s);
    do {
        r = zk_connected(s, &connection, d);
        if (r == 0)
            rc = list_all(s, prefix, after, &all);
    } while (r == 0 && zk_lost(rc));
    if (r == 0 && rc != ZOK)
        r = zk_explain(s, FIRN_EIO, rc, d);
    if (r == 0 && all.count > 0)
        qsort(all.name, all.count, sizeof *all.name, by_bytes);
    size_t asked = 0, done = 0;
    while (r == 0 && done < all.count) {
        for (; asked < all.count && asked - done < SCAN_WINDOW; asked++) {
            zk_key_path(s->root, firn_slice(all.name[asked].key, all.name[asked].len), path);
            flying[asked % SCAN_WINDOW] = zk_send_get(s, path);
        }
        firn_assert(done < asked && asked - done <= SCAN_WINDOW, "asked=%zu done=%zu", asked, done);
        const struct name *n = &all.name[done];
        struct zk_op *o = flying[done % SCAN_WINDOW];
        rc = zk_settle(o);
        if (zk_lost(rc)) { /* with all that were asked for after it */
            while (asked > done)
                zk_drop(flying[--asked % SCAN_WINDOW]);
            r = zk_connected(s, &connection, d);
            continue;
        }
        if (rc == ZOK && o->len > sizeof o->value) {
            r = firn__diag(d, FIRN_EFORMAT, 0, "a value of %zu bytes below %.80s", o->len, s->root);
        } else if (rc == ZOK) {
            zk_key_path(s->root, firn_slice(n->key, n->len), path);
            zk_note(s, path, zk_guard_of(firn_slice(n->key, n->len)), &o->stat);
            r = each(user, firn_slice(n->key, n->len), firn_slice(o->value, o->len));
        } else if (rc != ZNONODE) { /* removed meanwhile */
            r = zk_explain(s, FIRN_EIO, rc, d);
        }
        zk_drop(o);
        done++;
    }
    while (asked > done)
        zk_drop(flying[--asked % SCAN_WINDOW]);
    free(all.name);
    return r;
}

/* ---- the store ---- */

/* The root's birth, its transaction and the leader's clock: no other ensemble has both. Then the
 * mark: a restored copy gets a new one from the first handle that had seen more. */
static int store_identity(struct firn_store *base, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    struct zk *s = (struct zk *)base;
    unsigned connection;
    zk_begin(s);
    s->inspected = 0; /* connections count from 1 */
    int r = zk_connected(s, &connection, d);
    if (r == 0 && s->changed[0]) {
        struct zk_lineage before = s->line;
        r = zk_not_the_same(s, d);
        if (!s->marked)
            return r;
        s->line = (struct zk_lineage){ 0 };
        s->inspected = 0;
        r = zk_connected(s, &connection, d);
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

/* A connection that was made since the last call is looked at first. */
static int store_check(struct firn_store *base, struct firn_diag *d)
{
    struct zk *s = (struct zk *)base;
    unsigned connection;
    zk_begin(s);
    int r = zk_connected(s, &connection, d);
    return r == 0 && s->changed[0] ? zk_not_the_same(s, d) : r;
}

static void store_close(struct firn_store *base)
{
    struct zk *s = (struct zk *)base;
    zk_done(s);
    free(s);
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "zookeeper",
    .shared = true,
    .read = register_read,
    .cas_many = register_cas_many,
    .scan_after = register_scan,
    .identity = store_identity,
    .close = store_close,
    .wait = register_wait,
    .check = store_check,
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

static int take_url(struct zk *s, const struct store_url *u)
{
    size_t size = u->host_n * (sizeof u->host[0].name + 10), n = 0;
    s->hosts = malloc(size);
    if (u->user[0] && asprintf(&s->auth, "%s:%s", u->user, u->password) < 0)
        s->auth = NULL;
    if (!s->hosts || (u->user[0] && !s->auth))
        return FIRN_ENOMEM;
    for (size_t i = 0; i < u->host_n; i++) {
        /* The library takes the last ':' for the port's, and knows no brackets. */
        n += (size_t)snprintf(s->hosts + n, size - n, "%s%s:%u", i ? "," : "", u->host[i].name,
                              u->host[i].port);
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
    struct zk *s = calloc(1, sizeof *s);
    if (!s)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    zk_init(s);
    s->base.ops = &ops;
    s->timeout_ms = timeout_ms;
    s->existing = u->existing;
    unsigned connection;
    int r = take_url(s, u);
    zk_begin(s);
    r = r ? firn__diag(d, r, 0, "out of memory") : zk_connected(s, &connection, d);
    if (r != 0)
        store_close(&s->base);
    else
        *out = &s->base;
    return r;
}
