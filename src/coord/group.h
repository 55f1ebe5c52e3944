/*
 * group.h - the group commit of jobs: every job that waits for numbers when a commit begins goes
 * into that commit, in the order of arrival. Pure: group_next() says what to do, the driver
 * (drive/group.c) does it on a store and tells the outcome with the matching function; the
 * simulator runs the same steps and the same driver.
 *
 * A run takes a list of jobs. It sorts as many as one commit holds into groups, one per sequence;
 * serves range sequences from the blocks in hand; commits the rest (batch.h); shares the numbers
 * out; creates the registers of keys; and so on until the list is empty. When the store fails, or
 * another server was faster, or a job has to wait, the run ends: `again` holds what is to be run
 * next, before all that arrived since. No job overtakes another of its sequence.
 *
 * Rules:
 *  - the rest of a grant is settled before any job of it is in `done`: a client that asks again
 *    gets higher numbers;
 *  - the numbers given and the rest are exactly the grant;
 *  - a job is in `done` once, and not before its numbers, or its key, are durable.
 */
#ifndef FIRN_COORD_GROUP_H
#define FIRN_COORD_GROUP_H

#include "coord/batch.h"
#include "coord/lease.h"
#include "coord/period.h"
#include "coord/retry.h"

#define GROUP_KEYED_MAX 256 /* requests with a key in one commit; a record lists fewer */

struct group_now {
    uint64_t ms;          /* CLOCK_MONOTONIC */
    int64_t s;            /* Unix time, by clock F */
    bool clock;           /* F is known */
    enum lease_gate gate; /* whether the store is known to be the right one */
    int gate_error;       /* why not */
    bool held;            /* it is shut for sequences alone: IDs are still kept under their keys */
    const char *gate_why;
};

struct group_rules {
    uint64_t wait_ms;       /* how long a job waits for a store that fails; 0: RETRY_WAIT_MS */
    uint64_t retention_s;   /* how long a key is kept */
    const char *first_name; /* a sequence that is made when it is first asked for; may be NULL */
    struct seq_spec first;
};

struct group_counts {
    uint64_t commits, commit_errors, conflicts, tickets, keys_kept, keys_replayed;
};

/* For the log. */
enum group_note { GROUP_NOTE_FAILED, GROUP_NOTE_STARVED, GROUP_NOTE_RECOVERED };

struct group_noted {
    unsigned set; /* bits: 1 << enum group_note */
    char failed[RECORD_NAME_MAX + 1], starved[RECORD_NAME_MAX + 1];
    int error; /* of `failed` */
    bool log;  /* the failure is worth a line */
    char cause[sizeof((struct firn_diag *)0)->text];
    uint64_t failures; /* of `failed`, and before the recovery */
};

enum group_do {
    GROUP_LOCKED,   /* call group_locked() with the lock of seq_table.h held */
    GROUP_DESCRIBE, /* read the record of sequence `name` -> group_described */
    GROUP_CREATE,   /* create it as `spec` says -> group_created */
    GROUP_FLUSH, /* keep the keys in the list of `name`, if younger than since_s -> group_flushed */
    GROUP_READ_KEY, /* the register of *key -> group_key_read */
    GROUP_COMMIT,   /* commit `ticket`, n of them, at now_s -> group_committed */
    GROUP_KEEP,     /* create the registers of `keep`, keep_n; draw a nonce for each without one
                     * -> group_kept */
    GROUP_OTHER,    /* do `job`, which is not the commit's */
    GROUP_DONE,
};

struct group {                    /* one sequence of a commit and the jobs that wait on it */
    struct seq_entry *seq, *reg;  /* the sequence; the register that counts */
    struct job_list plain, keyed; /* keyed: those that the record lists with their keys */
    bool open;                    /* it needs a commit */
    bool taken;                   /* a job got numbers of the grant */
    bool gone;                    /* it was deleted */
    uint64_t block;               /* numbers to fetch beyond those that are waited for */
    struct seq_range rest;        /* of the grant */
};

struct group_commit {
    /* For the driver, as group_next() says. After each step it hands back the jobs in `done`, but
     * not between GROUP_LOCKED and group_locked(). */
    struct job_list done;
    struct job *job;
    char name[PERIOD_NAME_BUF];
    size_t name_len;
    struct seq_spec spec;
    uint64_t since_s, now_s;
    const struct nonce *key;
    struct ticket_job ticket[TICKET_JOBS_MAX];
    size_t n;
    struct keyed *keep[KEYED_KEEP_MAX];
    size_t keep_n;
    struct firn_diag diag; /* why the call failed; the driver's calls write it */

    /* After GROUP_DONE. */
    struct job_list again; /* run these next, before those that arrived since */
    bool failed, waits;    /* the store failed; some wait for its gate: pause before the next run */
    bool doubted;          /* the store said that it is another one: the lease must look */

    struct group_counts counts;
    struct group_noted noted; /* the driver clears `set` */

    /* Private from here on. */
    struct seq_table *table_;
    struct group_rules rules_;
    struct retry retry_;
    struct group_now now_;
    int at_;
    struct job *todo_;
    bool lost_;   /* another server's write came first in this run */
    bool begins_; /* no step of this run was made yet */
    struct group group_[TICKET_JOBS_MAX];
    uint64_t total_;
    size_t keyed_n_;        /* requests with a key in the commit that is gathered */
    size_t i_;              /* the group of the job in hand */
    struct seq_entry *seq_; /* and its sequence */
    struct seq_entry *reg_;
    int result_; /* of the driver's last call */
    struct seq_record record_;
    struct idem_record kept_;
    uint32_t period_;
    struct period_walk walk_;
    struct keyed *keyed_[GROUP_KEYED_MAX];
    struct job_list keep_; /* their keys are to be kept, then they are done */
    struct job *keeping_[KEYED_KEEP_MAX];
};

/* The table is borrowed, and so are the texts of `rules`. */
void group_init(struct group_commit *g, struct seq_table *t, const struct group_rules *rules);

/* Begin a run over all these jobs, linked by `next`. The last run has ended. */
void group_run(struct group_commit *g, struct job *first);

enum group_do group_next(struct group_commit *g, const struct group_now *now);

/* The store took a write that was not the group's. */
void group_recovered(struct group_commit *g);

void group_locked(struct group_commit *g);
void group_described(struct group_commit *g, int result, const struct seq_record *r);
void group_created(struct group_commit *g, int result, const struct seq_record *r);
void group_flushed(struct group_commit *g, int result);
void group_key_read(struct group_commit *g, int result, const struct idem_record *kept);
void group_committed(struct group_commit *g);
void group_kept(struct group_commit *g);

#endif
