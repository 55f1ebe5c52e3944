/* thread.h - what libfirn keeps for each thread, on a page that fork() wipes: zeros are a valid
 * start. */
#ifndef FIRN_PLATFORM_THREAD_H
#define FIRN_PLATFORM_THREAD_H

#include "firn/random.h"
#include "firn/ulid.h"
#include "firn/uuid.h"

struct firn__thread {
    struct firn_rng rng; /* first: firn_rng_thread() is this */
    volatile uint32_t busy;
    struct firn_uuid_v7_gen v7;
    struct firn_ulid_gen ulid;
};

struct firn__thread *firn__thread(void);

#endif
