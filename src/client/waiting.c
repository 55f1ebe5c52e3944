/* Waits for a trip that several threads need. */
#include "client/internal.h"
#include "platform/mono.h"

#include <poll.h>

/* While a thread polls a trip's descriptor no other thread takes a step of that trip: the event
 * could come and go without waking the first one. */
void await_trip(struct core *c, struct trip *t, uint64_t end_ms)
{
    struct pollfd p = { -1, 0, 0 };
    uint64_t now = mono_ms(), until = end_ms;
    if (!t || t->polled) {
        struct timespec at = { (time_t)(end_ms / 1000), (long)(end_ms % 1000) * 1000000 };
        pthread_cond_timedwait(&c->news, &c->mutex, &at);
        return;
    }
    trip_wants(t, &p.fd, &p.events, &until);
    until = until < end_ms ? until : end_ms;
    t->polled = true;
    pthread_mutex_unlock(&c->mutex);
    poll(&p, 1, until > now ? (int)(until - now < 60000 ? until - now : 60000) : 0);
    pthread_mutex_lock(&c->mutex);
    t->polled = false;
    pthread_cond_broadcast(&c->news); /* another thread may have to poll now */
}
