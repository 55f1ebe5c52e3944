/*
 * layout_same.h - whether two layouts are equal.
 * Member by member: struct firn_layout has padding, whose bytes a copy need not keep.
 */
#ifndef FIRN_ID_LAYOUT_SAME_H
#define FIRN_ID_LAYOUT_SAME_H

#include "firn/layout.h"

#include <stdbool.h>
#include <string.h>

static inline bool layout_same(const struct firn_layout *a, const struct firn_layout *b)
{
    return memcmp(a->field, b->field, sizeof a->field) == 0 && a->flags == b->flags &&
           a->tick_us == b->tick_us && a->epoch_ms == b->epoch_ms;
}

#endif
