/*
 * queue.h - the bounded queue between the loops and the thread of a database. Full or closed, it
 * refuses at once: nothing waits that has no room. Any thread.
 */
#ifndef FIRN_AUDITLOG_QUEUE_H
#define FIRN_AUDITLOG_QUEUE_H

#include "auditlog/job.h"
#include "auditlog/pace.h"

#include <pthread.h>

struct queue { /* all private */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    struct job *first, **last;
    size_t rows, bytes, rows_max, bytes_max;
    bool away;   /* the database is not there: refuse */
    bool ending; /* take no more */
};

void queue_init(struct queue *q, size_t rows_max, size_t bytes_max);
void queue_done(struct queue *q);

/* FIRN_EAGAIN: it is full. FIRN_EIO: the database is away. FIRN_ECLOSED: the service ends. */
FIRN_MUSTUSE int queue_add(struct queue *q, struct job *j);

/* Takes what waits, in order, as far as it fits; waits for it at most until `until_ns` of the
 * monotonic clock. NULL: nothing came, or queue_end() was called and nothing is left. */
struct job *queue_take(struct queue *q, const struct batch_limits *l, uint64_t until_ns);

/* Whether the database is there. Going away, what waits is taken out and returned. */
struct job *queue_set_away(struct queue *q, bool away);

void queue_end(struct queue *q);
bool queue_ended(struct queue *q); /* and empty */

/* For metrics: rows that wait, and since when the first does (0: nothing). */
void queue_look(struct queue *q, size_t *rows, uint64_t *since_ns, bool *away);

#endif
