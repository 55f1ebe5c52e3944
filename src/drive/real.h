/* real.h - the system's clocks, entropy and sleep, for the worlds that tests replace. */
#ifndef FIRN_DRIVE_REAL_H
#define FIRN_DRIVE_REAL_H

#include "id/rng_take.h"

#include <stdint.h>
#include <time.h>

static inline int64_t real_clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void real_random(void *user, void *out, size_t len)
{
    (void)user;
    firn__entropy(out, len);
}

static inline void real_sleep(void *user, uint64_t ms)
{
    (void)user;
    struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    nanosleep(&t, NULL);
}

#endif
