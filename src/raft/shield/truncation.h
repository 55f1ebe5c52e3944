/*
 * truncation.h - the end of the log, while it is cut off. libraft takes its closed segments away one by one, the first
 * one first; a crash in between leaves a hole in the log, which it then refuses. A hole can also be a file that
 * somebody lost, so what is being cut is noted beside the log, and only that is finished at the next start.
 */
#ifndef FIRN_RAFT_SHIELD_TRUNCATION_H
#define FIRN_RAFT_SHIELD_TRUNCATION_H

#include "firn/error.h"

#include <stdint.h>

/* Entries from `from` to `to` are about to go; they are gone. If it cannot be noted, a crash just now makes libraft
 * refuse the log: no reason to stop. */
void truncation_note(const char *path, uint64_t from, uint64_t to);
void truncation_done(const char *path);

/* Before libraft loads `dir`. FIRN_EIO. */
FIRN_MUSTUSE int truncation_finish(const char *path, const char *dir, struct firn_diag *d);

#endif
