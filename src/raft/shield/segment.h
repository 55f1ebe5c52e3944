/*
 * segment.h - checks libraft's open segments before libraft loads them.
 * libraft takes any batch with a wrong checksum for the torn end of a crash, and silently truncates
 * it with all that follows: acknowledged writes would be lost. This tells a torn end from damage.
 */
#ifndef FIRN_RAFT_SHIELD_SEGMENT_H
#define FIRN_RAFT_SHIELD_SEGMENT_H

#include "firn/error.h"

#include <stdint.h>

enum segment_state {
    SEGMENT_WHOLE,  /* every batch is good, then zeros */
    SEGMENT_TORN,   /* the last batch was being written: a sector of it is still zeros */
    SEGMENT_DAMAGED /* a batch was written completely, and its checksum is wrong */
};

/* *out_at: the end of the valid batches. */
enum segment_state segment_look(const unsigned char *p, size_t len, size_t *out_at);

/* All open segments of a folder. FIRN_EFORMAT: damaged, `d` says which; FIRN_EIO. */
FIRN_MUSTUSE int segment_check(const char *dir, struct firn_diag *d);

/* The number of entries of a closed segment; 0: it is incomplete. FIRN_EIO. */
FIRN_MUSTUSE int segment_entries(const char *path, uint64_t *out, struct firn_diag *d);

#endif
