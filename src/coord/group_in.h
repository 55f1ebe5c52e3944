/*
 * group_in.h - the parts of a group commit, for the files group*.c alone: group.c gathers jobs,
 * group_share.c commits them and shares the numbers out, group_job.c ends each job.
 */
#ifndef FIRN_COORD_GROUP_IN_H
#define FIRN_COORD_GROUP_IN_H

#include "coord/group.h"

enum at {
    AT_GATHER,
    AT_DESCRIBED, /* the job's record was read */
    AT_CREATED,   /* or made */
    AT_OPENED,    /* its sequence has an entry */
    AT_FORGET,    /* it was deleted */
    AT_PERIOD,
    AT_PERIOD_SEEN,
    AT_PERIOD_MADE,
    AT_REGISTER,
    AT_ADMIT,
    AT_SETTLE,
    AT_SETTLED,
    AT_KEY_READ,
    AT_ADD,
    AT_HAND, /* the commit is gathered */
    AT_BUILD,
    AT_COMMITTED,
    AT_PUT,
    AT_KEEP,
    AT_KEPT,
    AT_CYCLE,
    AT_END,
};

#define GROUP_GO ((enum group_do) - 1) /* go on with the next state */

static inline enum group_do go(struct group_commit *g, enum at at)
{
    g->at_ = at;
    return GROUP_GO;
}

static inline enum group_do ask(struct group_commit *g, enum at then, enum group_do what)
{
    g->at_ = then;
    g->diag.text[0] = '\0';
    return what;
}

/* group_job.c: what becomes of a job */
void group_job_done(struct group_commit *g, struct job *j, int result);
void group_note_failure(struct group_commit *g, const char *name, int error, const char *cause);
void group_put_back(struct group_commit *g, struct job *j, int error, const struct firn_diag *d);
enum group_do group_refuse(struct group_commit *g, int error);
void group_finish_keyed(struct group_commit *g, struct job *j);
void group_keep_later(struct group_commit *g, struct job *j);
void group_deliver(struct group_commit *g, struct job *j);
void group_refuse_reused(struct group_commit *g, struct job *j);

/* group_share.c: the states of a commit */
enum group_do group_at_hand(struct group_commit *g);
enum group_do group_at_build(struct group_commit *g);
enum group_do group_at_committed(struct group_commit *g);
enum group_do group_at_keep(struct group_commit *g);
enum group_do group_at_kept(struct group_commit *g);
void group_serve_from_hand(struct group_commit *g); /* with the table locked, as group_put_blocks */
void group_put_blocks(struct group_commit *g);

#endif
