/*
 * store.h - registers that change by compare-and-swap: the only thing coordination asks of a store.
 * A register is a key with a value. There are no version numbers: a write names the whole value
 * that it replaces. Every record carries a fresh nonce (docs/protocol.md section 2), so a value
 * never comes back, which engine counters do after a restore.
 *
 * All backends keep these promises (tests/conformance/run checks them):
 *  - calls block, on one thread at a time (the coordinator's), and come back within the time-out
 *    given when the store was opened;
 *  - 0 from a write means durable: it survives kill -9 and power loss;
 *  - FIRN_ECONFLICT: the register held another value, nothing changed;
 *  - FIRN_EUNKNOWN: the write may have happened, or may still; the outcome rule decides what
 *    follows;
 *  - FIRN_EIO, FIRN_ENOMEM: nothing was written; try again later;
 *  - FIRN_ESTORE: the store is not the one that was opened (file replaced or deleted), nothing was
 *    written; this handle cannot be used again;
 *  - reads and scans answer what some write left there. With `fresh` an answer is at least as new
 *    as every write that was acknowledged or refused before the call; without it, it may be older;
 *  - an engine that noticed FIRN_ESTORE keeps answering it to writes until identity() is called:
 *    that looks at the engine anew, and later writes are for what it found (or it fails again).
 * Messages for the operator go to the last argument, which may be NULL.
 */
#ifndef FIRN_STORE_STORE_H
#define FIRN_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coord/register.h"
#include "firn/error.h"

/* Room for the longest key and the longest record (coord/record.h), with what quorum: writes
 * before and around them. */
#define STORE_KEY_MAX     168
#define STORE_VALUE_MAX   1824
#define STORE_ID_TEXT_BUF 64

struct firn_record { /* one register as it was read */
    size_t len;
    char value[STORE_VALUE_MAX];
    uint64_t store_ms; /* the store's own clock, Unix ms; 0 where it has none (memory, SQLite) */
};

/* Called by scan for each register, keys in byte order. The slices live until it returns; it must
 * not call the store. Anything but 0 ends the scan, which then returns that. */
typedef int firn_record_fn(void *user, struct firn_slice key, struct firn_slice value);

struct firn_store;

struct firn_store_ops {
    uint32_t size;      /* sizeof(struct firn_store_ops); methods are appended, never moved */
    const char *scheme; /* "sqlite", "memory", "etcd", ... */
    bool shared;        /* a service for many machines; else a file or memory of this one */

    /* FIRN_ENOENT when there is no such register. */
    int (*read)(struct firn_store *s, struct firn_slice key, bool fresh, struct firn_record *out,
                struct firn_diag *d);
    /* NULL where cas_many does it as well. */
    int (*cas)(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d);

    /* Several registers in one durable transaction, each compared on its own: on 0, result[i] is
     * 0 or FIRN_ECONFLICT. On any other answer the array is not written, and the answer holds
     * for every entry. No key may be named twice. NULL where the engine has no such thing. */
    int (*cas_many)(struct firn_store *s, const struct firn_cas *want, size_t count, int *result,
                    struct firn_diag *d);
    /* NULL where scan_after does it as well. */
    int (*scan)(struct firn_store *s, struct firn_slice prefix, firn_record_fn *each, void *user,
                struct firn_diag *d);

    /* A text that stays the same over restarts and differs for a copy of the store: kept in the
     * meta record, so that a restored or copied store is noticed (docs/coordination.md). */
    int (*identity)(struct firn_store *s, char out[STORE_ID_TEXT_BUF], struct firn_diag *d);
    void (*close)(struct firn_store *s);

    /* Block until the register differs from `old` (p NULL: absent) or the time is over. 0 with
     * *out: it differs; FIRN_ENOENT: it is absent, and old was not; FIRN_EAGAIN: the time is
     * over. NULL where the engine cannot tell by itself: firn_store_wait() then reads again and
     * again. */
    int (*wait)(struct firn_store *s, struct firn_slice key, struct firn_slice old,
                uint32_t timeout_ms, struct firn_record *out, struct firn_diag *d);

    /* Several registers side by side, each on its own: on 0, result[i] is what cas() would have
     * answered. No key may be named twice. NULL where that is no faster than one after the
     * other. */
    int (*cas_each)(struct firn_store *s, const struct firn_cas *want, size_t count, int *result,
                    struct firn_diag *d);

    /* Whether all reads so far came from the store that was opened, or that identity() last
     * found, as every write finds out for itself: 0; FIRN_ESTORE; FIRN_EIO: it cannot be asked
     * now. It takes nothing new for granted, as identity() does. NULL where a store never
     * becomes another one. */
    int (*check)(struct firn_store *s, struct firn_diag *d);

    /* After a cas or cas_many that answered FIRN_ECONFLICT for its write `i`, before any other
     * call: what the register held instead, as a fresh read at that moment. FIRN_ENOENT: it was
     * absent. NULL where only a read tells. */
    int (*instead)(struct firn_store *s, size_t i, struct firn_record *out);

    /* The registers of the prefix behind the key `after`, which begins with it; p NULL: all. What
     * it costs does not grow with the registers before `after`, nor, but for a page of the
     * engine's own, with those behind the one at which `each` ends it (ZooKeeper has to list all
     * keys). NULL in wrappers that have scan: then all are scanned. */
    int (*scan_after)(struct firn_store *s, struct firn_slice prefix, struct firn_slice after,
                      firn_record_fn *each, void *user, struct firn_diag *d);

    /* An operator knows that the store forgot writes that it had confirmed, and goes on with what
     * is there: this handle may write; with `forever` the store takes it for whole from now on.
     * NULL where a store does not notice that by itself. */
    int (*accept)(struct firn_store *s, bool forever, struct firn_diag *d);

    /* A consistent copy in a new file, while the store is in use, on disk when it answers.
     * FIRN_ECONFLICT: there is a file of that name. NULL where the engine's own tools do that. */
    int (*backup)(struct firn_store *s, const char *path, struct firn_diag *d);
};

struct firn_store { /* every backend's struct begins with it */
    const struct firn_store_ops *ops;
};

/* A store in this process's memory: for tests, and for IDs that need not outlive the process. */
FIRN_MUSTUSE int firn_store_memory_new(struct firn_store **out);

/*
 * A store in an SQLite file (WAL, synchronous=FULL), created when absent. Several processes may
 * share it. busy_ms: how long to wait for another process's transaction, 0 means 5000. `path` is
 * copied. After FIRN_EUNKNOWN or FIRN_EIO the next call opens the file anew by itself, so the store
 * works again when there is space again.
 */
FIRN_MUSTUSE int firn_store_sqlite_open(const char *path, uint32_t busy_ms, struct firn_store **out,
                                        struct firn_diag *d);

/* The same, of a file that is there. FIRN_ENOENT: it is not. */
FIRN_MUSTUSE int firn_store_sqlite_open_existing(const char *path, uint32_t busy_ms,
                                                 struct firn_store **out, struct firn_diag *d);

/*
 * Open a store by its URL; `timeout_ms` bounds each call, 0 means 2000 (5000 for SQLite). The text
 * is copied.
 *   memory:
 *   sqlite:FILE
 *   etcd://[user:password@]host[:2379][,host...]/[prefix][?tls=...]
 *   zookeeper://[user:password@]host[:2181][,host...]/[path, else firn]
 *   postgres://[user[:password]@]host[:5432][,host...]/database
 *   redis://[user:password@]host[:6379][,host...]/[db]?unsafe_ok=yes
 *   quorum:URL|URL|URL     registers kept by a majority of stores (store/quorum.h)
 *   raft://host[:9003][,host...]/[space][?tls=...]   members of a firnd cluster, as a client of it
 * FIRN_EFORMAT: no such URL. FIRN_ENOTSUP: this build lacks the engine; the text names the package.
 * FIRN_EIO: no server answers.
 */
FIRN_MUSTUSE int firn_store_open(const char *url, uint32_t timeout_ms, struct firn_store **out,
                                 struct firn_diag *d);

/* The same for programs that only look: it creates neither file nor table nor node. FIRN_ENOENT:
 * there is no store. Engines whose stores need no such thing open as always; whether there are
 * records is for the caller to see. */
FIRN_MUSTUSE int firn_store_open_existing(const char *url, uint32_t timeout_ms,
                                          struct firn_store **out, struct firn_diag *d);
#define STORE_NONE_TEXT "there is no store at %.100s: `firn admin init` makes one"

/* Whether the URL is of a store for many machines (ops->shared), without opening it. */
bool firn_store_url_shared(const char *url);

/* Check a URL without opening the store. */
FIRN_MUSTUSE int firn_store_url_check(const char *url, struct firn_diag *d);

FIRN_MUSTUSE static inline int firn_store_read(struct firn_store *s, struct firn_slice key,
                                               bool fresh, struct firn_record *out,
                                               struct firn_diag *d)
{
    return s->ops->read(s, key, fresh, out, d);
}

FIRN_MUSTUSE static inline int firn_store_cas(struct firn_store *s, const struct firn_cas *want,
                                              struct firn_diag *d)
{
    if (s->ops->cas)
        return s->ops->cas(s, want, d);
    int result = FIRN_EUNKNOWN, r = s->ops->cas_many(s, want, 1, &result, d);
    return r ? r : result;
}

FIRN_MUSTUSE static inline int firn_store_cas_many(struct firn_store *s,
                                                   const struct firn_cas *want, size_t count,
                                                   int *result, struct firn_diag *d)
{
    return s->ops->cas_many ? s->ops->cas_many(s, want, count, result, d) : FIRN_ENOTSUP;
}

FIRN_MUSTUSE static inline int firn_store_scan(struct firn_store *s, struct firn_slice prefix,
                                               firn_record_fn *each, void *user,
                                               struct firn_diag *d)
{
    if (s->ops->scan)
        return s->ops->scan(s, prefix, each, user, d);
    return s->ops->scan_after(s, prefix, firn_slice(NULL, 0), each, user, d);
}

/* As the method, with any `after`: a page of a long list. Works with every engine. */
FIRN_MUSTUSE int firn_store_scan_after(struct firn_store *s, struct firn_slice prefix,
                                       struct firn_slice after, firn_record_fn *each, void *user,
                                       struct firn_diag *d);

FIRN_MUSTUSE static inline int firn_store_identity(struct firn_store *s,
                                                   char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    return s->ops->identity(s, out, d);
}

/* As the method; works with every engine. */
FIRN_MUSTUSE int firn_store_wait(struct firn_store *s, struct firn_slice key, struct firn_slice old,
                                 uint32_t timeout_ms, struct firn_record *out, struct firn_diag *d);

FIRN_MUSTUSE static inline int firn_store_check(struct firn_store *s, struct firn_diag *d)
{
    return s->ops->check ? s->ops->check(s, d) : 0;
}

FIRN_MUSTUSE static inline int firn_store_accept(struct firn_store *s, bool forever,
                                                 struct firn_diag *d)
{
    return s->ops->accept ? s->ops->accept(s, forever, d) : 0;
}

static inline void firn_store_close(struct firn_store *s)
{
    if (s)
        s->ops->close(s);
}

#endif
