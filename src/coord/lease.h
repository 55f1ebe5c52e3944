/*
 * lease.h - a lease's parameters, its decisions about a store, and the view that it publishes.
 * Pure: drive/lease.h makes the calls to the store and reads the clock.
 */
#ifndef FIRN_COORD_LEASE_H
#define FIRN_COORD_LEASE_H

#include "coord/clock_f.h"
#include "coord/slot.h"
#include "firn/layout.h"

/* Zero means the default of docs/protocol.md section 9: the first figure for an embedded store, the
 * second for a shared one, where window, max_drift and the slots come from its meta record once it
 * has one, and so does the skew_max of fences and quarantines; clock F goes by the one given
 * here. */
struct lease_params {
    const char *layout; /* canonical text of the layout; a store made with another one is refused */
    uint64_t epoch_ms;  /* the layout's epoch, Unix ms */
    uint64_t tick_ms;   /* 1 */
    uint32_t ts_bits;   /* 41 */
    bool pinned;        /* take slot `pin` and no other */
    uint32_t pin;
    uint32_t slot_lo, slots; /* 0; SLOTS_MAX */
    const char *name;        /* this node's; "" is fine */
    uint64_t window_ms;      /* 3000; 60000 */
    uint64_t renew_every_ms; /* a third of the window */
    uint64_t max_drift_ms;   /* 5000 */
    uint64_t skew_max_ms;    /* 10000; an embedded store has one clock, so there for leaps only */
    uint64_t max_idle_ms;    /* 30 d */
    uint64_t quarantine_ms;  /* 0 with lock bytes; else the window, or skew_max and a renewal */
    bool keep_unused;        /* no give_back; a shared store never gives back */
    struct slot_avoid avoid; /* none */
    uint64_t noted;          /* no tick above it was stamped before; 0: not known */
    uint64_t since_ms;       /* Unix ms: slots of this name are its own since then; 0: all are */
    bool init;               /* make the records of a shared store that is empty */
    bool fresh; /* with `init`: from now on, as no store was lost that may have granted ticks */
    bool accept_clock;
    bool manual_fence; /* a copied or restored store halts instead of being fenced at the start */
};

/* A lease counts milliseconds from a layout's epoch, whatever the layout's own tick is. Sets the
 * parameters that come from the layout (layout, epoch, tick, bits, and slots: all that it has, up
 * to SLOTS_MAX); its canonical text goes to `text`, which `p` borrows. */
#define LEASE_TS_BITS 42
void lease_params_of(const struct firn_layout *l, struct lease_params *p,
                     char text[FIRN_LAYOUT_TEXT_BUF]);

/* Whether sequences may be used: they need the store to be the right one, but no slot. */
enum lease_gate {
    LEASE_GATE_WAIT, /* the store is looked at as a whole, or must be fenced first */
    LEASE_GATE_SHUT, /* an operator has to act */
    LEASE_GATE_OPEN,
};

struct lease_view {        /* published to the generators; a copy after each step */
    enum slot_state state; /* DRY, WAIT_CLOCK, ... as of the step */
    enum clock_state clock;
    int error;             /* 0, or an error for the operator or the caller (FIRN_E...) */
    struct firn_diag diag; /* its text */
    struct slot_grant grant;
    struct nonce cluster;     /* the store's; none until there is a node */
    int64_t off_ns, floor_ns; /* clock F */
    int64_t behind_ns;        /* F - R: above 0 while the system clock is behind */
    struct clock_steps steps;
    uint64_t window;                /* ticks */
    uint64_t floor_tick, max_drift; /* limit = max(F, floor_tick) + max_drift */
    uint64_t stamp_end; /* while the floor counts, all stamps are below it, whatever F is; else 0 */
    uint64_t fenced_count, twin_count, store_errors; /* for metrics */
    uint64_t fences; /* of fenced_count: this process fenced the store, a copy or a restored one */
    enum lease_gate gate;
    bool held;            /* the gate is shut for sequences alone: they may have gone back */
    bool ready;           /* false from a quarter of the window left, or without any */
    uint64_t ready_until; /* and from this tick on, unless a step runs earlier */
};

/* Put in the defaults. False: parameters that make no sense. Texts that are NULL become "". */
FIRN_MUSTUSE bool lease_params_complete(struct lease_params *p, bool shared);

/* Ticks that cover `ms`. */
uint64_t lease_ticks(const struct lease_params *p, uint64_t ms);

/* A tick as Unix ns; a poisoned one far in the future saturates. 0 stays 0, "none". */
int64_t lease_tick_ns(const struct lease_params *p, uint64_t tick);

/* Unix ns as a tick; 0 before the epoch. */
uint64_t lease_tick_at(const struct lease_params *p, int64_t unix_ns);

/* `p->noted`, if the tick may have been stamped as the clock is now; else 0: the clock was set back
 * far, and IDs that rise would have to wait for it. It only ever raises where a grant begins. */
uint64_t lease_noted(const struct lease_params *p, const struct slot_params *s, uint64_t f);

/* FIRN_ERANGE: the store does not have the slot that the node is pinned to. */
int lease_pin_check(const struct lease_params *p, const struct meta_record *m, struct firn_diag *d);

/* The parameters of a node on a store with this meta record; the cluster and the name are set, too.
 * `lock`: the store has lock bytes. */
void lease_slot_params(const struct lease_params *p, const struct meta_record *m, bool shared,
                       bool lock, struct slot_params *out);

/* The store was fenced since its floor was `sane_floor`, above all that the node still holds. */
bool lease_fenced_since(const struct slot_node *n, uint64_t floor, uint64_t sane_floor);

/* FIRN_ECLOCK, with the reason why the clock is not plausible. `highest`: the highest until
 * known. */
int lease_clock_wrong(const struct lease_params *p, const struct clock_reading *reading,
                      uint64_t highest, struct firn_diag *d);

/* The clock's share of the view. A step may have blocked since the clock was updated, while the
 * generators went on with the view before: F does not go back for them either. */
void lease_view_clock(struct lease_view *v, struct clock_f *c, int64_t mono_ns);

/* The node's share. `running`: the node runs; else the lease looks at the store as a whole, and the
 * view keeps that error. */
void lease_view_node(struct lease_view *v, const struct slot_node *n, const struct slot_now *now,
                     bool running);

/* The gate. `sound`: the store was looked at and is the one that it should be; `held`: its
 * sequences may have gone back; `state`, `error`: of the view. Sequences need no clock: they are
 * open while only that is missing. */
enum lease_gate lease_gate_of(bool sound, bool held, enum slot_state state, int error);

#endif
