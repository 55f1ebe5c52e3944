/*
 * raft_record.h - records what the nodes of a raft_world do, with reasons. It compares a node
 * before and after each event: libraft needs no hooks for this.
 * Heartbeats and answers that change nothing are counted, not drawn. One thread.
 */
#ifndef FIRN_CLI_LAB_RAFT_RECORD_H
#define FIRN_CLI_LAB_RAFT_RECORD_H

#include "cli/lab/raft_world.h"
#include "cli/lab/trace.h"

enum { RECORD_CLIENT = 0 }; /* a party; node i is party i + 1 */
enum {                      /* fields of the state */
       RECORD_ROLE,
       RECORD_TERM,
       RECORD_VOTE,
       RECORD_LOG,
       RECORD_COMMIT,
       RECORD_APPLIED,
       RECORD_VALUE,
};

struct seen { /* of a node */
    bool up, pre_vote;
    unsigned short role;
    raft_term term;
    raft_id vote, leader;
    raft_index last, stored, commit, applied;
    raft_index match[WORLD_NODES]; /* of a leader */
};

struct recording {
    struct raft_world world; /* of the caller, who makes and ends it */
    struct lab_trace *trace;
    bool answered; /* the client was, since the caller set it to false */

    struct seen seen[WORLD_NODES]; /* the rest is private */
    uint64_t start_ms, heard_ms[WORLD_NODES];
    raft_index last_before; /* of the log, when it began */
    /* messages that are not drawn: without changes; lost like earlier ones */
    unsigned quiet, missed;
    uint64_t quiet_ms;
    struct { /* reported in the middle of an event, drawn after it */
        raft_index first, last;
        char command[WORLD_COMMAND_BUF];
        bool answer;
        int status;
    } pending;
};

char record_name(unsigned node); /* 'A' */
struct seen record_look(const struct world_node *n);

/* From here on everything that the nodes do becomes steps of `t`, which is empty. */
void record_begin(struct recording *p, struct lab_trace *t);

/* The caller killed, started or changed a node itself. */
void record_refresh(struct recording *p, unsigned node);

/* Steps of the caller's own; it fills in label and reason. */
struct lab_step *record_step(struct recording *p, enum lab_kind kind, const char *event, int from,
                             int to);
struct lab_step *record_note(struct recording *p, const char *event, unsigned node);
void record_chapter(struct recording *p, const char *event, const char *label, const char *why);

#endif
