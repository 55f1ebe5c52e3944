/* Inserts IDs into an index of SQLite, and measures it. */
#include "cli/compare/compare_index.h"
#include "platform/mono.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PAYLOAD_BYTES = 100, COMMIT_ROWS = 1000 };

/* No flushes: they would hide the differences. 1 MiB of cache stands for a table larger than
 * memory. */
static const char setup[] = "PRAGMA page_size=4096;"
                            "PRAGMA journal_mode=OFF;"
                            "PRAGMA synchronous=OFF;"
                            "PRAGMA locking_mode=EXCLUSIVE;"
                            "PRAGMA cache_size=-1024;";

static int insert_all(sqlite3 *db, const struct compare_ids *ids)
{
    static const uint8_t payload[PAYLOAD_BYTES];
    sqlite3_stmt *s = NULL;
    int r = sqlite3_prepare_v2(db, "INSERT INTO t VALUES(?,?)", -1, &s, NULL);
    for (size_t i = 0; i < ids->n && r == SQLITE_OK; i++) {
        const uint8_t *id = ids->data + i * ids->width;
        uint64_t number = 0;
        if (i % COMMIT_ROWS == 0 && i > 0)
            r = sqlite3_exec(db, "COMMIT;BEGIN", NULL, NULL, NULL);
        if (ids->width == sizeof number) {
            memcpy(&number, id, sizeof number);
            sqlite3_bind_int64(s, 1, (sqlite3_int64)number);
        } else {
            sqlite3_bind_blob(s, 1, id, (int)ids->width, SQLITE_STATIC);
        }
        sqlite3_bind_blob(s, 2, payload, PAYLOAD_BYTES, SQLITE_STATIC);
        if (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_DONE)
            r = sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return r;
}

static uint64_t pragma(sqlite3 *db, const char *text)
{
    sqlite3_stmt *s = NULL;
    uint64_t n = 0;
    if (sqlite3_prepare_v2(db, text, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        n = (uint64_t)sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

void compare_index_sqlite(const struct compare_ids *ids, struct compare_index *out)
{
    const char *tmp = getenv("TMPDIR");
    char path[300];
    sqlite3 *db = NULL;
    *out = (struct compare_index){ .rows = ids->n };
    snprintf(path, sizeof path, "%s/firn-index-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0) {
        snprintf(out->why_not, sizeof out->why_not, "%s: set TMPDIR", strerror(errno));
        return;
    }
    close(fd);
    int r = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (r == SQLITE_OK)
        r = sqlite3_exec(db, setup, NULL, NULL, NULL);
    if (r == SQLITE_OK)
        r = sqlite3_exec(db,
                         ids->width == sizeof(uint64_t)
                             ? "CREATE TABLE t(id INTEGER PRIMARY KEY, payload BLOB)"
                             : "CREATE TABLE t(id BLOB PRIMARY KEY, payload BLOB) WITHOUT ROWID",
                         NULL, NULL, NULL);
    uint64_t start = mono_ns();
    if (r == SQLITE_OK)
        r = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    if (r == SQLITE_OK)
        r = insert_all(db, ids);
    if (r == SQLITE_OK)
        r = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    uint64_t took = mono_ns() - start;
    if (r == SQLITE_OK) {
        out->measured = true;
        out->per_second = took ? (uint64_t)((double)ids->n * 1e9 / (double)took) : 0;
        out->bytes = pragma(db, "PRAGMA page_count") * pragma(db, "PRAGMA page_size");
    } else {
        snprintf(out->why_not, sizeof out->why_not, "SQLite: %s", sqlite3_errmsg(db));
    }
    sqlite3_close(db);
    unlink(path);
}
