/* firn audit on SQLite. */
#include "cli/watch/audit_db.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUSY_MS = 5000 };

enum statement { FIND, BEGIN, ADD, AGAIN, PLACE, SUM, COMMIT, ROLLBACK, LIST, TOTALS, STATEMENTS };

static const char *const sql[STATEMENTS] = {
    [FIND] = "SELECT file, place, line FROM firn_audit_sources WHERE source = ?",
    [BEGIN] = "BEGIN IMMEDIATE",
    [ADD] = "INSERT OR IGNORE INTO firn_audit_ids(id, seen_ms) VALUES(?, ?)",
    [AGAIN] = "INSERT INTO firn_audit_duplicates(source, id, line, seen_ms) VALUES(?, ?, ?, ?)",
    [PLACE] =
        "INSERT OR REPLACE INTO firn_audit_sources(source, file, place, line) VALUES(?, ?, ?, ?)",
    [SUM] = "UPDATE firn_audit_totals SET ids = ids + ?, duplicates = duplicates + ?, "
            "malformed = malformed + ?",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [LIST] = "SELECT d.number, d.id, d.line, i.seen_ms FROM firn_audit_duplicates d "
             "JOIN firn_audit_ids i ON i.id = d.id WHERE d.source = ? AND d.number > ? ORDER BY 1",
    [TOTALS] =
        "SELECT ids, duplicates, malformed, "
        "(SELECT COALESCE(MAX(number), 0) FROM firn_audit_duplicates) FROM firn_audit_totals",
};

/* FULL: committed batches survive a power failure. */
static const char setup[] =
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=FULL;"
    "CREATE TABLE IF NOT EXISTS firn_audit_ids(id TEXT NOT NULL PRIMARY KEY, seen_ms INTEGER NOT "
    "NULL)"
    " WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS firn_audit_duplicates(number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " source TEXT NOT NULL, id TEXT NOT NULL, line INTEGER NOT NULL, seen_ms INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS firn_audit_sources(source TEXT NOT NULL PRIMARY KEY, file "
    "INTEGER NOT NULL,"
    " place INTEGER NOT NULL, line INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS firn_audit_totals(one INTEGER PRIMARY KEY CHECK(one = 1),"
    " ids INTEGER NOT NULL, duplicates INTEGER NOT NULL, malformed INTEGER NOT NULL);"
    "INSERT OR IGNORE INTO firn_audit_totals VALUES(1, 0, 0, 0);";

struct sqlite_db {
    struct audit_db base;
    sqlite3 *db;
    sqlite3_stmt *st[STATEMENTS];
};

static int failed(struct sqlite_db *d)
{
    snprintf(d->base.why, sizeof d->base.why, "%s", sqlite3_errmsg(d->db));
    return FIRN_EIO;
}

static void bind_text(sqlite3_stmt *s, int at, const char *p, size_t len)
{
    sqlite3_bind_text(s, at, p, (int)len, SQLITE_STATIC);
}

static void bind(sqlite3_stmt *s, int at, uint64_t n)
{
    sqlite3_bind_int64(s, at, (sqlite3_int64)n);
}

static uint64_t column(sqlite3_stmt *s, int at)
{
    return (uint64_t)sqlite3_column_int64(s, at);
}

/* Run a statement to its end. */
static bool done(struct sqlite_db *d, enum statement which)
{
    int r = sqlite3_step(d->st[which]);
    sqlite3_reset(d->st[which]);
    return r == SQLITE_DONE;
}

static int position(struct audit_db *base, const char *source, struct audit_position *out)
{
    struct sqlite_db *d = (struct sqlite_db *)base;
    sqlite3_stmt *s = d->st[FIND];
    bind_text(s, 1, source, strlen(source));
    int r = sqlite3_step(s), known = r == SQLITE_ROW;
    if (known)
        *out = (struct audit_position){ column(s, 0), column(s, 1), column(s, 2) };
    else if (r != SQLITE_DONE)
        known = failed(d);
    sqlite3_reset(s);
    return known;
}

static bool add_all(struct sqlite_db *d, const struct audit_batch *b, uint64_t *out_again)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct audit_id *id = &b->id[i];
        bind_text(d->st[ADD], 1, id->text, id->len);
        bind(d->st[ADD], 2, b->seen_ms);
        if (!done(d, ADD))
            return false;
        if (sqlite3_changes(d->db) > 0)
            continue;
        bind_text(d->st[AGAIN], 1, b->source, strlen(b->source));
        bind_text(d->st[AGAIN], 2, id->text, id->len);
        bind(d->st[AGAIN], 3, id->line);
        bind(d->st[AGAIN], 4, b->seen_ms);
        if (!done(d, AGAIN))
            return false;
        ++*out_again;
    }
    return true;
}

static int commit(struct audit_db *base, const struct audit_batch *b)
{
    struct sqlite_db *d = (struct sqlite_db *)base;
    uint64_t again = 0;
    if (!done(d, BEGIN))
        return failed(d);
    bool good = add_all(d, b, &again);
    bind_text(d->st[PLACE], 1, b->source, strlen(b->source));
    bind(d->st[PLACE], 2, b->after.file);
    bind(d->st[PLACE], 3, b->after.offset);
    bind(d->st[PLACE], 4, b->after.line);
    bind(d->st[SUM], 1, b->n);
    bind(d->st[SUM], 2, again);
    bind(d->st[SUM], 3, b->malformed);
    if (good && done(d, PLACE) && done(d, SUM) && done(d, COMMIT))
        return 0;
    failed(d);
    if (!sqlite3_get_autocommit(d->db))
        done(d, ROLLBACK);
    return FIRN_EIO;
}

static int duplicates(struct audit_db *base, const char *source, uint64_t after,
                      audit_duplicate_fn *each, void *user)
{
    struct sqlite_db *d = (struct sqlite_db *)base;
    sqlite3_stmt *s = d->st[LIST];
    int r;
    bind_text(s, 1, source, strlen(source));
    bind(s, 2, after);
    while ((r = sqlite3_step(s)) == SQLITE_ROW)
        each(user, &(struct audit_duplicate){ .number = column(s, 0),
                                              .id = (const char *)sqlite3_column_text(s, 1),
                                              .line = column(s, 2),
                                              .first_ms = column(s, 3) });
    r = r == SQLITE_DONE ? 0 : failed(d);
    sqlite3_reset(s);
    return r;
}

static int totals(struct audit_db *base, struct audit_totals *out, uint64_t *out_last)
{
    struct sqlite_db *d = (struct sqlite_db *)base;
    sqlite3_stmt *s = d->st[TOTALS];
    int r = sqlite3_step(s) == SQLITE_ROW ? 0 : failed(d);
    if (r == 0) {
        *out = (struct audit_totals){ column(s, 0), column(s, 1), column(s, 2) };
        *out_last = column(s, 3);
    }
    sqlite3_reset(s);
    return r;
}

static void close_db(struct audit_db *base)
{
    struct sqlite_db *d = (struct sqlite_db *)base;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(d->st[i]);
    sqlite3_close(d->db);
    free(d);
}

static const struct audit_db_ops ops = { position, commit, duplicates, totals, close_db };

struct audit_db *audit_sqlite_open(const char *path, char why[200])
{
    struct sqlite_db *d = calloc(1, sizeof *d);
    if (!d) {
        snprintf(why, 200, "out of memory");
        return NULL;
    }
    d->base.ops = &ops;
    int r = sqlite3_open_v2(path, &d->db,
                            SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (r == SQLITE_OK) {
        sqlite3_busy_timeout(d->db, BUSY_MS);
        r = sqlite3_exec(d->db, setup, NULL, NULL, NULL);
    }
    for (int i = 0; i < STATEMENTS && r == SQLITE_OK; i++)
        r = sqlite3_prepare_v3(d->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &d->st[i], NULL);
    if (r == SQLITE_OK)
        return &d->base;
    snprintf(why, 200, "%.199s", d->db ? sqlite3_errmsg(d->db) : "out of memory");
    close_db(&d->base);
    return NULL;
}
