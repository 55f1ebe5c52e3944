/*
 * A lease's parameters, decisions and view (lease.h).
 * Tests: tests/unit/coord/lease.c, tests/unit/drive/lease.c, tests/unit/drive/lease_shared.c.
 */
#include "coord/lease.h"
#include "id/diag.h"
#include "id/minmax.h"
#include "platform/assert.h"

#include <inttypes.h>

void lease_params_of(const struct firn_layout *l, struct lease_params *p,
                     char text[FIRN_LAYOUT_TEXT_BUF])
{
    uint64_t slots = firn_layout_slots(l);
    firn_layout_format(l, text);
    p->layout = text;
    p->epoch_ms = (uint64_t)l->epoch_ms;
    p->tick_ms = 1;
    p->ts_bits = LEASE_TS_BITS;
    p->slots = slots < SLOTS_MAX ? (uint32_t)slots : SLOTS_MAX;
}

bool lease_params_complete(struct lease_params *p, bool shared)
{
#define DEFAULT(field, value) p->field = p->field ? p->field : (value)
    DEFAULT(tick_ms, 1);
    DEFAULT(ts_bits, 41);
    DEFAULT(slots, SLOTS_MAX);
    DEFAULT(window_ms, shared ? 60000 : 3000);
    DEFAULT(max_drift_ms, 5000);
    DEFAULT(skew_max_ms, 10000);
    DEFAULT(max_idle_ms, 30ull * 86400 * 1000);
    DEFAULT(name, "");
    DEFAULT(layout, "");
#undef DEFAULT
    size_t name = strlen(p->name);
    return name <= RECORD_NAME_MAX && strlen(p->layout) <= RECORD_LAYOUT_MAX &&
           (name == 0 || record_name_ok(p->name, name)) && p->ts_bits < 63 && p->tick_ms <= 60000 &&
           p->window_ms <= 86400000 && p->renew_every_ms < p->window_ms &&
           p->epoch_ms < INT64_MAX / 4000000;
}

/* ---- time ---- */

uint64_t lease_ticks(const struct lease_params *p, uint64_t ms)
{
    return (ms + p->tick_ms - 1) / p->tick_ms;
}

int64_t lease_tick_ns(const struct lease_params *p, uint64_t tick)
{
    uint64_t ns;
    if (tick == 0)
        return 0;
    if (__builtin_mul_overflow(tick, p->tick_ms * 1000000u, &ns) || ns > INT64_MAX / 4)
        ns = INT64_MAX / 4;
    return (int64_t)p->epoch_ms * 1000000 + (int64_t)ns;
}

uint64_t lease_tick_at(const struct lease_params *p, int64_t unix_ns)
{
    int64_t ns = unix_ns - (int64_t)p->epoch_ms * 1000000;
    return ns < 0 ? 0 : (uint64_t)ns / (p->tick_ms * 1000000u);
}

/* ---- the node ---- */

void lease_slot_params(const struct lease_params *p, const struct meta_record *m, bool shared,
                       bool lock, struct slot_params *out)
{
    uint64_t window_ms = m->window * p->tick_ms, third_ms = max64(window_ms / 3, 1);
    *out = (struct slot_params){
        .cluster = m->cluster,
        .slot_lo = (uint32_t)m->slot_lo,
        .slot_hi = (uint32_t)m->slot_hi,
        .window = m->window,
        .max_drift = m->max_drift,
        .quarantine = lease_ticks(p, p->quarantine_ms),
        .ts_end = (uint64_t)1 << p->ts_bits,
        .renew_every_ms = p->renew_every_ms && p->renew_every_ms < window_ms ? p->renew_every_ms
                                                                             : third_ms,
        .backoff_min_ms = 50,
        .backoff_max_ms = 2000,
        .use_lock = lock,
        .give_back = !p->keep_unused && !shared,
        .since = p->since_ms > p->epoch_ms ? (p->since_ms - p->epoch_ms) / p->tick_ms : 0,
        .avoid = p->avoid,
    };
    if (p->pinned) {
        out->pinned = true;
        out->slot_lo = p->pin;
        out->slot_hi = p->pin + 1;
    }
    /* Longer than skew_max and a renewal, so that a plausible clock does not take a live slot. */
    if (!lock && out->quarantine == 0)
        out->quarantine = max64(m->window, m->skew_max + lease_ticks(p, out->renew_every_ms));
    firn_assert(lock || out->quarantine > 0);
    firn_assert(strlen(p->name) <= RECORD_NAME_MAX);
    memcpy(out->name, p->name, strlen(p->name) + 1);
}

uint64_t lease_noted(const struct lease_params *p, const struct slot_params *s, uint64_t f)
{
    return p->noted <= f + s->window + s->max_drift ? p->noted : 0;
}

int lease_pin_check(const struct lease_params *p, const struct meta_record *m, struct firn_diag *d)
{
    if (!p->pinned || (p->pin >= m->slot_lo && p->pin < m->slot_hi))
        return 0;
    return firn__diag(d, FIRN_ERANGE, 0,
                      "worker_id %u: the store has the slots %" PRIu64 " to %" PRIu64
                      ": choose one of them, or leave worker_id out",
                      p->pin, m->slot_lo, m->slot_hi - 1);
}

/* Why there is none, and what to do. */
static int no_slot(const struct slot_node *n, struct firn_diag *d)
{
    const struct slot_seen *s = &n->seen[0];
    if (!n->params.pinned)
        return firn__diag(d, FIRN_ENOSLOT, 0,
                          "every slot is held or ahead of the clock: waiting for the nearest");
    if (s->state == SLOT_RETIRED)
        return firn__diag(d, FIRN_ENOSLOT, 0, "slot %u is retired: set another worker_id",
                          n->params.slot_lo);
    if (s->state == SLOT_HELD)
        return firn__diag(d, FIRN_ENOSLOT, 0,
                          "slot %u (worker_id) is held by '%s': stop that node or set another "
                          "worker_id; if it died, this one takes over when its window and "
                          "quarantine are over",
                          n->params.slot_lo, n->holder);
    if (s->skip)
        return firn__diag(d, FIRN_ENOSLOT, 0,
                          "slot %u (worker_id) is held by another process of this machine, with "
                          "another store: stop it or set another worker_id",
                          n->params.slot_lo);
    return firn__diag(d, FIRN_ENOSLOT, 0,
                      "slot %u (worker_id) is ahead of the clock: waiting for the clock",
                      n->params.slot_lo);
}

bool lease_fenced_since(const struct slot_node *n, uint64_t floor, uint64_t sane_floor)
{
    return floor > sane_floor && floor >= n->grant.until;
}

int lease_clock_wrong(const struct lease_params *p, const struct clock_reading *reading,
                      uint64_t highest, struct firn_diag *d)
{
    long long s = (long long)(reading->real / 1000000000);
    bool before_epoch = reading->real < (int64_t)p->epoch_ms * 1000000;
    if (reading->store != 0 && !before_epoch)
        return firn__diag(
            d, FIRN_ECLOCK, 0,
            "the clock says %lld s since 1970, the store's says %lld s: set the wrong "
            "one, or accept it",
            s, (long long)(reading->store / 1000000000));
    if (before_epoch)
        return firn__diag(d, FIRN_ECLOCK, 0,
                          "the clock says %lld s since 1970, before the layout's epoch: set it", s);
    return firn__diag(
        d, FIRN_ECLOCK, 0,
        "the clock says %lld s since 1970, %lld days after the last ID: set it, or accept it", s,
        (long long)((reading->real - lease_tick_ns(p, highest)) / 86400000000000));
}

/* ---- the view ---- */

void lease_view_clock(struct lease_view *v, struct clock_f *c, int64_t mono_ns)
{
    int64_t shown = mono_ns + v->off_ns, before = v->floor_ns;
    if (c->state != CLOCK_WAIT && shown > c->floor_ns)
        c->floor_ns = shown;
    v->clock = c->state;
    v->off_ns = c->off_ns;
    v->floor_ns = c->floor_ns;
    v->behind_ns = c->behind_ns;
    v->steps = c->steps;
    firn_assert(v->floor_ns >= before, "F's floor %" PRId64 " to %" PRId64, before, v->floor_ns);
}

void lease_view_node(struct lease_view *v, const struct slot_node *n, const struct slot_now *now,
                     bool running)
{
    uint64_t left = slot_left(n, now), quarter = n->params.window / 4;
    firn_assert(n->grant.gen >= v->grant.gen, "grant %" PRIu64 " to %" PRIu64, v->grant.gen,
                n->grant.gen);
    firn_assert(n->grant.gen != v->grant.gen ||
                    (n->grant.slot == v->grant.slot && n->grant.from == v->grant.from &&
                     n->grant.until >= v->grant.until && n->grant.closed >= v->grant.closed),
                "grant %" PRIu64 ": until %" PRIu64 " to %" PRIu64, n->grant.gen, v->grant.until,
                n->grant.until);
    if (running)
        v->state = slot_state_at(n, now);
    else if (v->state != SLOT_HALTED && left == 0)
        v->state = SLOT_DRY;
    v->grant = n->grant;
    v->cluster = n->params.cluster;
    v->floor_tick = slot_floor(n, now->f);
    v->stamp_end = v->floor_tick ? n->floor + n->params.max_drift : 0;
    v->max_drift = n->params.max_drift;
    v->window = n->params.window;
    v->ready = left > quarter;
    v->ready_until = v->ready ? v->grant.until - quarter : 0;
    if (!running)
        return;
    if (v->state == SLOT_HALTED) {
        v->error = n->why;
        v->diag = n->diag;
    } else if (v->state == SLOT_NO_SLOT && v->error == 0) {
        v->error = no_slot(n, &v->diag);
    } else if (v->state == SLOT_WAIT_CLOCK && v->error == 0) {
        v->error = firn__diag(&v->diag, FIRN_ECLOCK, 0,
                              "the clock is far behind every slot of the store: set it");
    }
}

enum lease_gate lease_gate_of(bool sound, bool held, enum slot_state state, int error)
{
    if (state == SLOT_HALTED) /* the end of the ticks is no fault of the store */
        return sound && !held && error == FIRN_EEXHAUSTED ? LEASE_GATE_OPEN : LEASE_GATE_SHUT;
    if (!sound)
        return LEASE_GATE_WAIT;
    if (held)
        return LEASE_GATE_SHUT;
    if (state == SLOT_REGRESSED)
        return error == FIRN_ESTORE ? LEASE_GATE_SHUT : LEASE_GATE_WAIT;
    return LEASE_GATE_OPEN;
}
