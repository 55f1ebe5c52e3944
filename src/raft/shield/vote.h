/*
 * vote.h - a second copy of term and vote, with a checksum.
 * libraft keeps both in files without a checksum. A member that forgot its vote could vote twice in
 * one term, and two leaders would be possible. So each is written here too, after libraft has
 * stored it; at the start libraft's copy must not be older.
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

/* FIRN_ENOENT: no vote was written yet; FIRN_EFORMAT: damaged; FIRN_EIO. */
FIRN_MUSTUSE int vote_read(const char *path, struct vote *out);
FIRN_MUSTUSE int vote_write(const char *path, const struct vote *v);

/* May libraft's copy follow ours? It is the same, or a later one that a crash kept from being
 * written here. */
bool vote_follows(const struct vote *ours, const struct vote *rafts);

#endif
