/* mono.h - CLOCK_MONOTONIC as a number, for deadlines, timers and what took how long. */
#ifndef FIRN_PLATFORM_MONO_H
#define FIRN_PLATFORM_MONO_H

#include <stdint.h>
#include <time.h>

static inline uint64_t mono_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The same up to a tick of the kernel (at most 10 ms) behind, for a fraction of the price. */
static inline uint64_t mono_coarse_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline struct timespec mono_timespec(uint64_t ns)
{
    return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}

static inline uint64_t mono_us(void)
{
    return mono_ns() / 1000;
}

static inline uint64_t mono_ms(void)
{
    return mono_ns() / 1000000;
}

/* For deadlines: signed, because the time left may be negative. */
static inline int64_t mono_now_ms(void)
{
    return (int64_t)mono_ms();
}

#endif
