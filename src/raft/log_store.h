/*
 * log_store.h - the log and snapshot of a member in a folder: what the disk's thread does, without
 * the thread. One thread. The simulator may run it on a folder of its own.
 *
 * Files: log-NUMBER, snapshot-NUMBER, and either with ".tmp" while it is written; NUMBER is 16
 * hexadecimal digits and rises with each new file. The log with the highest number counts, and
 * names its snapshot. Nothing else in the folder is touched.
 */
#ifndef FIRN_RAFT_LOG_STORE_H
#define FIRN_RAFT_LOG_STORE_H

#include "raft/disk.h"
#include "raft/folder.h"

struct log_save {          /* a core_save with everything that it names, copied */
    struct log_save *next; /* the owner's */
    uint64_t number, term, vote, truncate, log_first;
    struct core_snapshot *snapshot; /* owned; its bytes are behind it */
    uint64_t first, entries;
    size_t begin, end; /* of the entries' records */
    char record[];
};
/* NULL: no memory. */
struct log_save *log_save_copy(const struct core *c, const struct core_save *s);
void log_save_free(struct log_save *s);

struct log_store;

/* Loads, and writes what it loaded into a fresh file: what a process before wrote and did not sync
 * may be gone after the next power cut, and must not be taken for saved. `f` is borrowed.
 * FIRN_EFORMAT: damaged; FIRN_EIO, FIRN_ENOMEM. */
FIRN_MUSTUSE int log_store_open(const struct folder *f, struct log_store **out,
                                struct disk_loaded *loaded, struct firn_diag *d);

/* `save` is transferred. In the order of the core's saves. */
void log_store_take(struct log_store *s, struct log_save *save);

/* Writes and syncs what was taken: one batch, or a fresh file. FIRN_EIO, FIRN_ENOMEM: none of it is
 * saved; the next call writes all of it into a fresh file. */
FIRN_MUSTUSE int log_store_write(struct log_store *s, struct firn_diag *d);

uint64_t log_store_saved(const struct log_store *s); /* number of the last save that is written */
bool log_store_behind(const struct log_store *s);    /* more was taken */

void log_store_close(struct log_store *s);

#endif
