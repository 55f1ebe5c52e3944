/* The clocks of firn/clock.h on Linux: two system clocks, the time stamp counter, one for tests. */
#include "firn/clock.h"
#include "firn/now.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

/* Inlined and without a canary: this is most of what an ID costs. */
#define HOT __attribute__((no_stack_protector))

/* The kernel's own function in the vDSO where it can be found: the C library's wrapper around it is
 * a fifth of what the coarse clock costs. Set when a clock is first asked for. Under LD_PRELOAD it
 * is left alone: libfaketime and its like must keep their say. */
static int (*read_clock)(clockid_t id, struct timespec *out) = clock_gettime;

static void find_vdso_once(void)
{
#if defined(__x86_64__)
    const char *preload = getenv("LD_PRELOAD");
    if (preload && preload[0])
        return;
    void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    void *found = vdso ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
    if (found)
        memcpy(&read_clock, &found, sizeof found);
#endif
}

static void find_vdso(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_vdso_once);
}

static inline __attribute__((always_inline)) uint64_t read_ns(clockid_t id)
{
    struct timespec t;
    read_clock(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

HOT static uint64_t precise_ns(const struct firn_clock *c)
{
    (void)c;
    return read_ns(CLOCK_REALTIME);
}

HOT static uint64_t coarse_ns(const struct firn_clock *c)
{
    (void)c;
    return read_ns(CLOCK_REALTIME_COARSE);
}

/* Wake-ups come late by 50 us and more: sleep short of the goal; for the rest the caller asks again
 * and spins through here. */
static void sleep_ns(const struct firn_clock *c, uint64_t ns)
{
    enum { LATE_NS = 80000 };
    (void)c;
    if (ns > LATE_NS) {
        ns -= LATE_NS;
        struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
        nanosleep(&t, NULL);
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

const struct firn_clock *firn_clock_precise(void)
{
    static const struct firn_clock clock = { precise_ns, precise_ns, sleep_ns };
    find_vdso();
    return &clock;
}

const struct firn_clock *firn_clock_coarse(void)
{
    static const struct firn_clock clock = { coarse_ns, precise_ns, sleep_ns };
    find_vdso();
    return &clock;
}

uint64_t firn_now_ms(void)
{
    find_vdso();
    return read_ns(CLOCK_REALTIME_COARSE) / 1000000;
}

const struct firn_clock *firn_clock_for_tick(uint64_t tick_us)
{
    return tick_us >= 1000 ? firn_clock_coarse() : firn_clock_precise();
}

#if defined(__x86_64__)

/* The counter drifts from the kernel's idea of time, and that one is steered; so a reading that is
 * older than the span is thrown away and the anchor taken again. */
HOT static uint64_t tsc_ns(const struct firn_clock *base)
{
    struct firn_clock_tsc *c = (struct firn_clock_tsc *)(uintptr_t)base;
    uint64_t tsc = __rdtsc(), since = tsc - c->anchor_tsc_;
    if (__builtin_expect(since >= c->anchor_span_, 0)) {
        c->anchor_ns_ = read_ns(CLOCK_REALTIME);
        c->anchor_tsc_ = __rdtsc();
        since = 0;
    }
    return c->anchor_ns_ + (uint64_t)((unsigned __int128)since * c->ns_per_tick_32_ >> 32);
}

int firn_clock_tsc_init(struct firn_clock_tsc *c)
{
    unsigned eax, ebx, ecx, edx;
    if (!c)
        return FIRN_EINVAL;
    if (!__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) || !(edx & 1u << 8))
        return FIRN_ENOTSUP;
    find_vdso(); /* another thread may be setting read_clock */
    uint64_t from_ns = read_ns(CLOCK_MONOTONIC), from = __rdtsc(), ns, ticks;
    do {
        ns = read_ns(CLOCK_MONOTONIC) - from_ns;
        ticks = __rdtsc() - from;
    } while (ns < 2000000);
    *c = (struct firn_clock_tsc){ .base = { tsc_ns, precise_ns, sleep_ns },
                                  .anchor_span_ = ticks * 5,
                                  .ns_per_tick_32_ = (ns << 32) / ticks };
    return 0;
}

#else

int firn_clock_tsc_init(struct firn_clock_tsc *c)
{
    (void)c;
    return FIRN_ENOTSUP;
}

#endif

static uint64_t virtual_fine(const struct firn_clock *c)
{
    return ((const struct firn_clock_virtual *)(const void *)c)->ns;
}

static uint64_t virtual_now(const struct firn_clock *c)
{
    const struct firn_clock_virtual *v = (const void *)c;
    return v->ns < v->lag_ns ? 0 : v->ns - v->lag_ns;
}

static void virtual_sleep(const struct firn_clock *c, uint64_t ns)
{
    struct firn_clock_virtual *v = (struct firn_clock_virtual *)(uintptr_t)c;
    if (!v->frozen)
        v->ns += ns;
}

void firn_clock_virtual_init(struct firn_clock_virtual *c, uint64_t ns)
{
    *c = (struct firn_clock_virtual){ .base = { virtual_now, virtual_fine, virtual_sleep },
                                      .ns = ns };
}
