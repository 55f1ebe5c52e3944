/* The table of slots lent to clients. Tested in tests/property/server/leases_world.c. */
#include "server/leases.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "store/slotlock.h"
#include "id/minmax.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STEP_MS = 1000,  /* how often the table is looked through */
    RELEASE_MS = 100 /* the store has other things to do */
};

struct tenant {
    char id[LEASE_ID_LEN + 1];
    struct lease *lease;
    struct lease_world world;
    struct slot_lock slots; /* its own: a shared one would not exclude this process */
    bool told;              /* the client has been told a window */
    uint64_t last, due_ms;
    uint64_t gen, extended_until; /* of the window that the client was told last */
    struct lease_ask *waiting;
    struct tenant *next;
};

struct leases {
    struct leases_opts opts;
    struct lease_world world;
    char name[RECORD_NAME_MAX + 1];
    struct tenant *first;
    uint32_t n;
    struct leases_stats stats;
};

static void count(_Atomic uint64_t *c)
{
    atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

/* --- time --- */

static struct clock_reading read_clock(const struct leases *l)
{
    struct clock_reading r = { 0 };
    l->world.read_clock(l->world.user, &r);
    return r;
}

static uint64_t now_ms(const struct leases *l)
{
    return (uint64_t)read_clock(l).mono / 1000000;
}

/* --- tenants --- */

static struct tenant **find(struct leases *l, const char *id)
{
    struct tenant **at = &l->first;
    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    return at;
}

static void tenant_free(struct leases *l, struct tenant **at)
{
    struct tenant *t = *at;
    firn_assert(l->n > 0 && !t->waiting, "n=%u", l->n);
    *at = t->next;
    l->n--;
    atomic_store_explicit(&l->stats.held, l->n, memory_order_relaxed);
    slot_lock_close(&t->slots);
    free(t->lease);
    free(t);
}

/* The slot goes back as it is: `until` stays, for the client may still be stamping up to it. */
static void give_back(struct tenant *t)
{
    struct lease *e = t->lease;
    uint64_t until = e->view.grant.until;
    if (e->view.grant.gen == 0 || e->view.error)
        return; /* nothing to give, or the store is in trouble: the window's end frees it as well */
    int r = lease_release(e, until ? until - 1 : 0, RELEASE_MS);
    (void)r;
}

static int tenant_new(struct leases *l, struct firn_store *store, const char *id,
                      struct tenant **out, struct firn_diag *d)
{
    struct tenant *t = calloc(1, sizeof *t);
    if (t)
        t->lease = calloc(1, sizeof *t->lease);
    if (!t || !t->lease) {
        free(t);
        return firn__diag(d, FIRN_ENOMEM, 0, "no memory for a lease: ask again in a moment");
    }
    memcpy(t->id, id, sizeof t->id);
    const struct lease_params *p = &l->opts.params;
    t->slots = (struct slot_lock)SLOT_LOCK_NONE;
    int r = l->opts.lock_path ? slot_lock_open(l->opts.lock_path, p->layout, p->slots, &t->slots, d)
                              : 0;
    t->world = l->world;
    if (!l->opts.world)
        lease_world_real(&t->world, &t->slots);
    if (r == 0)
        r = lease_open(t->lease, store, &l->opts.params, &t->world, d);
    if (r) {
        slot_lock_close(&t->slots);
        free(t->lease);
        free(t);
        return r;
    }
    firn_assert(l->n < l->opts.max, "n=%u max=%u", l->n, l->opts.max);
    t->next = l->first;
    l->first = t;
    l->n++;
    atomic_store_explicit(&l->stats.held, l->n, memory_order_relaxed);
    *out = t;
    return 0;
}

/* --- answering --- */

static void answer(struct lease_ask *a, int result, const struct firn_diag *why)
{
    if (result && why)
        a->diag = *why;
    a->done(a, result);
}

static void answer_all(struct tenant *t, int result, const struct firn_diag *why)
{
    while (t->waiting) {
        struct lease_ask *a = t->waiting;
        t->waiting = a->next;
        answer(a, result, why);
    }
}

/* Whether there is a window that a client can use. */
static bool has_window(struct leases *l, const struct tenant *t, uint64_t *now)
{
    const struct lease_view *v = &t->lease->view;
    *now = lease_tick(t->lease, read_clock(l).mono);
    return v->grant.gen != 0 && !v->grant.closed && v->grant.from < v->grant.until &&
           *now < v->grant.until;
}

static void tell(struct leases *l, struct tenant *t, uint64_t now)
{
    const struct lease_view *v = &t->lease->view;
    firn_assert(v->grant.from < v->grant.until && now < v->grant.until,
                "from=%" PRIu64 " until=%" PRIu64 " now=%" PRIu64, v->grant.from, v->grant.until,
                now);
    firn_assert(v->grant.gen != t->gen || v->grant.until >= t->extended_until,
                "until=%" PRIu64 " after %" PRIu64, v->grant.until, t->extended_until);
    t->gen = v->grant.gen;
    if (v->grant.until != t->extended_until)
        count(t->told ? &l->stats.extended : &l->stats.granted);
    t->told = true;
    t->extended_until = v->grant.until;
    for (struct lease_ask *a = t->waiting; a; a = a->next)
        a->terms = (struct lease_terms){ v->grant, now, v->window,
                                         v->floor_tick ? v->floor_tick - 1 : 0, v->max_drift };
    answer_all(t, 0, NULL);
}

/* Errors that waiting does not repair. */
static bool is_hard(const struct lease_view *v)
{
    return v->error == FIRN_ENOSLOT || v->error == FIRN_ESTORE || v->error == FIRN_EEXHAUSTED ||
           v->error == FIRN_ECLOCK || v->state == SLOT_HALTED;
}

/* Asks that have waited too long. */
static void drop_late(struct leases *l, struct tenant *t, uint64_t now)
{
    for (struct lease_ask **at = &t->waiting; *at;) {
        struct lease_ask *a = *at;
        if (now < a->deadline_ms) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        if (t->lease->view.error == 0)
            firn__diag(&a->diag, FIRN_EAGAIN, 0,
                       "the store has not granted a window yet: ask again");
        count(&l->stats.refused);
        answer(a, FIRN_EAGAIN, t->lease->view.error ? &t->lease->view.diag : NULL);
    }
}

/* One step of the lease; requests that wait are answered if possible. False: the tenant is gone. */
static bool step_tenant(struct leases *l, struct tenant **at)
{
    struct tenant *t = *at;
    const struct lease_view *v = &t->lease->view;
    uint64_t now;
    t->due_ms = lease_step(t->lease, t->last);
    if (has_window(l, t, &now)) {
        tell(l, t, now);
    } else if (is_hard(v)) {
        for (struct lease_ask *a = t->waiting; a; a = a->next)
            count(&l->stats.refused);
        answer_all(t, v->error ? v->error : FIRN_EAGAIN, &v->diag);
    } else {
        drop_late(l, t, now_ms(l));
    }
    if (t->told || t->waiting)
        return true;
    give_back(t); /* no client knows of it */
    tenant_free(l, at);
    return false;
}

/* The highest tick that the client claims, limited to its window and to the drift. */
static uint64_t plausible_last(struct leases *l, const struct tenant *t, uint64_t last)
{
    const struct lease_view *v = &t->lease->view;
    uint64_t now = lease_tick(t->lease, read_clock(l).mono);
    if (v->grant.until == 0)
        return 0;
    return min64(last, min64(v->grant.until - 1, now + v->max_drift));
}

static void take(struct leases *l, struct firn_store *store, struct lease_ask *a)
{
    struct tenant **at = find(l, a->id), *t = *at;
    if (!t && l->n >= l->opts.max) {
        count(&l->stats.refused);
        answer(a,
               firn__diag(&a->diag, FIRN_ENOSLOT, 0,
                          "this server lends %u slots (leases.max) and all are taken: ask another "
                          "server, or raise it",
                          l->opts.max),
               NULL);
        return;
    }
    if (!t) {
        int r = tenant_new(l, store, a->id, &t, &a->diag);
        if (r) {
            answer(a, r, NULL);
            return;
        }
        at = &l->first;
    }
    a->next = t->waiting;
    t->waiting = a;
    step_tenant(l, at);
}

static void extend(struct leases *l, struct lease_ask *a)
{
    struct tenant **at = find(l, a->id), *t = *at;
    if (!t || !t->told) {
        answer(a,
               firn__diag(&a->diag, FIRN_ENOENT, 0,
                          "this server does not know the lease (any more): use up its window and "
                          "take another"),
               NULL);
        return;
    }
    uint64_t last = plausible_last(l, t, a->last);
    firn_assert(last < t->lease->view.grant.until || last == 0, "last=%" PRIu64, last);
    t->last = last > t->last ? last : t->last;
    a->next = t->waiting;
    t->waiting = a;
    step_tenant(l, at);
}

static void give(struct leases *l, struct lease_ask *a)
{
    struct tenant **at = find(l, a->id);
    if (*at) {
        answer_all(*at, FIRN_ECLOSED, NULL);
        give_back(*at);
        tenant_free(l, at);
        count(&l->stats.returned);
    }
    answer(a, 0, NULL);
}

/* --- the coordinator's side --- */

void leases_ask(struct leases *l, struct firn_store *store, struct lease_ask *a)
{
    a->next = NULL;
    switch (a->what) {
    case LEASE_TAKE:
        take(l, store, a);
        break;
    case LEASE_EXTEND:
        extend(l, a);
        break;
    case LEASE_RETURN:
        give(l, a);
        break;
    }
}

/* No request for a window's length after the window's end: the client is gone. */
static bool is_over(struct leases *l, const struct tenant *t)
{
    const struct lease_view *v = &t->lease->view;
    return !t->waiting && lease_tick(t->lease, read_clock(l).mono) >= v->grant.until + v->window;
}

uint64_t leases_step(struct leases *l, struct firn_store *store)
{
    uint64_t now = now_ms(l), next = now + STEP_MS;
    uint32_t n = 0;
    (void)store;
    for (struct tenant **at = &l->first; *at;) {
        struct tenant *t = *at;
        if (t->waiting && now >= t->due_ms) {
            if (!step_tenant(l, at))
                continue;
        } else if (is_over(l, t)) {
            give_back(t);
            tenant_free(l, at);
            count(&l->stats.expired);
            continue;
        }
        if (t->waiting)
            next = min64(next, t->due_ms > now ? t->due_ms : now + 1);
        at = &t->next;
        n++;
    }
    firn_assert(n == l->n && next > now, "%u of %u, next=%" PRIu64 " now=%" PRIu64, n, l->n, next,
                now);
    return next;
}

const struct leases_stats *leases_stats(const struct leases *l)
{
    return &l->stats;
}

void leases_since(struct leases *l, uint64_t since_ms)
{
    l->opts.params.since_ms = since_ms;
}

int leases_new(const struct leases_opts *o, struct leases **out)
{
    struct leases *l = calloc(1, sizeof *l);
    if (!l)
        return FIRN_ENOMEM;
    l->opts = *o;
    if (o->world)
        l->world = *o->world;
    else
        lease_world_real(&l->world, NULL);
    /* Operators see that a slot is lent; and slots that clients had go to clients again. */
    snprintf(l->name, sizeof l->name, "%.*s:lease", (int)sizeof l->name - 7,
             o->params.name ? o->params.name : "");
    l->opts.params.name = l->name;
    l->opts.params.keep_unused = true;
    l->opts.params.init = false; /* the server's own lease does that */
    *out = l;
    return 0;
}

void leases_free(struct leases *l, struct firn_store *store)
{
    if (!l)
        return;
    while (l->first) {
        answer_all(l->first, FIRN_ECLOSED, NULL);
        if (store)
            give_back(l->first);
        tenant_free(l, &l->first);
    }
    firn_assert(l->n == 0, "n=%u", l->n);
    free(l);
}
