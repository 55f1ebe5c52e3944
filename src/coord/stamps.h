/*
 * stamps.h - the generators of one process on one grant: one per leased layout, shared by all
 * threads, so that IDs rise in the order in which they are drawn, whichever draws them.
 * Pure: time comes from the clock that the caller gives; the caller orders stamps_follow() and
 * stamps_end() of one process (a lock, or one thread). Drawing needs no order.
 *
 * The life of a struct stamps: stamps_begin() for a new grant, stamps_follow() for each view of the
 * lease while the grant stays the same, stamps_end() when it is over. `above` goes from one to the
 * next: the highest tick of each layout that may have been stamped. The next grant begins above it,
 * so a smaller slot never makes a smaller ID.
 */
#ifndef FIRN_COORD_STAMPS_H
#define FIRN_COORD_STAMPS_H

#include "coord/lease.h"
#include "firn/gen.h"

#include <stdatomic.h>

/* The layouts that share the slot's window, each with a generator of its own. */
enum leased { LEASED_SNOWFLAKE, LEASED_SONYFLAKE, LEASED_TSID, LEASED_N };

/* Set up once for a process, then constant. */
struct stamp_plan {
    struct firn_layout layout[LEASED_N];
    enum leased
        share[LEASED_N]; /* equal layouts draw from one generator: two would repeat each other */
    uint64_t shard_max[LEASED_N]; /* 0: the layout has no shard beside its identity */
    struct firn_layout lease;     /* only epoch and tick count: what the lease's ticks mean */
};

/* FIRN_EINVAL: the layout cannot be leased; diag says why. */
FIRN_MUSTUSE int stamp_plan_init(struct stamp_plan *p, const struct firn_layout *snowflake,
                                 struct firn_diag *d);

struct stamps {
    uint64_t gen; /* of the grant */
    struct firn_shared generator[LEASED_N];
    uint64_t first[LEASED_N];    /* tick that it began with */
    _Atomic bool open[LEASED_N]; /* it has at least one of its ticks in the window */
};

struct stamps_above {
    uint64_t tick[LEASED_N];
};

/* On the grant of `v`, which is not closed. The clock is borrowed. */
void stamps_begin(struct stamps *s, const struct stamp_plan *p, const struct lease_view *v,
                  const struct stamps_above *above, const struct firn_clock *clock);

/* The same grant, seen again: the window may have grown, a floor may count or not. */
void stamps_follow(struct stamps *s, const struct stamp_plan *p, const struct lease_view *v,
                   const struct stamps_above *above, const struct firn_clock *clock);

/* No ID comes any more: draws answer FIRN_ECLOSED. Raises *above. */
void stamps_end(struct stamps *s, const struct stamp_plan *p, struct stamps_above *above);

/* The highest tick of the lease that may have been stamped so far; 0: none. */
uint64_t stamps_highest(const struct stamps *s, const struct stamp_plan *p);
/* A sum that changes whenever a generator enters a tick; 0 when there is none. */
static inline uint64_t stamps_ticks(const struct stamps *s)
{
    uint64_t sum = 0;
    for (int i = 0; i < LEASED_N; i++)
        if (atomic_load_explicit(&s->open[i], memory_order_acquire))
            sum += __atomic_load_n(&s->generator[i].word_, __ATOMIC_RELAXED) >>
                   s->generator[i].seq_bits_;
    return sum;
}
uint64_t stamps_above_highest(const struct stamps_above *above, const struct stamp_plan *p);

/* What may be stamped of a layout now, ahead of the clock and inside the window, in IDs. */
struct stamps_room {
    uint64_t left; /* of it now */
    uint64_t full; /* if nothing had been drawn ahead of the clock */
};
void stamps_room(const struct stamps *s, const struct stamp_plan *p, enum leased which,
                 struct stamps_room *out);

/* Who may draw `n` IDs at once while `room` is what there is. 0: everyone. k > 0: a client that has
 * taken less than 1/2^k of the layout's rate lately: the less is left, the smaller a share; so no
 * client takes more than half while others ask, and one that is alone gets everything. -1: no one,
 * wait. Requests for more than STAMPS_SMALL leave half of the room to the small ones. */
enum { STAMPS_SMALL = 1000, STAMPS_SHARE_MAX = 6 };
int stamps_share(const struct stamps_room *room, uint64_t n);

/* The generator of a layout, or NULL while the window has no tick for it. */
static inline struct firn_shared *stamps_generator(struct stamps *s, const struct stamp_plan *p,
                                                   enum leased which)
{
    which = p->share[which];
    return atomic_load_explicit(&s->open[which], memory_order_acquire) ? &s->generator[which]
                                                                       : NULL;
}

#endif
