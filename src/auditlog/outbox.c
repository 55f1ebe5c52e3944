/* Jobs on their way back to one loop. Tested in tests/integration/auditlog.py. */
#include "auditlog/outbox.h"
#include "net/loop.h"

#include <pthread.h>
#include <stdlib.h>

struct outbox {
    struct loop_task task; /* first: leads back */
    struct loop *loop;
    pthread_mutex_t mutex;
    struct job *first, **last;
};

static void take_all(struct loop_task *t)
{
    struct outbox *o = (struct outbox *)t;
    pthread_mutex_lock(&o->mutex);
    struct job *j = o->first;
    o->first = NULL;
    o->last = &o->first;
    pthread_mutex_unlock(&o->mutex);
    while (j) {
        struct job *next = j->next;
        j->done(j);
        j = next;
    }
}

int outbox_new(struct loop *loop, struct outbox **out)
{
    struct outbox *o = calloc(1, sizeof *o);
    if (!o)
        return FIRN_ENOMEM;
    o->task.fn = take_all;
    o->loop = loop;
    o->last = &o->first;
    pthread_mutex_init(&o->mutex, NULL);
    *out = o;
    return 0;
}

void outbox_free(struct outbox *o)
{
    if (!o)
        return;
    firn_assert(!o->first);
    pthread_mutex_destroy(&o->mutex);
    free(o);
}

void outbox_give(struct job *list)
{
    while (list) { /* runs of jobs of one loop are given under one lock */
        struct outbox *o = list->back;
        pthread_mutex_lock(&o->mutex);
        const bool call = o->first == NULL;
        while (list && list->back == o) {
            struct job *next = list->next;
            list->next = NULL;
            *o->last = list;
            o->last = &list->next;
            list = next;
        }
        if (call) /* before the lock is free: the loop's thread may end once it has all jobs */
            loop_call(o->loop, &o->task);
        pthread_mutex_unlock(&o->mutex);
    }
}
