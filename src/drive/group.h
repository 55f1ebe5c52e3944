/*
 * group.h - runs the group commit of jobs (coord/group.h) on a store: blocking calls for the thread
 * that owns the store. firnd's coordinator and the simulator's processes drive tickets with this.
 */
#ifndef FIRN_DRIVE_GROUP_H
#define FIRN_DRIVE_GROUP_H

#include "coord/group.h"
#include "drive/ticket.h"

/* What the owner provides. */
struct group_world {
    void *user;
    void (*now)(void *user, struct group_now *out);
    void (*lock)(void *user); /* of the table; NULL: no other thread uses it */
    void (*unlock)(void *user);
    void (*done)(void *user, struct job *first); /* jobs with their results, in order */
    void (*other)(void *user, struct job *j);    /* a job that is not the commit's */
    /* Instead of ticket_create(); NULL: that. */
    int (*create)(void *user, const char *name, size_t len, const struct seq_spec *spec,
                  struct seq_record *out, struct firn_diag *d);
    void (*note)(void *user, const struct group_noted *n); /* for the log; may be NULL */
};

/* Serve all these jobs, linked by `next`. Returns those to be run next, before all that arrived
 * since; g->failed says whether to pause for RETRY_PAUSE_MS before. */
struct job *group_serve(struct group_commit *g, struct tickets *t, const struct group_world *w,
                        struct job *first);

#endif
