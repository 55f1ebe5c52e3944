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

#include "drive/ticket.h"
#include "net/loop.h"
#include "drive/board.h"
#include "server/leases.h"
#include "server/nodes.h"
#include "server/ranges.h"

#define DEFAULT_SEQUENCE "default"

enum job_what {
    JOB_TAKE,     /* `want` numbers of sequence `name`, in one piece */
    JOB_KEEP,     /* the IDs in keyed->idem, under their key */
    JOB_FETCH,    /* the next block of a range sequence, ahead of need */
    JOB_CREATE,   /* a sequence as `spec` says */
    JOB_DELETE,   /* a sequence */
    JOB_DESCRIBE, /* the record of a sequence */
    JOB_LIST,     /* up to `want` sequences behind the cursor */
    JOB_NODES,    /* all members of the store */
    JOB_LEASE     /* a slot for a client, as `lease` says */
};

struct job_listed {
    char name[RECORD_NAME_MAX + 1];
    struct seq_record record;
};

struct outbox; /* the jobs that go back to one loop */

struct job {
    /* in */
    enum job_what what;
    struct outbox *back;
    void (*done)(struct job *j); /* on the loop's thread */
    void *user;
    char name[RECORD_NAME_MAX + 1];
    size_t name_len;
    uint64_t want;
    bool create;  /* JOB_TAKE: make a range sequence from 1 if there is none, as Redis' INCR does */
    bool partial; /* JOB_TAKE: fewer than `want` are fine where the sequence ends */
    bool plain; /* JOB_TAKE: not from a dated sequence, whose bare numbers come again each period */
    struct seq_spec spec;
    char note[RECORD_NOTE_MAX + 1];     /* of spec */
    char cursor[TICKET_CURSOR_MAX + 1]; /* JOB_LIST: where to go on; out: the same, if `more` */
    struct keyed *keyed; /* JOB_TAKE, _KEEP: the key; else NULL. The caller's; what the key stands
                          * for is in there afterwards, for JOB_TAKE also in range and period */

    /* out */
    int result; /* 0 or FIRN_E...; diag says why */
    struct firn_diag diag;
    struct seq_range range;   /* JOB_TAKE */
    bool more;                /* JOB_TAKE: fewer than `want`, but the sequence has more; JOB_LIST */
    struct seq_record record; /* JOB_TAKE, _CREATE, _DESCRIBE, _DELETE */
    uint32_t period;          /* of a dated sequence: 20261116 */
    struct job_listed *list;  /* JOB_LIST: malloc'd, the receiver frees it */
    struct node_listed *nodes; /* JOB_NODES: the same */
    size_t list_n;

    /* private */
    struct job *next;
    uint64_t deadline_ms;
    bool taken; /* it has its numbers; keyed->idem is to be kept */
    bool
        tried; /* a write for it was sent: it lost to another server's, or its outcome is unknown */

    struct lease_ask lease; /* JOB_LEASE: what, id, last; the terms come back in it */
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

const struct leases_stats *coordinator_leases(const struct coordinator *c);

/* The numbers in hand of range sequences; any thread. */
struct ranges *coordinator_ranges(struct coordinator *c);

/* The way back to one loop. Free it after coordinator_stop(). */
FIRN_MUSTUSE int outbox_new(struct loop *loop, struct outbox **out);
void outbox_free(struct outbox *o);

/* By a loop: submit a list of jobs (linked by `next`, first to last) and wake the thread once. */
void coordinator_submit(struct coordinator *c, struct job *first, struct job *last);

/* By another thread that did a job by itself: give it back to the loop that it came from. */
void job_return(struct job *j, int result);

/* Ends the thread, after the loops ended: `last` is the highest tick stamped, exactly. Releases the
 * slot and closes the store. */
void coordinator_stop(struct coordinator *c, uint64_t last);

/* How a dated sequence keeps its form in the record's note: "dated:day:6". */
FIRN_MUSTUSE int dated_note_parse(const char *note, uint32_t *out_reset, uint32_t *out_digits);
void dated_note_format(uint32_t reset, uint32_t digits, char out[RECORD_NOTE_MAX + 1]);

#endif
