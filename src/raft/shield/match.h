/*
 * match.h - how much of a follower's log is known to be the leader's too.
 * An AppendEntries that matches shows it: the entries before it are common, and the entries in it
 * become so. Entries that a lost leader left behind are not, even if they are stored: a follower
 * that acknowledged those, too, would let the next leader commit entries that only the leader has.
 * Pure; belongs to one thread.
 */
#ifndef FIRN_RAFT_SHIELD_MATCH_H
#define FIRN_RAFT_SHIELD_MATCH_H

#include <stdint.h>

#include "platform/assert.h"

struct match { /* all zero: no entry is known to be common */
    uint64_t term, index;
};

/* The leader of `term` has the same entries up to `index`. Messages of earlier terms change
 * nothing. */
static inline void match_show(struct match *m, uint64_t term, uint64_t index)
{
    firn_assert(m->term != 0 || m->index == 0);
    if (term > m->term)
        *m = (struct match){ term, 0 };
    if (term == m->term && index > m->index)
        m->index = index;
}

/* The index to acknowledge to the leader of `term` when every entry up to `stored` is on the
 * disk. */
static inline uint64_t match_answer(const struct match *m, uint64_t term, uint64_t stored)
{
    uint64_t common = term == m->term ? m->index : 0;
    return stored < common ? stored : common;
}

#endif
