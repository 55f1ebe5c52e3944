/*
 * sqlite_wal.h - notices that an SQLite database has lost its write-ahead log.
 *
 * SQLite takes a database whose -wal file is gone for one that was closed cleanly, and commits that
 * were acknowledged are forgotten without a word. Two guards:
 *
 * While the file is open, -wal and -shm must stay the files that were opened. SQLite itself removes
 * them only when the last connection closes.
 *
 * Over a crash, a number tells: the stamp, a row in the database, and the same number in a file of
 * its own beside it (the mark, FILE.mark). A stamp is raised by a commit, and after that commit the
 * mark follows, durably, before any write that needs it is acknowledged:
 *     - the first write of a connection,
 *     - the first write into a log that was begun anew (its salts changed),
 *     - the first write after this connection ran a checkpoint: what is in the database file by
 *       then no longer shows that the rest of the log is there.
 * So the stamp in the database is never below the mark, whoever checkpoints, closes or crashes when
 * and however often, unless commits were lost: then the mark is higher, and the store halts. A mark
 * that is missing, torn or of another file says nothing.
 *
 * Two more losses leave mark and stamp equal: a log of which only the end is missing, and an older
 * state of the whole folder. The note (note.h), which is not in the folder, tells both until the
 * next boot: it has the highest stamp, and how many frames the log with these salts had after the
 * last commit that was acknowledged. Each log that is begun anew has a stamp of its own, so an
 * older state has either a lower stamp, or the same log with fewer frames.
 */
#ifndef FIRN_STORE_SQLITE_WAL_H
#define FIRN_STORE_SQLITE_WAL_H

#include "store/store.h"

struct note_page;

#include <sqlite3.h>
#include <sys/types.h>

struct wal_guard {
    char *path; /* of the database; owned */
    bool known; /* the inodes below are those of the files that were opened */
    dev_t dev;
    ino_t wal, shm;
    bool stamped;           /* the log with these salts has a stamp of this connection */
    uint8_t salt[8];        /* of the log's header */
    uint32_t frames;        /* in the log after this connection's last commit */
    struct note_page *note; /* of the database, or NULL */
    bool lost;              /* mark or note told so when the file was opened */
    bool accepted;          /* it was, and an operator repairs it: no stamp until that is done */
    bool gone;              /* -wal or -shm was removed or replaced while the file was open */
};

FIRN_MUSTUSE int wal_guard_init(struct wal_guard *g, const char *path, struct firn_diag *d);
void wal_guard_done(struct wal_guard *g);

/* A connection was made, its first read is done: compare stamp and mark, remember the files.
 * FIRN_ESTORE: the files are others than those of the connection before, which is still open. */
FIRN_MUSTUSE int wal_guard_connected(struct wal_guard *g, sqlite3 *db, struct firn_diag *d);

/* Before a write. FIRN_ESTORE: the log was lost. */
FIRN_MUSTUSE int wal_guard_check(struct wal_guard *g, sqlite3 *db, struct firn_diag *d);

/* After a commit, before it is acknowledged: SQLITE_OK, or an error of SQLite; a mark that cannot
 * be written is SQLITE_IOERR. */
FIRN_MUSTUSE int wal_guard_committed(struct wal_guard *g, sqlite3 *db);

/* An operator knows that commits are lost and goes on with what is there: this handle may write.
 * With `forever` the stamp is raised above the mark, for all. */
FIRN_MUSTUSE int wal_guard_accept(struct wal_guard *g, sqlite3 *db, bool forever,
                                  struct firn_diag *d);

#endif
