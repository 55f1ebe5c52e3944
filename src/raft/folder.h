/*
 * folder.h - the system calls on the files of one folder, as a table: the real ones, a test's that
 * fail, the simulator's. Names are without a slash. A result below 0 is a negative errno.
 */
#ifndef FIRN_RAFT_FOLDER_H
#define FIRN_RAFT_FOLDER_H

#include "wire/buf.h"

struct folder_calls {
    /* A new, empty file; one of this name that was there is unlinked first. Returns a handle. */
    int (*create)(void *at, const char *name);
    int (*write)(void *at, int file, const char *p, size_t len, uint64_t offset); /* all of it */
    int (*sync)(void *at, int file);
    void (*close)(void *at, int file);
    int (*rename)(void *at, const char *from, const char *to);
    int (*unlink)(void *at, const char *name);
    int (*sync_folder)(void *at); /* what was created, renamed and unlinked is on the disk */
    int (*read)(void *at, const char *name, struct buf *out); /* the whole file */
    int (*list)(void *at, void (*each)(void *user, const char *name), void *user);
    uint64_t (*random)(void *at);
};

struct folder {
    const struct folder_calls *calls;
    void *at;
};

/* The real one; `dir` exists. Returns 0 or a negative errno. */
int folder_open(const char *dir, struct folder *out);
void folder_close(struct folder *f); /* of a folder that folder_open() made, or all zero */

#endif
