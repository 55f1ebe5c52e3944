/*
 * internal.h - what the files of the library call of each other, above trips.
 * "Locked" means with core->mutex held; such a function may release it while it waits, and holds it
 * again when it returns.
 */
#ifndef FIRN_CLIENT_INTERNAL_H
#define FIRN_CLIENT_INTERNAL_H

#include "client/core.h"
#include "client/watch.h"
#include "firn/gen.h"

/* --- waiting.c --- */

/* Locked. Waits until a step of `t` may help, core->news is signalled, or `end_ms`. One thread
 * polls the trip's descriptor, the others wait for that thread. */
void await_trip(struct core *c, struct trip *t, uint64_t end_ms);

/* --- sequence.c: whether a number may be lost --- */

/* The request for a sequence, and the mode that its response names. */
void sequence_request(const struct core *c, struct request *out);
enum sequence sequence_read(const char *body, size_t len);

/* Asks a server once, then remembers. */
FIRN_MUSTUSE int sequence_learn(struct core *c, struct firn_diag *d);

/* --- prefetch.c --- */

/* Locked. Does what needs no waiting: adds a block that arrived, requests the next. */
void prefetch_tend(struct core *c);

/* Locked. The shelf of a shard, until the lock is released. FIRN_EAGAIN, FIRN_ENOMEM. */
FIRN_MUSTUSE int prefetch_shelf(struct core *c, uint32_t shard, struct shelf **out,
                                struct firn_diag *d);

struct prefetch {
    uint64_t most;               /* numbers */
    uint64_t end_ms;             /* how long to wait; 0: not at all, then FIRN_EAGAIN */
    const struct request *for_q; /* whose names a request for a block carries, or NULL */
};

/* Locked. Up to p->most numbers of the shelf in one run, usable until *out_stale_ms. */
FIRN_MUSTUSE int prefetch_take(struct core *c, struct shelf *s, const struct prefetch *p,
                               struct run *out, uint64_t *out_stale_ms, struct firn_diag *d);

/* --- lending.c --- */

/* The hot path reads the generator from `place`. */
FIRN_MUSTUSE int lending_new(struct core *c, _Atomic(struct firn_shared *) *place);
void lending_free(struct core *c);
void lending_tend(struct core *c); /* locked; as prefetch_tend() */
/* Locked. Up to `n` IDs of the generator; waits as prefetch_take() does. FIRN_ERANGE: the layout
 * has no such shard. */
FIRN_MUSTUSE int lending_fill(struct core *c, uint32_t shard, uint64_t *ids, size_t n,
                              uint64_t end_ms, size_t *out_n, struct firn_diag *d);
struct trip *lending_trip(struct core *c);
const struct failure *lending_failure(struct core *c); /* the last one */
void lending_return(struct core *c); /* gives the slot back, if a server answers within 500 ms */
struct firn_client_stats;
void lending_stats(struct core *c, struct firn_client_stats *out); /* locked */

/* --- discover.c --- */

void discover_tend(struct core *c); /* locked */

/* --- background.c --- */

FIRN_MUSTUSE int background_start(struct core *c);
void background_stop(struct core *c); /* does nothing without a thread */

/* --- async.c: calls that do not wait --- */

void async_free(struct core *c);
/* Locked. After a step of the trip: watch its descriptor for the new event. */
void async_watch(struct core *c, struct trip *t);

/* Locked. Does everything above that is due. */
void core_tend(struct core *c);

/* Of the core's own trips under way the one that waits least long, and until when; or NULL. */
struct trip *core_trip(struct core *c, uint64_t *out_until_ms);

#endif
