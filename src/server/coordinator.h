/*
 * coordinator.h - the one thread that owns the store. It keeps the slot's window ahead of the clock
 * and publishes it on the board, and it commits tickets: every job that waits when a commit begins
 * goes into that commit (group commit), in the order of arrival; jobs with a key come behind those
 * without.
 *
 * Loops hand over jobs and get them back on their own thread. A job belongs to the coordinator from
 * coordinator_submit() until its done() is called.
 */
#ifndef FIRN_SERVER_COORDINATOR_H
#define FIRN_SERVER_COORDINATOR_H

#include "coord/job.h"
#include "coord/period.h"
#include "drive/ticket.h"
#include "net/loop.h"
#include "drive/board.h"
#include "server/leases.h"
#include "store/counted.h"
#include "server/nodes.h"
#include "server/ranges.h"

#define DEFAULT_SEQUENCE "default"

/* The request of a JOB_LEASE, in its `user`. */
struct lease_job {
    struct lease_ask ask; /* what, id, last; the terms come back in it */
    struct job *job;      /* the coordinator's */
};

struct coordinator;

struct coordinator_opts {
    const char *store;         /* its URL (store.h), borrowed */
    uint32_t store_timeout_ms; /* 0: the store's default */
    /* For a store that lives in this process; else NULL, and the URL is opened. */
    int (*open_store)(void *user, uint32_t timeout_ms, struct firn_store **out,
                      struct firn_diag *d);
    void *open_user;
    struct lease_params lease;
    const char *addresses;  /* of the ports, for the other nodes; borrowed for the call */
    struct seq_spec first;  /* DEFAULT_SEQUENCE, made when it is first asked for */
    uint64_t retention_s;   /* how long a key is kept */
    uint64_t sequences_max; /* 0: no limit */
    uint32_t leases_max;    /* slots lent to clients */
    uint64_t wait_ms;       /* how long a ticket waits for a store that fails; default 5,000 */
    _Atomic uint64_t *const *last; /* highest tick (lease ticks) stamped, one for each loop */
    size_t last_n;
};

struct coordinator_stats {
    _Atomic uint64_t commits, commit_errors, conflicts, tickets, steps;
    _Atomic bool tickets_failing; /* for a second or longer no number could be committed */
    _Atomic uint64_t keys_kept, keys_replayed, keys_removed;
    _Atomic uint64_t sequences; /* that there are, as census.h counts them */
};

/* Opens the store and starts the thread. `board` is borrowed. FIRN_EIO, FIRN_EINVAL ...: diag. A
 * shared store that cannot be reached yet is no error: the thread goes on trying. */
FIRN_MUSTUSE int coordinator_start(const struct coordinator_opts *o, struct board *board,
                                   struct coordinator **out, struct firn_diag *d);

const struct coordinator_stats *coordinator_stats(const struct coordinator *c);

/* Whether tickets fail now, by any thread: true, and why. */
bool coordinator_failing(struct coordinator *c, struct firn_diag *out);

/* Calls of the store; any thread. */
const struct store_counts *coordinator_store_counts(const struct coordinator *c);

/* Slots of the store that nobody else can take, at the last count; *out_total 0: not counted yet.
 * Any thread. */
uint32_t coordinator_slots_used(const struct coordinator *c, uint32_t *out_total);

const struct leases_stats *coordinator_leases(const struct coordinator *c);

/* The numbers in hand of range sequences; any thread. */
struct ranges *coordinator_ranges(struct coordinator *c);

/* The way back to one loop. Free it after coordinator_stop(). */
FIRN_MUSTUSE int outbox_new(struct loop *loop, struct outbox **out);
void outbox_free(struct outbox *o);

/* How long tickets of that loop waited for the store; any thread. */
const struct latency *outbox_waits(const struct outbox *o);

/* Where the loops note up to which tick they stamped (numbers_set_note()), or NULL; it lives until
 * coordinator_stop() returns. */
_Atomic uint64_t *coordinator_note(struct coordinator *c);

/* From any thread: slots that other stores' nodes use, as lease_avoid(). */
void coordinator_avoid(struct coordinator *c, const struct slot_avoid *slots, bool yield);

/* By a loop: submit a list of jobs (linked by `next`, first to last) and wake the thread once. */
void coordinator_submit(struct coordinator *c, struct job *first, struct job *last);

/* By another thread that did a job by itself: give it back to the loop that it came from. */
void job_return(struct job *j, int result);

/* Ends the thread, after the loops ended: `last` is the highest tick stamped, exactly. Releases the
 * slot and closes the store. */
void coordinator_stop(struct coordinator *c, uint64_t last);

#endif
