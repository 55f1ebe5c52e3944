/*
 * lease.h - one slot, kept by one thread: runs coord/slot.h and coord/clock_f.h on a store.
 * The coordinator calls lease_step() when it is due, or earlier; each call may block in the store.
 * Between calls it publishes `view` to the generators; no other thread shares this struct.
 *
 * Emission, in the generators (checked: models/hot_path.pml), from what is published:
 *     F     = max(floor_ns, CLOCK_MONOTONIC + off_ns), in ticks: (F - epoch) / tick
 *     limit = max(F, floor_tick) + max_drift
 *     a tick t may be stamped when from <= t < until, and t <= F or t <= limit
 * When `grant.gen` changes a generator goes on with the new slot at max(from, its own last + 1);
 * with grant.closed it stops. Stopping and reading `last` is one step (Close): never lower until
 * and then look at last.
 */
#ifndef FIRN_DRIVE_LEASE_H
#define FIRN_DRIVE_LEASE_H

#include "coord/lease.h"
#include "store/slotlock.h"
#include "store/store.h"

/* The outside world, so that tests can run a lease on a virtual clock. lease_world_real() is the
 * system's; `lock` NULL means that there are no lock bytes (then quarantine decides). */
struct lease_world {
    void *user;
    void (*read_clock)(void *user, struct clock_reading *out); /* `store` stays 0 */
    void (*random)(void *user, void *out, size_t len);
    void (*sleep_ms)(void *user, uint64_t ms); /* for lease_release's retries */
    int (*lock)(void *user, uint32_t slot);    /* as slot_lock_try */
    void (*unlock)(void *user, uint32_t slot);
};

/* `slots` from slot_lock_open(), kept by the caller as long as the lease; NULL, or not open: none.
 */
void lease_world_real(struct lease_world *w, struct slot_lock *slots);

struct lease {
    struct lease_view view;
    struct lease_params params;
    struct lease_world world;
    struct firn_store *store;
    struct clock_f clock;
    struct meta_record meta;
    struct slot_node node;
    enum { LEASE_META, LEASE_RUN } phase_; /* looks at the store as a whole; runs the node */
    bool born_;                            /* there is a node */
    bool changed_;    /* the store said that it is another one: fence it, whatever its identity */
    bool held_;       /* sequences are held, as far as known (hold.h) */
    bool sound_;      /* the clock alone is missing; the store is the one that it should be */
    bool found_;      /* the store had records when it was looked at last */
    uint32_t locked_; /* slot whose lock byte is held, or UINT32_MAX */
    uint64_t noted_;  /* what was stamped before this process, at most; 0: not known */
    uint64_t highest_until_;
    uint64_t sane_floor_;  /* meta's floor when a write was last confirmed; higher: a FENCE since */
    uint64_t meta_due_ms_; /* shared: when to read meta again */
    int64_t store_ns_, store_boot_ns_; /* the store's clock and CLOCK_BOOTTIME then; 0: unknown */
    char name_[RECORD_NAME_MAX + 1], layout_[RECORD_LAYOUT_MAX + 1];
};

/* Nothing is asked of the store yet. The store is borrowed, texts are copied. The struct is large
 * (about 25 kB): keep it on the heap or static. FIRN_EINVAL: parameters. */
FIRN_MUSTUSE int lease_open(struct lease *l, struct firn_store *store, const struct lease_params *p,
                            const struct lease_world *w, struct firn_diag *d);

/* Do what is due: read the clock, create the records of a fresh store, take a slot, extend the
 * window. `last` is the highest tick emitted by any generator so far (0: none). Returns when to
 * call again, CLOCK_MONOTONIC ms; calling earlier does no harm. */
uint64_t lease_step(struct lease *l, uint64_t last);

/* Another part of this process was told by a shared store that it is another one (FIRN_ESTORE). The
 * next step looks at the store as a whole, rather than wait for this node's next write. */
void lease_doubt(struct lease *l);

/* Give the slot back; all generators are closed and `last` is exact. Tries for up to `timeout_ms`.
 * FIRN_EAGAIN: it did not land; the slot's ticks up to until stay unused, nothing else. */
FIRN_MUSTUSE int lease_release(struct lease *l, uint64_t last, uint64_t timeout_ms);

/* Slots that are not to be taken, as slot_set_avoid(); the next step acts on it. */
void lease_avoid(struct lease *l, const struct slot_avoid *avoid, bool yield);

/* Raise every slot above all grants that may have been made (FENCE): after a restore. */
FIRN_MUSTUSE int lease_fence(struct lease *l, struct firn_diag *d);

/* F now, in ticks since the epoch; 0 while the clock waits. */
uint64_t lease_tick(const struct lease *l, int64_t mono_ns);

#endif
