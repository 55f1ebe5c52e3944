/*
 * Entropy from the kernel and the processor, and what each thread has of its own, on a page that
 * the kernel wipes in the child of a fork: a wiped struct firn_rng has nothing left and is not
 * seeded, so its next draw seeds it anew. Tested in tests/unit/id/rng.c.
 */
#include "firn/random.h"
#include "id/rng_take.h"
#include "platform/thread.h"
#include "platform/wipe_page.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

enum { ERA_NS_BITS = 22 }; /* 4.2 ms */

static _Noreturn void stop(const char *why)
{
    /* Going on would mean IDs that can repeat. */
    fprintf(stderr, "firn: %s: cannot make unique IDs, stopping\n", why);
    abort();
}

#if defined(__x86_64__)

static bool has_rdrand; /* asked once: cpuid traps in a virtual machine */

static void find_rdrand(void)
{
    unsigned a, b, c, d;
    has_rdrand = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_RDRND);
}

/* The kernel notices that its machine was resumed from a snapshot only where the hypervisor says
 * so (vmgenid); otherwise two copies get the same bytes from it for a minute. The processor's
 * differ. */
__attribute__((target("rdrnd"))) static void mix_processor(unsigned char *p, size_t len)
{
    unsigned long long v = 0;
    for (size_t i = 0; has_rdrand && i < len; i++, v >>= 8) {
        if (i % 8 == 0 && !_rdrand64_step(&v))
            return; /* it has run dry: the kernel's bytes are enough */
        p[i] ^= (unsigned char)v;
    }
}

#else

static void find_rdrand(void)
{
}

static void mix_processor(unsigned char *p, size_t len)
{
    (void)p;
    (void)len;
}

#endif

void firn__entropy(void *out, size_t len)
{
    int saved = errno; /* a signal handler may be calling */
    unsigned char *p = out;
    for (size_t done = 0; done < len;) {
        ssize_t n = getrandom(p + done, len - done, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            stop("getrandom gave no entropy");
        done += (size_t)n;
    }
    mix_processor(p, len);
    errno = saved;
}

uint64_t firn__entropy_era(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) >> ERA_NS_BITS;
}

static __thread struct firn__thread *this_thread;
static pthread_key_t at_thread_end;
static _Atomic bool has_key;

static void thread_end(void *page)
{
    this_thread = NULL;
    firn__wipe_page_free(page, sizeof(struct firn__thread));
}

/* When the code is loaded, so that no thread waits for another one here. libfirn.so never goes
 * again (nodelete), but a plugin that has the static library inside can: threads that end after it
 * must not call what is gone, so their pages are given up. */
__attribute__((constructor(101))) static void loaded(void)
{
    find_rdrand();
    has_key = pthread_key_create(&at_thread_end, thread_end) == 0;
}

__attribute__((destructor)) static void unloaded(void)
{
    if (atomic_exchange(&has_key, false))
        pthread_key_delete(at_thread_end);
}

/* Without signals: a handler that draws first must not find it half made. */
static __attribute__((noinline)) struct firn__thread *thread_new(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct firn__thread *t = this_thread;
    if (!t) {
        t = firn__wipe_page_new(sizeof *t);
        if (!t)
            stop("no memory for random numbers");
        if (has_key) /* otherwise the page stays until the process ends */
            pthread_setspecific(at_thread_end, t);
        this_thread = t;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return t;
}

struct firn__thread *firn__thread(void)
{
    struct firn__thread *t = this_thread;
    return __builtin_expect(t != NULL, 1) ? t : thread_new();
}

struct firn_rng *firn_rng_thread(void)
{
    return &firn__thread()->rng;
}
