/*
 * segment.h - libraft's open segments, looked at before libraft does. It takes a batch that fails its
 * checksum for the torn end of a crash, cuts it off with all that follows, and says nothing: acknowledged
 * writes would be gone. This tells a torn end from damage. Pure functions over the file's bytes.
 */
#ifndef FIRN_RAFT_SEGMENT_H
#define FIRN_RAFT_SEGMENT_H

#include "firn/error.h"

#include <stdbool.h>
#include <stdint.h>

enum segment_state {
    SEGMENT_WHOLE,  /* every batch is good, then zeros */
    SEGMENT_TORN,   /* the last batch was being written: a part of it is still zeros */
    SEGMENT_DAMAGED /* what is there was written in full, and is not what was written */
};

/* *out_at: where the good batches end. */
enum segment_state segment_look(const unsigned char *p, size_t len, size_t *out_at);

/* Whether it is the name of a closed segment: "first-last", sixteen digits or more each. */
bool segment_closed_name(const char *name, uint64_t *first, uint64_t *last);

/* All open segments of a folder. FIRN_EFORMAT: damaged, `d` says which; FIRN_EIO. */
FIRN_MUSTUSE int segment_check(const char *dir, struct firn_diag *d);

/* When libraft takes entries back that its leader does not have, it writes the rest of their closed segment
 * anew under the shorter name, then removes the longer one. A crash in between leaves both, and libraft refuses
 * them. If the shorter one is whole the longer one is removed here, as libraft was about to; else the
 * shorter one, as if it had not begun. FIRN_EIO. */
FIRN_MUSTUSE int segment_mend(const char *dir, struct firn_diag *d);

/* A snapshot that the leader sent replaces the log: libraft writes it, then removes the closed segments. A crash in
 * between leaves some that end before it. libraft leaves them where they are, writes what follows the snapshot
 * into an open segment, and takes that for what follows them at the start after the next crash. They are
 * removed here: the open one begins behind the snapshot then, as it should. FIRN_EIO. */
FIRN_MUSTUSE int segment_forget(const char *dir, struct firn_diag *d);

#endif
