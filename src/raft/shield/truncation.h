/*
 * truncation.h - finishes a truncation of the log that a crash interrupted.
 * libraft removes the closed segments behind the truncation one by one, the first one first; a
 * crash in between leaves a hole in the log, which libraft then refuses. A hole can also be a file
 * that was lost, so the truncation is noted in a file beside the log, and only a noted one is
 * finished at the next start.
 */
#ifndef FIRN_RAFT_SHIELD_TRUNCATION_H
#define FIRN_RAFT_SHIELD_TRUNCATION_H

#include "firn/error.h"

#include <stdint.h>

/* Entries from `from` to `to` are about to be removed; they are removed. If the note cannot be
 * written, a crash at that moment makes libraft refuse the log: no reason to stop here. */
void truncation_note(const char *path, uint64_t from, uint64_t to);
void truncation_done(const char *path);

/* Before libraft loads `dir`. FIRN_EIO. */
FIRN_MUSTUSE int truncation_finish(const char *path, const char *dir, struct firn_diag *d);

#endif
