/* Jobs on their way back to one loop: a list that the loop empties on its own thread. Tested in
 * tests/integration/tickets.py. */
#include "server/coordinator_in.h"

#include <stdlib.h>

struct outbox {
    struct loop *loop;
    pthread_mutex_t mutex;
    struct job_list jobs;
    bool scheduled;
    struct latency waits;  /* of JOB_TAKE, from its submission to here */
    struct loop_task task; /* the address leads back to the outbox */
};

static void outbox_run(struct loop_task *t)
{
    struct outbox *o = (struct outbox *)(void *)((char *)t - offsetof(struct outbox, task));
    pthread_mutex_lock(&o->mutex);
    firn_assert(o->scheduled &&
                o->jobs.first); /* one call for each time that the list becomes filled */
    struct job *j = job_take_all(&o->jobs);
    o->scheduled = false;
    pthread_mutex_unlock(&o->mutex);
    uint64_t now_ns = mono_ns();
    while (j) {
        struct job *next = j->next; /* done() may free the job */
        if (j->what == JOB_TAKE)
            latency_add(&o->waits, now_ns - j->began_ns, 1);
        j->done(j);
        j = next;
    }
}

int outbox_new(struct loop *loop, struct outbox **out)
{
    struct outbox *o = calloc(1, sizeof *o);
    if (!o)
        return FIRN_ENOMEM;
    o->loop = loop;
    job_list_init(&o->jobs);
    o->task.fn = outbox_run;
    pthread_mutex_init(&o->mutex, NULL);
    *out = o;
    return 0;
}

void outbox_free(struct outbox *o)
{
    if (!o)
        return;
    firn_assert(!o->jobs.first && !o->scheduled); /* the loop has had its last job */
    pthread_mutex_destroy(&o->mutex);
    free(o);
}

const struct latency *outbox_waits(const struct outbox *o)
{
    return &o->waits;
}

void job_hand_back(struct job *j)
{
    struct outbox *o = j->back;
    pthread_mutex_lock(&o->mutex);
    firn_assert(job_list_ok(&o->jobs) && o->scheduled == (o->jobs.first != NULL));
    job_append(&o->jobs, j);
    bool call = !o->scheduled;
    o->scheduled = true;
    pthread_mutex_unlock(&o->mutex);
    if (call)
        loop_call(o->loop, &o->task);
}

void job_return(struct job *j, int result)
{
    j->result = result;
    job_hand_back(j);
}
