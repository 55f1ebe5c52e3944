/* firn_shm.h - what the backends and the lease worker share: IDs made by the worker, in order. */
#ifndef FIRN_PG_SHM_H
#define FIRN_PG_SHM_H

#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/spin.h"

#define FIRN_BATCH_MAX 1024
#define FIRN_URL_BUF   1024

struct firn_shm {
    slock_t lock;  /* guards all below but `filled`; held for copies only */
    Latch *worker; /* NULL: it is not running */
    uint64 failures;
    int wanted; /* IDs that the next fill makes; 0: none are asked for */
    int at, n;  /* ids[at..n-1] have not been given out */
    TimestampTz made;
    char error[256]; /* of the last failure; empty after a success */
    uint64 ids[FIRN_BATCH_MAX];
    ConditionVariable filled;
};

#endif
