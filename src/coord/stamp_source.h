/*
 * stamp_source.h - the numbers of one process over one grant after another. A user (a loop of
 * firnd) holds the generators of one grant at a time; the first user that sees a newer one closes
 * the old generators and opens new ones above all that they stamped. Pure: the caller orders all
 * calls but the draws (a lock, or one thread).
 */
#ifndef FIRN_COORD_STAMP_SOURCE_H
#define FIRN_COORD_STAMP_SOURCE_H

#include "coord/stamps.h"

struct stamp_set { /* the generators of one grant */
    struct stamps stamps;
    uint32_t users;
};

struct stamp_source {
    const struct stamp_plan *plan;
    const struct firn_clock *clock;
    struct stamp_set *set; /* zeroed at first; one more than there are users, so one is free */
    uint32_t sets;
    struct stamp_set *now; /* of the grant that was seen last; NULL: none */
    struct stamps_above above;
    bool closed;
};

/* Everything is borrowed. */
void stamp_source_init(struct stamp_source *s, const struct stamp_plan *p,
                       const struct firn_clock *clock, struct stamp_set *set, uint32_t sets);

/* The generators of the grant in `v`, which is not older than the view before, or NULL if there is
 * none. `old` (or NULL) is what this user had until now. A draw from generators that another user
 * closed answers FIRN_ECLOSED: follow again. */
struct stamps *stamp_source_follow(struct stamp_source *s, struct stamps *old,
                                   const struct lease_view *v);

/* No ID comes any more. */
void stamp_source_close(struct stamp_source *s);

/* The highest tick of the lease that was stamped on grants that are over, exactly; 0: none. */
uint64_t stamp_source_highest(const struct stamp_source *s);

#endif
