/* mono.h - CLOCK_MONOTONIC as a number, and conditions that wait by it: for deadlines, timers and
 * what took how long. */
#ifndef FIRN_PLATFORM_MONO_H
#define FIRN_PLATFORM_MONO_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Any of the kernel's clocks. */
static inline uint64_t clock_read_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t mono_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

/* The same up to a tick of the kernel (at most 10 ms) behind, for a fraction of the price. */
static inline uint64_t mono_coarse_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC_COARSE);
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

/* A condition whose pthread_cond_timedwait() takes mono_timespec(): a step of the clock neither
 * ends nor prolongs a wait. */
static inline void mono_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

#endif
