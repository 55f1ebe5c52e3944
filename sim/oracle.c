/*
 * The oracles: what must never happen, judged on the store's true content and on every ID that was
 * handed out: the invariants of docs/protocol.md section 7, and the set of all IDs. A repetition is
 * excused only inside a zone: ticks that the store forgot and granted again before a FENCE closed
 * the zone (A1 broken), or ticks that a memory held, or had asked for, when it was copied (A2
 * broken).
 */
#include "world.h"
#include "coord/lease_ticks.h"
#include "id/minmax.h"
#include "mutant.h"

#include <inttypes.h>
#include <stdlib.h>

struct counters sometimes;
const char *only_oracle; /* NULL: all */

void fold(struct world *w, uint64_t v)
{
    w->hash = rand_mix(w->hash ^ v) + (uint64_t)w->now;
}

void trace(struct world *w, const char *fmt, ...)
{
    if (!w->trace)
        return;
    va_list a;
    va_start(a, fmt);
    printf("%9.3f ", (double)(w->now - w->config->start_ns) / 1e9);
    vprintf(fmt, a);
    putchar('\n');
    va_end(a);
}

void violate(struct world *w, const char *oracle, const char *fmt, ...)
{
    if (w->failed || (only_oracle && strcmp(only_oracle, oracle) != 0))
        return;
    va_list a;
    va_start(a, fmt);
    vsnprintf(w->what, sizeof w->what, fmt, a);
    va_end(a);
    snprintf(w->oracle, sizeof w->oracle, "%s", oracle);
    w->failed = true;
    w->failed_at = w->now;
    trace(w, "BROKEN %s: %s", oracle, w->what);
}

void oracle_reset(struct world *w)
{
    for (uint32_t i = 0; i < w->config->slots; i++)
        w->truth[i].grants = 0;
    w->zones = 0;
    w->id_count = 0;
    w->id_epoch++;
    w->clock_back = w->lost = w->cloned = false;
    w->fencer = -1;
    w->floor_at = 0;
    w->highest = w->note = 0;
}

/* ---- grants ---- */

static bool is_mine(const struct proc *p, const struct nonce *owner)
{
    for (uint32_t i = p->incarnations; i > 0 && i + INCARNATIONS > p->incarnations; i--)
        if (nonce_eq(&p->incarnation[(i - 1) % INCARNATIONS], owner))
            return true;
    return false;
}

static struct grant *grant_at(struct slot_truth *t, uint64_t back)
{
    return back < t->grants && back < GRANTS_KEPT ? &t->grant[(t->grants - 1 - back) % GRANTS_KEPT]
                                                  : NULL;
}

static struct grant *find_grant(struct world *w, const struct proc *p, uint32_t slot, uint64_t tick)
{
    struct grant *g;
    for (uint64_t i = 0; (g = grant_at(&w->truth[slot], i)); i++)
        if (g->from <= tick && tick < g->until && is_mine(p, &g->owner))
            return g;
    return NULL;
}

static struct grant *owners_grant(struct world *w, uint32_t slot, const struct nonce *owner,
                                  uint64_t epoch)
{
    struct grant *g;
    for (uint64_t i = 0; (g = grant_at(&w->truth[slot], i)); i++)
        if (g->epoch == epoch && nonce_eq(&g->owner, owner))
            return g;
    return NULL;
}

uint64_t oracle_highest(struct world *w)
{
    uint64_t highest = 0;
    struct slot_record r;
    for (size_t i = 0; i < w->store.count; i++) {
        const struct cell *c = &w->store.cell[i];
        if (c->slot >= 0 && store_now(c) &&
            slot_parse(store_now(c)->p, store_now(c)->len, &r, NULL) == 0)
            highest = max64(highest, r.until);
    }
    return highest;
}

/* ---- zones ---- */

static void add_zone(struct world *w, bool clone, uint32_t slot, uint64_t lo, uint64_t hi)
{
    if (hi <= lo || w->zones == ZONES_MAX)
        return;
    w->zone[w->zones++] = (struct zone){ clone, slot, lo, hi, w->store.serial, 0, w->now };
    trace(w, "zone: slot %u [%" PRIu64 ", %" PRIu64 ") %s", slot, lo, hi, clone ? "clone" : "loss");
}

/* Grants above `kept_until` are not in the store any more. */
void oracle_lost(struct world *w, uint32_t slot, uint64_t kept_until)
{
    uint64_t hi = 0;
    struct grant *g;
    w->lost = true;
    for (uint64_t i = 0; (g = grant_at(&w->truth[slot], i)); i++)
        hi = max64(hi, g->until);
    /* What an earlier loss took away is still away. */
    for (size_t i = 0; i < w->zones; i++)
        if (!w->zone[i].clone && w->zone[i].slot == slot)
            hi = max64(hi, w->zone[i].hi);
    add_zone(w, false, slot, kept_until, hi);
}

/* Both copies may stamp what is granted, and both may find what was asked for. */
void oracle_cloned(struct world *w, struct proc *p)
{
    const struct image *m = image_of(w, p);
    const struct slot_node *n = &m->lease.node;
    w->cloned = true;
    if (m->lease.view.grant.gen == 0 && n->serial_ == 0)
        return;
    add_zone(w, true, n->grant.slot, 0, n->grant.until);
    for (size_t i = 0; i < SLOT_MINE; i++)
        if (n->mine_[i].serial > n->confirmed_.serial)
            add_zone(w, true, n->mine_[i].slot, 0, n->mine_[i].until);
}

/* An ID of a handle: its slot, and the ticks of the lease that its tick touches. */
struct stamp {
    uint32_t slot;
    uint64_t tick, lo, hi;
};

static bool excused(struct world *w, const struct stamp *at, uint64_t a, uint64_t b)
{
    for (size_t i = 0; i < w->zones; i++) {
        const struct zone *z = &w->zone[i];
        if (z->slot != at->slot || at->hi < z->lo || at->lo >= z->hi)
            continue;
        if (z->clone) {
            sometimes.excused_clone++;
            sometimes.twin_dup++;
            return true;
        }
        uint64_t end = z->closed ? z->closed : UINT64_MAX;
        if ((a > z->serial && a < end) || (b > z->serial && b < end)) {
            sometimes.excused_loss++;
            sometimes.forgotten_dup++;
            return true;
        }
    }
    return false;
}

bool oracle_open_zones(const struct world *w)
{
    for (size_t i = 0; i < w->zones; i++)
        if (!w->zone[i].clone && !w->zone[i].closed)
            return true;
    return false;
}

/* A FENCE of this slot must lie above this: the windows of live processes, the stamps of all. */
static uint64_t in_use(struct world *w, uint32_t slot)
{
    uint64_t end = 0;
    struct grant *g;
    for (uint64_t i = 0; (g = grant_at(&w->truth[slot], i)); i++) {
        bool lives = false;
        for (int k = 0; k < w->procs; k++)
            lives |= w->proc[k].up && !w->proc[k].truly_closed && is_mine(&w->proc[k], &g->owner);
        end = max64(end, lives ? g->until : g->stamped + 1);
    }
    return end;
}

/* A FENCE, or an INIT, of this slot. One that comes soon after another may be made by a process
 * that never heard of the first: then processes that hold more than it covers fence again
 * themselves (check_alarms). */
static void fenced(struct world *w, uint32_t slot, uint64_t until)
{
    const struct config *c = w->config;
    int64_t reach = 2 * (int64_t)(2 * c->window_ms + c->max_drift_ms + 2 * c->skew_max_ms) * MS;
    for (size_t i = 0; i < w->zones; i++) {
        struct zone *z = &w->zone[i];
        if (z->clone || z->closed || z->slot != slot)
            continue;
        uint64_t needed = in_use(w, slot);
        if (until >= needed)
            z->closed = w->store.serial;
        else if (!c->wild_clocks && !w->clock_back && z->at - w->floor_at > reach)
            violate(w, "FENCE",
                    "slot %u is fenced at %" PRIu64 ", but up to %" PRIu64 " was granted and lost",
                    slot, until, needed);
    }
}

/* ---- writes, I1 and I2 ---- */

static bool cloned_slot(const struct world *w, uint32_t slot)
{
    for (size_t i = 0; i < w->zones; i++)
        if (w->zone[i].clone && w->zone[i].slot == slot)
            return true;
    return false;
}

static void acquired(struct world *w, const struct msg *m, uint32_t slot,
                     const struct slot_record *old, const struct slot_record *r)
{
    const struct config *c = w->config;
    if (old && r->from < old->until)
        violate(w, "I2", "slot %u acquired from %" PRIu64 ", it was granted up to %" PRIu64, slot,
                r->from, old->until);
    if (!old)
        violate(w, "I2", "slot %u had no record and was acquired", slot);
    struct slot_truth *t = &w->truth[slot];
    struct grant *before = grant_at(t, 0);
    if (before && old && old->state == SLOT_HELD)
        sometimes.reuse++;
    if (old && old->name[0] && strcmp(old->name, r->name) == 0)
        sometimes.sticky++;
    t->grant[t->grants++ % GRANTS_KEPT] = (struct grant){
        .owner = r->owner,
        .epoch = r->epoch,
        .from = r->from,
        .until = r->until,
        .serial = w->store.serial,
        .written = w->store.serial,
        .made_at = w->now,
        .proc = m ? m->proc : -1,
    };
    if (w->scale)
        return;
    /* Somewhere a slot far in the future was left alone. */
    struct slot_record other;
    uint64_t far = r->from + (c->window_ms * 3 + c->max_drift_ms) / c->tick_ms;
    for (size_t i = 0; i < w->store.count; i++) {
        const struct text *x = store_now(&w->store.cell[i]);
        if (w->store.cell[i].slot >= 0 && x && slot_parse(x->p, x->len, &other, NULL) == 0)
            sometimes.poisoned += other.until > far;
    }
}

static void freed(struct world *w, const struct msg *m, uint32_t slot,
                  const struct slot_record *old, const struct slot_record *r)
{
    if (m && m->release) {
        struct grant *g = old ? owners_grant(w, slot, &old->owner, old->epoch) : NULL;
        sometimes.given_back += old && r->until < old->until;
        sometimes.release_late += m->reply_after < 0;
        if (g && g->stamped != 0 && r->until <= g->stamped && !cloned_slot(w, slot))
            violate(w, "I2", "slot %u given back at %" PRIu64 ", but %" PRIu64 " was stamped", slot,
                    r->until, g->stamped);
        return;
    }
    if (old && r->until < old->until)
        violate(w, "I2", "slot %u fell from %" PRIu64 " to %" PRIu64, slot, old->until, r->until);
    if (m && w->fencer >= 0 && w->fencer != m->proc && w->now - w->fenced_at < 2 * SECOND)
        sometimes.fence_two++;
    w->fencer = m ? m->proc : -1;
    w->fenced_at = w->now;
    sometimes.no_volume += !old && w->config->embedded && w->lost;
    fenced(w, slot, r->until);
}

void oracle_write(struct world *w, const struct msg *m, struct cell *c, const struct text *before,
                  const struct text *value)
{
    struct slot_record old, r;
    struct meta_record meta;
    if (value && c->slot < 0 && c->key_len == META_KEY_LEN &&
        meta_parse(value->p, value->len, &meta, NULL) == 0 &&
        meta.floor > firn_layout_ticks(&w->config->layout, w->now / 1000))
        w->floor_at = w->now;
    if (c->slot < 0 || !value || (uint64_t)c->slot >= w->config->slots)
        return;
    uint32_t slot = (uint32_t)c->slot;
    for (size_t i = 0; m && i < m->count; i++) {
        const struct text *named = m->change[i].old;
        if (m->change[i].value == value && (named || before) &&
            (!named || !before || named->len != before->len ||
             memcmp(named->p, before->p, before->len) != 0)) {
            violate(w, "I1", "a write replaced a record of slot %u that it did not name", slot);
            return;
        }
    }
    if (slot_parse(value->p, value->len, &r, NULL) != 0) {
        violate(w, "I1", "slot %u holds no record", slot);
        return;
    }
    w->highest = max64(w->highest, r.until);
    bool had = before && slot_parse(before->p, before->len, &old, NULL) == 0;
    trace(w, "slot %u: %s epoch %" PRIu64 " [%" PRIu64 ", %" PRIu64 ") by proc %d", slot,
          r.state == SLOT_HELD ? "held" : "free", r.epoch, r.from, r.until, m ? m->proc : -1);
    if (r.state != SLOT_HELD) {
        freed(w, m, slot, had ? &old : NULL, &r);
        return;
    }
    if (!had || !nonce_eq(&old.owner, &r.owner) || old.epoch != r.epoch) {
        acquired(w, m, slot, had ? &old : NULL, &r);
        return;
    }
    struct grant *g = owners_grant(w, slot, &r.owner, r.epoch);
    if (r.from != old.from || r.until < old.until)
        violate(w, "I2",
                "slot %u extended from [%" PRIu64 ", %" PRIu64 ") to [%" PRIu64 ", %" PRIu64 ")",
                slot, old.from, old.until, r.from, r.until);
    if (g) {
        g->until = max64(g->until, r.until);
        g->written = w->store.serial;
    }
}

/* ---- IDs ---- */

static void grow_ids(struct world *w)
{
    struct seen_id *old = w->id;
    size_t room = w->id_room;
    w->id_room = room ? room * 2 : 1 << 14;
    w->id = calloc(w->id_room, sizeof *w->id);
    if (!w->id)
        abort();
    for (size_t i = 0; i < room; i++) {
        if (old[i].epoch != w->id_epoch)
            continue;
        size_t k = rand_mix(old[i].id) & (w->id_room - 1);
        while (w->id[k].epoch == w->id_epoch)
            k = (k + 1) & (w->id_room - 1);
        w->id[k] = old[i];
    }
    free(old);
}

/* The place of an ID; a new one has proc -1. */
static struct seen_id *id_place(struct world *w, uint64_t id)
{
    if (w->id_count * 2 >= w->id_room)
        grow_ids(w);
    size_t k = rand_mix(id) & (w->id_room - 1);
    while (w->id[k].epoch == w->id_epoch && w->id[k].id != id)
        k = (k + 1) & (w->id_room - 1);
    if (w->id[k].epoch != w->id_epoch) {
        w->id[k] = (struct seen_id){ .id = id, .proc = -1, .epoch = w->id_epoch };
        w->id_count++;
    }
    return &w->id[k];
}

static struct stamp stamp_of(struct world *w, unsigned handle, uint64_t id)
{
    const struct stamp_plan *plan = &w->stamp_plan;
    const struct firn_layout *l = w->config->firnd ? &plan->layout[handle] : &w->config->layout;
    struct firn_parts parts;
    if (firn_layout_decompose(l, id, &parts) != 0)
        violate(w, "I7", "%" PRIu64 " is no ID of the layout", id);
    uint64_t tick = parts.field[FIRN_FIELD_TIME];
    return (struct stamp){ (uint32_t)parts.field[FIRN_FIELD_NODE], tick,
                           firn_layout_ticks(&plan->lease, firn_layout_unix_us(l, tick)),
                           lease_ticks_stamped(l, &plan->lease, tick) };
}

/* The last tick that may be entered at F. A firnd's loops are told of a floor that counts when the
 * lease makes a step, and go by their own F meanwhile. */
static uint64_t stamp_limit(const struct world *w, const struct image *m, uint64_t f)
{
    uint64_t drift = w->config->max_drift_ms / w->config->tick_ms;
    const struct lease_view *v = &m->seen;
    if (!w->config->firnd)
        return max64(f, m->view.floor_tick) + drift;
    if (!v->floor_tick)
        return f + drift;
    return max64(f + drift, min64(f + v->window + drift, v->stamp_end) - 1);
}

uint64_t oracle_stamp(struct world *w, struct proc *p, unsigned handle, uint64_t id)
{
    const struct config *c = w->config;
    const struct image *m = p->region->image;
    struct stamp s = stamp_of(w, handle, id);
    if (p->truly_closed)
        violate(w, "I4", "proc %d stamped after Close", p->id);
    if (p->wrong_layout)
        violate(w, "I7", "proc %d stamps with another layout", p->id);
    if (s.slot >= c->slots) {
        violate(w, "I3", "proc %d stamps slot %u", p->id, s.slot);
        return s.hi;
    }
    struct grant *g = find_grant(w, p, s.slot, s.lo);
    if (!g || s.hi >= g->until) {
        violate(w, "I3",
                "proc %d stamped tick %" PRIu64 " of slot %u, which was never granted to it", p->id,
                s.lo, s.slot);
        return s.hi;
    }
    g->stamped = max64(g->stamped, s.hi);
    uint64_t f = firn_layout_ticks(&w->stamp_plan.lease, f_now(w, p, m) / 1000);
    /* Judged when a tick is entered: it may be used up even if the limit falls meanwhile. */
    bool entered = p->handed[handle] != 0 && s.tick == p->ticked[handle];
    p->ticked[handle] = s.tick;
    if (!entered && s.lo > stamp_limit(w, m, f))
        violate(w, "I6", "proc %d stamped tick %" PRIu64 " at F %" PRIu64, p->id, s.lo, f);
    if (g != grant_at(&w->truth[s.slot], 0))
        sometimes.zombie++;
    return s.hi;
}

/* If the clock is right and the store whole, a restarted firnd goes on above its note; without one
 * it takes its slot again, and waits for that for as many ms as ticks (they are ms as shipped). */
static bool order_over_restarts(const struct world *w)
{
    const struct config *c = w->config;
    return c->firnd && c->embedded && (c->noted || c->tick_ms == 1) && !c->lossy &&
           !c->wild_clocks && !c->same_names && c->nodes <= c->slots;
}

void oracle_hand(struct world *w, struct proc *p, unsigned handle, uint64_t id)
{
    struct stamp at = stamp_of(w, handle, id);
    if (at.slot >= w->config->slots)
        return;
    /* All loops of a firnd are one handle: a request that began after this one's answer gets a
     * larger ID. */
    if (id <= p->handed[handle])
        violate(w, w->config->firnd ? "order" : "I5",
                "proc %d handed out %" PRIx64 " after %" PRIx64, p->id, id, p->handed[handle]);
    if (order_over_restarts(w) && id <= p->before[handle])
        violate(w, "order", "proc %d handed out %" PRIx64 ", and %" PRIx64 " before its restart",
                p->id, id, p->before[handle]);
    sometimes.order_restart += order_over_restarts(w) && p->before[handle] && !p->handed[handle];
    p->handed[handle] = id;
    struct grant *g = find_grant(w, p, at.slot, at.lo);
    uint64_t serial = g ? g->written : 0;
    bool same = !w->config->firnd || (handle == LEASED_TSID && w->config->as_tsid);
    struct seen_id *s = id_place(w, same || handle == 0 ? id : rand_mix(id + handle));
    if (s->proc < 0) {
        s->proc = p->id;
        s->serial = serial;
    } else if (!excused(w, &at, s->serial, serial)) {
        violate(w, "U", "ID %" PRIx64 " (tick %" PRIu64 ", slot %u) from proc %d and proc %d", id,
                at.lo, at.slot, s->proc, p->id);
    }
    w->ids++;
    fold(w, id);
}

/* ---- processes ---- */

/* What the read that decides a write led to. */
static void outcome(struct proc *p, const struct slot_node *n, const struct msg *sent)
{
    if (!p->outcome_read)
        return;
    p->outcome_read = false;
    if (n->confirmed_.serial > p->outcome_serial)
        sometimes.outcome_1++;
    else if (n->state == SLOT_FENCED ||
             (n->doing_ == SLOT_ACQUIRE && sent && sent->kind != MSG_CAS))
        sometimes.outcome_3++;
    else if (sent && sent->kind == MSG_CAS && n->target_ == p->outcome_slot)
        sometimes.outcome_4++;
}

static void note_incarnation(struct proc *p, const struct lease *l)
{
    static const struct nonce none;
    uint32_t last = (p->incarnations + INCARNATIONS - 1) % INCARNATIONS;
    if (nonce_eq(&l->node.me, &none))
        return;
    if (p->incarnations == 0 || !nonce_eq(&p->incarnation[last], &l->node.me))
        p->incarnation[p->incarnations++ % INCARNATIONS] = l->node.me;
}

void oracle_send(struct world *w, struct proc *p, const struct msg *m)
{
    const struct lease *l = &p->region->image->lease;
    const struct slot_node *n = &l->node;
    struct msg *out = (struct msg *)(uintptr_t)m;
    if (p->job != JOB_SERVE)
        return;
    note_incarnation(p, l);
    outcome(p, n, m);
    bool whole = l->phase_ == LEASE_META || p->region->image->fencing || n->state == SLOT_REGRESSED;
    out->release = n->state == SLOT_RELEASING && !whole;
    bool slot_key_ = m->count > 0 && m->change[0].key_len == 10 &&
                     memcmp(m->change[0].key, "slot/", 5) == 0;
    if (m->kind == MSG_CAS && !whole && slot_key_ &&
        (n->state == SLOT_CLOSED || n->state == SLOT_HALTED))
        violate(w, "I8", "proc %d writes a slot although it is %s", p->id,
                slot_state_name(n->state));
    if (m->kind == MSG_READ && m->change[0].key_len == META_KEY_LEN) {
        p->zones_before = p->zones_seen;
        p->zones_seen = w->zones;
    }
    if (m->kind == MSG_CAS && whole && slot_key_ && !p->in_fence) {
        p->in_fence = true;
        p->zones_fence = w->zones;
    }
    if (m->kind == MSG_READ && m->fresh && slot_key_ && n->at_ == SLOT_AT_READ) {
        p->outcome_read = true;
        p->outcome_serial = n->confirmed_.serial;
        p->outcome_slot = n->target_;
    }
    if (n->state == SLOT_REGRESSED) {
        sometimes.regressed++;
        if (!w->lost)
            violate(w, "alarm", "proc %d is REGRESSED, but nothing was lost", p->id);
    }
}

void oracle_answered(struct world *w, struct proc *p, const struct msg *m)
{
    (void)w;
    p->changed |= m->result == FIRN_ESTORE;
}

/* F may leap only where something speaks for it. */
static void check_clock(struct world *w, struct proc *p, const struct image *m)
{
    const struct config *c = w->config;
    struct clock_reading r;
    if (m->lease.clock.state == CLOCK_WAIT)
        return;
    clock_read(w, p, &r);
    int64_t f = clock_f_at(&m->lease.clock, r.mono), skew = (int64_t)c->skew_max_ms * MS;
    int64_t expected = p->f_seen ? p->f_seen + (r.boot - p->boot_seen) : f;
    int64_t highest = firn_layout_unix_us(&c->layout, w->highest) * 1000;
    if (p->f_seen && f < p->f_seen)
        violate(w, "clock", "F of proc %d went back", p->id);
    if (f - expected > skew + SECOND && f > highest + (int64_t)c->max_idle_ms * MS &&
        f > w->now + skew + SECOND && oracle_highest(w) != 0 && !c->ends)
        violate(w, "clock", "F of proc %d leapt by %lld s", p->id,
                (long long)((f - expected) / SECOND));
    p->f_seen = f;
    p->boot_seen = r.boot;
}

static void check_grant(struct world *w, struct proc *p, const struct image *m)
{
    const struct slot_node *n = &m->lease.node;
    const struct slot_grant *g = &n->grant;
    struct clock_reading r;
    if (g->gen == 0)
        return;
    clock_read(w, p, &r);
    uint64_t f = lease_tick(&m->lease, r.mono);
    /* The floor stops to count as F rises; the grant was made when it still did. */
    if (g->until > max64(slot_limit(n, f), n->floor + n->params.max_drift) + n->params.window)
        violate(w, "I6", "proc %d was granted up to %" PRIu64 " at F %" PRIu64, p->id, g->until, f);
}

/* A node that goes on as another incarnation has fenced, or found the store fenced. Whatever the
 * store forgot and whatever the clock says, the fence covers the window that the node still
 * holds. */
static void check_covered(struct world *w, struct proc *p, const struct image *m)
{
    const struct slot_grant *g = &m->lease.node.grant;
    struct slot_record r;
    char key[RECORD_KEY_BUF];
    bool reborn = p->incarnations != p->reborn && p->reborn != 0;
    p->reborn = p->incarnations;
    if (!reborn || g->gen == 0 || g->closed)
        return;
    bool quiet = p->zones_before == w->zones && (!p->in_fence || p->zones_fence == w->zones);
    p->in_fence = false;
    struct cell *c = store_find(w, key, slot_key(g->slot, key));
    if (quiet && c && store_now(c) &&
        slot_parse(store_now(c)->p, store_now(c)->len, &r, NULL) == 0 && r.until < g->until)
        violate(w, "FENCE", "proc %d fenced slot %u at %" PRIu64 ", but holds it up to %" PRIu64,
                p->id, g->slot, r.until, g->until);
}

static void check_alarms(struct world *w, struct proc *p, const struct image *m)
{
    const struct lease_view *v = &m->lease.view;
    if (v->twin_count > p->twins_seen) {
        p->twins_seen = v->twin_count;
        sometimes.outcome_2++;
        if (!w->cloned)
            violate(w, "alarm", "proc %d saw a TWIN, but nothing was cloned", p->id);
    }
    if (v->fences > p->fences_seen) {
        p->fences_seen = v->fences;
        sometimes.changed += p->changed;
    }
    check_covered(w, p, m);
    if (v->state != SLOT_HALTED || p->waiting)
        return;
    if (p->wrong_layout)
        sometimes.other_layout += v->error == FIRN_ESTORE;
    else if (v->error == FIRN_EEXHAUSTED)
        sometimes.exhausted++;
    else if (!w->lost && !p->changed)
        violate(w, "alarm", "proc %d is HALTED without a reason: %s", p->id, v->diag.text);
    else if (v->error == FIRN_ENOENT && m->lease.node.grant.gen == 0)
        sometimes.wiped++;
    else if (v->error == FIRN_ENOENT)
        sometimes.slot_gone++;
}

void oracle_proc(struct world *w, struct proc *p)
{
    if (!p->up || w->config->tickets || p->job != JOB_SERVE)
        return;
    const struct image *m = image_of(w, p);
    const struct lease_view *v = &m->lease.view;
    const struct slot_node *n = &m->lease.node;
    if (m->lease.node.params.window != 0) {
        note_incarnation(p, &m->lease);
        if (!p->waiting)
            outcome(p, n, NULL);
        check_grant(w, p, m);
    }
    if (!w->scale)
        check_clock(w, p, m);
    check_alarms(w, p, m);
    if (p->wrong_layout && n->grant.gen != 0)
        violate(w, "I7", "proc %d leased a slot of another layout", p->id);
    sometimes.held += v->clock == CLOCK_HELD && v->state == SLOT_ACTIVE;
    sometimes.suspect += v->clock == CLOCK_SUSPECT && v->state == SLOT_ACTIVE;
    sometimes.refused += v->state == SLOT_WAIT_CLOCK && v->clock == CLOCK_WAIT &&
                         clock_real(w, p) / MS > w->config->layout.epoch_ms;
    sometimes.wait_clock += v->state == SLOT_WAIT_CLOCK &&
                            clock_real(w, p) / MS < w->config->layout.epoch_ms;
    sometimes.dry += v->state == SLOT_DRY && v->store_errors > 0;
    sometimes.no_slot += v->state == SLOT_NO_SLOT;
    sometimes.forked += p->child && v->state == SLOT_ACTIVE && p->state != SLOT_ACTIVE;
    if (p->paused_at != 0 && v->state != SLOT_DRY) {
        bool beyond = w->now - p->paused_at > (int64_t)w->config->window_ms * MS;
        sometimes.paused += beyond && v->state == SLOT_ACTIVE;
        sometimes.paused_fenced += beyond && v->fenced_count > 0;
        p->paused_at = 0;
    }
    if (v->state != p->state) {
        trace(w, "proc %d: %s -> %s %s", p->id, slot_state_name(p->state),
              slot_state_name(v->state), v->error ? v->diag.text : "");
        if (w->config->same_names && p->node == 1 && v->state == SLOT_ACTIVE && w->proc[0].up &&
            w->proc[0].state == SLOT_ACTIVE)
            sometimes.same_name++;
        p->state = v->state;
        p->state_since = w->now;
        fold(w, (uint64_t)p->id << 8 | v->state);
    }
}

/* I9: with store and clocks sane again, every node serves or waits for a slot that is not there. */
void oracle_healed(struct world *w)
{
    uint32_t active = 0, live = 0;
    for (int i = 0; i < w->procs; i++) {
        struct proc *p = &w->proc[i];
        if (!p->up)
            continue;
        live++;
        enum slot_state s = image_of(w, p)->lease.view.state;
        active += s == SLOT_ACTIVE;
        /* Copies that took different slots later do no harm; on one slot, one must have noticed. */
        uint32_t slot = image_of(w, p)->lease.node.grant.slot;
        for (int k = 0; k < i; k++) {
            struct proc *q = &w->proc[k];
            uint32_t a = (p->incarnations - 1) % INCARNATIONS,
                     b = (q->incarnations - 1) % INCARNATIONS;
            if (q->up && s == SLOT_ACTIVE && q->state == SLOT_ACTIVE && p->incarnations &&
                q->incarnations && nonce_eq(&p->incarnation[a], &q->incarnation[b]) &&
                image_of(w, q)->lease.node.grant.slot == slot)
                violate(w, "TWIN", "proc %d and proc %d are one incarnation, and neither noticed",
                        k, i);
        }
    }
    for (int i = 0; i < w->procs; i++) {
        struct proc *p = &w->proc[i];
        if (!p->up)
            continue;
        const struct lease_view *v = &image_of(w, p)->lease.view;
        bool full = v->state == SLOT_NO_SLOT && active == w->config->slots;
        bool over = w->config->ends && (v->error == FIRN_EEXHAUSTED || v->state == SLOT_NO_SLOT ||
                                        v->state == SLOT_WAIT_CLOCK || v->state == SLOT_DRY);
        if (v->state != SLOT_ACTIVE && !full && !over)
            violate(w, "I9", "proc %d is %s after healing: %s", i, slot_state_name(v->state),
                    v->diag.text);
    }
    sometimes.healed_active += active == live;
}
