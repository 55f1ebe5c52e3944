/*
 * coordinator_in.h - the coordinator's state, for its own files. All of it belongs to the
 * coordinator's thread but for the inbox.
 */
#ifndef FIRN_SERVER_COORDINATOR_IN_H
#define FIRN_SERVER_COORDINATOR_IN_H

#include "platform/assert.h"
#include "platform/mono.h"
#include "server/census.h"
#include "server/coordinator.h"

enum { KNOWN_MAX = 1024 };

/* The constants of a sequence, so that a commit need not look them up. */
struct known {
    char name[RECORD_NAME_MAX + 1]; /* empty: a free place */
    char reg[RECORD_NAME_MAX + 1];  /* the register that counts: its own, or that of the period */
    struct seq_record record;
    bool dated;
    bool ahead; /* a range sequence: blocks are fetched ahead */
    uint32_t reset, digits, period;
    uint32_t settled; /* in this period the keys of earlier ones have got their registers */
};

struct coordinator {
    struct known known[KNOWN_MAX]; /* direct mapped by a hash of the name */
    struct coordinator_opts opts;
    struct board *board;
    struct firn_store *store;
    struct tickets tickets;
    struct ranges ranges;
    struct lease *lease;
    struct nodes *nodes;
    struct leases *leases;
    struct census census;
    struct lease_world world;
    struct slot_lock slots;
    struct coordinator_stats stats;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the inbox and `stop` */
    pthread_cond_t wake;
    struct job *first, **tail;
    struct job *again, **again_tail; /* to be tried again, before those in the inbox */
    struct job *keep, **keep_tail;   /* their keys are to be kept, then they are done */
    size_t keyed_n;                  /* requests with a key in the commit that is gathered */
    uint32_t sweep_part;
    bool failed; /* the store failed in this run over the jobs */
    bool lost;   /* another server's write came first in this run: the next one begins at once */
    bool stop, sleeping;
    enum slot_state state_logged;
    struct slot_grant grant_logged;
    enum clock_state clock_logged;
    uint64_t steps_logged; /* of the system clock */
    char no_slot_logged[sizeof((struct firn_diag *)0)->text];
    int error_logged;
    bool held_logged;
    uint64_t fences_logged;
    uint64_t failures, failure_logged_ms; /* commits that failed since one did not */
    uint64_t failing_since_ms;            /* the first of them */
    uint64_t starved_logged_ms;
    uint64_t probe_ms;            /* when ticket_gate.c may try the store again */
    struct firn_diag failing_why; /* of the last commit that failed; guarded by `mutex` */
};

/* A list of jobs ends where its tail says, in an inbox as in a list on the way. */
static inline bool jobs_linked(struct job *const *first, struct job *const *tail)
{
    return *tail == NULL && (*first == NULL) == (tail == first);
}

/* outbox.c: the job goes back to its loop as it is; job_return() sets its result first. */
void job_hand_back(struct job *j);

/* A sequence's record; the default one is created when it is first asked for. */
FIRN_MUSTUSE int coordinator_describe(struct coordinator *c, struct job *j, struct seq_record *out);

/* A sequence was deleted: nothing that is remembered of it counts any more. */
void coordinator_forget(struct coordinator *c, const char *name, size_t len);

/* A job that neither takes numbers nor keeps a key. False: it hands itself back later. */
bool coordinator_run_other(struct coordinator *c, struct job *j);
uint64_t coordinator_wait_ms(const struct coordinator *c); /* for a store that fails */

/* group_commit.c: serve all these jobs. Those that cannot be served yet go back in front of the
 * inbox. */
void group_commit_run(struct coordinator *c, struct job *j);

/* Remove some of the old keys. Returns when the next step is due. */
uint64_t group_commit_sweep(struct coordinator *c);

/* Commits work again. */
void group_commit_recovered(struct coordinator *c);

/* ticket_gate.c: refuse the jobs on sequences that the state of the store forbids; *jobs keeps the
 * others. False: some went back to the inbox, to wait for the store. */
bool ticket_gate(struct coordinator *c, struct job **jobs);

/* Before a sequence, or a period of one, is created: in a store that was wiped it would begin
 * again. FIRN_ESTORE: it was. */
FIRN_MUSTUSE int ticket_gate_create(struct coordinator *c, struct firn_diag *d);

/* A commit failed; and, after each round: tell readiness whether commits fail, and try by itself
 * where no job does. Returns when it wants to be called again. */
void ticket_gate_failed(struct coordinator *c, const struct firn_diag *d);
uint64_t ticket_gate_watch(struct coordinator *c, bool idle);

#endif
