/*
 * leased mode: a server lends this process a worker slot and a window of timestamps [from, until),
 * and libfirn's generator makes IDs inside it. Uniqueness rests on the window alone
 * (docs/client.md): the store granted it, no other process gets it, and the generator refuses to
 * leave it whatever clock it is given. The clock here is the server's: its time when it answered,
 * advanced by CLOCK_MONOTONIC.
 *
 * No thread watches the window. The generator gets a window that ends a little before the granted
 * one, again and again; so from time to time a call finds it used up, comes here, sees whether an
 * extension arrived or is due, and moves the end. Only at the true end a call has to wait.
 *
 * The server that lent the slot extends the lease. If that server is gone, or has forgotten the
 * lease, another one lends another slot; the rest of the old window is used until then and never
 * again.
 */
#include "client/internal.h"
#include "coord/lease_ticks.h"
#include "id/diag.h"
#include "id/minmax.h"
#include "id/layout_same.h"
#include "id/rng_take.h"
#include "platform/assert.h"
#include "platform/mono.h"
#include "wire/json_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PARTS = 12,      /* of a window: how often a busy client looks at its lease */
    RETURN_MS = 500, /* how long closing a client may take */
    NAP_US = 200,    /* when the IDs of the current tick are used up */
    ID_BUF = 33,     /* a lease's name: 128 random bits */
};

struct lend_clock {
    struct firn_clock base;
    _Atomic int64_t off_ns; /* the server's time less CLOCK_MONOTONIC */
};

struct retired { /* a closed generator that threads may still be calling */
    struct firn_shared *gen;
    struct retired *next;
};

struct lending {
    _Atomic(struct firn_shared *) *place;
    struct firn_shared *gen; /* the same; NULL: none */
    struct retired *retired;
    struct lend_clock clock;
    struct firn_layout layout,
        ticks;  /* the IDs', and the lease's: milliseconds of the same epoch */
    bool known; /* the layout is */

    char id[ID_BUF];
    size_t server; /* that lent it */
    bool held;     /* there is a lease that the server is believed to know */
    uint32_t slot;
    uint64_t from, until, window; /* ticks of the lease */
    uint64_t stamped;             /* highest tick of the layout that a closed generator used */

    struct trip *trip;
    bool extending;    /* the trip extends the lease; else it requests a new one */
    uint64_t tried_ms; /* when an extension was last asked for */
    struct failure failure;
};

/* --- the clock --- */

static uint64_t shown(const struct firn_clock *base, uint64_t mono)
{
    const struct lend_clock *c = (const struct lend_clock *)(const void *)base;
    return mono + (uint64_t)atomic_load_explicit(&c->off_ns, memory_order_relaxed);
}

static uint64_t now_ns(const struct firn_clock *base)
{
    return shown(base, mono_coarse_ns());
}

static uint64_t fine_ns(const struct firn_clock *base)
{
    return shown(base, mono_ns());
}

static void sleep_ns(const struct firn_clock *base, uint64_t ns)
{
    (void)base;
    nanosleep(&(struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) }, NULL);
}

/* F in ticks of the lease. */
static uint64_t tick_now(const struct lending *l)
{
    return firn_layout_ticks(&l->ticks, (int64_t)(fine_ns(&l->clock.base) / 1000));
}

/* --- the generator --- */

static void retire(struct lending *l)
{
    uint64_t last = 0;
    struct retired *r;
    if (!l->gen)
        return;
    firn_shared_close(l->gen, &last);
    l->stamped = max64(last, l->stamped);
    r = malloc(sizeof *r);
    if (r) { /* else its page is leaked */
        *r = (struct retired){ l->gen, l->retired };
        l->retired = r;
    }
    l->gen = NULL;
    atomic_store_explicit(l->place, NULL, memory_order_release);
}

/* The tick of the layout that the generator is at, which may be ahead of the clock. */
static uint64_t tick_used(const struct lending *l)
{
    return l->gen ? __atomic_load_n(&l->gen->word_, __ATOMIC_RELAXED) >> l->gen->seq_bits_ : 0;
}

/* The end of the granted window, in ticks of the layout. */
static uint64_t hard_end(const struct lending *l)
{
    return lease_ticks_until(&l->layout, &l->ticks, l->until);
}

/* The end of the generator's window for now: a part of a window ahead, at most the granted end. */
static uint64_t soft_end(const struct lending *l)
{
    uint64_t hard = hard_end(l), tick = tick_now(l);
    uint64_t part = l->window / PARTS ? l->window / PARTS : 1;
    uint64_t end = lease_ticks_until(&l->layout, &l->ticks, tick + part);
    uint64_t ahead = tick_used(l) + (end - lease_ticks_until(&l->layout, &l->ticks, tick)) + 1;
    return min64(max64(end, ahead), hard);
}

static int start(struct lending *l, uint32_t drift_ms)
{
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    uint64_t from = lease_ticks_from(&l->layout, &l->ticks, l->from);
    o.slot = l->slot;
    o.policy = FIRN_POLICY_BORROW;
    o.max_drift_ms = drift_ms;
    o.clock = &l->clock.base;
    o.from = from > l->stamped ? from : l->stamped + 1;
    o.from = o.from ? o.from : 1;
    if (hard_end(l) <= o.from || l->slot >= firn_layout_slots(&l->layout))
        return FIRN_EWINDOW;
    o.until = o.from + 1; /* soft_end() raises it */
    int r = firn_shared_new(&l->layout, &o, &l->gen);
    if (r == 0)
        atomic_store_explicit(l->place, l->gen, memory_order_release);
    return r;
}

/* --- grants --- */

struct grant {
    uint64_t slot, from, until, now, window, floor, drift;
    struct firn_layout layout;
};

/* Unknown members are skipped: a newer server may send more. */
static int read_grant(const char *p, size_t len, struct grant *g)
{
    const struct {
        const char *name;
        uint64_t *to;
    } numbers[] = { { "slot", &g->slot },     { "from", &g->from },        { "until", &g->until },
                    { "now", &g->now },       { "window_ms", &g->window }, { "floor", &g->floor },
                    { "drift_ms", &g->drift } };
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
    struct json_reader j;
    struct slice layout = { NULL, 0 };
    char name[32];
    unsigned seen = 0;
    json_start(&j, p, len, NULL);
    int r = json_object(&j);
    while (r == 0 && (r = json_member(&j, name, sizeof name)) > 0) {
        unsigned i = 0;
        while (i < NUMBERS && strcmp(name, numbers[i].name) != 0)
            i++;
        if (i < NUMBERS)
            r = json_u64(&j, numbers[i].to);
        else
            r = strcmp(name, "layout") == 0 ? json_slice(&j, &layout) : json_skip(&j);
        if (i < NUMBERS)
            seen |= 1u << i;
    }
    if (r || json_finish(&j) != 0 || seen != (1u << NUMBERS) - 1 || !layout.p ||
        g->from >= g->until || g->slot > UINT32_MAX || g->drift > UINT32_MAX || g->window == 0)
        return FIRN_EFORMAT;
    return firn_layout_parse(layout.p, layout.len, 0, &g->layout, NULL);
}

static void failed(struct lending *l, int error, const char *text)
{
    l->failure.count++;
    l->failure.error = error;
    snprintf(l->failure.why, sizeof l->failure.why, "%s", text);
}

/* The server's clock when it answered, half way between question and answer. */
static void set_clock(struct lending *l, const struct trip *t, uint64_t tick)
{
    int64_t mono = (int64_t)mono_ns();
    int64_t half = (mono - (int64_t)t->began_us * 1000) / 2;
    int64_t unix_ns = firn_layout_unix_us(&l->ticks, tick) * 1000;
    atomic_store_explicit(&l->clock.off_ns, unix_ns - (mono - half), memory_order_relaxed);
}

static void granted(struct core *c, struct lending *l, const struct trip *t)
{
    struct grant g;
    if (read_grant(t->body, t->body_len, &g) != 0) {
        l->held = false;
        failed(l, FIRN_EFORMAT, "the server's lease is malformed");
        return;
    }
    if (!l->known) {
        l->layout = l->ticks = g.layout;
        l->ticks.tick_us = 1000;
        l->known = true;
    } else if (!layout_same(&l->layout, &g.layout)) {
        l->held = false;
        failed(l, FIRN_EINVAL, "the servers have different layouts: list those of one store only");
        return;
    }
    set_clock(l, t, g.now);
    /* No two grants of a slot begin at the same tick, so slot and start identify the grant. The
     * name of the lease does not: the server may have forgotten it and, on a late request, have
     * taken another slot under the same name. */
    bool same = l->extending && l->gen && g.slot == l->slot && g.from == l->from;
    if (same) {
        l->until = max64(g.until, l->until);
        atomic_fetch_add_explicit(&c->stats.extensions, 1, memory_order_relaxed);
    } else {
        retire(l);
        l->slot = (uint32_t)g.slot;
        l->from = g.from;
        l->until = g.until;
        atomic_fetch_add_explicit(&c->stats.leases, 1, memory_order_relaxed);
    }
    firn_assert(l->from < l->until, "from=%" PRIu64 " until=%" PRIu64, l->from, l->until);
    l->window = g.window;
    l->server = t->server;
    l->held = true;
    if (!l->gen) {
        int r = start(l, (uint32_t)g.drift);
        if (r && r != FIRN_EWINDOW)
            failed(l, r, "no generator can be made on this lease");
    }
    if (l->gen && g.floor) /* a new store's slots, or a fenced one's, begin ahead of the clock */
        firn_shared_set_floor(l->gen, lease_ticks_until(&l->layout, &l->ticks, g.floor));
}

static void trip_over(struct core *c, struct lending *l)
{
    struct trip *t = l->trip;
    if (t->error == 0) {
        granted(c, l, t);
    } else if (l->extending) {
        /* FIRN_EAGAIN: the store fails, the server still knows the lease, and another server
         * would not get further. Otherwise another server lends another slot; see
         * lending_tend(). */
        l->held = t->error == FIRN_EAGAIN;
        if (l->held && tick_now(l) >= l->until)
            failed(l, t->error, t->why);
    } else {
        failed(l, t->error, t->why);
    }
    trip_done(t);
    free(t);
    l->trip = NULL;
    pthread_cond_broadcast(&c->news);
}

/* --- requests --- */

static void new_id(char out[ID_BUF])
{
    unsigned char b[16];
    firn__entropy(b, sizeof b);
    for (size_t i = 0; i < sizeof b; i++)
        snprintf(out + 2 * i, 3, "%02x", b[i]);
}

/* Each lease has a new name: a request under an old name could be granted the window that was used
 * under it. */
static void begin(struct core *c, struct lending *l)
{
    struct request q = { .kind = REQUEST_POST };
    l->extending = l->held;
    if (l->extending) {
        snprintf(q.path, sizeof q.path, "/v1/leases/%s/extend", l->id);
        uint64_t last = lease_ticks_stamped(&l->layout, &l->ticks, tick_used(l));
        snprintf(q.body, sizeof q.body, "{\"last\":\"%llu\"}", (unsigned long long)last);
    } else {
        new_id(l->id);
        snprintf(q.path, sizeof q.path, "/v1/leases");
        snprintf(q.body, sizeof q.body, "{\"lease\":\"%s\"}", l->id);
    }
    l->trip = malloc(sizeof *l->trip);
    if (!l->trip) {
        failed(l, FIRN_ENOMEM, "no memory for a lease");
        return;
    }
    l->tried_ms = mono_ms();
    trip_start(l->trip, c, &q);
    if (l->extending)
        l->trip->pin = l->server;
}

/* Due: an extension when a third of the window has passed; a lease when there is none. */
static bool due(const struct lending *l)
{
    if (!l->held)
        return true;
    uint64_t at = tick_now(l), used = lease_ticks_stamped(&l->layout, &l->ticks, tick_used(l));
    at = l->gen && used > at ? used : at;
    return at + l->window - l->window / 3 > l->until &&
           mono_ms() >= l->tried_ms + l->window / PARTS / 4;
}

void lending_tend(struct core *c)
{
    struct lending *l = c->lending;
    for (int rounds = 0; rounds < 3; rounds++) {
        uint64_t failures = l->failure.count;
        if (!l->trip && due(l))
            begin(c, l);
        if (!l->trip || l->trip->polled)
            break;
        if (!trip_step(l->trip)) {
            async_watch(c, l->trip);
            break;
        }
        trip_over(c, l);
        if (l->failure.count != failures)
            break;
    }
    if (l->gen) {
        firn_shared_extend(l->gen, soft_end(l));
        firn_assert(l->gen->until_ <= hard_end(l), "until=%" PRIu64 " granted=%" PRIu64,
                    l->gen->until_, hard_end(l));
    }
}

/* Puts the shard into IDs of the generator, in which its bits are 0. */
static int put_shard(const struct lending *l, uint32_t shard, uint64_t *ids, size_t n,
                     struct firn_diag *d)
{
    const struct firn_bits *f = l->layout.field;
    bool is_slot = f[FIRN_FIELD_DC].width + f[FIRN_FIELD_NODE].width == 0;
    uint64_t max = is_slot ? 0 : (UINT64_C(1) << f[FIRN_FIELD_SHARD].width) - 1;
    if (shard > max)
        return firn__diag(d, FIRN_ERANGE, 0, SHARD_REFUSED ", or the layout has no shard field");
    for (size_t i = 0; shard && i < n; i++)
        ids[i] |= (uint64_t)shard << f[FIRN_FIELD_SHARD].shift;
    return 0;
}

int lending_fill(struct core *c, uint32_t shard, uint64_t *ids, size_t n, uint64_t end_ms,
                 size_t *out_n, struct firn_diag *d)
{
    struct lending *l = c->lending;
    uint64_t failures = l->failure.count;
    for (;;) {
        lending_tend(c);
        int r = l->gen ? firn_shared_fill(l->gen, ids, n, out_n) : FIRN_EWINDOW;
        if (r == 0)
            return put_shard(l, shard, ids, *out_n, d);
        uint64_t now = mono_ms();
        if (l->failure.count != failures && r == FIRN_EWINDOW)
            return firn__diag(d, l->failure.error, 0, "%s", l->failure.why);
        if (r == FIRN_EEXHAUSTED)
            return firn__diag(d, r, 0,
                              "the layout has no timestamps left: choose one with a later epoch");
        if (now >= end_ms)
            return firn__diag(d, FIRN_EAGAIN, 0, "no lease was granted before the deadline");
        if (r == FIRN_EWINDOW && l->gen && soft_end(l) > l->gen->until_)
            continue; /* the clock has moved on since */
        if (r == FIRN_EWINDOW && !l->trip)
            l->tried_ms = 0; /* used up faster than the clock: extend it now */
        if (r == FIRN_EWINDOW && l->trip) {
            await_trip(c, l->trip, end_ms);
        } else {
            pthread_mutex_unlock(&c->mutex);
            usleep(NAP_US);
            pthread_mutex_lock(&c->mutex);
        }
    }
}

/* --- life --- */

int lending_new(struct core *c, _Atomic(struct firn_shared *) *place)
{
    struct lending *l = calloc(1, sizeof *l);
    if (!l)
        return FIRN_ENOMEM;
    l->place = place;
    l->clock.base = (struct firn_clock){ now_ns, fine_ns, sleep_ns };
    c->lending = l;
    return 0;
}

const struct failure *lending_failure(struct core *c)
{
    return &c->lending->failure;
}

struct trip *lending_trip(struct core *c)
{
    return c->lending->trip;
}

void lending_return(struct core *c)
{
    struct lending *l = c->lending;
    struct request q = { .kind = REQUEST_DELETE };
    struct trip t;
    if (!l || !l->held)
        return;
    retire(l); /* first: once the slot is given back no ID may be made on it */
    snprintf(q.path, sizeof q.path, "/v1/leases/%s", l->id);
    trip_start(&t, c, &q);
    t.pin = l->server;
    t.deadline_ms = mono_ms() + RETURN_MS;
    int r = trip_run(&t);
    (void)r; /* if it failed, the slot is free again at the end of the window */
    trip_done(&t);
}

void lending_free(struct core *c)
{
    struct lending *l = c->lending;
    if (!l)
        return;
    retire(l);
    while (l->retired) {
        struct retired *r = l->retired;
        l->retired = r->next;
        firn_shared_free(r->gen);
        free(r);
    }
    if (l->trip)
        trip_done(l->trip);
    free(l->trip);
    free(l);
    c->lending = NULL;
}

void lending_stats(struct core *c, struct firn_client_stats *out)
{
    const struct lending *l = c->lending;
    out->slot = UINT32_MAX;
    if (!l || !l->gen)
        return;
    uint64_t now = tick_now(l);
    out->slot = l->slot;
    out->window_ms = now < l->until ? (uint32_t)(l->until - now) : 0;
}
