/*
 * numbers.h - the process's source of Snowflake, Sonyflake and TSID numbers, shared by all loops:
 * a request that begins after another was answered gets a larger number, whatever loop, connection
 * or protocol. The generators themselves are lock-free (coord/stamps.h); the lock in here is taken
 * when the lease's view has changed, a few times per second.
 */
#ifndef FIRN_SERVER_NUMBERS_H
#define FIRN_SERVER_NUMBERS_H

#include "coord/stamps.h"
#include "drive/board.h"

struct numbers;

/* The plan and the board are borrowed. At most `users` follow it at a time. */
FIRN_MUSTUSE int numbers_new(const struct stamp_plan *plan, struct board *board, uint32_t users,
                             struct numbers **out);
void numbers_free(struct numbers *n);

/* The generators of the grant that the board shows now, or NULL if there is none. `old` (or NULL)
 * is what this user had until now. *version becomes the board's: until that changes, or a draw
 * answers FIRN_ECLOSED, there is no need to ask again. */
struct stamps *numbers_follow(struct numbers *n, struct stamps *old, uint64_t *version);

/* Before the first draw: keep `note` at or above every tick (of the lease) that is handed out, also
 * for a process that starts after this one was killed. Borrowed; NULL: there is none. */
void numbers_set_note(struct numbers *n, _Atomic uint64_t *note);

/* An ID with this tick of the layout is about to be handed out; needed once for a tick. */
void numbers_cover(struct numbers *n, enum leased which, uint64_t tick);

/* The clock that they stamp by. */
const struct firn_clock *numbers_clock(const struct numbers *n);

/* The highest tick (of the lease) that any loop stamped, as of its last turn. */
_Atomic uint64_t *numbers_last(struct numbers *n);
void numbers_note(struct numbers *n, const struct stamps *s);

/* No ID comes any more. Returns the highest tick stamped, exactly. */
uint64_t numbers_close(struct numbers *n);

#endif
