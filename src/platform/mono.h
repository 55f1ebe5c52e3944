/* mono.h - CLOCK_MONOTONIC in milliseconds, for deadlines and timers. */
#ifndef FIRN_PLATFORM_MONO_H
#define FIRN_PLATFORM_MONO_H

#include <stdint.h>
#include <time.h>

static inline uint64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

#endif
