/*
 * closed_segment.h - libraft's closed segments, which are named after their first and last entry.
 * Repairs what crashes left among them before libraft loads them.
 */
#ifndef FIRN_RAFT_SHIELD_CLOSED_SEGMENT_H
#define FIRN_RAFT_SHIELD_CLOSED_SEGMENT_H

#include "firn/error.h"

#include <stdint.h>

struct closed_segment {
    uint64_t first, last;
};

/* All of a folder, sorted by first and then by last entry; *out is malloc'd. FIRN_EIO,
 * FIRN_ENOMEM. */
FIRN_MUSTUSE int closed_list(const char *dir, struct closed_segment **out, size_t *n,
                             struct firn_diag *d);

/* Removes the segments within [from, to], the last one first, so that a crash leaves no hole.
 * FIRN_EIO. */
FIRN_MUSTUSE int closed_remove(const char *dir, const struct closed_segment *list, size_t n,
                               uint64_t from, uint64_t to, struct firn_diag *d);

/* When libraft truncates its log inside a closed segment, it writes the rest of the segment under
 * the shorter name, then removes the longer one. A crash in between leaves both, and libraft
 * refuses to load them. If the shorter one is complete the longer one is removed here, as libraft
 * was about to do; else the shorter one. FIRN_EIO. */
FIRN_MUSTUSE int closed_repair(const char *dir, struct firn_diag *d);

/* A snapshot from the leader replaces the log: libraft writes it, then removes the closed segments.
 * A crash in between leaves some that end before it. libraft keeps them, writes the entries behind
 * the snapshot into an open segment, and after the next crash takes that one for the continuation
 * of those closed segments. They are removed here: the open segment then begins behind the
 * snapshot, as it should. FIRN_EIO. */
FIRN_MUSTUSE int closed_drop_replaced(const char *dir, struct firn_diag *d);

#endif
