/*
 * serve.h - turns of the thread that owns a store: jobs become commits, the lease takes its steps,
 * old keys are removed, and at the end numbers go back. Each call may block in the store. firnd's
 * coordinator and the simulator's processes run the same turns.
 */
#ifndef FIRN_DRIVE_SERVE_H
#define FIRN_DRIVE_SERVE_H

#include "drive/group.h"
#include "drive/lease.h"

struct serve {
    /* The owner's, before the first turn. */
    struct lease *lease;
    struct tickets *tickets;
    struct group_commit *group;
    struct group_world world;     /* `user` is also the one of these: */
    uint64_t (*last)(void *user); /* the highest tick that was stamped; NULL: none */
    bool (*hurry)(void *user);    /* the lease is to take a step now; may be NULL */
    void (*publish)(void *user);  /* the lease has taken a step: show its view; may be NULL */
    uint64_t retention_s;         /* how long a key is kept */

    /* Set by the turns. */
    uint64_t due_ms;       /* when the next turn is due at the latest, jobs or not */
    uint64_t retry_ms;     /* the store failed, or jobs wait for its gate: no jobs before then */
    uint64_t keys_removed; /* a count */
    uint64_t step_ms_, sweep_ms_;
    uint32_t part_; /* of all keys, that is looked at next */
};

/* The lease's clock and gate, as the group commit asks for them. */
void serve_now(const struct lease *l, int64_t mono_ns, struct group_now *out);

/* One turn: the jobs, if any; then the lease and the old keys, if they are due. Returns the jobs to
 * be run next, before all that arrived since, but not before retry_ms. */
struct job *serve_turn(struct serve *s, struct job *jobs);

/* A sequence, or the register of a period, may be created or deleted in this store. FIRN_ESTORE:
 * its records are gone or another store's, so a sequence would begin again. */
FIRN_MUSTUSE int serve_may_create(struct serve *s, struct firn_diag *d);

/* The end: no request waits any more. Gives numbers in hand back until `until_ms`; returns how
 * many. */
uint64_t serve_end(struct serve *s, uint64_t until_ms);

#endif
