/* outbox.h - jobs on their way back to a loop: any thread puts them in, the loop takes all at once.
 */
#ifndef FIRN_AUDITLOG_OUTBOX_H
#define FIRN_AUDITLOG_OUTBOX_H

#include "auditlog/job.h"

struct loop;

FIRN_MUSTUSE int outbox_new(struct loop *loop, struct outbox **out);
void outbox_free(struct outbox *o); /* after loop_free(), which takes the last jobs */

/* Any thread: gives the jobs of a list (by `next`) back to the loops that they are from, in this
 * order. */
void outbox_give(struct job *list);

#endif
