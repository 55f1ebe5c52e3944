#include "client/parts.h"
#include "platform/mono.h"

#include <poll.h>

void await_trip(struct core *c, const struct trip *t, uint64_t end_ms)
{
    struct pollfd p = { -1, 0, 0 };
    uint64_t now = mono_ms(), until = end_ms;
    if (c->pumping || !t) {
        struct timespec at = { (time_t)(end_ms / 1000), (long)(end_ms % 1000) * 1000000 };
        pthread_cond_timedwait(&c->news, &c->mutex, &at);
        return;
    }
    trip_wants(t, &p.fd, &p.events, &until);
    until = until < end_ms ? until : end_ms;
    c->pumping = true;
    pthread_mutex_unlock(&c->mutex);
    poll(&p, 1, until > now ? (int)(until - now < 60000 ? until - now : 60000) : 0);
    pthread_mutex_lock(&c->mutex);
    c->pumping = false;
    pthread_cond_broadcast(&c->news); /* somebody else may have to wait for the descriptor now */
}
