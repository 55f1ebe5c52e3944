/*
 * segment.h - what is in libraft's segments, looked at before libraft does. Of an open one it takes a batch that
 * fails its checksum for the torn end of a crash, cuts it off with all that follows, and says nothing:
 * acknowledged writes would be gone. This tells a torn end from damage.
 */
#ifndef FIRN_RAFT_SHIELD_SEGMENT_H
#define FIRN_RAFT_SHIELD_SEGMENT_H

#include "firn/error.h"

#include <stdint.h>

enum segment_state {
    SEGMENT_WHOLE,  /* every batch is good, then zeros */
    SEGMENT_TORN,   /* the last batch was being written: a part of it is still zeros */
    SEGMENT_DAMAGED /* what is there was written in full, and is not what was written */
};

/* *out_at: where the good batches end. */
enum segment_state segment_look(const unsigned char *p, size_t len, size_t *out_at);

/* All open segments of a folder. FIRN_EFORMAT: damaged, `d` says which; FIRN_EIO. */
FIRN_MUSTUSE int segment_check(const char *dir, struct firn_diag *d);

/* How many entries a closed one has; 0: it is not whole. FIRN_EIO. */
FIRN_MUSTUSE int segment_entries(const char *path, uint64_t *out, struct firn_diag *d);

#endif
