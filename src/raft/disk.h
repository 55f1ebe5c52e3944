/*
 * disk.h - the folder of one member: its log and its snapshot.
 * One thread of its own writes; the caller's thread never waits for the disk. Saves reach the disk
 * in the order of disk_save(), several with one fdatasync. If the disk cannot be written (full, an
 * error), the thread keeps trying in a fresh file, and nothing is reported as saved meanwhile.
 */
#ifndef FIRN_RAFT_DISK_H
#define FIRN_RAFT_DISK_H

#include "raft/core/core.h"

struct disk;
struct folder;

struct disk_opts {
    const char *dir; /* exists; borrowed during disk_open() */
    /* Called from the disk's thread when disk_saved() has grown or disk_problem() has changed. */
    void (*moved)(void *user);
    void *user;
    const struct folder *folder; /* instead of `dir`: for tests; NULL: none */
};

struct disk_loaded { /* what the folder had; free with disk_loaded_done() */
    bool any;        /* false: nothing was ever saved in this folder */
    struct core_saved_state state;
    void *memory_;
};

/* FIRN_EFORMAT: damaged: `d` says which file, and the cure. FIRN_EIO. FIRN_ENOMEM. */
FIRN_MUSTUSE int disk_open(const struct disk_opts *o, struct disk **out, struct disk_loaded *loaded,
                           struct firn_diag *d);
void disk_loaded_done(struct disk_loaded *l);

/* Copies what `s` names out of `c`. FIRN_ENOMEM: nothing was taken; call again with the same. */
FIRN_MUSTUSE int disk_save(struct disk *disk, const struct core *c, const struct core_save *s);

uint64_t disk_saved(const struct disk *disk); /* number of the last save on the disk; any thread */

/* False: it can be written. Else why not, for people. Any thread. */
bool disk_problem(struct disk *disk, char *why, size_t cap);

/* Writes what is queued, if it can be written now, and ends the thread. */
void disk_close(struct disk *disk);

#endif
