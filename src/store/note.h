/*
 * note.h - what this boot of the machine remembers of a database file, outside of it.
 * A page of shared memory, /dev/shm/firn-<uid of the file's owner>/<hash>, found by device, inode
 * and time of birth of the file and by the boot. The kernel keeps it over kill -9, and over every
 * restore of the file's folder; a reboot, or the end of a container, removes it.
 *
 * It holds three numbers. Each is written after the database has it, or before an ID with it is
 * handed out, and processes on one file share them; so:
 *     - no ID with a tick above `tick` was handed out,
 *     - a database whose stamp (sqlite_wal.h) is below `stamp` forgot commits,
 *     - and so did one whose log has the same salts and fewer frames than `log`.
 * A note that is not there says nothing. It is an aid, never a condition: where there is no shared
 * memory, or the file system has no times of birth, firn works without one.
 */
#ifndef FIRN_STORE_NOTE_H
#define FIRN_STORE_NOTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct note_page {
    _Atomic uint64_t tick;  /* of the lease; 0: none */
    _Atomic uint64_t stamp; /* the highest of sqlite_wal.h */
    _Atomic uint64_t log;   /* note_log() */
    uint64_t reserved_[5];
    char path[3968]; /* of the database, to tell whether it is still there */
};
_Static_assert(sizeof(struct note_page) <= 4096, "one page");

/* The page of the database at `path`, made where there is none yet, or NULL. */
struct note_page *note_open(const char *path);
void note_close(struct note_page *n); /* NULL is fine */

static inline void note_raise(_Atomic uint64_t *word, uint64_t value)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    while (value > old && !atomic_compare_exchange_weak_explicit(
                              word, &old, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* A log's salts and its frames in one word, so that two processes cannot mix them. */
uint64_t note_log(const uint8_t salt[8], uint32_t frames);

/* The log is at `log` now: more frames of the same one, or another one. */
void note_log_raise(_Atomic uint64_t *word, uint64_t log);

/* Whether a log that is found at `now` lacks frames that `noted` had. */
bool note_log_lacks(uint64_t noted, uint64_t now);

#endif
