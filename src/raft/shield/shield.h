/*
 * shield.h - the work-arounds for libraft, as the rest of src/raft sees them.
 * Each file here replaces a function of libraft's I/O interface (struct raft_io) or repairs its
 * files before it loads them. docs/internals/raft-shield.md lists what libraft does, the file and
 * the test. Everything belongs to the loop's thread.
 */
#ifndef FIRN_RAFT_SHIELD_SHIELD_H
#define FIRN_RAFT_SHIELD_SHIELD_H

#include <raft.h>
#include <raft/uv.h>
#include <stdbool.h>

#include "raft/shield/match.h"
#include "raft/shield/vote.h"

enum { SHIELD_PATH_BUF = 4200 };

struct node;

struct io_order {                    /* log I/O, one operation after another (io_order.c) */
    struct io_order_item *first;     /* the operations that wait, oldest first */
    struct io_order_item *cancelled; /* appends that closing cancelled, newest first */
    uint64_t begun;                  /* operations, ever */
    raft_io_close_cb closed;
    unsigned appends; /* under way */
    bool putting;     /* a snapshot is being stored */
    bool truncated;   /* and no append behind the truncation is acknowledged yet */
    raft_index next;  /* index of the next append, once every operation is done */
    int failed;       /* a truncation failed: nothing is written any more */
    /* libraft's own functions */
    int (*append)(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[],
                  unsigned n, raft_io_append_cb cb);
    int (*truncate)(struct raft_io *io, raft_index index);
    int (*put)(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
               const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb);
    void (*close)(struct raft_io *io, raft_io_close_cb cb);
};

struct shield_io { /* what struct raft_io held before a file of the shield put its own there */
    int (*set_term)(struct raft_io *io, raft_term term);
    int (*set_vote)(struct raft_io *io, raft_id id);
    int (*load)(struct raft_io *io, raft_term *term, raft_id *voted_for,
                struct raft_snapshot **snapshot, raft_index *start_index,
                struct raft_entry *entries[], size_t *n_entries);
    int (*append)(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[],
                  unsigned n, raft_io_append_cb cb);
    int (*put)(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
               const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb);
    int (*send)(struct raft_io *io, struct raft_io_send *req, const struct raft_message *message,
                raft_io_send_cb cb);
    raft_io_tick_cb tick;
    int (*start)(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb recv);
    raft_io_recv_cb recv;
};

struct shield {
    struct shield_io libraft;
    struct io_order order;
    char truncation_path[SHIELD_PATH_BUF]; /* the note of a truncation under way (truncation.h) */
    struct {                               /* load.c: libraft's term and vote, with a checksum */
        struct vote last;
        bool damaged;
        char path[SHIELD_PATH_BUF];
    } vote;
    struct {                   /* append_failure.c, once the log cannot be written */
        unsigned held;         /* appends that are never answered */
        uint64_t hand_over_ms; /* of uv_now(): not to hand over the lead before */
        struct raft_transfer transfer;
    } failure;
    /* append_result.c */
    struct match match; /* the prefix of the log that the leader has shown to be its own too */
    struct match shown; /* the same of the message being received; term 0: it shows nothing */
    bool appended;      /* the message being received was written to the log */
    struct {            /* install_snapshot.c, while the leader's snapshot is being stored */
        struct raft_io_snapshot_put req, *theirs; /* theirs: libraft's own; NULL: none is */
        struct match shown;
    } install;
    struct {              /* leader_commit.c */
        raft_term term;   /* the last term that this member led in, */
        raft_index first; /* and the index of its first entry of that term */
    } lead;
    struct {              /* configuration.c: the members as of the last snapshot */
        raft_index index; /* of their entry; 0: there is no snapshot */
        struct raft_configuration configuration;
    } saved;
    struct {         /* silent_leader.c */
        bool spoke;  /* the leader, since the last tick */
        bool silent; /* the leader has not spoken for seconds */
        unsigned ticks;
    } leader;
};

/* shield.c. Both before libraft starts; `log` is the folder of its segments. FIRN_EFORMAT: an open
 * segment is damaged; FIRN_EIO. */
void shield_install(struct node *n);
FIRN_MUSTUSE int shield_repair(struct node *n, const char *log, struct firn_diag *d);

/* io_order.c */
void io_order_watch(struct node *n); /* the first of all: the others then see the I/O in order */
void io_order_start(struct node *n, raft_index next); /* the loaded log ends before `next` */
void io_order_run(struct node *n); /* begin the operations that wait and may begin now */

/* load.c */
void load_watch(struct node *n);

/* append_failure.c */
void append_failure_watch(struct node *n);
void log_failed(struct node *n, const char *why,
                const char *cure);             /* write and apply nothing more */
void append_failure_hand_over(struct node *n); /* at each tick: a leader that cannot write */

/* install_snapshot.c, append_result.c */
void install_snapshot_watch(struct node *n);
void append_result_watch(struct node *n);

/* committed_prefix.c */
void committed_prefix_drop(const struct node *n, struct raft_append_entries *a);

/* leader_commit.c */
void leader_commit_note(struct node *n); /* before anything is appended in a new term */
void leader_commit_recv(struct node *n, struct raft_message *message); /* hands it to libraft */
/* Its own entries up to `last` are on the disk: tells libraft. */
void leader_commit_append(struct node *n, raft_index last, struct raft_io_append *req, int status);

/* configuration.c */
FIRN_MUSTUSE int configuration_save(struct node *n, const struct raft_snapshot *s); /* RAFT_NOMEM */
void configuration_loaded(struct node *n); /* once, before libraft starts: which change is open */
void configuration_recv(struct node *n, struct raft_append_entries *a); /* before libraft gets it */
/* Would libraft give this candidate a second vote in one term? (One whom it handed the lead to.) */
bool configuration_votes_again(const struct node *n, const struct raft_request_vote *v);
void configuration_done(struct node *n);

/* silent_leader.c */
void silent_leader_tick(struct node *n);

#endif
