/*
 * pace.h - how long a member waits for its leader before it stands for election: the configured
 * time, or longer where this machine or the network pauses for longer.
 *
 * A pause is time in which a message could not be handled although its sender was alive: between
 * two messages of the same leader in the same term, or between two ticks of this process's loop.
 * What counts is the second longest of the last minute's, one per second, so that a single pause (a
 * process that was stopped, a machine that was suspended) changes nothing. Elections need no
 * agreement on this time. Pure: times come in.
 */
#ifndef FIRN_RAFT_PACE_H
#define FIRN_RAFT_PACE_H

#include <stdint.h>

enum {
    PACE_SECONDS = 64, /* of history */
    PACE_PAUSES = 3,   /* the time-out is at least so many pauses, */
    PACE_MOST = 10,    /* and at most so many times the configured one */
};

struct pace {
    uint32_t base_ms; /* cluster.election_ms */
    uint32_t now_ms;  /* the time-out in use */
    uint64_t second;  /* that longest[] ends with; 0: nothing seen yet */
    uint32_t longest[PACE_SECONDS];
    uint64_t heard_ms; /* the last message of the leader; 0: none in this term */
    uint64_t term;     /* of heard_ms */
};

void pace_init(struct pace *p, uint32_t base_ms);

/* A message of the leader of `term` arrived. */
void pace_heard(struct pace *p, uint64_t term, uint64_t now_ms);

/* This process's loop did not run for so long, or a quorum was silent for so long to its leader. */
void pace_paused(struct pace *p, uint32_t ms, uint64_t now_ms);

/* The time-out to use from now on: steps by halves, so that small differences change nothing. */
uint32_t pace_timeout(struct pace *p, uint64_t now_ms);

#endif
