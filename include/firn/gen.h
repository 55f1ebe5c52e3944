/*
 * firn/gen.h - time-ordered 64-bit IDs of any layout.
 *
 * A generator owns a slot (its identity within the layout) and a window of ticks [from, until). It
 * stamps only inside that window, and its pair (tick, sequence number) only ever rises, whatever
 * the clock does; so two generators that never share a slot and a tick never issue the same ID.
 * - Where slots are leased, the lease decides the window: give `from` and `until`, and raise
 *   `until` with firn_gen_extend() after each confirmed extension.
 * - Stand-alone, the slot is a number that you chose, and the window is unbounded. That is unique
 *   only if no one else uses that number, and only if the clock is not set back between two runs.
 *
 * struct firn_gen belongs to one thread and has no atomics on its hot path. struct firn_shared may
 * be used by any number of threads and is lock-free. Lanes divide one slot among threads without
 * sharing: each takes a fixed part of the sequence range.
 */
#ifndef FIRN_GEN_H
#define FIRN_GEN_H

#include <stddef.h>
#include <stdint.h>

#include "firn/clock.h"
#include "firn/error.h"
#include "firn/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What to do when the clock stepped back or the tick's sequence numbers are used up. None
 * repeats. */
enum firn_policy {
    FIRN_POLICY_WAIT, /* sleep until the clock allows the next ID, at most wait_max_ms */
    /* FIRN_EAGAIN for a used-up tick, FIRN_ECLOCK for a clock that stepped back */
    FIRN_POLICY_ERROR,
    FIRN_POLICY_BORROW /* stamp ahead of the clock, at most max_drift_ms; then FIRN_EAGAIN */
};

/* Start from FIRN_GEN_OPTS_INIT: options whose `size` is not set are refused (FIRN_EINVAL), because
 * nothing else in them could be trusted. Zero means the default. */
struct firn_gen_opts {
    uint32_t size; /* sizeof as the caller compiled it: lets the struct grow */
    uint32_t slot; /* the identity: node, dc and node joined, or shard; below firn_layout_slots() */
    uint32_t lane; /* this generator's part of the sequence range: lane of lanes */
    uint32_t lanes;           /* 0 and 1: the whole range */
    uint32_t policy;          /* enum firn_policy */
    uint32_t wait_max_ms;     /* default 1,000 */
    uint32_t max_drift_ms;    /* of FIRN_POLICY_BORROW; default 5,000 */
    uint32_t backstep_max_ms; /* WAIT and ERROR ride out steps back up to this; default 20 */
    uint64_t from, until;     /* the window, in ticks; both 0: unbounded, from the next tick on */
    const struct firn_clock *clock; /* borrowed; NULL: firn_clock_for_tick() */
};
#define FIRN_GEN_OPTS_INIT                                         \
    {                                                              \
        sizeof(struct firn_gen_opts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* --- owned by one thread --- */

struct firn_gen {      /* all private: complete only so that it can live in your struct */
    uint64_t left_;    /* sequence numbers left in the current tick; 0 on a wiped page */
    uint64_t next_id_; /* the ID that the next of them makes */
    uint64_t step_;    /* from one ID to the next within a tick */
    uint64_t
        accept_from_; /* clock readings in [accept_from_, + accept_len_) may go on in this tick */
    uint64_t accept_len_;
    const struct firn_clock *clock_;   /* NULL on a wiped page */
    uint64_t tick_;                    /* the current tick; it only rises */
    uint64_t held_;                    /* the highest tick that the clock ever showed */
    uint64_t until_;                   /* atomic: first tick that is not ours */
    uint64_t floor_;                   /* atomic: stamps up to floor_ + drift_ are allowed */
    uint64_t lane_count_, first_bits_; /* size of the lane; identity and first sequence number */
    uint64_t epoch_ns_, tick_ns_;
    uint64_t drift_, backstep_ns_, wait_max_ns_, end_; /* ticks, ns, ns, 2^time bits */
    uint32_t policy_, closed_, time_shift_, shard_shift_;
    uint64_t shard_max_;
    uint64_t reserved_[11];
};

/* In place, in memory that the caller owns. A child of fork() must not use the copy it inherits;
 * firn_gen_new() enforces that, this does not. FIRN_EINVAL: `opts` has no size, or is
 * out of range for the layout.
 * FIRN_ENOTSUP: the layout is decode-only. FIRN_EEXHAUSTED: its time has run out. FIRN_ECLOCK: the
 * clock is before its epoch. `opts->clock` must not be NULL here. */
FIRN_API FIRN_MUSTUSE int firn_gen_init(struct firn_gen *g, const struct firn_layout *l,
                                        const struct firn_gen_opts *opts);

/* The same on a page of its own that the kernel wipes in the child of a fork(): there every call
 * answers FIRN_EFORKED. Give it back with firn_gen_free(); free(NULL) does nothing. */
FIRN_API FIRN_MUSTUSE int firn_gen_new(const struct firn_layout *l,
                                       const struct firn_gen_opts *opts, struct firn_gen **out);
FIRN_API void firn_gen_free(struct firn_gen *g);

/* One ID, larger than every earlier one of this generator (if the layout's time is above its seq).
 * FIRN_EAGAIN: used up for now. FIRN_ECLOCK: the clock stepped back. FIRN_EWINDOW: the window's
 * end; extend it. FIRN_EEXHAUSTED: the layout's end. FIRN_ECLOSED, FIRN_EFORKED: see above. */
FIRN_API FIRN_MUSTUSE int firn_gen_next(struct firn_gen *g, uint64_t *out_id);

/* The same with a shard number for layouts that have a shard beside their identity. FIRN_ERANGE:
 * there is no such field, or the number does not fit. IDs rise for each shard. */
FIRN_API FIRN_MUSTUSE int firn_gen_next_shard(struct firn_gen *g, uint64_t shard, uint64_t *out_id);

/* Up to `n` IDs, rising; their number goes to `*out_n`. 0 if there was at least one, or none was
 * asked for; an error, as for firn_gen_next(), only if there was none. */
FIRN_API FIRN_MUSTUSE int firn_gen_fill(struct firn_gen *g, uint64_t *ids, size_t n, size_t *out_n);

/* Make the next ID larger than one observed elsewhere. FIRN_ERANGE: that one is further ahead of
 * the clock than max_drift_ms (for the other policies: than backstep_max_ms), so it is not
 * believed. */
FIRN_API FIRN_MUSTUSE int firn_gen_after(struct firn_gen *g, const struct firn_layout *l,
                                         uint64_t id);

/* From any thread: the window now ends at `until`, or where the layout's time does. It is only ever
 * raised. */
FIRN_API void firn_gen_extend(struct firn_gen *g, uint64_t until);
FIRN_API void firn_gen_set_floor(struct firn_gen *g, uint64_t floor_tick);

/* By the owning thread: no ID comes after this. `*out_last` is the last tick that may have been
 * used. */
FIRN_API void firn_gen_close(struct firn_gen *g, uint64_t *out_last);

/* --- shared by threads --- */

struct firn_shared { /* all private */
    uint64_t word_;  /* atomic: the next (tick, seq) as one number, or CLOSED */
    uint64_t pad_[7];
    const struct firn_clock *clock_;            /* read-mostly from here on */
    uint64_t until_, floor_, held_, resume_ns_; /* atomic */
    uint64_t epoch_ns_, tick_ns_, reciprocal_;
    uint64_t identity_, seq_mask_, end_;
    uint64_t drift_; /* atomic */
    uint64_t backstep_ns_, wait_max_ns_;
    uint32_t policy_, seq_bits_, seq_shift_, time_shift_;
    uint64_t reserved_[8];
};

/* As for firn_gen; lanes are not for shared generators (FIRN_EINVAL). */
FIRN_API FIRN_MUSTUSE int firn_shared_init(struct firn_shared *g, const struct firn_layout *l,
                                           const struct firn_gen_opts *opts);
FIRN_API FIRN_MUSTUSE int firn_shared_new(const struct firn_layout *l,
                                          const struct firn_gen_opts *opts,
                                          struct firn_shared **out);
FIRN_API void firn_shared_free(struct firn_shared *g);

/* From any thread. The IDs that one thread gets rise; no two threads get the same. */
FIRN_API FIRN_MUSTUSE int firn_shared_next(struct firn_shared *g, uint64_t *out_id);
FIRN_API FIRN_MUSTUSE int firn_shared_fill(struct firn_shared *g, uint64_t *ids, size_t n,
                                           size_t *out_n);
FIRN_API void firn_shared_extend(struct firn_shared *g, uint64_t until);
FIRN_API void firn_shared_set_floor(struct firn_shared *g, uint64_t floor_tick);

/* One atomic step with emission: no ID above `*out_last` exists, none comes later. Closing again
 * changes nothing and leaves `*out_last` alone. */
FIRN_API void firn_shared_close(struct firn_shared *g, uint64_t *out_last);

#ifdef __cplusplus
}
#endif
#endif
