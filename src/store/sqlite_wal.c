/* Notices that an SQLite database has lost its write-ahead log (sqlite_wal.h has the argument).
 * Tests: tests/unit/store/sqlite_wal.c, tests/integration/wal.py. */
#include "store/sqlite_wal.h"
#include "id/diag.h"
#include "id/fnv.h"
#include "platform/assert.h"
#include "store/note.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHECKPOINT_PAGES = 1000, /* SQLite's own default */
    WAL_HEADER = 32,
    WAL_SALT_AT = 16,
    SHM_HEADER = 48, /* of the index of the log, twice; https://sqlite.org/walformat.html */
    SHM_REGION = 32768,
    SHM_FRAMES_AT = 16,
    SHM_SALT_AT = 32,
    PLACE = 512, /* of one of the mark's two texts: no write tears both */
    TEXT_MAX = 160,
    STAMPS_MAX = 8, /* in one write */
};

/* --- the mark --- */

struct mark {
    uint64_t stamp;
    uint64_t ino, born_s; /* of the database that it is about */
    uint32_t born_ns;
};

static bool file_of(const char *path, struct mark *m)
{
    struct statx x;
    if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &x) != 0)
        return false;
    bool born = x.stx_mask & STATX_BTIME;
    m->ino = x.stx_ino;
    m->born_s = born ? (uint64_t)x.stx_btime.tv_sec : 0;
    m->born_ns = born ? x.stx_btime.tv_nsec : 0;
    return true;
}

static bool same_database(const struct mark *a, const struct mark *b)
{
    return a->ino == b->ino && a->born_s == b->born_s && a->born_ns == b->born_ns;
}

static int encode(const struct mark *m, char out[PLACE])
{
    memset(out, 0, PLACE);
    int n = snprintf(out, TEXT_MAX,
                     "firn=mark 1 stamp=%" PRIu64 " ino=%" PRIu64 " born=%" PRIu64 ".%09" PRIu32,
                     m->stamp, m->ino, m->born_s, m->born_ns);
    return n + snprintf(out + n, TEXT_MAX, " sum=%016" PRIx64 "\n", fnv(FNV_BEGIN, out, (size_t)n));
}

/* There is one text for a mark: what does not encode to the same bytes is torn or no mark. */
static bool decode(const char text[PLACE], struct mark *out)
{
    char again[PLACE], copy[PLACE + 1];
    struct mark m;
    memcpy(copy, text, PLACE);
    copy[PLACE] = '\0';
    if (sscanf(copy, "firn=mark 1 stamp=%" SCNu64 " ino=%" SCNu64 " born=%" SCNu64 ".%" SCNu32,
               &m.stamp, &m.ino, &m.born_s, &m.born_ns) != 4)
        return false;
    encode(&m, again);
    if (memcmp(again, text, PLACE) != 0)
        return false;
    *out = m;
    return true;
}

/* The higher of the two texts; false: there is none. *out_place: where the next one goes. */
static bool read_mark(int fd, const struct mark *mine, struct mark *out, int *out_place)
{
    char text[PLACE];
    bool found = false;
    *out_place = 0;
    for (int i = 0; i < 2; i++) {
        struct mark m;
        if (pread(fd, text, PLACE, (off_t)i * PLACE) != PLACE || !decode(text, &m) ||
            !same_database(&m, mine) || (found && m.stamp < out->stamp))
            continue;
        found = true;
        *out = m;
        *out_place = 1 - i;
    }
    return found;
}

static int open_mark(const char *path, int flags)
{
    char name[4096];
    int n = snprintf(name, sizeof name, "%s.mark", path);
    if (n < 0 || (size_t)n >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(name, flags | O_CLOEXEC, 0600);
}

/* Raise the mark of this database to `stamp`. Several processes may do so at once: the highest
 * stays. 0, or -1 with errno. */
static int raise_mark(const char *path, uint64_t stamp)
{
    struct mark mine = { .stamp = stamp }, old;
    char text[PLACE];
    int place, r = -1, fd = open_mark(path, O_RDWR | O_CREAT);
    if (fd < 0)
        return -1;
    if (!file_of(path, &mine) || flock(fd, LOCK_EX) != 0)
        goto done;
    if (read_mark(fd, &mine, &old, &place) && old.stamp >= stamp) {
        r = 0;
        goto done;
    }
    encode(&mine, text);
    if (pwrite(fd, text, PLACE, (off_t)place * PLACE) == PLACE && fsync(fd) == 0)
        r = 0;
done:
    close(fd); /* and with it the lock */
    return r;
}

/* The mark's stamp, if there is one of this database; else 0. */
static uint64_t marked(const char *path)
{
    struct mark mine = { 0 }, m;
    int place, fd = open_mark(path, O_RDONLY);
    if (fd < 0)
        return 0;
    bool found = flock(fd, LOCK_SH) == 0 && file_of(path, &mine) &&
                 read_mark(fd, &mine, &m, &place);
    close(fd);
    return found ? m.stamp : 0;
}

/* --- the stamp --- */

/* SQLITE_OK with the stamp; 0 in a database that has none yet. */
static int read_stamp(sqlite3 *db, uint64_t *out)
{
    sqlite3_stmt *st;
    *out = 0;
    int rc = sqlite3_prepare_v2(
        db, "SELECT count(*) FROM sqlite_schema WHERE name = 'stamp' AND type = 'table'", -1, &st,
        NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(st);
    bool has = rc == SQLITE_ROW && sqlite3_column_int(st, 0) == 1;
    sqlite3_finalize(st);
    if (rc != SQLITE_ROW || !has)
        return rc == SQLITE_ROW ? SQLITE_OK : rc;
    rc = sqlite3_prepare_v2(db, "SELECT coalesce(max(n), 0) FROM stamp", -1, &st, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *out = (uint64_t)sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* In one commit: the stamp becomes one more, or more than `above`. */
static int raise_stamp(sqlite3 *db, uint64_t above, uint64_t *out)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS stamp(n INTEGER NOT NULL) STRICT;"
             "INSERT INTO stamp SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM stamp);"
             "UPDATE stamp SET n = max(n, %" PRIu64 ") + 1; COMMIT",
             above);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return read_stamp(db, out); /* another process may have raised it since: as good */
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* --- the log --- */

/* The salts of the log that this connection writes, also when its name is gone.
 * SQLITE_IOERR_SHORT_READ: it is empty. */
static int read_salt(sqlite3 *db, uint8_t out[8])
{
    sqlite3_file *f = NULL;
    uint8_t header[WAL_HEADER] = { 0 };
    int rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, (void *)&f);
    if (rc == SQLITE_OK)
        rc = f && f->pMethods ? f->pMethods->xRead(f, header, sizeof header, 0) : SQLITE_IOERR;
    memcpy(out, header + WAL_SALT_AT, 8);
    return rc;
}

static int on_commit(void *user, sqlite3 *db, const char *name, int pages)
{
    struct wal_guard *g = user;
    g->frames = pages > 0 ? (uint32_t)pages : 0;
    if (pages >= CHECKPOINT_PAGES) {
        (void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        g->stamped = false;
    }
    return SQLITE_OK;
}

static bool look(const struct wal_guard *g, const char *suffix, struct stat *out)
{
    char name[4096];
    int n = snprintf(name, sizeof name, "%s%s", g->path, suffix);
    return n > 0 && (size_t)n < sizeof name && stat(name, out) == 0;
}

static bool same_files(const struct wal_guard *g)
{
    struct stat wal, shm;
    return look(g, "-wal", &wal) && look(g, "-shm", &shm) && wal.st_dev == g->dev &&
           wal.st_ino == g->wal && shm.st_ino == g->shm;
}

static int say_gone(const struct wal_guard *g, struct firn_diag *d)
{
    return firn__diag(d, FIRN_ESTORE, 0,
                      "%.70s-wal or -shm was removed or replaced while it was open: stop all users "
                      "of the store with SIGTERM, then start them",
                      g->path);
}

int wal_guard_init(struct wal_guard *g, const char *path, struct firn_diag *d)
{
    *g = (struct wal_guard){ .path = strdup(path) };
    return g->path ? 0 : firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
}

void wal_guard_done(struct wal_guard *g)
{
    note_close(g->note);
    g->note = NULL;
    free(g->path);
    g->path = NULL;
}

/* The log as the connection's last read found it, in the words of a note; 0: not known. Through
 * SQLite's own mapping: closing a descriptor of -shm would drop the locks of this process. */
static uint64_t log_found(sqlite3 *db)
{
    sqlite3_file *f = NULL;
    void volatile *shm = NULL;
    uint8_t head[2 * SHM_HEADER];
    uint32_t frames;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&f) != SQLITE_OK ||
        !f || !f->pMethods || f->pMethods->iVersion < 2 ||
        f->pMethods->xShmMap(f, 0, SHM_REGION, 0, &shm) != SQLITE_OK || !shm)
        return 0;
    for (size_t i = 0; i < sizeof head; i++) {
        if (i == SHM_HEADER)
            atomic_thread_fence(memory_order_acquire); /* writers write the second one first */
        head[i] = ((volatile uint8_t *)shm)[i];
    }
    if (memcmp(head, head + SHM_HEADER, SHM_HEADER) != 0)
        return 0; /* another process writes just now */
    memcpy(&frames, head + SHM_FRAMES_AT, sizeof frames);
    return note_log(head + SHM_SALT_AT, frames);
}

/* What mark and note tell of the database. */
static int find_loss(struct wal_guard *g, sqlite3 *db)
{
    /* First: a stamp may be raised meanwhile, and then its mark. */
    uint64_t mark = marked(g->path), noted = g->note ? g->note->stamp : 0;
    uint64_t log = g->note ? g->note->log : 0, stamp;
    int rc = read_stamp(db, &stamp);
    if (rc != SQLITE_OK)
        return rc;
    g->lost = mark > stamp || noted > stamp || note_log_lacks(log, log_found(db));
    /* The next clean end, or commits of a repair, may remove what the note is about. */
    if (g->lost && mark <= stamp)
        (void)raise_mark(g->path, stamp + 1);
    return SQLITE_OK;
}

int wal_guard_connected(struct wal_guard *g, sqlite3 *db, struct firn_diag *d)
{
    struct stat wal, shm;
    if (g->known)
        return same_files(g) ? 0 : say_gone(g, d);
    if (!g->note)
        g->note = note_open(g->path);
    if (find_loss(g, db) != SQLITE_OK)
        return firn__diag(d, FIRN_EIO, 0, "cannot read %.70s: %.60s", g->path, sqlite3_errmsg(db));
    if (look(g, "-wal", &wal) && look(g, "-shm", &shm)) {
        g->known = true;
        g->dev = wal.st_dev;
        g->wal = wal.st_ino;
        g->shm = shm.st_ino;
    }
    g->stamped = false;
    sqlite3_wal_hook(db, on_commit, g);
    return 0;
}

static bool has_records(sqlite3 *db)
{
    sqlite3_stmt *st;
    if (sqlite3_prepare_v2(db, "SELECT 1 FROM register LIMIT 1", -1, &st, NULL) != SQLITE_OK)
        return true;
    int rc = sqlite3_step(st);
    sqlite3_finalize(st);
    return rc != SQLITE_DONE;
}

/* The cure is the same wherever it is told: by a halted firnd, `firn admin fence`, the doctor. */
static int say_lost(const struct wal_guard *g, sqlite3 *db, struct firn_diag *d)
{
    if (has_records(db))
        return firn__diag(d, FIRN_ESTORE, 0,
                          "%.60s lost commits, its -wal file is missing, cut or older: restore it, "
                          "or `firn admin fence --skip N`",
                          g->path);
    return firn__diag(d, FIRN_ESTORE, 0,
                      "%.60s lost commits, all of them: put back its -wal or a backup; or remove "
                      "all its files, then `firn admin init`",
                      g->path);
}

int wal_guard_check(struct wal_guard *g, sqlite3 *db, struct firn_diag *d)
{
    if (g->lost && (find_loss(g, db) != SQLITE_OK || g->lost)) /* unless repaired since */
        return say_lost(g, db, d);
    if (!g->gone && (!g->known || same_files(g)))
        return 0;
    if (!g->gone) /* all that was committed is still in the open log: save it, once */
        (void)sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    g->gone = true;
    return say_gone(g, d);
}

static int stamp_and_mark(struct wal_guard *g, sqlite3 *db, uint64_t above)
{
    uint64_t stamp;
    int rc = raise_stamp(db, above, &stamp);
    if (rc != SQLITE_OK)
        return rc;
    firn_assert(stamp > above, "stamp=%" PRIu64 " above=%" PRIu64, stamp, above);
    if (raise_mark(g->path, stamp) != 0)
        return SQLITE_IOERR;
    if (g->note)
        note_raise(&g->note->stamp, stamp);
    return SQLITE_OK;
}

int wal_guard_committed(struct wal_guard *g, sqlite3 *db)
{
    uint8_t salt[8];
    int rc = g->accepted ? SQLITE_IOERR_SHORT_READ : read_salt(db, salt);
    /* A log may be begun anew between two commits: the stamp must be in the one that is left. */
    for (int i = 0; i < STAMPS_MAX && rc == SQLITE_OK; i++) {
        if (g->stamped && memcmp(salt, g->salt, sizeof salt) == 0) {
            /* The same log before and after the last commit: so its frames are this log's. */
            if (g->note)
                note_log_raise(&g->note->log, note_log(salt, g->frames));
            return SQLITE_OK;
        }
        memcpy(g->salt, salt, sizeof salt);
        g->stamped = true; /* the hook takes it back if it runs a checkpoint */
        rc = stamp_and_mark(g, db, 0);
        if (rc == SQLITE_OK)
            rc = read_salt(db, salt);
    }
    g->stamped = false; /* with the next write: it failed, or others checkpoint all the time */
    return rc == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : rc; /* an empty log holds nothing to lose */
}

int wal_guard_accept(struct wal_guard *g, sqlite3 *db, bool forever, struct firn_diag *d)
{
    uint64_t mark = marked(g->path), noted = g->note ? g->note->stamp : 0;
    g->accepted = !forever && (g->accepted || g->lost);
    g->lost = false;
    if (!forever)
        return 0;
    if (g->note)
        g->note->log = 0; /* frames that are gone for good */
    if (stamp_and_mark(g, db, noted > mark ? noted : mark) == SQLITE_OK)
        return 0;
    return firn__diag(d, FIRN_EIO, 0, "cannot write %.100s: %.60s", g->path, sqlite3_errmsg(db));
}
