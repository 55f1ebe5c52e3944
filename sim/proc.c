/*
 * A simulated process: its coordinator runs drive/lease.c on the simulated store, its generators
 * stamp from the published view, as a server's loops do (docs/protocol.md 4.2). Also the events of
 * a process as a whole: start, death, fork, and the same memory resumed twice.
 */
#include "world.h"
#include "id/minmax.h"
#include "mutant.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#endif
#ifdef SIM_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* ---- memory ---- */

struct proc *resident(struct region *r)
{
    return &r->world->proc[r->resident];
}

/* A stack is copied as it lies, red zones and all. */
__attribute__((no_sanitize("address"))) static void copy_words(void *to, const void *from,
                                                               size_t bytes)
{
    uint64_t *t = to;
    const volatile uint64_t *f = from;
    for (size_t i = 0; i < bytes / sizeof *t; i++)
        t[i] = f[i];
}

static void copy_image(const struct region *r, struct image *to, const struct image *from)
{
    size_t head = offsetof(struct image, stack), used;
    copy_words(to, from, head);
    used = ((size_t)(from->low - r->image->stack)) & ~(size_t)63;
#ifdef SIM_ASAN
    ASAN_UNPOISON_MEMORY_REGION(r->image->stack, sizeof r->image->stack);
#endif
    copy_words(to->stack + used, from->stack + used, sizeof from->stack - used);
}

struct image *image_of(struct world *w, struct proc *p)
{
    struct region *r = p->region;
    if (r->resident == p->id)
        return r->image;
    struct proc *other = &w->proc[r->resident];
    if (other->up && other->region == r) {
        if (!other->saved)
            other->saved = malloc(sizeof *other->saved);
        copy_image(r, other->saved, r->image);
    }
    copy_image(r, r->image, p->saved);
    r->resident = p->id;
    return r->image;
}

/* ---- clocks ---- */

int64_t clock_real(const struct world *w, const struct proc *p)
{
    const struct host_clock *c = &p->clock;
    int64_t since = w->now > c->base_t ? w->now - c->base_t : 0;
    int64_t r = c->base_r + since + since / 1000 * c->drift_pm;
    return r > 0 ? r : 0;
}

/* From here on: R goes on from where it is. */
void clock_rebase(struct world *w, struct proc *p)
{
    p->clock.base_r = clock_real(w, p);
    p->clock.base_t = w->now > p->clock.base_t ? w->now : p->clock.base_t;
}

void clock_read(const struct world *w, const struct proc *p, struct clock_reading *out)
{
    int64_t boot = w->now - w->config->start_ns + 1000 * SECOND;
    *out = (struct clock_reading){ .real = clock_real(w, p),
                                   .mono = boot - p->clock.slept_ns,
                                   .boot = boot };
}

int64_t f_now(const struct world *w, const struct proc *p, const struct image *m)
{
    struct clock_reading c;
    clock_read(w, p, &c);
    int64_t f = c.mono + m->view.off_ns;
    return f > m->view.floor_ns ? f : m->view.floor_ns;
}

static uint64_t gen_fine(const struct firn_clock *c)
{
    struct region *r = ((const struct f_clock *)(const void *)c)->region;
    return (uint64_t)f_now(r->world, resident(r), r->image);
}

static uint64_t gen_coarse(const struct firn_clock *c)
{
    uint64_t ns = gen_fine(c);
    return ns - ns % (4 * MS);
}

static void gen_sleep(const struct firn_clock *c, uint64_t ns)
{
    (void)c, (void)ns;
}

/* ---- the lease's world ---- */

static void world_clock(void *user, struct clock_reading *out)
{
    struct region *r = user;
    clock_read(r->world, resident(r), out);
}

void region_random(void *user, void *out, size_t len)
{
    struct region *r = user;
    rand_bytes(&resident(r)->rng, out, len);
}

static void world_sleep(void *user, uint64_t ms)
{
    struct region *r = user;
    struct proc *p = resident(r);
    post(r->world, r->world->now + (int64_t)ms * MS, EV_WAKE, p->id, ++p->token, NULL);
    co_wait(r);
}

static int world_lock(void *user, uint32_t slot)
{
    struct region *r = user;
    struct proc *p = resident(r);
    int *holder = &r->world->locked_by[slot];
    if (*holder >= 0 && *holder != p->id && !p->lock_lost)
        return FIRN_ECONFLICT;
    p->lock_lost = false;
    *holder = p->id;
    return 0;
}

static void world_unlock(void *user, uint32_t slot)
{
    struct region *r = user;
    if (r->world->locked_by[slot] == r->resident)
        r->world->locked_by[slot] = -1;
}

/* ---- a program's generators: a firn_gen for each lane ---- */

static uint64_t lane_tick(const struct image *m, unsigned lane)
{
    return m->open ? m->page.gen[lane].tick_ : 0;
}

/* The highest tick stamped, or perhaps stamped. */
static uint64_t lanes_last(const struct image *m, const struct config *c)
{
    uint64_t last = 0;
    for (unsigned i = 0; i < c->lanes; i++)
        last = max64(last, max64(lane_tick(m, i), m->stamped[i]));
    return last;
}

static void retire(struct image *m, const struct config *c)
{
    for (unsigned i = 0; i < c->lanes; i++)
        m->stamped[i] = max64(lane_tick(m, i), m->stamped[i]);
    m->open = false;
}

static void start(struct image *m, const struct config *c)
{
    const struct slot_grant *g = &m->view.grant;
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    bool ok = true;
    o.slot = g->slot;
    o.lanes = c->lanes;
    o.policy = FIRN_POLICY_BORROW;
    o.max_drift_ms = (uint32_t)c->max_drift_ms;
    o.clock = &m->clock.base;
    o.until = g->until;
    for (unsigned i = 0; ok && i < c->lanes; i++) {
        o.lane = i;
        o.from = g->from > m->stamped[i] ? g->from : m->stamped[i] + 1;
        if (o.until <= o.from)
            return; /* the next extension brings a tick */
        ok = firn_gen_init(&m->page.gen[i], &c->layout, &o) == 0;
    }
    m->open = ok;
}

/* Take in what the coordinator published. */
static void refresh(struct image *m, const struct config *c)
{
    const struct slot_grant *g = &m->view.grant;
    bool closed = g->closed && !SIM_MUTANT(emit_after_release);
    bool over = closed || g->gen == 0 || m->closed, moved = over || g->gen != m->standing;
    if (moved && m->open)
        retire(m, c);
    if (closed || m->closed)
        m->batch_count = m->batch_at = 0;
    m->standing = over ? 0 : g->gen;
    if (over)
        return;
    if (!m->open)
        start(m, c);
    for (unsigned i = 0; m->open && i < c->lanes; i++) {
        firn_gen_extend(&m->page.gen[i], g->until);
        firn_gen_set_floor(&m->page.gen[i], m->view.floor_tick);
    }
}

/* One ID for a caller; drawn ahead in batches where the configuration says so. */
static int next_id(struct world *w, struct proc *p, struct image *m, unsigned lane, uint64_t *out)
{
    if (!w->config->batch) {
        int r = firn_gen_next(&m->page.gen[lane], out);
        if (r == 0)
            oracle_stamp(w, p, lane, *out);
        return r;
    }
    if (m->batch_at < m->batch_count && m->batch_forks != m->page.forks &&
        !SIM_MUTANT(batch_over_fork)) {
        sometimes.batch_dropped++;
        m->batch_at = m->batch_count = 0;
    }
    if (m->batch_at == m->batch_count) {
        m->batch_at = m->batch_count = 0;
        int r = firn_gen_fill(&m->page.gen[lane], m->batch, BATCH, &m->batch_count);
        if (r != 0)
            return r;
        m->batch_forks = m->page.forks;
        for (size_t i = 0; i < m->batch_count; i++)
            oracle_stamp(w, p, lane, m->batch[i]);
    }
    *out = m->batch[m->batch_at++];
    return 0;
}

static void emit_lanes(struct world *w, struct proc *p, struct image *m, uint64_t count)
{
    const struct config *c = w->config;
    if (m->page.forks != 0)
        refresh(m, c);
    for (uint64_t i = 0; i < count && !w->failed; i++) {
        unsigned lane = (unsigned)rand_below(&p->rng, c->lanes);
        uint64_t id;
        if (!m->open && m->batch_at == m->batch_count)
            break;
        int r = next_id(w, p, m, lane, &id);
        if (r == 0) {
            oracle_hand(w, p, lane, id);
            sometimes.lanes += lane;
            continue;
        }
        sometimes.limit += r == FIRN_EAGAIN && m->view.behind_ns > (int64_t)c->max_drift_ms * MS;
        if (r == FIRN_EFORKED && p->child)
            m->open = false;
        else if (r != FIRN_EAGAIN && r != FIRN_EWINDOW && r != FIRN_EEXHAUSTED)
            violate(w, "gen", "a generator answered %s", firn_error_name(r));
        break;
    }
    if (rand_chance(&p->rng, 70)) /* it is told now and then */
        m->last = lanes_last(m, c);
}

static uint64_t close_lanes(struct world *w, struct image *m)
{
    uint64_t exact, last = lanes_last(m, w->config);
    for (unsigned i = 0; m->open && i < w->config->lanes; i++) {
        firn_gen_close(&m->page.gen[i], &exact);
        if (exact > last)
            violate(w, "I4", "close says %llu, last was %llu", (unsigned long long)exact,
                    (unsigned long long)last);
    }
    return last;
}

/* ---- firnd's numbers: coord/stamp_source.c for its loops, as server/minter.c draws them ---- */

static void follow(struct image *m, unsigned loop)
{
    m->loop[loop].version = m->version;
    m->seen = m->view;
    m->loop[loop].stamps = stamp_source_follow(&m->source, m->loop[loop].stamps, &m->view);
    m->last = max64(m->last, stamp_source_highest(&m->source));
}

/* `looked`: the loop compared the version some time ago, and was stopped before it drew. */
static int draw(struct image *m, unsigned loop, enum leased which, bool looked, uint64_t *ids,
                size_t n, size_t *out_n)
{
    int r = FIRN_ECLOSED;
    if (!looked && m->loop[loop].version != m->version)
        follow(m, loop);
    while (r == FIRN_ECLOSED) {
        struct stamps *s = m->loop[loop].stamps;
        struct firn_shared *g = s ? stamps_generator(s, m->source.plan, which) : NULL;
        *out_n = 1;
        r = !g       ? FIRN_EWINDOW
            : n == 1 ? firn_shared_next(g, ids)
                     : firn_shared_fill(g, ids, n, out_n);
        if (r != FIRN_ECLOSED)
            break;
        sometimes.source_closed++;
        follow(m, loop); /* another loop has seen a newer grant, or the end */
    }
    return r;
}

static void emit_firnd(struct world *w, struct proc *p, struct image *m, uint64_t count)
{
    const struct config *c = w->config;
    uint64_t ids[4];
    size_t got;
    for (uint64_t i = 0; i < count && !w->failed; i += got) {
        unsigned loop = (unsigned)rand_below(&p->rng, LOOPS);
        enum leased which = rand_chance(&p->rng, 80) ? LEASED_SNOWFLAKE
                                                     : (enum leased)rand_below(&p->rng, LEASED_N);
        size_t run = rand_chance(&p->rng, 80) ? 1 : (size_t)rand_between(&p->rng, 2, 4);
        bool looked = rand_chance(&p->rng, 10);
        int r = draw(m, loop, which, looked, ids, run, &got);
        if (r != 0) {
            sometimes.limit += r == FIRN_EAGAIN &&
                               m->view.behind_ns > (int64_t)c->max_drift_ms * MS;
            if (r != FIRN_EAGAIN && r != FIRN_EWINDOW && r != FIRN_EEXHAUSTED)
                violate(w, "gen", "a generator answered %s", firn_error_name(r));
            break;
        }
        for (size_t k = 0; k < got; k++) { /* noted before it is handed out */
            w->note = max64(w->note, oracle_stamp(w, p, which, ids[k]));
            oracle_hand(w, p, which, ids[k]);
        }
        sometimes.loops += loop;
        sometimes.other_layouts += which != LEASED_SNOWFLAKE;
    }
    for (unsigned i = 0; i < LOOPS; i++) /* once per turn */
        if (m->loop[i].stamps && rand_chance(&p->rng, 70))
            m->last = max64(m->last, stamps_highest(m->loop[i].stamps, m->source.plan));
}

static uint64_t close_firnd(struct image *m)
{
    stamp_source_close(&m->source);
    return max64(m->last, stamp_source_highest(&m->source));
}

void proc_emit(struct world *w, struct proc *p, uint64_t count)
{
    struct image *m = image_of(w, p);
    if (w->config->firnd)
        emit_firnd(w, p, m, count);
    else
        emit_lanes(w, p, m, count);
}

/* An emitter that was between its check and its store when the closer lowered until. */
void proc_slip(struct world *w, struct proc *p, struct firn_gen *copy)
{
    uint64_t id;
    image_of(w, p);
    if (firn_gen_next(copy, &id) == 0) {
        oracle_stamp(w, p, 0, id);
        oracle_hand(w, p, 0, id);
    }
}

/* ---- the coordinator ---- */

static void publish(struct image *m)
{
    m->view = m->lease.view;
    if (SIM_MUTANT(emit_after_release))
        m->view.grant.closed = false;
    m->version++;
}

/* What a server would do that raises its window while the write is on its way. */
void proc_publish_early(struct world *w, struct proc *p)
{
    struct image *m = image_of(w, p);
    const struct slot_node *n = &m->lease.node;
    struct slot_record r;
    if (n->at_ != SLOT_AT_WRITE || n->doing_ == SLOT_RELEASE || n->value_len_ == 0 ||
        slot_parse(n->value_, n->value_len_, &r, NULL) != 0)
        return;
    m->version++;
    m->view.grant.until = r.until;
    if (n->doing_ == SLOT_ACQUIRE) {
        m->view.grant.gen = n->grant.gen + 1;
        m->view.grant.slot = n->target_;
        m->view.grant.from = r.from;
        m->view.grant.closed = false;
    }
}

/* Wakes the coordinator now, if it sleeps. */
void proc_kick(struct world *w, struct proc *p)
{
    if (!p->waiting)
        post(w, w->now, EV_WAKE, p->id, p->token, NULL);
}

static void open_lease(struct region *r)
{
    struct world *w = r->world;
    const struct config *c = w->config;
    struct image *m = r->image;
    struct proc *p = resident(r);
    char name[16];
    unsigned node = c->same_names && p->node == 1 ? 0 : (unsigned)p->node;
    snprintf(name, sizeof name, "n%u", node);
    struct lease_world lw = {
        .user = r,
        .read_clock = world_clock,
        .random = region_random,
        .sleep_ms = world_sleep,
        .lock = c->embedded ? world_lock : NULL,
        .unlock = c->embedded ? world_unlock : NULL,
    };
    struct lease_params lp = {
        .layout = p->wrong_layout ? "time:24@1s,node:4,seq:1;epoch=1600000000000" : c->layout_text,
        .epoch_ms = (uint64_t)c->layout.epoch_ms,
        .tick_ms = c->tick_ms,
        .ts_bits = c->layout.field[FIRN_FIELD_TIME].width,
        .slots = c->slots,
        .name = name,
        .window_ms = c->window_ms,
        .renew_every_ms = c->renew_ms,
        .max_drift_ms = c->max_drift_ms,
        .skew_max_ms = c->skew_max_ms,
        .max_idle_ms = c->max_idle_ms,
        .quarantine_ms = c->quarantine_ms,
        .keep_unused = !c->give_back,
        .noted = c->noted ? w->note : 0,
        .accept_clock = w->healed, /* an operator that has set the clock says so */
    };
    struct firn_diag d = { 0 };
    if (lease_open(&m->lease, &m->handle.base, &lp, &lw, &d) != 0)
        violate(w, "open", "lease_open: %s", d.text);
}

/* What an operator types: `firn admin init`, with or without --recover. */
static void administer(struct region *r)
{
    struct world *w = r->world;
    const struct config *c = w->config;
    struct proc *p = resident(r);
    bool recover = p->job == JOB_RECOVER;
    struct setup e = { .store = &r->image->handle.base, .random = region_random, .user = r };
    struct setup_spec spec = {
        .layout = c->layout_text,
        .slots = c->slots,
        .window = c->window_ms / c->tick_ms,
        .max_drift = c->max_drift_ms / c->tick_ms,
        .skew_max = c->skew_max_ms / c->tick_ms,
    };
    e.f = firn_layout_ticks(&c->layout, clock_real(w, p) / 1000);
    spec.floor = recover ? 0 : e.f;
    struct firn_diag d = { 0 };
    int result = recover ? setup_recover(&e, &spec, &d) : setup_init(&e, &spec, &d);
    trace(w, "operator: %s: %s %s", recover ? "recover" : "init", firn_error_name(result), d.text);
    if (result == FIRN_ECONFLICT && p->again)
        result = 0; /* it was done before the command died */
    if (result != 0)
        violate(w, "operator", "%s of the store failed: %s", recover ? "recovery" : "INIT", d.text);
    resident(r)->ended = true;
}

void proc_main(struct region *r)
{
    struct world *w = r->world;
    struct image *m = r->image;
    if (resident(r)->job != JOB_SERVE) {
        administer(r);
        return;
    }
    open_lease(r);
    if (w->config->tickets) {
        tickets_main(r);
        return;
    }
    while (!m->release) {
        struct clock_reading c;
        uint64_t next = lease_step(&m->lease, m->last);
        publish(m);
        if (m->release)
            break;
        if (m->fence) {
            m->fence = false;
            m->fencing = true;
            sometimes.operator_fence += lease_fence(&m->lease, NULL) == 0;
            m->fencing = false;
            continue;
        }
        struct proc *p = resident(r);
        clock_read(w, p, &c);
        int64_t wait = (int64_t)next * MS - c.mono;
        post(w, w->now + (wait > MS ? wait : MS), EV_WAKE, p->id, ++p->token, NULL);
        co_wait(r);
    }
    int result = lease_release(&m->lease, m->last, 2000);
    publish(m);
    struct proc *p = resident(r);
    trace(w, "proc %d released: %s", p->id, firn_error_name(result));
    p->ended = true; /* the memory is still in use: the caller of co_resume() ends it */
}

/* ---- life and death ---- */

static void clear_image(struct world *w, struct proc *p)
{
    struct image *m = p->region->image;
    memset(m, 0, offsetof(struct image, jump));
    m->clock = (struct f_clock){ { gen_coarse, gen_fine, gen_sleep }, p->region };
    store_open(&m->handle, p->region);
    stamp_source_init(&m->source, &w->stamp_plan, &m->clock.base, m->set, LOOPS + 1);
    m->page.forks = 1 + (rand_next(&p->rng) >> 1);
}

static void begin(struct world *w, struct proc *p)
{
    p->up = true;
    p->boot++;
    p->token = 1;
    p->waiting = p->leaving = p->truly_closed = p->ended = p->outcome_read = p->changed = false;
    p->reply = NULL;
    p->on_write.set = p->on_read.set = p->lock_lost = false;
    p->incarnations = p->reborn = 0;
    for (int i = 0; i < HANDLES; i++)
        p->before[i] = max64(p->before[i], p->handed[i]);
    memset(p->handed, 0, sizeof p->handed);
    p->state = SLOT_START;
    p->state_since = w->now;
    p->f_seen = 0;
    p->fences_seen = p->twins_seen = 0;
    p->zones_seen = 0;
    p->rng = rand_split(w->config->seed, 1000 + (uint64_t)p->id * 1000 + p->boot);
}

static struct region *spare_region(struct world *w)
{
    for (int i = 0; i < w->procs; i++)
        if (w->region[i].users == 0)
            return &w->region[i];
    abort();
}

void proc_boot(struct world *w, struct proc *p)
{
    begin(w, p);
    p->region = spare_region(w);
    p->region->users = 1;
    p->region->resident = p->id;
    clear_image(w, p);
    co_start(p, w);
    post(w, w->now, EV_WAKE, p->id, p->token, NULL);
    if (p->job == JOB_SERVE)
        post(w, w->now + rand_between(&p->rng, 1, w->config->emit_ms) * MS, EV_EMIT, p->id, 0,
             NULL);
    trace(w, "proc %d of node %d starts", p->id, p->node);
}

void proc_end(struct world *w, struct proc *p)
{
    if (!p->up)
        return;
    if (w->config->tickets)
        tickets_end(w, p);
    if (p->region->resident == p->id && p->region->users > 1)
        for (int i = 0; i < w->procs; i++)
            if (i != p->id && w->proc[i].up && w->proc[i].region == p->region) {
                p->up = false; /* what it holds is not worth saving */
                image_of(w, &w->proc[i]);
            }
    p->up = false;
    p->token++;
    p->region->users--;
    msg_free(p->reply);
    p->reply = NULL;
    for (uint32_t i = 0; i < w->config->slots; i++)
        if (w->locked_by[i] == p->id)
            w->locked_by[i] = -1;
}

/* Close first, in one step with the emitters; then the coordinator gives the slot back. */
void proc_leave(struct world *w, struct proc *p)
{
    struct image *m = image_of(w, p);
    if (p->leaving || m->release)
        return;
    p->leaving = true;
    if (SIM_MUTANT(close_by_until) && m->open) {
        struct firn_gen *copy = malloc(sizeof *copy);
        if (!copy)
            abort();
        *copy = m->page.gen[0];
        post(w, w->now + rand_between(&p->rng, 1, 1500) * MS, EV_SLIP, p->id, 0, copy);
    }
    m->release = true;
    if (SIM_MUTANT(emit_after_release)) {
        proc_kick(w, p);
        return;
    }
    m->last = w->config->firnd ? close_firnd(m) : close_lanes(w, m);
    m->closed = true;
    m->batch_at = m->batch_count = 0;
    p->truly_closed = !SIM_MUTANT(close_by_until);
    proc_kick(w, p);
}

static struct proc *spare(struct world *w)
{
    for (int i = (int)w->config->nodes; i < w->procs - 1; i++) /* the last is the operator's */
        if (!w->proc[i].up)
            return &w->proc[i];
    return NULL;
}

/* The child has its parent's memory, but the page of the generators is wiped; it makes a lease of
 * its own on a connection of its own. */
void proc_fork(struct world *w, struct proc *p)
{
    struct proc *q = w->config->firnd ? NULL : spare(w); /* firnd does not fork */
    if (!q)
        return;
    struct image *m = image_of(w, p);
    struct { /* what a thread keeps outside the page */
        uint64_t batch[BATCH], forks;
        size_t count, at;
        bool open;
    } parent = {
        .forks = m->batch_forks, .count = m->batch_count, .at = m->batch_at, .open = m->open
    };
    memcpy(parent.batch, m->batch, sizeof parent.batch);
    q->node = p->node;
    q->job = JOB_SERVE;
    q->clock = p->clock;
    q->child = true;
    q->is_clone = q->wrong_layout = false;
    q->paused_until = p->paused_until;
    q->cut_until = p->cut_until;
    proc_boot(w, q);
    m = q->region->image;
    m->page.forks = 0;
    m->open = parent.open;
    memcpy(m->batch, parent.batch, sizeof m->batch);
    m->batch_forks = parent.forks;
    m->batch_count = parent.count;
    m->batch_at = parent.at;
    proc_emit(w, q, 4); /* finds the page wiped */
    m->page.forks = 1 + (rand_next(&q->rng) >> 1);
}

void proc_clone(struct world *w, struct proc *p)
{
    struct proc *q = spare(w);
    if (!q || p->region->users > 1)
        return;
    struct image *m = image_of(w, p);
    /* Not while it works on the whole store: that has memory outside the image. */
    if (!m->lease.born_ || m->lease.phase_ != LEASE_RUN || m->fencing || p->job != JOB_SERVE ||
        m->lease.node.state == SLOT_REGRESSED || m->lease.node.state == SLOT_HALTED)
        return;
    oracle_cloned(w, p);
    begin(w, q);
    q->node = p->node;
    q->job = JOB_SERVE;
    q->clock = p->clock;
    q->child = q->wrong_layout = false;
    q->is_clone = true;
    q->paused_until = p->paused_until;
    q->cut_until = p->cut_until;
    q->token = p->token;
    q->waiting = p->waiting;
    q->leaving = p->leaving;
    q->truly_closed = p->truly_closed;
    q->state = p->state;
    q->f_seen = p->f_seen;
    q->boot_seen = p->boot_seen;
    q->fences_seen = p->fences_seen;
    q->twins_seen = p->twins_seen;
    q->zones_seen = p->zones_seen;
    memcpy(q->incarnation, p->incarnation, sizeof q->incarnation);
    q->incarnations = q->reborn = p->incarnations;
    memcpy(q->handed, p->handed, sizeof q->handed);
    q->region = p->region;
    q->region->users++;
    if (!q->saved)
        q->saved = malloc(sizeof *q->saved);
    if (!q->saved)
        abort();
    copy_image(p->region, q->saved, m);
    /* A call under way has no connection any more in the copy. */
    post(w, w->now + (p->waiting ? (int64_t)w->config->op_timeout_ms * MS : 100 * MS), EV_WAKE,
         q->id, q->token, NULL);
    post(w, w->now + rand_between(&q->rng, 1, w->config->emit_ms) * MS, EV_EMIT, q->id, 0, NULL);
    sometimes.cloned++;
    sometimes.cloned_call += p->waiting;
}
