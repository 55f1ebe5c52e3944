/*
 * Entropy from the kernel, and one generator per thread on a page that the kernel wipes in the
 * child of a fork: a wiped struct firn_rng has nothing left and is not seeded, so its next draw
 * seeds it anew.
 */
#include "firn/random.h"
#include "id/rng_take.h"
#include "platform/wipe_page.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static _Noreturn void stop(const char *why)
{
    /* Going on would mean IDs that can repeat. */
    fprintf(stderr, "firn: %s: cannot make unique IDs, stopping\n", why);
    abort();
}

void firn__entropy(void *out, size_t len)
{
    unsigned char *p = out;
    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            stop("getrandom gave no entropy");
        p += n;
        len -= (size_t)n;
    }
}

static __thread struct firn_rng *thread_rng;
static pthread_key_t at_thread_end;
static _Atomic int has_key;

static void thread_end(void *page)
{
    thread_rng = NULL;
    wipe_page_free(page, sizeof(struct firn_rng));
}

/* When the code is loaded, so that no thread waits for another one here. libfirn.so never goes
 * again (nodelete), but a plugin that has the static library inside can: threads that end after it
 * must not call what is gone, so their pages are given up. */
__attribute__((constructor)) static void loaded(void)
{
    has_key = pthread_key_create(&at_thread_end, thread_end) == 0;
}

__attribute__((destructor)) static void unloaded(void)
{
    if (atomic_exchange(&has_key, 0))
        pthread_key_delete(at_thread_end);
}

static __attribute__((noinline)) struct firn_rng *thread_rng_new(void)
{
    struct firn_rng *r = wipe_page_new(sizeof *r);
    if (!r)
        stop("no memory for random numbers");
    if (has_key) /* otherwise the page stays until the process ends */
        pthread_setspecific(at_thread_end, r);
    thread_rng = r;
    return r;
}

struct firn_rng *firn_rng_thread(void)
{
    return __builtin_expect(thread_rng != NULL, 1) ? thread_rng : thread_rng_new();
}
