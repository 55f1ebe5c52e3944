/*
 * internal.h - what the library's files call of each other, above trips. "Locked" means with core->mutex held;
 * such a function may let go of it while it waits, and holds it again when it returns.
 */
#ifndef FIRN_CLIENT_INTERNAL_H
#define FIRN_CLIENT_INTERNAL_H

#include "client/core.h"
#include "firn/gen.h"

/* --- waiting.c --- */

/* Locked. Wait until a step of `t` may help, somebody brings news, or `end_ms`. One thread waits for the
 * descriptor, the others for it. */
void await_trip(struct core *c, struct trip *t, uint64_t end_ms);

/* --- sequence.c: whether a number may be lost --- */

/* The question that tells, and what its answer says. */
void sequence_request(const struct core *c, struct request *out);
enum sequence sequence_read(const char *body, size_t len);

/* Ask once, then remember. */
FIRN_MUSTUSE int sequence_learn(struct core *c, struct firn_diag *d);

/* --- prefetch.c --- */

/* Locked. Do what can be done without waiting: take in a block that came, ask for the next. */
void prefetch_tend(struct core *c);

/* Locked. Up to `most` numbers in one run, good until *out_stale_ms. Waits until `end_ms`; with 0 not at all:
 * FIRN_EAGAIN then. */
FIRN_MUSTUSE int prefetch_take(struct core *c, uint64_t most, uint64_t end_ms, struct run *out,
                               uint64_t *out_stale_ms, struct firn_diag *d);

/* --- lending.c --- */

/* `place` is where the hot path finds the generator. */
FIRN_MUSTUSE int lending_new(struct core *c, _Atomic(struct firn_shared *) *place);
void lending_free(struct core *c);
void lending_tend(struct core *c); /* locked; as prefetch_tend() */
/* Locked. Up to `n` IDs of the generator; waits as prefetch_take() does. */
FIRN_MUSTUSE int lending_fill(struct core *c, uint64_t *ids, size_t n, uint64_t end_ms,
                              size_t *out_n, struct firn_diag *d);
struct trip *lending_trip(struct core *c);
const struct failure *lending_failure(struct core *c); /* the last one */
void lending_return(struct core *c); /* at the end: give the slot back, if that is quickly done */
struct firn_client_stats;
void lending_stats(struct core *c, struct firn_client_stats *out); /* locked */

/* --- discover.c --- */

void discover_tend(struct core *c); /* locked */

/* --- background.c --- */

FIRN_MUSTUSE int background_start(struct core *c);
void background_stop(struct core *c); /* does nothing without a thread */

/* --- async.c: calls that do not wait --- */

void async_free(struct core *c);
/* Locked. The trip has moved: watch what it waits for now. */
void async_watch(struct core *c, struct trip *t);

/* Locked. All of the above that is due. */
void core_tend(struct core *c);

/* The trips that the core itself has under way; up to CORE_TRIPS. */
enum { CORE_TRIPS = 3 };
size_t core_trips(struct core *c, struct trip *out[CORE_TRIPS]);

#endif
