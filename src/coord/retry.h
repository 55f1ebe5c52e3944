/*
 * retry.h - what becomes of a request that could not be served: it waits for another try, or gets
 * the error. Every bound on tries and waiting is here. Pure.
 */
#ifndef FIRN_COORD_RETRY_H
#define FIRN_COORD_RETRY_H

#include "coord/job.h"

enum {
    RETRY_ROUNDS_MAX = 16, /* other processes that may be faster, one after the other */
    RETRY_PAUSE_MS = 50,   /* between tries on a store that fails */
    RETRY_WAIT_MS = 5000,  /* how long a request waits for such a store, unless configured */
    RETRY_LOG_MS = 10000,  /* between two lines about the same trouble */
};

struct retry {
    uint64_t wait_ms;          /* how long a request waits */
    uint64_t failures;         /* commits that failed since one did not */
    uint64_t failing_since_ms; /* the first of them */
    uint64_t round_ms;         /* when the round of commits began that is under way */
    uint64_t logged_ms, starved_logged_ms;
};

/* `wait_ms` 0: RETRY_WAIT_MS. */
void retry_init(struct retry *r, uint64_t wait_ms);

/* The store failed, not the request: worth another try. */
bool retry_may_heal(int error);

/* The store failed, or the request did, and it was not another server that was faster. */
bool retry_counts(int error);

/* A round begins: jobs are gathered and committed. */
void retry_round(struct retry *r, uint64_t now_ms);

/* The job goes into the next commit; else it gets `error` now: at its deadline, or before another
 * round as long as this one would pass it, since a store that does not answer costs its time-out
 * each time. New jobs need not wait at all for a
 * store that has failed for as long as a job waits. */
bool retry_waits(const struct retry *r, const struct job *j, int error, uint64_t now_ms);

/* A commit failed. True: say so in the log. */
bool retry_failed(struct retry *r, uint64_t now_ms);

/* One succeeded. Returns how many had failed since the last that did. */
uint64_t retry_succeeded(struct retry *r);

/* A job gave up because other servers were always faster. True: say so in the log. */
bool retry_starved(struct retry *r, uint64_t now_ms);

#endif
