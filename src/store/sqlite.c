/*
 * The registers in an SQLite file. WAL with synchronous=FULL: a commit is one append and one fsync,
 * and it is durable when it answers. NORMAL would be faster and may forget commits on power loss,
 * which is a forgotten grant.
 *
 * Two things SQLite does not do for us. A file that was deleted or replaced stays writable through
 * the open descriptor, while the next process finds another store under the same name: so before
 * every write the path must still lead to the file that is open. And after a failed fsync or a full
 * disk it is unknown what reached the disk: the answer is FIRN_EUNKNOWN and the connection is
 * opened anew. The old connection is closed only after the new one is there: until then the kernel
 * cannot give its inode number to another file, so comparing numbers is sound. A lost -wal file is
 * noticed by sqlite_wal.c.
 */
#include "store/check.h"
#include "store/machine.h"
#include "store/sqlite_wal.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUSY_MS_DEFAULT = 5000,
    APPLICATION_ID = 0x6669726e, /* "firn", seen by file(1) */
    SCHEMA_VERSION = 1,
    WAL_RETRY_MS = 10,
};

/* Prepared once per connection; the order of enum statement. */
static const char *const statement_sql[] = {
    "BEGIN IMMEDIATE",
    "COMMIT",
    "ROLLBACK",
    "SELECT value FROM register WHERE key = ?1",
    "INSERT INTO register(key, value) VALUES(?1, ?2) ON CONFLICT DO NOTHING",
    "UPDATE register SET value = ?2 WHERE key = ?1 AND value = ?3",
    "DELETE FROM register WHERE key = ?1 AND value = ?3",
    "SELECT key, value FROM register WHERE key >= ?1 ORDER BY key",
};
enum statement { BEGIN, COMMIT, ROLLBACK, READ, CREATE, UPDATE, REMOVE, SCAN, STATEMENTS };

static _Atomic pid_t opened_by;    /* the process that has files open; 0: none has */
static _Atomic unsigned open_here; /* how many */

struct sqlite {
    struct firn_store base;
    sqlite3 *db;
    sqlite3_stmt *statement[STATEMENTS];
    dev_t dev; /* the file that was opened first; no other is ever taken for it */
    ino_t ino;
    struct wal_guard wal;
    bool broken; /* open anew before the next call */
    uint32_t busy_ms;
    char path[];
};

/* The error of SQLite or the system, with a hint. */
static int explain(const struct sqlite *s, sqlite3 *db, int error, const char *doing,
                   struct firn_diag *d)
{
    int system = db ? sqlite3_system_errno(db) : 0;
    const char *hint = "";
    switch (db ? sqlite3_errcode(db) & 0xff : SQLITE_NOMEM) {
    case SQLITE_FULL:
        hint = ": free some space";
        system = ENOSPC;
        break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        hint = ": the file and its directory must be writable by this user";
        break;
    case SQLITE_BUSY:
        hint = ": another process keeps it locked";
        system = 0;
        break;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        hint = ": restore it from a backup, then `firn admin fence`";
        system = 0;
        break;
    }
    return firn__diag(d, error, 0, "cannot %s %.60s: %.40s%s", doing, s->path,
                      system ? strerror(system)
                      : db   ? sqlite3_errmsg(db)
                             : "out of memory",
                      hint);
}

static void finish(sqlite3 *db, sqlite3_stmt **statement)
{
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(statement[i]);
        statement[i] = NULL;
    }
    sqlite3_close(db);
}

static int number(sqlite3 *db, const char *sql, sqlite3_int64 *out)
{
    sqlite3_stmt *st;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        *out = sqlite3_column_int64(st, 0);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(st);
    return rc;
}

static int run_sql(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* An empty file becomes ours, in one transaction: other processes may be opening it at the same
 * time. */
static int claim_file(const struct sqlite *s, sqlite3 *db, struct firn_diag *d)
{
    sqlite3_int64 id = 0, tables = 0;
    char create[300];
    snprintf(
        create, sizeof create,
        "CREATE TABLE register(key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;"
        "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
        APPLICATION_ID, SCHEMA_VERSION);
    if (run_sql(db, "BEGIN IMMEDIATE") != SQLITE_OK ||
        number(db, "PRAGMA application_id", &id) != SQLITE_OK ||
        number(db, "SELECT count(*) FROM sqlite_schema", &tables) != SQLITE_OK)
        return explain(s, db, FIRN_EIO, "read", d);
    if (id != APPLICATION_ID && (id != 0 || tables != 0))
        return firn__diag(d, FIRN_ESTORE, 0, "%.120s is a database of another program", s->path);
    if (run_sql(db, id == APPLICATION_ID ? "COMMIT" : create) != SQLITE_OK)
        return explain(s, db, FIRN_EIO, "set up", d);
    return 0;
}

static int prepare_file(const struct sqlite *s, sqlite3 *db, struct firn_diag *d)
{
    sqlite3_int64 id = 0, version = 0;
    if (number(db, "PRAGMA application_id", &id) != SQLITE_OK)
        return explain(s, db, FIRN_EIO, "read", d);
    int r = id == APPLICATION_ID ? 0 : claim_file(s, db, d);
    if (r != 0)
        return r;
    if (number(db, "PRAGMA user_version", &version) != SQLITE_OK)
        return explain(s, db, FIRN_EIO, "read", d);
    if (version > SCHEMA_VERSION)
        return firn__diag(d, FIRN_ENOTSUP, 0, "%.120s was made by a newer firn", s->path);

    /* Going to WAL needs the file alone for a moment, and SQLite does not wait for that by
     * itself. */
    int rc = SQLITE_BUSY;
    for (uint32_t ms = 0; rc == SQLITE_BUSY && ms <= s->busy_ms; ms += WAL_RETRY_MS) {
        rc = run_sql(db, "PRAGMA journal_mode = WAL") & 0xff;
        if (rc == SQLITE_BUSY)
            sqlite3_sleep(WAL_RETRY_MS);
    }
    if (rc != SQLITE_OK ||
        run_sql(db, "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY") != SQLITE_OK)
        return explain(s, db, FIRN_EIO, "set up", d);
    return 0;
}

/* The name in the directory must survive a power loss as well as the content. Best effort: a file
 * system that cannot sync a directory has nothing better. */
static void sync_directory(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(copy);
}

static int connect_file(struct sqlite *s, int flags, struct firn_diag *d)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement[STATEMENTS] = { NULL };
    struct stat st;
    int moved = 0;
    int r = 0;
    if (sqlite3_open_v2(s->path, &db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        r = explain(s, db, FIRN_EIO, "open", d);
        goto close_db;
    }
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, (int)s->busy_ms);
    r = prepare_file(s, db, d);
    if (r != 0)
        goto close_db;
    for (int i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v3(db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &statement[i],
                               NULL) != SQLITE_OK) {
            r = explain(s, db, FIRN_EIO, "use", d);
            goto close_db;
        }
    if (stat(s->path, &st) != 0 ||
        sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved ||
        (s->db && (st.st_dev != s->dev || st.st_ino != s->ino))) {
        r = firn__diag(d, FIRN_ESTORE, 0, "%.120s was replaced: restart to use the new file",
                       s->path);
        goto close_db;
    }
    r = wal_guard_connected(&s->wal, db, d);
    if (r != 0)
        goto close_db;
    if (s->db)
        finish(s->db, s->statement);
    s->db = db;
    memcpy(s->statement, statement, sizeof statement);
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    s->broken = false;
    return 0;

close_db:
    finish(db, statement);
    return r;
}

static int usable(struct sqlite *s, struct firn_diag *d)
{
    return s->broken ? connect_file(s, SQLITE_OPEN_READWRITE, d) : 0;
}

static int same_file(struct sqlite *s, struct firn_diag *d)
{
    struct stat st;
    bool there = stat(s->path, &st) == 0;
    if (there && st.st_dev == s->dev && st.st_ino == s->ino)
        return wal_guard_check(&s->wal, s->db, d);
    return firn__diag(d, FIRN_ESTORE, 0, "%.120s was %s: restart to use what is there now", s->path,
                      there ? "replaced" : "deleted or moved");
}

/* Run a statement that gives no rows. */
static int run(struct sqlite *s, enum statement which)
{
    int rc = sqlite3_step(s->statement[which]);
    sqlite3_reset(s->statement[which]);
    return rc == SQLITE_ROW ? SQLITE_DONE : rc;
}

static int failed(struct sqlite *s, int error, const char *doing, struct firn_diag *d)
{
    bool busy = (sqlite3_errcode(s->db) & 0xff) == SQLITE_BUSY;
    explain(s, s->db, error, doing, d);
    if (!sqlite3_get_autocommit(s->db))
        run(s, ROLLBACK);
    s->broken = !busy; /* waiting in vain for another process says nothing about the file */
    return error;
}

static int read_value(struct sqlite *s, struct firn_slice key, struct firn_record *out,
                      struct firn_diag *d)
{
    sqlite3_stmt *st = s->statement[READ];
    sqlite3_bind_text(st, 1, key.p, (int)key.len, SQLITE_STATIC);
    int rc = sqlite3_step(st), r = 0;
    if (rc == SQLITE_ROW) {
        size_t len = (size_t)sqlite3_column_bytes(st, 0);
        if (len > sizeof out->value)
            r = firn__diag(d, FIRN_EFORMAT, 0, "a value of %zu bytes in %.120s", len, s->path);
        else if (len > 0)
            memcpy(out->value, sqlite3_column_blob(st, 0), len);
        out->len = len;
        out->store_ms = 0;
    } else {
        r = rc == SQLITE_DONE ? FIRN_ENOENT : failed(s, FIRN_EIO, "read", d);
    }
    sqlite3_reset(st);
    return r;
}

static int sqlite_read(struct firn_store *base, struct firn_slice key, bool fresh,
                       struct firn_record *out, struct firn_diag *d)
{
    (void)fresh; /* every read sees the last commit */
    struct sqlite *s = (struct sqlite *)base;
    int r = usable(s, d);
    return r ? r : read_value(s, key, out, d);
}

/* One register inside the transaction: SQLITE_DONE, and whether it was changed. */
static int put(struct sqlite *s, const struct firn_cas *want, bool *changed)
{
    enum statement which = !want->old.p ? CREATE : want->value.p ? UPDATE : REMOVE;
    sqlite3_stmt *st = s->statement[which];
    sqlite3_bind_text(st, 1, want->key.p, (int)want->key.len, SQLITE_STATIC);
    if (want->value.p)
        sqlite3_bind_blob(st, 2, want->value.p, (int)want->value.len, SQLITE_STATIC);
    if (want->old.p)
        sqlite3_bind_blob(st, 3, want->old.p, (int)want->old.len, SQLITE_STATIC);
    int rc = run(s, which);
    *changed = rc == SQLITE_DONE && sqlite3_changes(s->db) == 1;
    sqlite3_clear_bindings(st);
    return rc;
}

static int sqlite_cas_many(struct firn_store *base, const struct firn_cas *want, size_t count,
                           int *result, struct firn_diag *d)
{
    struct sqlite *s = (struct sqlite *)base;
    uint64_t done[4] = { 0 }; /* a bit per write: on a failure the caller's array stays untouched */
    int r = store_check_writes(want, count, 64 * sizeof done / sizeof done[0], d);
    if (r == 0)
        r = usable(s, d);
    if (r == 0)
        r = same_file(s, d);
    if (r != 0)
        return r;
    if (run(s, BEGIN) != SQLITE_DONE)
        return failed(s, FIRN_EIO, "write", d);
    firn_assert(!sqlite3_get_autocommit(s->db)); /* each put() is part of the transaction */
    size_t changes = 0;
    for (size_t i = 0; i < count; i++) {
        bool changed;
        if (put(s, &want[i], &changed) != SQLITE_DONE)
            return failed(s, FIRN_EIO, "write", d); /* before COMMIT: rolled back for sure */
        done[i / 64] |= (uint64_t)changed << i % 64;
        changes += changed;
    }
    if (run(s, changes ? COMMIT : ROLLBACK) != SQLITE_DONE)
        return failed(s, changes ? FIRN_EUNKNOWN : FIRN_EIO, "write", d);
    firn_assert(sqlite3_get_autocommit(s->db)); /* COMMIT or ROLLBACK ended it */
    if (changes && wal_guard_committed(&s->wal, s->db) != SQLITE_OK)
        return failed(s, FIRN_EUNKNOWN, "write", d);
    firn_assert(changes <= count, "changes=%zu count=%zu", changes, count);
    for (size_t i = 0; i < count; i++)
        result[i] = done[i / 64] >> i % 64 & 1 ? 0 : FIRN_ECONFLICT;
    return 0;
}

static int sqlite_scan(struct firn_store *base, struct firn_slice prefix, struct firn_slice after,
                       firn_record_fn *each, void *user, struct firn_diag *d)
{
    struct sqlite *s = (struct sqlite *)base;
    int r = usable(s, d);
    if (r != 0)
        return r;
    sqlite3_stmt *st = s->statement[SCAN];
    struct firn_slice from = after.p ? after : prefix;
    sqlite3_bind_text(st, 1, from.p, (int)from.len, SQLITE_STATIC);
    int rc;
    while (r == 0 && (rc = sqlite3_step(st)) != SQLITE_DONE) {
        if (rc != SQLITE_ROW) {
            r = failed(s, FIRN_EIO, "read", d);
            break;
        }
        const char *key = (const char *)sqlite3_column_text(st, 0);
        size_t key_len = (size_t)sqlite3_column_bytes(st, 0);
        const char *value = sqlite3_column_blob(st, 1);
        size_t len = (size_t)sqlite3_column_bytes(st, 1);
        if (!key || key_len < prefix.len || memcmp(key, prefix.p, prefix.len) != 0)
            break;
        if (after.p && store_compare(firn_slice(key, key_len), after) == 0)
            continue;
        r = each(user, firn_slice(key, key_len), firn_slice(value ? value : "", len));
    }
    sqlite3_reset(st);
    return r;
}

static int sqlite_identity(struct firn_store *base, char out[STORE_ID_TEXT_BUF],
                           struct firn_diag *d)
{
    struct sqlite *s = (struct sqlite *)base;
    struct statx x;
    if (statx(AT_FDCWD, s->path, 0, STATX_INO | STATX_BTIME, &x) != 0)
        return firn__diag(d, FIRN_EIO, 0, "cannot look at %.120s: %s", s->path, strerror(errno));
    bool born = x.stx_mask & STATX_BTIME;
    char machine[MACHINE_ID_BUF];
    machine_id(machine);
    struct file_identity f = { .inode = x.stx_ino, .machine = machine };
    if (born) {
        f.born_s = x.stx_btime.tv_sec;
        f.born_ns = x.stx_btime.tv_nsec;
    }
    file_identity_text(&f, out, STORE_ID_TEXT_BUF);
    return 0;
}

static int sqlite_check(struct firn_store *base, struct firn_diag *d)
{
    return same_file((struct sqlite *)base, d);
}

static void sqlite_close(struct firn_store *base)
{
    struct sqlite *s = (struct sqlite *)base;
    atomic_fetch_sub(&open_here, 1);
    finish(s->db, s->statement);
    wal_guard_done(&s->wal);
    free(s);
}

static int sqlite_accept(struct firn_store *base, bool forever, struct firn_diag *d)
{
    struct sqlite *s = (struct sqlite *)base;
    int r = usable(s, d);
    return r ? r : wal_guard_accept(&s->wal, s->db, forever, d);
}

static int sqlite_backup(struct firn_store *base, const char *path, struct firn_diag *d)
{
    struct sqlite *s = (struct sqlite *)base;
    sqlite3_stmt *st = NULL;
    int r = usable(s, d);
    if (r != 0)
        return r;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); /* VACUUM wants it empty */
    if (fd < 0)
        return firn__diag(d, errno == EEXIST ? FIRN_ECONFLICT : FIRN_EIO, 0,
                          "cannot create %.100s: %s", path, strerror(errno));
    int rc = sqlite3_prepare_v2(s->db, "VACUUM INTO ?1", -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc != SQLITE_DONE)
        r = explain(s, s->db, FIRN_EIO, "copy", d);
    else if (fsync(fd) != 0)
        r = firn__diag(d, FIRN_EIO, 0, "cannot write %.100s: %s", path, strerror(errno));
    sqlite3_finalize(st);
    close(fd);
    if (r != 0)
        unlink(path);
    else
        sync_directory(path);
    return r;
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "sqlite",
    .read = sqlite_read,
    .cas_many = sqlite_cas_many,
    .scan_after = sqlite_scan,
    .identity = sqlite_identity,
    .close = sqlite_close,
    .check = sqlite_check,
    .accept = sqlite_accept,
    .backup = sqlite_backup,
};

/* SQLite remembers the locks of this process, and a child of fork() inherits that memory without
 * the locks: two connections to one file would then write as if the other were not there. */
static int not_forked(struct firn_diag *d)
{
    pid_t none = 0, me = getpid();
    if (atomic_load(&open_here) == 0)
        atomic_store(&opened_by, 0);
    if (atomic_compare_exchange_strong(&opened_by, &none, me) || none == me)
        return 0;
    return firn__diag(d, FIRN_EFORKED, 0,
                      "SQLite cannot be opened in the child of a process that has it open: open it "
                      "after fork(), or take a store that machines share");
}

static int open_file(const char *path, uint32_t busy_ms, int flags, struct firn_store **out,
                     struct firn_diag *d)
{
    if (!path || path[0] == '\0' || !out)
        return firn__diag(d, FIRN_EINVAL, 0, "the store needs a path");
    int r = not_forked(d);
    if (r != 0)
        return r;
    size_t len = strlen(path);
    struct sqlite *s = calloc(1, sizeof *s + len + 1);
    if (!s)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    s->base.ops = &ops;
    s->busy_ms = busy_ms ? busy_ms : BUSY_MS_DEFAULT;
    memcpy(s->path, path, len + 1);
    r = wal_guard_init(&s->wal, path, d);
    if (r == 0)
        r = connect_file(s, SQLITE_OPEN_READWRITE | flags, d);
    if (r != 0) {
        wal_guard_done(&s->wal);
        free(s);
        return r;
    }
    atomic_fetch_add(&open_here, 1);
    sync_directory(path);
    *out = &s->base;
    return 0;
}

int firn_store_sqlite_open(const char *path, uint32_t busy_ms, struct firn_store **out,
                           struct firn_diag *d)
{
    /* SQLite would let the umask decide; the files beside it get the mode of the database. */
    int fd = path && path[0] ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (fd >= 0)
        close(fd);
    return open_file(path, busy_ms, SQLITE_OPEN_CREATE, out, d);
}

int firn_store_sqlite_open_existing(const char *path, uint32_t busy_ms, struct firn_store **out,
                                    struct firn_diag *d)
{
    struct stat st;
    if (path && path[0] && stat(path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return firn__diag(d, FIRN_ENOENT, 0, STORE_NONE_TEXT, path);
    return open_file(path, busy_ms, 0, out, d);
}
