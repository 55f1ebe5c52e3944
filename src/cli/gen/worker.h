/*
 * worker.h - the worker numbers that the firn gen runs of one machine use, and the time up to which
 * each was stamped. A run locks its number for as long as it lives, and notes the end of its last
 * tick before it prints an ID of that tick: so runs side by side have different numbers, and a
 * later run begins above an earlier one, even if that ran ahead of the clock (--policy borrow) or
 * was killed, or the clock was set back since. One thread.
 *
 * The notes are a file in the user's state directory. What other users run is kept apart by a
 * socket name for each number, which no two processes of a machine can bind; where the layout has
 * many slots, it is the name that firnd and libfirn-node bind for theirs (store/slotlock.h).
 */
#ifndef FIRN_CLI_GEN_WORKER_H
#define FIRN_CLI_GEN_WORKER_H

#include "firn/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { WORKERS_MAX = 65536 }; /* numbers further apart than this share a lock and a note */

struct worker {
    int file, name; /* -1: none */
    uint64_t scope; /* of the names; 0: those of firn gen alone */
    uint32_t number;
    int64_t used_us; /* Unix time: all ticks that begin before it may be used up */
};

/* Where the file lives: $XDG_STATE_HOME/firn, /var/lib/firn for root, else ~/.local/state/firn.
 * FIRN_ENOENT: none of them is known. */
FIRN_MUSTUSE int worker_directory(const char *xdg, const char *home, bool root, char *out,
                                  size_t cap);

/* Opens the file, and creates it. FIRN_EIO, FIRN_ENOENT; the diag says why. */
FIRN_MUSTUSE int worker_open(struct worker *w, uint64_t scope, struct firn_diag *d);
void worker_close(struct worker *w);

/* One of the numbers first .. first + count - 1; `random` decides where the search begins. Numbers
 * that no process uses and whose note is not ahead of the clock come first, then the one that is
 * least ahead. Waits for up to WORKER_WAIT_MS. FIRN_ENOSLOT: all are in use. FIRN_ECLOCK: all are
 * further than WORKER_AHEAD_US ahead of the clock. FIRN_EFORMAT: the file is damaged. */
enum { WORKER_WAIT_MS = 2000, WORKER_AHEAD_US = 10000000 };
FIRN_MUSTUSE int worker_take(struct worker *w, uint32_t first, uint32_t count, uint32_t random,
                             struct firn_diag *d);

/* Ticks that begin before `until_us` are used up: before the first ID of them is printed. */
FIRN_MUSTUSE int worker_note(struct worker *w, int64_t until_us, struct firn_diag *d);

#endif
