/*
 * coordinator_world.h - jobs for a coordinator without loops, and a store that fails when told to.
 * The outbox is the one that this header defines (the linker then leaves the real one out): a job
 * that goes back is appended to a list. Include it in one file of a program.
 */
#ifndef COORDINATOR_WORLD_H
#define COORDINATOR_WORLD_H

#include "t.h"

#include "server/coordinator_in.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* --- a store around a store in memory --- */

static struct shaky {
    struct firn_store base;
    struct firn_store *inner;
    atomic_int refuse_writes;   /* so many next writes are not done: FIRN_EIO */
    atomic_int lose_requests;   /* not done: FIRN_EUNKNOWN */
    atomic_int lose_answers;    /* done: FIRN_EUNKNOWN */
    atomic_int fail_reads;      /* FIRN_EIO */
    atomic_int writes;          /* calls */
    void (*before_write)(void); /* another writer gets in between */
} shaky;

static inline bool shaky_hit(atomic_int *left)
{
    return atomic_load(left) > 0 && atomic_fetch_sub(left, 1) > 0;
}

static inline int shaky_read(struct firn_store *s, struct firn_slice key, bool fresh,
                             struct firn_record *out, struct firn_diag *d)
{
    (void)s;
    return shaky_hit(&shaky.fail_reads) ? FIRN_EIO
                                        : firn_store_read(shaky.inner, key, fresh, out, d);
}

static inline int shaky_cas_many(struct firn_store *s, const struct firn_cas *want, size_t count,
                                 int *result, struct firn_diag *d)
{
    (void)s;
    atomic_fetch_add(&shaky.writes, 1);
    if (shaky.before_write) {
        void (*rival)(void) = shaky.before_write;
        shaky.before_write = NULL;
        rival();
    }
    if (shaky_hit(&shaky.refuse_writes)) {
        snprintf(d->text, sizeof d->text, "the disk is full");
        return FIRN_EIO;
    }
    if (shaky_hit(&shaky.lose_requests))
        return FIRN_EUNKNOWN;
    int r = firn_store_cas_many(shaky.inner, want, count, result, d);
    return shaky_hit(&shaky.lose_answers) ? FIRN_EUNKNOWN : r;
}

static inline int shaky_scan(struct firn_store *s, struct firn_slice prefix, firn_record_fn *each,
                             void *user, struct firn_diag *d)
{
    (void)s;
    return firn_store_scan(shaky.inner, prefix, each, user, d);
}

static inline int shaky_identity(struct firn_store *s, char out[STORE_ID_TEXT_BUF],
                                 struct firn_diag *d)
{
    (void)s;
    return firn_store_identity(shaky.inner, out, d);
}

static inline void shaky_close(struct firn_store *s)
{
    (void)s;
    firn_store_close(shaky.inner);
    shaky.inner = NULL;
}

static const struct firn_store_ops shaky_ops = { .size = sizeof shaky_ops,
                                                 .scheme = "shaky",
                                                 .read = shaky_read,
                                                 .cas_many = shaky_cas_many,
                                                 .scan = shaky_scan,
                                                 .identity = shaky_identity,
                                                 .close = shaky_close };

static inline struct firn_store *shaky_open(void)
{
    memset(&shaky, 0, sizeof shaky);
    shaky.base.ops = &shaky_ops;
    T_EQ(firn_store_memory_new(&shaky.inner), 0);
    return &shaky.base;
}

/* --- jobs --- */

enum { RETURNED_MAX = 4096 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct job *job[RETURNED_MAX]; /* in the order in which they went back */
    size_t n;
} returned = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

void job_hand_back(struct job *j)
{
    pthread_mutex_lock(&returned.mutex);
    returned.job[returned.n++ % RETURNED_MAX] = j;
    pthread_cond_broadcast(&returned.changed);
    pthread_mutex_unlock(&returned.mutex);
}

void job_return(struct job *j, int result)
{
    j->result = result;
    job_hand_back(j);
}

static inline void await_returned(size_t n)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60; /* only a hang takes so long */
    pthread_mutex_lock(&returned.mutex);
    while (returned.n < n && pthread_cond_timedwait(&returned.changed, &returned.mutex, &end) == 0)
        continue;
    size_t have = returned.n;
    pthread_mutex_unlock(&returned.mutex);
    T_OK(have >= n, "%zu of %zu jobs came back", have, n);
}

static inline struct job *job_init(struct job *j, enum job_what what, const char *name,
                                   uint64_t want)
{
    *j = (struct job){ .what = what, .name_len = strlen(name), .want = want, .result = 77 };
    memcpy(j->name, name, j->name_len + 1);
    return j;
}

/* Link an array of jobs in its order. */
static inline struct job *chain(struct job *j, size_t n)
{
    for (size_t i = 0; i < n; i++)
        j[i].next = i + 1 < n ? &j[i + 1] : NULL;
    return j;
}

/* --- a coordinator without its thread, whose lease finds the store in order --- */

static struct coordinator *c;

static inline void setup(void)
{
    c = calloc(1, sizeof *c);
    c->lease = calloc(1, sizeof *c->lease);
    T_OK(c && c->lease);
    c->lease->clock.state = CLOCK_OK;
    c->lease->clock.off_ns = INT64_C(1700000000) * 1000000000;
    c->lease->view.gate = LEASE_GATE_OPEN;
    c->store = shaky_open();
    c->opts.retention_s = 86400;
    c->opts.wait_ms = 600000;
    c->opts.first = (struct seq_spec){ .start = 100001 };
    T_EQ(ranges_init(&c->ranges), 0);
    tickets_init_table(&c->tickets, c->store, c->ranges.table, NULL, NULL);
    group_commit_init(c);
    c->serve.step_ms_ = c->serve.sweep_ms_ = UINT64_MAX; /* turns have jobs alone */
    pthread_mutex_init(&c->mutex, NULL);
    job_list_init(&c->inbox);
    returned.n = 0;
}

static inline void teardown(void)
{
    tickets_done(&c->tickets);
    firn_store_close(c->store);
    ranges_done(&c->ranges);
    pthread_mutex_destroy(&c->mutex);
    free(c->lease);
    free(c);
}

#define T_TOOK(j, first_, count_)                   \
    do {                                            \
        T_EQ((j)->result, 0, "%s", (j)->diag.text); \
        T_EQ((j)->range.first, first_);             \
        T_EQ((j)->range.count, count_);             \
    } while (0)

#endif
