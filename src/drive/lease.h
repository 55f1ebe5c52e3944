/*
 * lease.h - one slot, kept by one thread: runs slot.h and clock_f.h against a store.
 * The coordinator calls lease_step() when it said so, or earlier; each call may block in the store.
 * Between calls it publishes `view` to the generators; nothing in here is shared with other threads.
 *
 * Emission, in the generators (checked: models/hot_path.pml), from what is published:
 *     F     = max(floor_ns, CLOCK_MONOTONIC + off_ns), in ticks: (F - epoch) / tick
 *     limit = max(F, floor_tick) + max_drift
 *     a tick t may be stamped when from <= t < until, and t <= F or t <= limit
 * When `grant.gen` changes a generator goes on with the new slot at max(from, its own last + 1); with
 * grant.closed it stops. Stopping and reading `last` is one step (Close): never lower until and then
 * look at last.
 */
#ifndef FIRN_DRIVE_LEASE_H
#define FIRN_DRIVE_LEASE_H

#include "coord/clock_f.h"
#include "coord/slot.h"
#include "firn/layout.h"
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

/* `lock_fd` from slot_lock_open(), kept by the caller as long as the lease; -1 for none. */
void lease_world_real(struct lease_world *w, const int *lock_fd);

/* Zero means the default of docs/protocol.md section 9: the first figure for an embedded store, the second for
 * a shared one, where window, max_drift and the slots come from its meta record once it has one, and so does the
 * skew_max of fences and quarantines; clock F goes by the one given here. */
struct lease_params {
    const char *layout; /* canonical text of the layout; a store made with another one is refused */
    uint64_t epoch_ms;  /* the layout's epoch, Unix ms */
    uint64_t tick_ms;   /* 1 */
    uint32_t ts_bits;   /* 41 */
    uint32_t slot_lo, slots; /* 0; 16, or SLOTS_MAX */
    const char *name;        /* this node's; "" is fine */
    uint64_t window_ms;      /* 3000; 60000 */
    uint64_t renew_every_ms; /* a third of the window */
    uint64_t max_drift_ms;   /* 5000 */
    uint64_t skew_max_ms;    /* 10000; an embedded store has one clock, so there for leaps only */
    uint64_t max_idle_ms;    /* 30 d */
    uint64_t quarantine_ms;  /* 0 with lock bytes; else the window, or skew_max and a renewal */
    bool keep_unused;        /* no give_back; a shared store never gives back */
    bool init;               /* make the records of a shared store that is empty */
    bool fresh; /* then from now on: no store was lost that may have granted something before */
    bool accept_clock;
    bool manual_fence; /* a copied or restored store halts instead of being fenced at the start */
};

/* A lease counts milliseconds from a layout's epoch, whatever the layout's own tick is. Sets what of the
 * parameters comes from the layout (layout, epoch, tick, bits, and slots: all that it has on a shared store,
 * few on an embedded one); its canonical text goes to `text`, which `p` borrows. */
#define LEASE_TS_BITS 42
void lease_params_of(const struct firn_layout *l, bool shared, struct lease_params *p,
                     char text[FIRN_LAYOUT_TEXT_BUF]);

struct lease_view {        /* what the coordinator publishes; a copy after each step */
    enum slot_state state; /* DRY, WAIT_CLOCK, ... as of the step */
    enum clock_state clock;
    int error;             /* 0, or what an operator or a caller should be told (FIRN_E...) */
    struct firn_diag diag; /* its text */
    struct slot_grant grant;
    int64_t off_ns, floor_ns; /* clock F */
    int64_t behind_ns;
    uint64_t window;                /* ticks */
    uint64_t floor_tick, max_drift; /* limit = max(F, floor_tick) + max_drift */
    uint64_t
        stamp_end; /* while the floor counts: no stamp is that high, whatever F is; 0: it does not */
    uint64_t fenced_count, twin_count, store_errors; /* for metrics */
    uint64_t
        fences; /* of those, how often this process fenced the store: a copy, or a restored one */
    bool ready; /* false from a quarter of the window left, or without any */
    uint64_t ready_until; /* and from this tick on, should no step come before it */
};

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
    bool changed_; /* the store said that it is not what it was: fence it, whatever it is called */
    uint32_t locked_; /* slot whose lock byte is held, or UINT32_MAX */
    uint64_t highest_until_;
    uint64_t
        sane_floor_; /* meta's floor when a write was last confirmed: a higher one is a FENCE since */
    uint64_t meta_due_ms_;             /* shared: when to look at meta again */
    int64_t store_ns_, store_boot_ns_; /* the store's clock and CLOCK_BOOTTIME then; 0: unknown */
    char name_[RECORD_NAME_MAX + 1], layout_[RECORD_LAYOUT_MAX + 1];
};

/* Nothing is asked of the store yet. The store is borrowed, texts are copied. The struct is large
 * (about 25 kB): keep it on the heap or static. FIRN_EINVAL: parameters. */
FIRN_MUSTUSE int lease_open(struct lease *l, struct firn_store *store, const struct lease_params *p,
                            const struct lease_world *w, struct firn_diag *d);

/* Do what is due: read the clock, create the records of a fresh store, take a slot, extend the window.
 * `last` is the highest tick emitted by any generator so far (0: none). Returns when to call again,
 * CLOCK_MONOTONIC ms; calling earlier does no harm. */
uint64_t lease_step(struct lease *l, uint64_t last);

/* Give the slot back; all generators are closed and `last` is exact. Tries for up to `timeout_ms`.
 * FIRN_EAGAIN: it did not land; the slot's ticks up to until stay unused, nothing else. */
FIRN_MUSTUSE int lease_release(struct lease *l, uint64_t last, uint64_t timeout_ms);

/* Raise every slot above all that may have been granted (FENCE): after a restore. */
FIRN_MUSTUSE int lease_fence(struct lease *l, struct firn_diag *d);

/* F now, in ticks since the epoch; 0 while the clock waits. */
uint64_t lease_tick(const struct lease *l, int64_t mono_ns);

#endif
