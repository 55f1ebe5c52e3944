/* poll.h - waiting for a descriptor until a moment of mono_now_ms(). */
#ifndef FIRN_PLATFORM_POLL_H
#define FIRN_PLATFORM_POLL_H

#include "platform/mono.h"

#include <errno.h>
#include <poll.h>

/* False: the time is over. */
static inline bool poll_until(int fd, short events, int64_t until_ms, short *got)
{
    for (;;) {
        int64_t left = until_ms - mono_now_ms();
        if (left <= 0)
            return false;
        struct pollfd p = { .fd = fd, .events = events };
        int n = poll(&p, 1, left < INT32_MAX ? (int)left : INT32_MAX);
        if (n > 0) {
            *got = p.revents;
            return true;
        }
        if (n < 0 && errno != EINTR)
            return false;
    }
}

#endif
