#include "client/internal.h"
#include "platform/mono.h"

#include <poll.h>

/* While a thread waits for a trip's descriptor nobody else takes a step of that trip: what it waits for could come
 * and go without waking it. */
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
    pthread_cond_broadcast(&c->news); /* somebody else may have to wait for the descriptor now */
}
