/*
 * match.h - how far a follower's log is known to be its leader's. An append that fits shows it: what comes
 * before it is common, and what it brings becomes so. What a lost leader left behind is not, even if it is
 * stored; a follower that answered for that, too, would let the next leader take entries for safe that it alone
 * has. Pure; belongs to one thread.
 */
#ifndef FIRN_RAFT_SHIELD_MATCH_H
#define FIRN_RAFT_SHIELD_MATCH_H

#include <stdint.h>

struct match { /* all zero: nothing is known */
    uint64_t term, index;
};

/* The leader of `term` has the same entries up to `index`. A leader of an earlier term says nothing any more. */
static inline void match_show(struct match *m, uint64_t term, uint64_t index)
{
    if (term > m->term)
        *m = (struct match){ term, 0 };
    if (term == m->term && index > m->index)
        m->index = index;
}

/* What to answer the leader of `term` when everything up to `stored` is on the disk. */
static inline uint64_t match_answer(const struct match *m, uint64_t term, uint64_t stored)
{
    uint64_t common = term == m->term ? m->index : 0;
    return stored < common ? stored : common;
}

#endif
