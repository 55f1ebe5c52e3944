/*
 * coordinator_in.h - the coordinator's state, for its own files. All of it belongs to the
 * coordinator's thread but for the inbox.
 */
#ifndef FIRN_SERVER_COORDINATOR_IN_H
#define FIRN_SERVER_COORDINATOR_IN_H

#include "platform/assert.h"
#include "platform/mono.h"
#include "server/census.h"
#include "drive/serve.h"
#include "server/coordinator.h"
#include "server/slots.h"

struct coordinator {
    struct coordinator_opts opts;
    struct board *board;
    struct firn_store *store;
    struct tickets tickets;
    struct ranges ranges; /* the table of sequences, shared with the loops */
    struct group_commit group;
    struct serve serve;
    struct lease *lease;
    struct nodes *nodes;
    struct leases *leases;
    struct census census;
    struct slots slot_list; /* for /v1/slots */
    struct lease_world world;
    struct slot_lock slots;
    struct note_page *note;  /* of an SQLite file, or NULL */
    struct slot_avoid avoid; /* under the mutex, with the two flags */
    bool avoid_new, yield;
    struct coordinator_stats stats;
    struct store_counts store_counts;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the inbox and `stop` */
    pthread_cond_t wake;
    struct job_list inbox;
    bool stop, sleeping;
    enum slot_state state_logged;
    struct slot_grant grant_logged;
    enum clock_state clock_logged;
    uint64_t steps_logged; /* of the system clock */
    char no_slot_logged[sizeof((struct firn_diag *)0)->text];
    int error_logged;
    bool held_logged;
    uint64_t fences_logged;
    uint64_t turn_ns;  /* when this turn of the group commit began */
    uint64_t probe_ms; /* when ticket_gate.c may try the store again */
    char failing_why[sizeof((struct firn_diag *)0)->text]; /* guarded by `mutex` */
};

/* outbox.c: the job goes back to its loop as it is; job_return() sets its result first. */
void job_hand_back(struct job *j);

/* A sequence was deleted: nothing that is remembered of it counts any more. */
void coordinator_forget(struct coordinator *c, const char *name, size_t len);

/* A sequence, or the register of a period, of this store. FIRN_ENOSPC: limits.sequences. */
FIRN_MUSTUSE int coordinator_create(struct coordinator *c, const char *name, size_t len,
                                    const struct seq_spec *spec, struct seq_record *out,
                                    struct firn_diag *d);

/* A job that is not the group commit's. False: it hands itself back later. */
bool coordinator_run_other(struct coordinator *c, struct job *j);

/* group_commit.c: with opts, ranges and lease as they will be. */
void group_commit_init(struct coordinator *c);

/* One turn (drive/serve.h) with these jobs. Those that cannot be served yet go back in front of
 * the inbox, which waits until serve.retry_ms if the store failed. */
void group_commit_turn(struct coordinator *c, struct job *jobs);

/* ticket_gate.c: a commit failed; and, after each round: tell readiness whether commits fail, and
 * try by itself where no job does. Returns when it wants to be called again. */
void ticket_gate_failed(struct coordinator *c, const char *why);
uint64_t ticket_gate_watch(struct coordinator *c, bool idle);

#endif
