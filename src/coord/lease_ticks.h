/*
 * lease_ticks.h - converts between a lease's milliseconds and a layout's ticks.
 * A lease counts milliseconds from the layout's epoch. A window turns into a layout's ticks rounded
 * inwards, so that no tick of it reaches outside the grant; stamped ticks are told to the lease
 * rounded outwards. `lease` is any layout whose epoch and tick are the lease's.
 */
#ifndef FIRN_COORD_LEASE_TICKS_H
#define FIRN_COORD_LEASE_TICKS_H

#include "firn/layout.h"

/* The first tick of `l` that begins at or after the start of the lease's tick. */
static inline uint64_t lease_ticks_from(const struct firn_layout *l,
                                        const struct firn_layout *lease, uint64_t tick)
{
    int64_t us = firn_layout_unix_us(lease, tick);
    uint64_t t = firn_layout_ticks(l, us);
    return firn_layout_unix_us(l, t) < us ? t + 1 : t;
}

/* Where a window that ends at the lease's tick `until` ends for a layout. */
static inline uint64_t lease_ticks_until(const struct firn_layout *l,
                                         const struct firn_layout *lease, uint64_t until)
{
    uint64_t tick = firn_layout_ticks(l, firn_layout_unix_us(lease, until));
    uint64_t end = UINT64_C(1) << l->field[FIRN_FIELD_TIME].width;
    return tick < end ? tick : end;
}

/* A tick that was stamped, as the lease's tick that holds its end. */
static inline uint64_t lease_ticks_stamped(const struct firn_layout *l,
                                           const struct firn_layout *lease, uint64_t tick)
{
    return firn_layout_ticks(lease, firn_layout_unix_us(l, tick + 1) - 1);
}

#endif
