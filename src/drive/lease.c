/*
 * Runs a window lease (coord/slot.h, coord/lease.h) on a store and a clock. First the store: read
 * meta, create everything in a fresh store, fence a copied one. Then the node: do what slot_next()
 * says until it says wait. Errors end a step early; the next step tries again.
 *
 * A shared store may turn out to be another one while the node runs (a replica was promoted, a
 * backup restored). Then the lease goes back to looking at the store as a whole: it fences it,
 * unless another process just did, and the node goes on as a new incarnation. Confirmed ticks stay
 * usable all the while. Tests: tests/unit/drive/lease.c, tests/unit/drive/lease_shared.c; the
 * simulator.
 */
#include "drive/lease.h"
#include "drive/hold.h"
#include "drive/real.h"
#include "drive/setup.h"
#include "id/diag.h"
#include "id/minmax.h"
#include "platform/assert.h"
#include "store/machine.h"
#include "store/slotlock.h"

#include <inttypes.h>

enum {
    CLOCK_EVERY_MS = 1000,    /* docs/protocol.md 4.1 */
    CLOCK_TRIES = 8,          /* for readings taken together: */
    CLOCK_NEAR_NS = 10000000, /* within 10 ms */
    RETRY_MS = 1000,          /* before there is a node, which has a backoff of its own */
    ACTIONS_MAX = 4096,       /* in one step: each slot locked and read twice, and room */
    HALTED_MS = 5000,         /* an operator may have repaired a shared store */
};

/* ---- the real world ---- */

static void real_clock(void *user, struct clock_reading *out)
{
    (void)user;
    for (int tries = 0; tries < CLOCK_TRIES; tries++) {
        *out = (struct clock_reading){ .real = real_clock_ns(CLOCK_REALTIME),
                                       .mono = real_clock_ns(CLOCK_MONOTONIC),
                                       .boot = real_clock_ns(CLOCK_BOOTTIME) };
        /* A thread that was put aside between two of them would report a step of the clock. */
        if (real_clock_ns(CLOCK_REALTIME) - out->real < CLOCK_NEAR_NS)
            return;
    }
}

static int real_lock(void *user, uint32_t slot)
{
    return slot_lock_try(user, slot);
}

static void real_unlock(void *user, uint32_t slot)
{
    slot_lock_release(user, slot);
}

void lease_world_real(struct lease_world *w, struct slot_lock *slots)
{
    bool lock = slots && slots->fd >= 0;
    *w = (struct lease_world){
        .user = slots,
        .read_clock = real_clock,
        .random = real_random,
        .sleep_ms = real_sleep,
        .lock = lock ? real_lock : NULL,
        .unlock = lock ? real_unlock : NULL,
    };
}

/* ---- time ---- */

uint64_t lease_tick(const struct lease *l, int64_t mono_ns)
{
    if (l->clock.state == CLOCK_WAIT)
        return 0;
    return lease_tick_at(&l->params, clock_f_at(&l->clock, mono_ns));
}

static struct slot_now read_now(struct lease *l, uint64_t last, struct clock_reading *reading)
{
    l->world.read_clock(l->world.user, reading);
    reading->store = l->store_ns_ ? l->store_ns_ + (reading->boot - l->store_boot_ns_) : 0;
    return (struct slot_now){ .f = lease_tick(l, reading->mono),
                              .last = max64(last, l->noted_),
                              .mono_ms = (uint64_t)reading->mono / 1000000u };
}

static void draw(struct lease *l, struct nonce *out)
{
    l->world.random(l->world.user, out->b, sizeof out->b);
}

/* ---- the store's records ---- */

static int fail(struct lease *l, int error)
{
    l->view.error = error;
    return error;
}

static bool is_shared(const struct lease *l)
{
    return l->store->ops->shared;
}

static int highest_one(void *user, struct firn_slice key, struct firn_slice value)
{
    uint64_t *highest = user;
    struct slot_record r;
    (void)key;
    if (slot_parse(value.p, value.len, &r, NULL) == 0 && r.until > *highest)
        *highest = r.until;
    return 0;
}

static void note_store_time(struct lease *l, const struct firn_record *rec)
{
    struct clock_reading reading;
    if (rec->store_ms == 0 || rec->store_ms > INT64_MAX / 4000000)
        return;
    l->world.read_clock(l->world.user, &reading);
    l->store_ns_ = (int64_t)rec->store_ms * 1000000;
    l->store_boot_ns_ = reading.boot;
}

static int read_meta(struct lease *l, struct meta_record *out, struct firn_diag *d)
{
    struct firn_record rec;
    int r = setup_read_meta(l->store, out, &rec, d);
    if (r == 0)
        note_store_time(l, &rec);
    return r;
}

static struct setup setup_of(struct lease *l)
{
    struct clock_reading reading;
    struct slot_now now = read_now(l, 0, &reading);
    return (struct setup){ .store = l->store,
                           .f = now.f,
                           .s = reading.store ? lease_tick_at(&l->params, reading.store) : 0,
                           .floor = l->node.floor,
                           .reach = l->node.grant.until,
                           .random = l->world.random,
                           .user = l->world.user };
}

/* INIT. The floor covers whatever a lost store may have granted before. */
static int create_all(struct lease *l, struct firn_diag *d)
{
    struct setup e = setup_of(l);
    struct setup_spec spec = {
        .layout = l->layout_,
        .slot_lo = l->params.slot_lo,
        .slots = l->params.slots,
        .window = lease_ticks(&l->params, l->params.window_ms),
        .max_drift = lease_ticks(&l->params, l->params.max_drift_ms),
        .skew_max = is_shared(l) ? lease_ticks(&l->params, l->params.skew_max_ms) : 0,
        .floor = l->params.fresh ? e.f : 0,
    };
    if (is_shared(l) && !l->params.init)
        return firn__diag(d, FIRN_ENOENT, 0,
                          "the store has no records of firn: make them with `firn admin init`, or "
                          "correct its address");
    int r = setup_init(&e, &spec, d);
    return r == FIRN_ECONFLICT || r == FIRN_EUNKNOWN ? 0 : r; /* the next read tells */
}

static int fence(struct lease *l, uint64_t known_floor, struct firn_diag *d)
{
    if (l->clock.state == CLOCK_WAIT)
        return firn__diag(d, FIRN_ECLOCK, 0, "a fence needs the time, and the clock is not set");
    struct setup e = setup_of(l);
    bool raised;
    int r = setup_fence(&e, known_floor, &raised, d);
    if (r == 0 && raised) {
        l->view.fenced_count++;
        l->view.fences++;
    }
    return r;
}

int lease_fence(struct lease *l, struct firn_diag *d)
{
    struct meta_record m;
    int r = read_meta(l, &m, d);
    return r ? r : fence(l, m.floor, d);
}

static bool in_range(const struct lease *l, uint32_t slot)
{
    const struct slot_params *p = &l->node.params;
    return slot >= p->slot_lo && slot < p->slot_hi;
}

/* Confirmed ticks are never taken back: a grant changes by growing, by closing, or by giving way to
 * the next one. */
static bool grant_follows(const struct slot_grant *before, const struct slot_grant *now)
{
    if (now->gen != before->gen)
        return now->gen > before->gen;
    return now->slot == before->slot && now->from == before->from &&
           (now->until >= before->until || now->closed) && (now->closed || !before->closed);
}

static enum clock_state update_clock(struct lease *l, const struct clock_reading *reading,
                                     uint64_t highest)
{
    l->clock.in_use = l->born_ && l->node.grant.gen != 0;
    return clock_f_update(&l->clock, reading, lease_tick_ns(&l->params, highest));
}

/* The clock, started as soon as it is plausible. */
static int need_clock(struct lease *l, const struct clock_reading *reading, uint64_t highest,
                      struct firn_diag *d)
{
    if (update_clock(l, reading, highest) != CLOCK_WAIT)
        return 0;
    l->view.state = SLOT_WAIT_CLOCK;
    return lease_clock_wrong(&l->params, reading, highest, d);
}

/* An error that an operator has to repair. */
static int stuck(struct lease *l, int error)
{
    l->view.state = SLOT_HALTED;
    return error;
}

/* First of all: with another epoch every tick means another time. */
static int check_layout(struct lease *l, struct firn_diag *d)
{
    if (strcmp(l->meta.layout, l->layout_) == 0)
        return 0;
    return stuck(l, firn__diag(d, FIRN_ESTORE, 0,
                               "the store was made for the layout '%.60s', this is '%.60s'",
                               l->meta.layout, l->layout_));
}

static int check_meta(struct lease *l, struct firn_diag *d)
{
    const struct meta_record *m = &l->meta;
    if (l->born_ && !nonce_eq(&m->cluster, &l->node.params.cluster))
        return stuck(l, firn__diag(d, FIRN_ESTORE, 0,
                                   "the store belongs to another cluster now: correct its address, "
                                   "or restart to join that one"));
    char id[STORE_ID_TEXT_BUF];
    int r = is_shared(l) ? 0 : firn_store_check(l->store, d); /* a shared one says it by ESTORE */
    if (r == FIRN_ESTORE)
        return stuck(l, r);
    if (r == 0)
        r = firn_store_identity(l->store, id, d);
    if (r != 0)
        return r;
    bool known = file_identity_same(m->store_inc, id);
    /* By an operator, since it was sane, and above all that this node still holds. */
    bool fenced = l->params.manual_fence && l->born_ &&
                  lease_fenced_since(&l->node, m->floor, l->sane_floor_);
    if (known && (!l->changed_ || fenced)) {
        l->changed_ = false;
        return 0;
    }
    if (l->params.manual_fence)
        return stuck(l, firn__diag(d, FIRN_ESTORE, 0,
                                   "the store is a copy, or was restored: stop all users of the "
                                   "original, then `firn admin fence`"));
    r = fence(l, known ? l->sane_floor_ : m->floor, d); /* unless another node has done it */
    if (r == 0)
        l->changed_ = false;
    return r ? r : FIRN_EAGAIN; /* read it all again */
}

static int start_node(struct lease *l, struct firn_diag *d)
{
    const struct meta_record *m = &l->meta;
    struct clock_reading reading;
    struct slot_params s;
    struct nonce me;
    draw(l, &me);
    l->phase_ = LEASE_RUN;
    l->sane_floor_ = m->floor;
    if (is_shared(l) && m->skew_max > 0) /* a fence reaches as far, and no further */
        l->clock.params.skew_max_ns = (int64_t)(m->skew_max * l->params.tick_ms) * INT64_C(1000000);
    if (l->born_) {
        uint64_t until = l->node.grant.until;
        slot_reborn(&l->node, &me);
        slot_scan_meta(&l->node, m);
        firn_assert(l->node.grant.until == until && l->node.floor >= m->floor);
        return 0;
    }
    lease_slot_params(&l->params, m, is_shared(l), l->world.lock != NULL, &s);
    int r = lease_pin_check(&l->params, m, d);
    if (r == 0)
        r = slot_init(&l->node, &s, &me, d);
    if (r != 0) {
        l->phase_ = LEASE_META;
        return stuck(l, r);
    }
    firn_assert(l->node.grant.gen == 0 && l->locked_ == UINT32_MAX);
    l->node.floor = m->floor;
    l->noted_ = lease_noted(&l->params, &s, read_now(l, 0, &reading).f);
    l->born_ = true;
    return 0;
}

/* Without a clock there is no node, but sequences need none: whether this is the store that it
 * should be. One of this machine without records is made when there is a clock. */
static bool is_sound(struct lease *l, bool gone)
{
    char id[STORE_ID_TEXT_BUF];
    if (gone)
        return !is_shared(l) && !l->born_;
    return !l->changed_ && !l->born_ && firn_store_identity(l->store, id, NULL) == 0 &&
           file_identity_same(l->meta.store_inc, id) && firn_store_check(l->store, NULL) == 0;
}

/* 0: there is a node to run. */
static int open_store(struct lease *l, struct firn_diag *d)
{
    struct clock_reading reading;
    uint64_t highest = 0;
    int r = read_meta(l, &l->meta, d), gone = r == FIRN_ENOENT;
    l->sound_ = false;
    l->found_ = r == 0;
    if (r == 0)
        r = check_layout(l, d);
    if (r == 0 || gone)
        r = firn_store_scan(l->store, firn_slice("slot/", 5), highest_one, &highest, d);
    if (r == 0) {
        read_now(l, 0, &reading);
        l->highest_until_ = max64(l->highest_until_, highest);
        r = need_clock(l, &reading, l->highest_until_, d);
        l->sound_ = r == FIRN_ECLOCK && is_sound(l, gone);
    }
    if (r == 0 && gone && l->born_)
        r = stuck(l,
                  firn__diag(d, FIRN_ENOENT, 0,
                             "the store's records are gone: stop all its users, then `firn admin "
                             "init --recover`"));
    if (r == 0 && gone) {
        r = create_all(l, d);
        if (r == 0)
            r = read_meta(l, &l->meta, d);
        if (r == 0)
            r = check_layout(l, d); /* another process may have been faster */
        if (r == FIRN_ESTORE || r == FIRN_ENOENT)
            return stuck(l, r);
    }
    if (r == FIRN_EFORMAT)
        return stuck(l, r);
    if (r == 0)
        r = check_meta(l, d);
    return r ? r : start_node(l, d);
}

/* ---- the node ---- */

static int scan_one(void *user, struct firn_slice key, struct firn_slice value)
{
    struct lease *l = user;
    uint32_t slot;
    if (slot_key_parse(key.p, key.len, &slot) == 0)
        slot_scan_add(&l->node, slot, value.p, value.len);
    return 0;
}

/* The store's own reason why it is the wrong one says more than the node's. */
static void explain_halt(struct lease *l, int result, const struct firn_diag *d)
{
    if (result != FIRN_ESTORE || l->node.state != SLOT_HALTED)
        return;
    if (d->text[0])
        l->node.diag = *d;
    if (is_shared(l))
        l->changed_ = true;
}

static void do_scan(struct lease *l, uint64_t last, struct firn_diag *d)
{
    struct clock_reading reading;
    slot_scan_begin(&l->node);
    int r = read_meta(l, &l->meta, d);
    if (r == 0) {
        slot_scan_meta(&l->node, &l->meta);
        r = firn_store_scan(l->store, firn_slice("slot/", 5), scan_one, l, d);
    }
    struct slot_now now = read_now(l, last, &reading);
    slot_scan_done(&l->node, &now, r);
    explain_halt(l, r, d);
    l->view.store_errors += r != 0;
    fail(l, r);
}

static void unlock(struct lease *l)
{
    if (l->locked_ != UINT32_MAX && l->world.unlock)
        l->world.unlock(l->world.user, l->locked_);
    l->locked_ = UINT32_MAX;
}

static void do_lock(struct lease *l, uint64_t last, uint32_t slot)
{
    struct clock_reading reading;
    int r = 0;
    firn_assert(l->world.lock != NULL && in_range(l, slot), "slot %u", slot);
    if (l->locked_ != slot) {
        unlock(l);
        r = l->world.lock(l->world.user, slot);
        if (r == 0)
            l->locked_ = slot;
    }
    struct slot_now now = read_now(l, last, &reading);
    slot_lock_done(&l->node, &now, r);
}

static void do_read(struct lease *l, uint64_t last, const struct slot_action *a,
                    struct firn_diag *d)
{
    struct clock_reading reading;
    struct firn_record rec = { .len = 0 };
    char key[RECORD_KEY_BUF];
    size_t len = slot_key(a->slot, key);
    firn_assert(in_range(l, a->slot), "slot %u", a->slot);
    int r = firn_store_read(l->store, firn_slice(key, len), a->fresh, &rec, d);
    if (r == 0)
        note_store_time(l, &rec);
    struct slot_now now = read_now(l, last, &reading);
    slot_read_done(&l->node, &now, r, rec.value, rec.len);
    explain_halt(l, r, d);
    l->view.store_errors += r != 0;
    fail(l, r);
}

static void do_cas(struct lease *l, uint64_t last, const struct slot_action *a, struct firn_diag *d)
{
    struct clock_reading reading;
    char key[RECORD_KEY_BUF];
    size_t len = slot_key(a->slot, key);
    struct firn_cas cas = { firn_slice(key, len), firn_slice(a->old, a->old_len),
                            firn_slice(a->value, a->value_len) };
    firn_assert(in_range(l, a->slot) && a->value_len > 0 && a->value_len <= RECORD_TEXT_MAX,
                "slot %u, %zu bytes", a->slot, a->value_len);
    firn_assert(!l->world.lock || l->locked_ == a->slot, "slot %u, lock byte %u", a->slot,
                l->locked_);
    int r = firn_store_cas(l->store, &cas, d);
    if (r == 0)
        l->sane_floor_ = l->node.floor;
    struct slot_now now = read_now(l, last, &reading);
    slot_cas_done(&l->node, &now, r);
    explain_halt(l, r, d);
    l->view.store_errors += r != 0 && r != FIRN_ECONFLICT;
    fail(l, r == FIRN_ECONFLICT ? 0 : r);
}

/* Leave the states that the node cannot leave by itself. True: go on. */
static bool recover(struct lease *l, struct firn_diag *d)
{
    struct nonce me;
    firn_assert(l->born_ && l->phase_ == LEASE_RUN);
    if (l->changed_) {
        l->phase_ = LEASE_META;
        return false;
    }
    if (l->node.state == SLOT_REGRESSED) {
        bool fenced = lease_fenced_since(&l->node, l->node.floor, l->sane_floor_);
        if (l->params.manual_fence && !fenced) {
            fail(l, firn__diag(d, FIRN_ESTORE, 0,
                               "the store forgot what it had confirmed: find out why, then `firn "
                               "admin fence`"));
            return false;
        }
        if (!l->params.manual_fence && fail(l, fence(l, l->sane_floor_, d)) != 0)
            return false;
    } else if (l->node.state == SLOT_TWIN) {
        l->view.twin_count++;
    } else {
        return true;
    }
    draw(l, &me);
    slot_reborn(&l->node, &me);
    return true;
}

/* Everything that is due. Returns when something will be, monotonic ms. */
static uint64_t run_node(struct lease *l, uint64_t last, struct firn_diag *d)
{
    struct clock_reading reading;
    struct slot_now now;
    for (int i = 0; i < ACTIONS_MAX; i++) {
        struct slot_action a;
        struct nonce fresh;
        enum slot_state before = l->node.state;
        struct slot_grant grant = l->node.grant;
        now = read_now(l, last, &reading);
        if (!recover(l, d))
            return now.mono_ms + (l->changed_ ? 0 : RETRY_MS);
        draw(l, &fresh);
        slot_next(&l->node, &now, &fresh, &a);
        switch (a.what) {
        case SLOT_DO_WAIT:
            return a.mono_ms;
        case SLOT_DO_SCAN:
            do_scan(l, last, d);
            break;
        case SLOT_DO_LOCK:
            do_lock(l, last, a.slot);
            break;
        case SLOT_DO_READ:
            do_read(l, last, &a, d);
            break;
        case SLOT_DO_CAS:
            do_cas(l, last, &a, d);
            break;
        }
        firn_assert(grant_follows(&grant, &l->node.grant),
                    "gen %" PRIu64 " until %" PRIu64 ", then gen %" PRIu64 " until %" PRIu64,
                    (uint64_t)grant.gen, grant.until, (uint64_t)l->node.grant.gen,
                    l->node.grant.until);
        l->view.fenced_count += l->node.state == SLOT_FENCED && before != SLOT_FENCED;
    }
    return now.mono_ms + RETRY_MS;
}

static void publish(struct lease *l, uint64_t last)
{
    struct clock_reading reading;
    struct slot_now now = read_now(l, last, &reading);
    bool running = l->phase_ == LEASE_RUN;
    lease_view_clock(&l->view, &l->clock, reading.mono);
    if (l->born_)
        lease_view_node(&l->view, &l->node, &now, running);
    bool sound = running || l->sound_;
    l->view.gate = lease_gate_of(sound, l->held_, l->view.state, l->view.error);
    l->view.held = sound && l->held_;
    if (l->born_ && running && l->node.grant.gen != 0)
        l->highest_until_ = max64(l->highest_until_, l->node.grant.until);
}

/* A restored backup's sequences are held until an operator lifts that. */
static void look_at_hold(struct lease *l)
{
    if (l->held_ && (l->phase_ == LEASE_RUN || l->sound_) &&
        hold_read(l->store, &l->held_, NULL) != 0)
        l->held_ = true; /* in doubt */
}

/* Now and then a shared store's meta: for its clock, and for a floor that a FENCE has raised. */
static void look_at_meta(struct lease *l, uint64_t now_ms)
{
    struct meta_record m;
    if (!is_shared(l) || now_ms < l->meta_due_ms_)
        return;
    firn_assert(l->born_);
    l->meta_due_ms_ = now_ms + l->node.params.renew_every_ms;
    struct firn_diag d;
    if (read_meta(l, &m, &d) != 0)
        l->view.store_errors++; /* the next write to the slot decides */
    else if (nonce_eq(&m.cluster, &l->node.params.cluster))
        slot_scan_meta(&l->node, &m);
}

int lease_open(struct lease *l, struct firn_store *store, const struct lease_params *p,
               const struct lease_world *w, struct firn_diag *d)
{
    memset(l, 0, sizeof *l);
    l->held_ = true; /* until it was looked up */
    l->world = *w;
    l->store = store;
    l->locked_ = UINT32_MAX;
    l->params = *p;
    if (!lease_params_complete(&l->params, is_shared(l)))
        return firn__diag(
            d, FIRN_EINVAL, 0,
            "a lease needs a window longer than renew_every, and a plain name and layout");
    memcpy(l->name_, l->params.name, strlen(l->params.name) + 1);
    memcpy(l->layout_, l->params.layout, strlen(l->params.layout) + 1);
    l->params.name = l->name_;
    l->params.layout = l->layout_;
    clock_f_init(&l->clock, &(struct clock_f_params){
                                .epoch_ns = (int64_t)l->params.epoch_ms * 1000000,
                                .skew_max_ns = (int64_t)l->params.skew_max_ms * 1000000,
                                .max_idle_ns = (int64_t)l->params.max_idle_ms * 1000000,
                                .accept = l->params.accept_clock,
                            });
    return 0;
}

void lease_avoid(struct lease *l, const struct slot_avoid *avoid, bool yield)
{
    l->params.avoid = *avoid;
    if (l->born_)
        slot_set_avoid(&l->node, avoid, yield && l->phase_ == LEASE_RUN);
}

uint64_t lease_step(struct lease *l, uint64_t last)
{
    struct clock_reading reading;
    struct slot_now now = read_now(l, last, &reading);
    uint64_t next = now.mono_ms + RETRY_MS;
    if (l->phase_ == LEASE_RUN && is_shared(l) && l->node.state == SLOT_HALTED &&
        l->node.why != FIRN_EEXHAUSTED && now.mono_ms >= l->meta_due_ms_) {
        l->phase_ = LEASE_META;
        l->changed_ = true; /* restored from a backup, it may have forgotten grants */
        l->meta_due_ms_ = now.mono_ms + HALTED_MS;
    }
    if (l->phase_ == LEASE_META) {
        l->view.diag = (struct firn_diag){ 0 };
        if (fail(l, open_store(l, &l->view.diag)) != 0) {
            l->view.store_errors += l->view.error == FIRN_EIO || l->view.error == FIRN_EUNKNOWN;
            if (l->born_) {
                read_now(l, last, &reading); /* the store may have blocked for long */
                update_clock(l, &reading, l->highest_until_);
            }
            look_at_hold(l);
            publish(l, last);
            if (l->view.state == SLOT_HALTED && is_shared(l))
                next = now.mono_ms + HALTED_MS; /* an operator is needed: many nodes may wait */
            return l->view.error == FIRN_EAGAIN ? now.mono_ms : next;
        }
    } else {
        look_at_meta(l, now.mono_ms);
    }
    read_now(l, last, &reading);
    update_clock(l, &reading, l->highest_until_);
    uint64_t due = run_node(l, last, &l->view.diag);
    look_at_hold(l);
    publish(l, last);
    next = now.mono_ms + CLOCK_EVERY_MS;
    return due < next ? due : next;
}

void lease_doubt(struct lease *l)
{
    enum slot_state s = l->node.state;
    if (l->phase_ != LEASE_RUN || !is_shared(l) || s == SLOT_HALTED || s == SLOT_RELEASING ||
        s == SLOT_CLOSED)
        return;
    l->changed_ = true;
    l->phase_ = LEASE_META;
}

int lease_release(struct lease *l, uint64_t last, uint64_t timeout_ms)
{
    struct clock_reading reading;
    struct slot_now now = read_now(l, last, &reading);
    uint64_t end = now.mono_ms + timeout_ms;
    if (l->born_)
        slot_release(&l->node, &now);
    while (l->phase_ == LEASE_RUN && l->node.state == SLOT_RELEASING) {
        uint64_t next = lease_step(l, last);
        now = read_now(l, last, &reading);
        if (l->node.state != SLOT_RELEASING || now.mono_ms >= end)
            break;
        if (next > now.mono_ms)
            l->world.sleep_ms(l->world.user, next - now.mono_ms);
    }
    bool landed = !l->born_ || (l->node.state == SLOT_CLOSED && l->node.why == 0);
    firn_assert(!l->born_ || l->node.grant.closed || l->node.grant.gen == 0);
    unlock(l);
    publish(l, last);
    return landed ? 0 : FIRN_EAGAIN;
}
