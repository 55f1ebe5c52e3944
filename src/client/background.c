/*
 * background=1: a thread that fetches blocks and extends the window, so that no call has to wait.
 * It does regularly what calls do when they happen to come by.
 */
#include "client/internal.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <signal.h>

enum { LOOK_MS = 20 }; /* between two looks at what is due */

static void *look_after(void *arg)
{
    struct core *c = arg;
    pthread_mutex_lock(&c->mutex);
    while (!atomic_load(&c->stop)) {
        uint64_t until;
        core_tend(c);
        await_trip(c, core_trip(c, &until), mono_ms() + LOOK_MS);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

int background_start(struct core *c)
{
    sigset_t all, before;
    sigfillset(&all); /* the program's signals are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    c->has_thread = pthread_create(&c->thread, NULL, look_after, c) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return c->has_thread ? 0 : FIRN_ENOMEM;
}

void background_stop(struct core *c)
{
    if (!c->has_thread)
        return;
    atomic_store(&c->stop, true);
    pthread_join(c->thread, NULL);
    c->has_thread = false;
}
