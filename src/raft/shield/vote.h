/*
 * vote.h - a second memory of term and vote. libraft keeps both in files without a checksum; a member that
 * forgot its vote could give it twice in one term, and two leaders would be possible. So each is written
 * here too, with a checksum, after libraft has it; at the start libraft's must not be behind.
 */
#ifndef FIRN_RAFT_SHIELD_VOTE_H
#define FIRN_RAFT_SHIELD_VOTE_H

#include <raft.h>
#include <stdbool.h>

#include "firn/error.h"

struct vote {
    raft_term term;
    raft_id candidate; /* 0: none */
};

/* `path` of a file. FIRN_ENOENT: none was written yet; FIRN_EFORMAT: damaged; FIRN_EIO. */
FIRN_MUSTUSE int vote_read(const char *path, struct vote *out);
FIRN_MUSTUSE int vote_write(const char *path, const struct vote *v);

/* Whether libraft's may follow ours: the same, or of a write that ours did not see any more. */
bool vote_follows(const struct vote *ours, const struct vote *rafts);

#endif
