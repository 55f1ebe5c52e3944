/*
 * The disk's thread: it takes all saves that are queued, has them written at once (log_store.h),
 * and says so. While they cannot be written it tries again every second. The lock is held to push
 * and to pop, never while the disk works. The queue has no bound of its own: the core has a bounded
 * number of entries under way, and the store refuses writes while disk_problem().
 */
#include "raft/disk.h"
#include "id/diag.h"
#include "platform/mono.h"
#include "raft/log_store.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { RETRY_MS = 1000 };

struct disk {
    void (*moved)(void *user);
    void *user;
    struct folder folder;
    struct log_store *store; /* of the thread */
    pthread_t thread;
    _Atomic uint64_t saved;

    pthread_mutex_t lock;
    pthread_cond_t work;
    struct log_save *head, **tail; /* the queue */
    bool closing;
    char problem[192]; /* "": none */
};

/* Waits for saves, or until it is time to try again. Returns what was queued. */
static struct log_save *wait_for_work(struct disk *k, bool retry, bool *closing)
{
    struct timespec until = mono_timespec(mono_ns() + (uint64_t)RETRY_MS * 1000000);
    pthread_mutex_lock(&k->lock);
    int r = 0;
    while (!k->closing && (retry ? r == 0 : !k->head))
        r = retry ? pthread_cond_timedwait(&k->work, &k->lock, &until)
                  : pthread_cond_wait(&k->work, &k->lock);
    struct log_save *list = k->head;
    k->head = NULL;
    k->tail = &k->head;
    *closing = k->closing;
    pthread_mutex_unlock(&k->lock);
    return list;
}

static bool set_problem(struct disk *k, const char *text)
{
    pthread_mutex_lock(&k->lock);
    bool changed = strcmp(k->problem, text) != 0;
    snprintf(k->problem, sizeof k->problem, "%s", text);
    pthread_mutex_unlock(&k->lock);
    return changed;
}

static void *run(void *arg)
{
    struct disk *k = arg;
    bool closing = false;
    while (!closing) {
        struct firn_diag d = { .text = "out of memory" };
        for (struct log_save *s = wait_for_work(k, log_store_behind(k->store), &closing), *next; s;
             s = next) {
            next = s->next;
            log_store_take(k->store, s);
        }
        bool moved = log_store_behind(k->store);
        if (log_store_write(k->store, &d) == 0) {
            atomic_store_explicit(&k->saved, log_store_saved(k->store), memory_order_release);
            moved |= set_problem(k, "");
        } else
            moved = set_problem(k, d.text);
        if (moved && k->moved)
            k->moved(k->user);
    }
    return NULL;
}

int disk_open(const struct disk_opts *o, struct disk **out, struct disk_loaded *loaded,
              struct firn_diag *d)
{
    struct disk *k = calloc(1, sizeof *k);
    int r = FIRN_ENOMEM;
    *loaded = (struct disk_loaded){ 0 };
    if (!k)
        return firn__diag(d, r, 0, "out of memory");
    int e = 0;
    if (o->folder)
        k->folder = *o->folder;
    else
        e = folder_open(o->dir, &k->folder);
    if (e < 0) {
        r = firn__diag(d, FIRN_EIO, 0, "cannot open %.120s: %s", o->dir, strerror(-e));
        goto no_folder;
    }
    r = log_store_open(&k->folder, &k->store, loaded, d);
    if (r != 0)
        goto no_store;
    k->moved = o->moved;
    k->user = o->user;
    k->tail = &k->head;
    pthread_mutex_init(&k->lock, NULL);
    mono_cond_init(&k->work);
    e = pthread_create(&k->thread, NULL, run, k);
    if (e == 0) {
        *out = k;
        return 0;
    }
    r = firn__diag(d, FIRN_ENOMEM, 0, "cannot start the disk's thread: %s", strerror(e));
    pthread_cond_destroy(&k->work);
    pthread_mutex_destroy(&k->lock);
    log_store_close(k->store);
    disk_loaded_done(loaded);
no_store:
    folder_close(&k->folder);
no_folder:
    free(k);
    return r;
}

int disk_save(struct disk *k, const struct core *c, const struct core_save *s)
{
    struct log_save *save = log_save_copy(c, s);
    if (!save)
        return FIRN_ENOMEM;
    pthread_mutex_lock(&k->lock);
    bool idle = !k->head;
    *k->tail = save;
    k->tail = &save->next;
    if (idle)
        pthread_cond_signal(&k->work);
    pthread_mutex_unlock(&k->lock);
    return 0;
}

uint64_t disk_saved(const struct disk *k)
{
    return atomic_load_explicit(&k->saved, memory_order_acquire);
}

bool disk_problem(struct disk *k, char *why, size_t cap)
{
    pthread_mutex_lock(&k->lock);
    bool there = k->problem[0] != '\0';
    snprintf(why, cap, "%s", k->problem);
    pthread_mutex_unlock(&k->lock);
    return there;
}

void disk_close(struct disk *k)
{
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    k->closing = true;
    pthread_cond_signal(&k->work);
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
    firn_assert(!k->head, "a save after the end");
    log_store_close(k->store);
    pthread_cond_destroy(&k->work);
    pthread_mutex_destroy(&k->lock);
    folder_close(&k->folder);
    free(k);
}
