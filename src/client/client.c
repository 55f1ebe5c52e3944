/*
 * The handle and the calls that wait.
 * Where an ID comes from: in prefetch mode from this thread's slice of a block (a lane), in leased
 * mode from the generator that all threads share, in remote mode from a trip to a server. All that
 * is not at hand at once is below firn_client_next().
 */
#include "client/handle.h"
#include "firn/text.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "platform/mono.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A thread's slice of a block, one for each of the few handles that it uses. It is thread-local,
 * so a thread that ends leaves no memory behind; its unused numbers are skipped. */
struct lane {
    uint64_t tag; /* of the handle and the process (a child of fork() is another one) */
    uint64_t next, end, step;
    uint64_t stale_ms;
};

enum { LANES = 4 };

static _Thread_local struct lane lanes[LANES] __attribute__((tls_model("initial-exec")));

static inline struct lane *lane_of(const struct firn_client *f)
{
    return &lanes[f->serial % LANES];
}

/* Eras are random and never 0, so tags differ between handles and from that of an unused lane. */
static inline uint64_t lane_tag(const struct firn_client *f)
{
    return f->serial ^ fork_era_seen();
}

/* Whether the lane has a number of the handle, of whatever age. */
static inline bool lane_has(const struct lane *l, const struct firn_client *f)
{
    return l->tag == lane_tag(f) && l->next != l->end;
}

static bool lane_fresh(const struct lane *l)
{
    return l->stale_ms == NEVER_MS || mono_coarse_ns() / 1000000 < l->stale_ms;
}

static int next_slowly(struct firn_client *f, uint64_t *out, struct firn_diag *d);

/* The slower ways are functions of their own so that the fastest one needs no stack frame. */
__attribute__((noinline)) static int next_leased(struct firn_client *f, struct firn_shared *g,
                                                 uint64_t *out, struct firn_diag *d)
{
    return firn_shared_next(g, out) == 0 ? 0 : next_slowly(f, out, d);
}

__attribute__((noinline)) static int next_fresh(struct firn_client *f, struct lane *l,
                                                uint64_t *out, struct firn_diag *d)
{
    if (!lane_fresh(l))
        return next_slowly(f, out, d);
    *out = l->next;
    l->next += l->step;
    return 0;
}

int firn_client_next(struct firn_client *f, uint64_t *out, struct firn_diag *d)
{
    struct firn_shared *g = atomic_load_explicit(&f->gen, memory_order_acquire);
    struct lane *l = lane_of(f);
    if (g)
        return next_leased(f, g, out, d);
    if (!lane_has(l, f))
        return next_slowly(f, out, d);
    if (l->stale_ms != NEVER_MS)
        return next_fresh(f, l, out, d);
    *out = l->next;
    l->next += l->step;
    return 0;
}

/* --- the slow path --- */

/* One trip to the servers, for `n` numbers or a text. */
static int ask(struct core *c, const struct order *o, uint64_t n, struct trip *t,
               struct firn_diag *d)
{
    int r = o->q.key[0] ? 0 : sequence_learn(c, d);
    if (r)
        return r;
    trip_start(t, c, &o->q);
    t->request.n = n;
    t->user = o->user;
    t->deadline_ms = o->end_ms;
    t->once = c->opts->seq[0] && !o->q.key[0] && atomic_load(&c->sequence) != SEQUENCE_RANGE;
    r = trip_run(t);
    if (r) {
        firn__diag(d, r, 0, "%s", t->why);
        trip_done(t);
    }
    return r;
}

/* Fills the lane with a slice of the block in use. */
static int next_of_block(struct firn_client *f, struct core *c, uint64_t *out, struct firn_diag *d)
{
    struct lane *l = lane_of(f);
    struct run run;
    uint64_t stale = NEVER_MS;
    if (l->tag == lane_tag(f) && l->next != l->end)
        atomic_fetch_add_explicit(&c->stats.stale_ids, (l->end - l->next) / l->step,
                                  memory_order_relaxed);
    l->tag = 0;
    pthread_mutex_lock(&c->mutex);
    discover_tend(c);
    watch_tend(c);
    struct prefetch p = { block_pool_slice(&c->shelf.pool), mono_ms() + c->opts->deadline_ms,
                          NULL };
    int r = prefetch_take(c, &c->shelf, &p, &run, &stale, d);
    pthread_mutex_unlock(&c->mutex);
    if (r)
        return r;
    firn_assert(run.count > 0);
    *l = (struct lane){ lane_tag(f), run.first + run.step, run.first + run.count * run.step,
                        run.step, stale };
    *out = run.first;
    return 0;
}

/* Takes the lane's numbers first, so that a thread's IDs of one block rise. Lanes are of shard
 * 0. */
static int fill_of_blocks(struct firn_client *f, struct core *c, const struct order *o,
                          uint64_t *ids, size_t n, struct firn_diag *d)
{
    size_t have = 0;
    struct lane *l = lane_of(f);
    for (; o->q.shard == 0 && have < n && lane_has(l, f) && lane_fresh(l); have++) {
        ids[have] = l->next;
        l->next += l->step;
    }
    pthread_mutex_lock(&c->mutex);
    discover_tend(c);
    watch_tend(c);
    int r = 0;
    while (have < n && r == 0) {
        struct prefetch p = { n - have, o->end_ms, &o->q };
        struct shelf *s;
        struct run run = { .count = 0 };
        uint64_t stale;
        r = prefetch_shelf(c, o->q.shard, &s, d);
        if (r == 0)
            r = prefetch_take(c, s, &p, &run, &stale, d);
        firn_assert(r != 0 || run.count <= n - have);
        for (uint64_t i = 0; r == 0 && i < run.count; i++)
            ids[have++] = run.first + i * run.step;
    }
    pthread_mutex_unlock(&c->mutex);
    return r;
}

static int fill_of_generator(struct firn_client *f, struct core *c, const struct order *o,
                             uint64_t *ids, size_t n, struct firn_diag *d)
{
    size_t have = 0, some;
    while (have < n) {
        struct firn_shared *g = atomic_load_explicit(&f->gen, memory_order_acquire);
        if (o->q.shard || !g || firn_shared_fill(g, ids + have, n - have, &some) != 0) {
            pthread_mutex_lock(&c->mutex);
            discover_tend(c);
            watch_tend(c);
            int r = lending_fill(c, o->q.shard, ids + have, n - have, o->end_ms, &some, d);
            pthread_mutex_unlock(&c->mutex);
            if (r)
                return r;
        }
        have += some;
    }
    return 0;
}

/* A server may return fewer than requested: its limit, or the end of a sequence. */
static int fill_by_trips(struct core *c, const struct order *o, uint64_t *ids, size_t n,
                         struct firn_diag *d)
{
    struct trip t;
    pthread_mutex_lock(&c->mutex);
    watch_tend(c);
    pthread_mutex_unlock(&c->mutex);
    for (size_t have = 0; have < n;) {
        size_t most = n - have < c->opts->block ? n - have : c->opts->block;
        int r = ask(c, o, most, &t, d);
        if (r)
            return r;
        firn_assert(t.answer.numbers.numbers <= most, "got=%" PRIu64 " of %zu",
                    t.answer.numbers.numbers, most);
        runs_expand(&t.answer.numbers, ids + have);
        have += t.answer.numbers.numbers;
        trip_done(&t);
    }
    return 0;
}

static int fill(struct firn_client *f, const struct order *o, uint64_t *ids, size_t n,
                struct firn_diag *d)
{
    struct core *c;
    int r = handle_core(f, &c, d);
    if (r)
        return r;
    if (o->here && f->opts.mode == MODE_PREFETCH)
        return fill_of_blocks(f, c, o, ids, n, d);
    if (o->here)
        return fill_of_generator(f, c, o, ids, n, d);
    return fill_by_trips(c, o, ids, n, d);
}

__attribute__((noinline)) static int next_slowly(struct firn_client *f, uint64_t *out,
                                                 struct firn_diag *d)
{
    struct core *c;
    if (f->opts.mode != MODE_PREFETCH)
        return firn_client_next_n(f, out, 1, d);
    int r = handle_core(f, &c, d);
    return r ? r : next_of_block(f, c, out, d);
}

int firn_client_next_n(struct firn_client *f, uint64_t *ids, size_t n, struct firn_diag *d)
{
    struct firn_client_ask a = FIRN_CLIENT_ASK_INIT;
    struct order o;
    if (!f || !ids || n == 0)
        return firn__diag(d, FIRN_EINVAL, 0, "no client, or no room for an ID");
    int r = order_read(f, &a, REQUEST_NUMBERS, &o, d);
    return r ? r : fill(f, &o, ids, n, d);
}

int firn_client_next_keyed(struct firn_client *f, const char *key, uint64_t *out,
                           struct firn_diag *d)
{
    struct firn_client_ask a = FIRN_CLIENT_ASK_INIT;
    struct order o;
    if (!f || !key || !out)
        return firn__diag(d, FIRN_EINVAL, 0, "no client, no key, or no room for an ID");
    a.key = key;
    int r = order_read(f, &a, REQUEST_NUMBERS, &o, d);
    return r ? r : fill(f, &o, out, 1, d);
}

int firn_client_mint(struct firn_client *f, const struct firn_client_ask *given, uint64_t *ids,
                     size_t n, struct firn_diag *d)
{
    struct order o;
    if (!f || !given || !ids || n == 0)
        return firn__diag(d, FIRN_EINVAL, 0, "no client, no ask, or no room for an ID");
    int r = order_take(f, given, false, &o, d);
    if (r == 0 && o.q.kind == REQUEST_TEXT)
        return firn__diag(d, FIRN_EINVAL, 0, "ask.text is 1: use firn_client_mint_text()");
    if (r == 0 && n > 1 && o.q.key[0])
        return firn__diag(d, FIRN_EINVAL, 0, "a key stands for one ID: ask for one");
    return r ? r : fill(f, &o, ids, n, d);
}

/* --- texts --- */

#define SHORT_BUFFER "the buffer is too small: FIRN_CLIENT_TEXT_BUF bytes always suffice"

static int put_text(const char *text, size_t len, char *out, size_t cap, struct firn_diag *d)
{
    if (len >= cap)
        return firn__diag(d, FIRN_ENOSPC, 0, SHORT_BUFFER);
    memcpy(out, text, len);
    out[len] = '\0';
    return 0;
}

static int text_of_number(uint64_t id, char *out, size_t cap, struct firn_diag *d)
{
    char text[FIRN_U64_TEXT_BUF];
    return put_text(text, firn_u64_format(id, text), out, cap, d);
}

static int mint_text(struct firn_client *f, struct order *o, char *out, size_t cap,
                     struct firn_diag *d)
{
    struct core *c;
    struct trip t;
    uint64_t id;
    int r;
    if (o->here) {
        o->q.kind = REQUEST_NUMBERS;
        r = fill(f, o, &id, 1, d);
        return r ? r : text_of_number(id, out, cap, d);
    }
    r = handle_core(f, &c, d);
    if (r == 0)
        r = ask(c, o, 1, &t, d);
    if (r)
        return r;
    r = put_text(t.answer.text, strlen(t.answer.text), out, cap, d);
    trip_done(&t);
    return r;
}

int firn_client_mint_text(struct firn_client *f, const struct firn_client_ask *given, char *out,
                          size_t cap, struct firn_diag *d)
{
    struct order o;
    if (!f || !given || !out || cap == 0)
        return firn__diag(d, FIRN_EINVAL, 0, "no client, no ask, or no room for an ID");
    int r = order_take(f, given, true, &o, d);
    return r ? r : mint_text(f, &o, out, cap, d);
}

int firn_client_next_text(struct firn_client *f, const char *key, char *out, size_t cap,
                          struct firn_diag *d)
{
    struct firn_client_ask a = FIRN_CLIENT_ASK_INIT;
    struct order o;
    uint64_t id;
    if (!f || !out || cap == 0)
        return firn__diag(d, FIRN_EINVAL, 0, "no client, or no room for an ID");
    if (f->opts.mode != MODE_REMOTE && !key) { /* from the lane */
        int r = firn_client_next(f, &id, d);
        return r ? r : text_of_number(id, out, cap, d);
    }
    a.key = key;
    int r = order_read(f, &a, REQUEST_TEXT, &o, d);
    return r ? r : mint_text(f, &o, out, cap, d);
}

/* --- the core --- */

static void look_at(struct trip *t, struct trip **first, uint64_t *until_ms)
{
    int fd;
    short events;
    uint64_t until;
    if (!t)
        return;
    trip_wants(t, &fd, &events, &until);
    if (*first && until >= *until_ms)
        return;
    *first = t;
    *until_ms = until;
}

struct trip *core_trip(struct core *c, uint64_t *out_until_ms)
{
    struct trip *first = NULL;
    look_at(c->shelf.fetch, &first, out_until_ms);
    for (struct shelf *s = shelves_next(&c->shelves, NULL); s; s = shelves_next(&c->shelves, s))
        look_at(s->fetch, &first, out_until_ms);
    look_at(c->discovery, &first, out_until_ms);
    look_at(c->watching, &first, out_until_ms);
    look_at(c->lending ? lending_trip(c) : NULL, &first, out_until_ms);
    return first;
}

void core_tend(struct core *c)
{
    discover_tend(c);
    watch_tend(c);
    if (c->opts->mode == MODE_PREFETCH)
        prefetch_tend(c);
    if (c->lending)
        lending_tend(c);
}

static int new_core(struct firn_client *f, struct core **out, struct firn_diag *d)
{
    struct core *c;
    int r = core_new(&f->opts, &f->hooks, &c, d);
    if (r)
        return r;
    if (f->opts.mode == MODE_LEASED)
        r = lending_new(c, &f->gen);
    if (r == 0 && f->opts.background)
        r = background_start(c);
    if (r) {
        core_free(c);
        return firn__diag(d, r, 0, "no memory, or no thread, for the client");
    }
    *out = c;
    return 0;
}

int handle_core(struct firn_client *f, struct core **out, struct firn_diag *d)
{
    struct core *c = atomic_load_explicit(&f->core, memory_order_acquire);
    uint64_t era = fork_era();
    if (__builtin_expect(c && c->era == era, 1)) {
        *out = c;
        return 0;
    }
    /* A child of fork(). The parent's core is left as it is: its locks may be held, and its
     * connections belong to the parent. Only f->opts and f->hooks are used again. */
    struct core *fresh;
    int r = new_core(f, &fresh, d);
    if (r)
        return r;
    if (atomic_compare_exchange_strong(&f->core, &c, fresh)) {
        *out = fresh;
        return 0;
    }
    background_stop(fresh); /* another thread of the child made one first */
    core_free(fresh);
    *out = c;
    return 0;
}

/* --- life --- */

static int read_token(struct client_opts *o, struct firn_diag *d)
{
    if (o->token_file[0] == '\0')
        return 0;
    FILE *file = fopen(o->token_file, "re");
    if (!file)
        return firn__diag(d, FIRN_EIO, 0, "%.100s: %s", o->token_file, strerror(errno));
    size_t n = fread(o->token, 1, sizeof o->token - 1, file);
    fclose(file);
    o->token[n] = '\0';
    o->token[strcspn(o->token, "\r\n")] = '\0';
    if (o->token[0] == '\0' || n == sizeof o->token - 1)
        return firn__diag(d, FIRN_EIO, 0, "%.100s holds no token, or one that is too long",
                          o->token_file);
    return 0;
}

int firn_client_open(const char *url, struct firn_client **out, struct firn_diag *d)
{
    return firn_client_open_with(url, NULL, out, d);
}

static int take_hooks(const struct firn_client_opts *opts, struct firn_client_opts *out,
                      struct firn_diag *d)
{
    *out = (struct firn_client_opts)FIRN_CLIENT_OPTS_INIT;
    int r = opts ? firn__sized_copy(out, sizeof *out, opts, opts->size,
                                    SIZE_UP_TO(struct firn_client_opts, attempt_end))
                 : 0;
    if (r)
        firn__diag(d, r, 0,
                   r == FIRN_EINVAL ? "opts.size is not set: start from FIRN_CLIENT_OPTS_INIT"
                                    : "the options are newer than this library");
    return r;
}

int firn_client_open_with(const char *url, const struct firn_client_opts *opts,
                          struct firn_client **out, struct firn_diag *d)
{
    static _Atomic uint64_t serials;
    if (!url || !out)
        return firn__diag(d, FIRN_EINVAL, 0, "no URL, or no place for the client");
    struct firn_client *f = calloc(1, sizeof *f);
    if (!f)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    f->serial = atomic_fetch_add(&serials, 1) + 1;
    int r = take_hooks(opts, &f->hooks, d);
    if (r == 0)
        r = client_url_parse(url, &f->opts, d);
    if (r == 0)
        r = read_token(&f->opts, d);
    struct core *c = NULL;
    if (r == 0)
        r = new_core(f, &c, d);
    if (r) {
        free(f);
        return r;
    }
    atomic_store(&f->core, c);
    *out = f;
    return 0;
}

void firn_client_close(struct firn_client *f)
{
    if (!f)
        return;
    struct core *c = atomic_load(&f->core);
    if (c->era == fork_era()) { /* else it is the parent's */
        background_stop(c);
        lending_return(c);
        core_free(c);
    }
    explicit_bzero(f->opts.token, sizeof f->opts.token);
    free(f);
}

void firn_client_stats(struct firn_client *f, struct firn_client_stats *out)
{
    struct core *c;
    struct firn_client_stats s = { .size = out->size, .slot = UINT32_MAX };
    uint64_t now = mono_ms();
    if (handle_core(f, &c, NULL) == 0) {
        const struct core_stats *k = &c->stats;
        pthread_mutex_lock(&c->server_mutex);
        s.servers = c->servers;
        for (size_t i = 0; i < c->servers; i++)
            s.servers_out += balance_is_out(&c->health[i], now);
        pthread_mutex_unlock(&c->server_mutex);
        pthread_mutex_lock(&c->mutex);
        lending_stats(c, &s);
        pthread_mutex_unlock(&c->mutex);
        s.requests = k->requests;
        s.retries = k->retries;
        s.failures = k->failures;
        s.blocks = k->blocks;
        s.block_ids = k->block_ids;
        s.stale_ids = k->stale_ids;
        s.leases = k->leases;
        s.extensions = k->extensions;
        s.clashes = k->clashes;
    }
    memcpy(out, &s, s.size < sizeof s ? s.size : sizeof s);
}
