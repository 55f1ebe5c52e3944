/*
 * libfirn-node: a lease kept by a thread, and the generator on its window. Callers see only `gen`,
 * a generator shared by threads. When the slot changes, the thread closes the old generator (one
 * atomic step that yields its true last tick) and publishes a new one that begins above it; a
 * caller that still holds the old one is told that it is closed, and loads `gen` again. Generators
 * are freed only with their keeper, because a caller may still use one: slots change rarely.
 *
 * A child of fork() finds `page` wiped. Nothing of the parent's keeper can be used there (its
 * thread does not exist, its connection is the parent's), so the child leaves it alone and makes
 * its own. Tests: tests/unit/node/node.c.
 */
#include "firn/node.h"
#include "drive/board.h"
#include "coord/lease_ticks.h"
#include "firn/gen.h"
#include "id/diag.h"
#include "id/gen_setup.h"
#include "platform/assert.h"
#include "platform/wipe_page.h"
#include "store/slotlock.h"
#include "platform/mono.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    WAIT_MS = 5000,
    RELEASE_MS = 2000,
    NAP_US = 200,
    HURRY_MS = 50, /* a waiting caller makes the keeper step, but not more often than this */
};

struct era { /* one slot's generator, on a page that fork() wipes */
    struct firn_shared gen;
    struct era *older;
};

struct keeper {                        /* the lease and its thread, in one process */
    _Atomic(struct firn_shared *) gen; /* NULL: no window yet */
    struct era *eras;                  /* the thread's, the newest first */
    uint64_t grant_gen;
    uint64_t last;    /* highest tick of the lease that a closed generator stamped */
    uint64_t stamped; /* the same as a tick of the layout */
    struct firn_store *store;
    struct slot_lock slots;
    struct lease_world world;
    struct lease lease;
    struct board board;
    struct board_clock clock;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the flags below */
    pthread_cond_t wake;   /* the thread: there is something to do */
    pthread_cond_t news;   /* callers: the board has changed */
    bool hurry, stop;
    uint64_t stepped_ms; /* when the thread last did something */
};

struct firn_node {
    struct page {             /* wiped by fork() */
        _Atomic uint32_t own; /* this process's keeper is up */
        _Atomic uint32_t lock;
    } * page;
    _Atomic(struct keeper *) keeper;
    struct firn_node_opts opts;
    struct firn_layout layout, ticks; /* the IDs', and the lease's */
    struct lease_params params;
    char layout_text[FIRN_LAYOUT_TEXT_BUF], name[RECORD_NAME_MAX + 1];
    char url[];
};

/* ---- the keeper's thread ---- */

static struct timespec at_ms(uint64_t ms)
{
    return (struct timespec){ (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
}

/* The highest tick of the lease that may have been stamped so far. */
static uint64_t stamped_so_far(const struct firn_node *n, const struct keeper *k)
{
    struct firn_shared *g = atomic_load_explicit(&k->gen, memory_order_relaxed);
    if (!g)
        return k->last;
    uint64_t next = __atomic_load_n(&g->word_, __ATOMIC_RELAXED) >> g->seq_bits_;
    return max64(k->last, lease_ticks_stamped(&n->layout, &n->ticks, next));
}

static void close_generator(const struct firn_node *n, struct keeper *k)
{
    struct firn_shared *g = atomic_load_explicit(&k->gen, memory_order_relaxed);
    if (!g)
        return;
    uint64_t tick = 0;
    firn_shared_close(g, &tick);
    k->stamped = max64(k->stamped, tick);
    k->last = max64(k->last, lease_ticks_stamped(&n->layout, &n->ticks, tick));
    atomic_store_explicit(&k->gen, NULL, memory_order_release);
}

/* A generator on the grant, if that has a whole tick of the layout above all that was stamped. */
static void open_generator(const struct firn_node *n, struct keeper *k, const struct lease_view *v)
{
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    uint64_t from = lease_ticks_from(&n->layout, &n->ticks, v->grant.from);
    o.slot = v->grant.slot;
    o.policy = FIRN_POLICY_BORROW;
    o.max_drift_ms = (uint32_t)v->max_drift;
    o.clock = &k->clock.base;
    o.from = max64(from, k->stamped + 1);
    o.until = lease_ticks_until(&n->layout, &n->ticks, v->grant.until);
    struct era *e = o.until > o.from ? firn__wipe_page_new(sizeof *e) : NULL;
    if (!e)
        return; /* the next step tries again */
    firn_assert(o.from > k->stamped && v->grant.gen > k->grant_gen,
                "slot %u from %" PRIu64 " stamped %" PRIu64, o.slot, o.from, k->stamped);
    if (firn_shared_init(&e->gen, &n->layout, &o) != 0) {
        firn__wipe_page_free(e, sizeof *e);
        return;
    }
    e->older = k->eras;
    k->eras = e;
    k->grant_gen = v->grant.gen;
    atomic_store_explicit(&k->gen, &e->gen, memory_order_release);
}

/* Bring the generator in line with the lease's view. */
static void apply(const struct firn_node *n, struct keeper *k)
{
    const struct lease_view *v = &k->lease.view;
    bool over = v->grant.closed || v->grant.gen == 0;
    board_publish(&k->board, v); /* the clock first: a new grant must not meet the old time */
    if (over || v->grant.gen != k->grant_gen)
        close_generator(n, k);
    struct firn_shared *g = atomic_load_explicit(&k->gen, memory_order_relaxed);
    if (g)
        firn_shared_extend(g, lease_ticks_until(&n->layout, &n->ticks, v->grant.until));
    else if (!over)
        open_generator(n, k, v);
    g = atomic_load_explicit(&k->gen, memory_order_relaxed);
    /* Just after a FENCE stamps run ahead of the clock, up to one below a new store's first
     * tick. */
    if (g && v->floor_tick > 0)
        firn_shared_set_floor(g, lease_ticks_until(&n->layout, &n->ticks, v->floor_tick - 1));
}

static void *keep(void *arg)
{
    struct firn_node *n = arg;
    struct keeper *k = atomic_load(&n->keeper);
    for (bool stop = false; !stop;) {
        uint64_t due = lease_step(&k->lease, stamped_so_far(n, k));
        apply(n, k);
        struct timespec t = at_ms(due);
        pthread_mutex_lock(&k->mutex);
        k->stepped_ms = mono_ms();
        pthread_cond_broadcast(&k->news);
        int over = 0;
        while (!k->stop && !k->hurry && !over)
            over = pthread_cond_timedwait(&k->wake, &k->mutex, &t);
        stop = k->stop;
        k->hurry = false;
        pthread_mutex_unlock(&k->mutex);
    }
    return NULL;
}

/* ---- the keeper's life ---- */

static void keeper_free(struct keeper *k)
{
    firn_store_close(k->store);
    slot_lock_close(&k->slots);
    for (struct era *e = k->eras, *older; e; e = older) {
        older = e->older;
        firn__wipe_page_free(e, sizeof *e);
    }
    pthread_cond_destroy(&k->wake);
    pthread_cond_destroy(&k->news);
    pthread_mutex_destroy(&k->mutex);
    board_done(&k->board);
    free(k);
}

static int keeper_start(struct firn_node *n, struct firn_diag *d)
{
    struct keeper *k = calloc(1, sizeof *k);
    if (!k)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    mono_cond_init(&k->wake);
    mono_cond_init(&k->news);
    pthread_mutex_init(&k->mutex, NULL);
    board_init(&k->board);
    board_clock_init(&k->clock, &k->board);
    k->slots = (struct slot_lock)SLOT_LOCK_NONE;
    int r = firn_store_open(n->url, n->opts.timeout_ms, &k->store, d);
    if (r == 0 && strncmp(n->url, "sqlite:", 7) == 0)
        r = slot_lock_open(n->url + 7, n->layout_text, n->params.slots, &k->slots, d);
    lease_world_real(&k->world, &k->slots);
    n->params.since_ms = k->slots.since_ms;
    if (r == 0)
        r = lease_open(&k->lease, k->store, &n->params, &k->world, d);
    atomic_store(&n->keeper, k);
    sigset_t all, before;
    sigfillset(&all); /* the program's signals are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (r == 0 && pthread_create(&k->thread, NULL, keep, n) != 0)
        r = firn__diag(d, FIRN_ENOMEM, 0, "no thread for the lease");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r != 0) {
        atomic_store(&n->keeper, NULL);
        keeper_free(k);
    }
    return r;
}

static void keeper_stop(struct firn_node *n, struct keeper *k)
{
    pthread_mutex_lock(&k->mutex);
    k->stop = true;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->mutex);
    pthread_join(k->thread, NULL);
    close_generator(n, k);
    int r = lease_release(&k->lease, k->last, RELEASE_MS);
    (void)r; /* if it did not land, the rest of the window stays unused */
    keeper_free(k);
}

/* In a child: one thread makes the child's keeper, other threads wait for it. */
static int after_fork(struct firn_node *n)
{
    struct page *p = n->page;
    struct firn_diag d = { 0 };
    int r = 0;
    if (!firn_store_url_shared(n->url))
        return FIRN_EFORKED; /* a file's locks and a process's memory do not survive a fork */
    while (atomic_exchange(&p->lock, 1))
        sched_yield();
    if (!atomic_load(&p->own)) {
        r = keeper_start(n, &d); /* the parent's stays: its connection is not ours to close */
        atomic_store(&p->own, r == 0);
    }
    atomic_store(&p->lock, 0);
    return r;
}

/* ---- callers ---- */

/* Wait for the keeper's next step, for up to HURRY_MS. */
static void await_news(struct keeper *k)
{
    uint64_t now = mono_ms();
    struct timespec t = at_ms(now + HURRY_MS);
    pthread_mutex_lock(&k->mutex);
    if (now >= k->stepped_ms + HURRY_MS) {
        k->hurry = true;
        pthread_cond_signal(&k->wake);
    }
    pthread_cond_timedwait(&k->news, &k->mutex, &t);
    pthread_mutex_unlock(&k->mutex);
}

/* There is no ID at once: wait for the window, the clock or the next tick. */
static int fill_slowly(struct firn_node *n, uint64_t *ids, size_t count, size_t *out_n)
{
    uint64_t end = mono_ms() + (n->opts.wait_ms ? n->opts.wait_ms : WAIT_MS);
    for (;;) {
        int r = atomic_load(&n->page->own) ? 0 : after_fork(n);
        struct keeper *k = atomic_load(&n->keeper);
        struct firn_shared *g = k ? atomic_load_explicit(&k->gen, memory_order_acquire) : NULL;
        if (r == 0)
            r = g ? firn_shared_fill(g, ids, count, out_n) : FIRN_EWINDOW;
        if (r == 0 || r == FIRN_EEXHAUSTED || r == FIRN_EFORKED || mono_ms() >= end)
            return r == FIRN_ECLOSED ? FIRN_EWINDOW : r;
        if (k && (r == FIRN_EWINDOW || r == FIRN_ECLOSED))
            await_news(k);
        else
            usleep(r == FIRN_EAGAIN ? NAP_US : HURRY_MS * 1000);
    }
}

int firn_node_next(struct firn_node *n, uint64_t *out_id)
{
    size_t one;
    struct keeper *k = atomic_load_explicit(&n->keeper, memory_order_acquire);
    struct firn_shared *g = k ? atomic_load_explicit(&k->gen, memory_order_acquire) : NULL;
    return g && firn_shared_next(g, out_id) == 0 ? 0 : fill_slowly(n, out_id, 1, &one);
}

int firn_node_fill(struct firn_node *n, uint64_t *ids, size_t count, size_t *out_n)
{
    if (!n || (!ids && count > 0) || !out_n)
        return FIRN_EINVAL;
    if (count == 0) {
        *out_n = 0;
        return 0;
    }
    struct keeper *k = atomic_load_explicit(&n->keeper, memory_order_acquire);
    struct firn_shared *g = k ? atomic_load_explicit(&k->gen, memory_order_acquire) : NULL;
    if (g && firn_shared_fill(g, ids, count, out_n) == 0)
        return 0;
    return fill_slowly(n, ids, count, out_n);
}

void firn_node_info(struct firn_node *n, struct firn_node_info *out)
{
    struct lease_view v;
    *out = (struct firn_node_info){ .slot = UINT32_MAX, .error = FIRN_EFORKED };
    snprintf(out->state, sizeof out->state, "start");
    struct keeper *k = atomic_load(&n->page->own) ? atomic_load(&n->keeper) : NULL;
    if (!k)
        return; /* a child that has not asked for an ID yet */
    board_copy(&k->board, &v);
    if (v.grant.gen != 0) {
        out->slot = v.grant.slot;
        out->window_unix_ms = firn_layout_unix_us(&n->ticks, v.grant.until) / 1000;
    }
    uint64_t now = firn_layout_ticks(&n->ticks,
                                     (int64_t)(k->clock.base.now_ns(&k->clock.base) / 1000));
    out->ready = v.ready && now < v.ready_until;
    snprintf(out->state, sizeof out->state, "%s", slot_state_name(v.state));
    out->error = v.error;
    out->diag = v.diag;
}

/* ---- open and close ---- */

static int read_opts(struct firn_node *n, const struct firn_node_opts *opts, struct firn_diag *d)
{
    int r = opts ? firn__sized_copy(&n->opts, sizeof n->opts, opts, opts->size,
                                    SIZE_UP_TO(struct firn_node_opts, reserved_))
                 : 0;
    if (r != 0)
        return firn__diag(d, r, 0,
                          r == FIRN_EINVAL ? "opts.size is not set: start from FIRN_NODE_OPTS_INIT"
                                           : "the options are newer than this library");
    const char *layout = n->opts.layout ? n->opts.layout : "firn";
    const char *name = n->opts.name ? n->opts.name : "";
    r = firn_layout_parse(layout, strlen(layout), 0, &n->layout, d);
    if (r != 0)
        return r;
    if (n->layout.flags & FIRN_LAYOUT_DECODE_ONLY)
        return firn__diag(d, FIRN_EFORMAT, 0, "the layout is decode-only: it has no node to lease");
    if (strlen(name) > RECORD_NAME_MAX || (*name && !record_name_ok(name, strlen(name))))
        return firn__diag(d, FIRN_EFORMAT, 0, "a name has up to %d of A-Z a-z 0-9 . _ : -",
                          RECORD_NAME_MAX);
    memcpy(n->name, name, strlen(name) + 1);
    n->params = (struct lease_params){ .name = n->name,
                                       .init = n->opts.init != 0,
                                       .accept_clock = n->opts.accept_clock != 0,
                                       .manual_fence = n->opts.manual_fence != 0 };
    lease_params_of(&n->layout, &n->params, n->layout_text);
    n->ticks = n->layout;
    n->ticks.tick_us = 1000;
    return 0;
}

/* Wait for the first window. The reason why there is none is in the view. */
static int await_window(struct firn_node *n, struct firn_diag *d)
{
    struct keeper *k = atomic_load(&n->keeper);
    uint64_t end = mono_ms() + (n->opts.wait_ms ? n->opts.wait_ms : WAIT_MS);
    struct lease_view v;
    do {
        struct timespec t = at_ms(mono_ms() + 10 < end ? mono_ms() + 10 : end);
        if (atomic_load_explicit(&k->gen, memory_order_acquire))
            return 0;
        board_copy(&k->board, &v);
        if (v.state == SLOT_HALTED)
            break; /* an operator has to repair it */
        pthread_mutex_lock(&k->mutex);
        pthread_cond_timedwait(&k->news, &k->mutex, &t);
        pthread_mutex_unlock(&k->mutex);
    } while (mono_ms() < end);
    if (d)
        *d = v.diag;
    if (v.error)
        return v.error;
    return firn__diag(d, FIRN_EWINDOW, 0, "no window within the time: state %s",
                      slot_state_name(v.state));
}

int firn_node_open(const char *url, const struct firn_node_opts *opts, struct firn_node **out,
                   struct firn_diag *d)
{
    if (!url || !out)
        return FIRN_EINVAL;
    struct firn_node *n = calloc(1, sizeof *n + strlen(url) + 1);
    if (!n)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    memcpy(n->url, url, strlen(url) + 1);
    int r = read_opts(n, opts, d);
    if (r == 0 && !(n->page = firn__wipe_page_new(sizeof *n->page)))
        r = firn__diag(d, FIRN_ENOMEM, 0, "no page that fork() wipes");
    if (r == 0)
        r = keeper_start(n, d);
    if (r == 0) {
        atomic_store(&n->page->own, 1);
        r = await_window(n, d);
    }
    if (r != 0) {
        firn_node_close(n);
        return r;
    }
    *out = n;
    return 0;
}

void firn_node_close(struct firn_node *n)
{
    if (!n)
        return;
    struct keeper *k = atomic_load(&n->keeper);
    if (k && atomic_load(&n->page->own)) /* else it is the parent's */
        keeper_stop(n, k);
    if (n->page)
        firn__wipe_page_free(n->page, sizeof *n->page);
    free(n);
}
