/*
 * closed_segment.h - libraft's closed segments, which are named by their first and last entry: what crashes left among them is
 * mended before libraft loads them.
 */
#ifndef FIRN_RAFT_SHIELD_CLOSED_SEGMENT_H
#define FIRN_RAFT_SHIELD_CLOSED_SEGMENT_H

#include "firn/error.h"

#include <stdint.h>

struct closed_segment {
    uint64_t first, last;
};

/* All of a folder, by their first and then their last entry; *out is malloc'd. FIRN_EIO, FIRN_ENOMEM. */
FIRN_MUSTUSE int closed_list(const char *dir, struct closed_segment **out, size_t *n,
                             struct firn_diag *d);

/* Removes those that lie from `from` to `to`, from the end: what is left is a log each time. FIRN_EIO. */
FIRN_MUSTUSE int closed_remove(const char *dir, const struct closed_segment *list, size_t n,
                               uint64_t from, uint64_t to, struct firn_diag *d);

/* When libraft takes entries back that its leader does not have, it writes the rest of their closed segment
 * anew under the shorter name, then removes the longer one. A crash in between leaves both, and libraft refuses
 * them. If the shorter one is whole the longer one is removed here, as libraft was about to; else the
 * shorter one, as if it had not begun. FIRN_EIO. */
FIRN_MUSTUSE int closed_repair(const char *dir, struct firn_diag *d);

/* A snapshot that the leader sent replaces the log: libraft writes it, then removes the closed segments. A crash in
 * between leaves some that end before it. libraft leaves them where they are, writes what follows the snapshot
 * into an open segment, and takes that for what follows them at the start after the next crash. They are
 * removed here: the open one begins behind the snapshot then, as it should. FIRN_EIO. */
FIRN_MUSTUSE int closed_drop_replaced(const char *dir, struct firn_diag *d);

#endif
