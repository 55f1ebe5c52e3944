/*
 * audit_db.h - the database of firn audit: a table with a unique index, in SQLite or PostgreSQL.
 * A batch is one transaction: its IDs, the duplicates among them, the totals, and how far its
 * source has been read. So a process that is killed at any moment continues after the last batch
 * that is on disk, and counts no line twice. All back ends keep these promises:
 *  - calls block and return in bounded time;
 *  - commit() returns 0 once the batch is durable. FIRN_EIO: it may be, or not; position() then
 *    tells;
 *  - other failures are FIRN_EIO, too; `why` has the database's message. One thread.
 */
#ifndef FIRN_CLI_WATCH_AUDIT_DB_H
#define FIRN_CLI_WATCH_AUDIT_DB_H

#include "firn/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AUDIT_BATCH_MAX = 50000 };

struct audit_id {
    const char *text; /* printable ASCII, 1 to 128 bytes */
    size_t len;
    uint64_t line;
};

struct audit_position {          /* how far a source has been read */
    uint64_t file, offset, line; /* follow_identity(), and the offset after the last line */
};

struct audit_batch {
    const char *source; /* the file's full name, or a name of this run's standard input */
    const struct audit_id *id;
    size_t n;
    uint64_t malformed; /* lines that hold no ID */
    uint64_t seen_ms;
    struct audit_position after;
};

struct audit_totals {
    uint64_t ids, duplicates, malformed;
};

struct audit_duplicate {
    uint64_t number; /* numbered in the order in which they were found */
    const char *id;
    uint64_t line, first_ms; /* when the first of them was seen */
};
typedef void audit_duplicate_fn(void *user, const struct audit_duplicate *d);

struct audit_db;

struct audit_db_ops {
    /* 1: known. 0: never read. */
    int (*position)(struct audit_db *db, const char *source, struct audit_position *out);
    int (*commit)(struct audit_db *db, const struct audit_batch *batch);
    /* Of this source, numbered above `after`. */
    int (*duplicates)(struct audit_db *db, const char *source, uint64_t after,
                      audit_duplicate_fn *each, void *user);
    /* Of all sources; `*out_last` is the highest number of a duplicate. */
    int (*totals)(struct audit_db *db, struct audit_totals *out, uint64_t *out_last);
    void (*close)(struct audit_db *db);
};

struct audit_db {
    const struct audit_db_ops *ops;
    char why[200];
};

struct audit_db *audit_sqlite_open(const char *path, char why[200]);
struct audit_db *audit_postgres_open(const char *url, char why[200]);

#endif
