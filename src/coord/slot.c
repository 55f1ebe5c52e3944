/*
 * The window lease of one node, as a state machine.
 * The life of a node: scan, choose a slot, lock its byte, read it, ACQUIRE; then EXTEND every
 * renew_every; at the end RELEASE. Each write draws a new nonce and replaces one known text.
 *
 * The subtle part is a write whose answer is missing. It is decided by the next read, and only by
 * the nonce in the record: a nonce of ours is a grant of ours, with the ticks of *that* request.
 * "The owner is me" proves nothing (an abandoned ACQUIRE may land late, after another node's
 * grant). Twin, fenced and regressed are told apart only on a read that is ordered after the write.
 */
#include "coord/slot.h"
#include "coord/mutant.h"
#include "id/diag.h"
#include "id/minmax.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <string.h>

enum { SLACK_MS = 1000 }; /* that a busy machine may add to a wait */

static const char *const state_name[] = {
    [SLOT_START] = "start",     [SLOT_ACTIVE] = "active",
    [SLOT_DRY] = "dry",         [SLOT_FENCED] = "fenced",
    [SLOT_NO_SLOT] = "no_slot", [SLOT_WAIT_CLOCK] = "wait_clock",
    [SLOT_TWIN] = "twin",       [SLOT_REGRESSED] = "regressed",
    [SLOT_HALTED] = "halted",   [SLOT_RELEASING] = "releasing",
    [SLOT_CLOSED] = "closed",
};

const char *slot_state_name(enum slot_state s)
{
    firn_assert((unsigned)s < sizeof state_name / sizeof state_name[0]);
    return state_name[s];
}

int slot_init(struct slot_node *n, const struct slot_params *p, const struct nonce *incarnation,
              struct firn_diag *d)
{
    if (p->slot_lo >= p->slot_hi || p->slot_hi - p->slot_lo > SLOTS_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "slots %u to %u: 1 to %d are possible", p->slot_lo,
                          p->slot_hi, SLOTS_MAX);
    if (p->renew_every_ms == 0 || p->backoff_min_ms == 0 || p->backoff_max_ms < p->backoff_min_ms)
        return firn__diag(d, FIRN_EINVAL, 0, "times to renew and to retry must not be 0");
    if (p->window == 0 || p->ts_end < 2 || p->ts_end > INT64_MAX)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "the window and the layout's time need at least a tick");
    memset(n, 0, sizeof *n);
    n->params = *p;
    n->me = *incarnation;
    return 0;
}

/* A new store's floor is the clock plus window and max_drift, so that it lies above all that a lost
 * store may have granted. For that to hold no node may ever stamp further ahead than that: the
 * floor counts only as far as the clock's own reach, and time passes at its pace until the clock
 * has caught up. */
uint64_t slot_floor(const struct slot_node *n, uint64_t f)
{
    uint64_t reach = 2 * (n->params.window + n->params.max_drift);
    if (n->floor <= f || n->floor - f > reach)
        return 0;
    return min64(n->floor, f + n->params.window);
}

uint64_t slot_limit(const struct slot_node *n, uint64_t f)
{
    return max64(f, slot_floor(n, f)) + n->params.max_drift;
}

uint64_t slot_left(const struct slot_node *n, const struct slot_now *now)
{
    const struct slot_grant *g = &n->grant;
    uint64_t begin = max64(max64(now->f, now->last + 1), g->from);
    firn_assert(g->gen == 0 || g->until <= n->params.ts_end || FIRN_MUTANT(adopt_by_owner),
                "slot %u until %" PRIu64 " end %" PRIu64, g->slot, g->until, n->params.ts_end);
    return g->gen == 0 || g->closed || begin >= g->until ? 0 : g->until - begin;
}

enum slot_state slot_state_at(const struct slot_node *n, const struct slot_now *now)
{
    return n->state == SLOT_ACTIVE && slot_left(n, now) == 0 ? SLOT_DRY : n->state;
}

static bool holding(const struct slot_node *n)
{
    return n->confirmed_.serial != 0;
}

static struct slot_seen *seen_of(struct slot_node *n, uint32_t slot)
{
    firn_assert(slot >= n->params.slot_lo && slot < n->params.slot_hi, "slot %u", slot);
    return &n->seen[slot - n->params.slot_lo];
}

static void rest(struct slot_node *n, enum slot_state state)
{
    n->state = state;
    n->at_ = SLOT_AT_REST;
    n->outcome_ = false;
}

/* Confirmed ticks stay usable: a grant is irrevocable. */
static void halt(struct slot_node *n, int why, const char *text)
{
    firn_assert(why != 0);
    rest(n, n->state == SLOT_RELEASING ? SLOT_CLOSED : SLOT_HALTED);
    n->why = why;
    firn__diag(&n->diag, why, 0, "slot %u: %s", n->target_, text);
}

/* Jitter keeps nodes that failed together from coming back together. */
static void back_off(struct slot_node *n, const struct slot_now *now)
{
    uint64_t b = n->backoff_ms_ ? n->backoff_ms_ * 2 : n->params.backoff_min_ms;
    n->backoff_ms_ = min64(b, n->params.backoff_max_ms);
    firn_assert(n->backoff_ms_ >= n->params.backoff_min_ms);
    n->due_ms_ = now->mono_ms + n->backoff_ms_ / 2 + (n->backoff_ms_ / 2) * n->jitter_ / 65536;
}

static void look_around(struct slot_node *n, enum slot_state state, const struct slot_now *now)
{
    n->state = state;
    n->at_ = SLOT_AT_SCAN;
    n->outcome_ = false;
    n->due_ms_ = now->mono_ms;
}

/* ---- choosing a slot ---- */

/* Ticks until an ACQUIRE of a slot with this `until` would begin within the limit. */
static uint64_t ahead(const struct slot_node *n, const struct slot_now *now, uint64_t until)
{
    uint64_t from = max64(max64(until, now->f), now->last + 1), limit = slot_limit(n, now->f);
    return from > limit ? from - limit : 0;
}

/* Held slots: a lock byte tells at once whether the holder lives; without one, time decides. */
static uint64_t quarantine_left(const struct slot_node *n, const struct slot_now *now,
                                enum slot_hold state, uint64_t until)
{
    uint64_t end = until + n->params.quarantine;
    return state != SLOT_HELD || n->params.use_lock || end <= now->f ? 0 : end - now->f;
}

/* Whether to wait for the slot held last under this name, whose `until` is ahead of the limit: what
 * its dead holder stamped may be ahead of the clock, and only that slot begins above it. A clock
 * that runs gets there; if it stands still, or was set back far, any slot is better than none. Only
 * a lock byte tells that the holder is dead, and a process that had a slot, or that knows how far
 * its predecessor stamped, orders by `last`. */
static bool worth_waiting(struct slot_node *n, const struct slot_now *now, uint64_t until)
{
    uint64_t reach = n->params.window + n->params.max_drift, begin = now->f + n->params.max_drift;
    uint64_t ticks = until > begin ? until - begin : 0;
    if (!n->params.use_lock || n->grant.gen > 0 || now->last > 0 || ticks > reach)
        return false;
    if (n->patience_ms_ == 0) /* what was stamped ahead is at most max_drift ahead of its clock */
        n->patience_ms_ = now->mono_ms + min64(ticks, 2 * n->params.max_drift) +
                          min64(n->params.window / 4, SLACK_MS);
    return now->mono_ms < n->patience_ms_;
}

static bool avoided(const struct slot_node *n, uint32_t slot)
{
    for (uint32_t i = 0; i < n->params.avoid.n; i++)
        if (n->params.avoid.slot[i] == slot)
            return true;
    return false;
}

void slot_set_avoid(struct slot_node *n, const struct slot_avoid *avoid, bool yield)
{
    firn_assert(avoid->n <= SLOT_AVOID_MAX, "%u slots", avoid->n);
    n->params.avoid = *avoid;
    if (!yield || n->state != SLOT_ACTIVE || !holding(n) || !avoided(n, n->grant.slot))
        return;
    n->confirmed_.serial = 0;
    n->grant.closed = true;
    rest(n, SLOT_TWIN);
}

/* The slot last held under this name first (order over restarts), then the oldest until (longest
 * natural quarantine), else wait for the nearest: a crash loop faster than the window puts every
 * slot ahead of the clock, and only time repairs that. Each node begins its search at a random
 * place: nodes that start together would otherwise all try slots of one age (a fresh store's, a
 * fenced one's) in the same order, and strangers, each with a store of its own, would all begin
 * with the first slot. A slot of its name that was written before params.since comes last: another
 * process may use it, on the machine or the disk that this store was cloned from. */
static void choose(struct slot_node *n, const struct slot_now *now)
{
    uint32_t count = n->params.slot_hi - n->params.slot_lo, best = count, sticky = count;
    uint32_t begin = n->jitter_ % count, own = count, strange = count;
    uint64_t wait = UINT64_MAX, clock_wait = UINT64_MAX;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t i = (begin + k) % count;
        const struct slot_seen *s = &n->seen[i];
        if (!s->present || s->skip || s->state == SLOT_RETIRED || avoided(n, n->params.slot_lo + i))
            continue;
        uint64_t q = quarantine_left(n, now, (enum slot_hold)s->state, s->until);
        uint64_t a = ahead(n, now, s->until);
        if (s->mine_by_name && q == 0 && (own == count || s->until > n->seen[own].until))
            own = i;
        if (q > 0 || a > 0) {
            wait = min64(wait, max64(q, a));
            if (q == 0)
                clock_wait = min64(clock_wait, a);
            continue;
        }
        if (s->mine_by_name && (sticky == count || s->until > n->seen[sticky].until))
            sticky = i;
        if (s->strange) {
            strange = i;
            continue;
        }
        if (best == count || s->until < n->seen[best].until)
            best = i;
    }
    if (own != count && own != sticky && worth_waiting(n, now, n->seen[own].until))
        best = sticky = own;
    if (sticky != count)
        best = sticky;
    if (best == count)
        best = strange;
    if (best != count) {
        n->target_ = n->params.slot_lo + best;
        firn_assert(n->target_ < n->params.slot_hi);
        firn_assert(seen_of(n, n->target_)->state != SLOT_RETIRED);
        n->at_ = n->params.use_lock ? SLOT_AT_LOCK : SLOT_AT_READ;
        n->due_ms_ = now->mono_ms;
        return;
    }
    bool far = clock_wait != UINT64_MAX && clock_wait > n->params.window + n->params.max_drift;
    n->state = far ? SLOT_WAIT_CLOCK : SLOT_NO_SLOT;
    n->at_ = SLOT_AT_SCAN;
    uint64_t pause = min64(wait, n->params.backoff_max_ms); /* looks again at least that often */
    n->due_ms_ = now->mono_ms + max64(pause, n->params.backoff_min_ms);
}

void slot_scan_begin(struct slot_node *n)
{
    memset(n->seen, 0, sizeof n->seen);
    n->seen_count_ = 0;
}

void slot_scan_meta(struct slot_node *n, const struct meta_record *meta)
{
    if (!nonce_eq(&meta->cluster, &n->params.cluster))
        halt(n, FIRN_ESTORE, "the store belongs to another cluster");
    n->floor = max64(n->floor, meta->floor); /* it never falls, whatever a store forgot */
}

static void see(struct slot_node *n, uint32_t slot, const struct slot_record *r)
{
    struct slot_seen *s = seen_of(n, slot);
    s->present = true;
    s->state = (uint8_t)r->state;
    s->until = r->until;
    /* A slot that no node held since the last FENCE is free: the store may be a copy, and the
     * original's node of this name may go on with it. */
    bool since = r->epoch > 0 && r->from >= n->floor;
    bool named = since && (n->params.use_lock || n->params.name[0] != '\0') &&
                 strcmp(r->name, n->params.name) == 0;
    s->mine_by_name = named && r->at >= n->params.since;
    s->strange = named && !s->mine_by_name;
    if (n->params.pinned)
        memcpy(n->holder, r->name, sizeof n->holder);
}

/* A record as it must be, or HALTED: an unreadable slot is never taken for a free one. */
static bool understand(struct slot_node *n, uint32_t slot, const char *p, size_t len,
                       struct slot_record *out)
{
    struct firn_diag d = { 0 };
    n->target_ = slot;
    if (slot_parse(p, len, out, &d) != 0)
        halt(n, FIRN_EFORMAT, d.text);
    else if (!nonce_eq(&out->cluster, &n->params.cluster))
        halt(n, FIRN_ESTORE, "its record belongs to another cluster");
    else
        return true;
    return false;
}

void slot_scan_add(struct slot_node *n, uint32_t slot, const char *p, size_t len)
{
    struct slot_record r;
    if (slot < n->params.slot_lo || slot >= n->params.slot_hi || n->at_ == SLOT_AT_REST)
        return;
    if (!understand(n, slot, p, len, &r))
        return;
    n->seen_count_ += !seen_of(n, slot)->present;
    see(n, slot, &r);
    firn_assert(n->seen_count_ <= n->params.slot_hi - n->params.slot_lo);
}

void slot_scan_done(struct slot_node *n, const struct slot_now *now, int result)
{
    if (n->at_ == SLOT_AT_REST)
        return;
    for (uint32_t i = 0; FIRN_MUTANT(absent_slot_is_free) && i < SLOTS_MAX; i++) {
        n->seen_count_ = n->params.slot_hi - n->params.slot_lo;
        n->seen[i].present = true;
    }
    n->target_ = n->params.slot_lo;
    if (result == FIRN_ESTORE)
        halt(n, result, firn_error_message(result));
    else if (result == FIRN_ENOENT || result == FIRN_EFORMAT)
        halt(n, result, "the meta record is missing or damaged: recover the store");
    else if (result != 0)
        back_off(n, now);
    else if (n->seen_count_ != n->params.slot_hi - n->params.slot_lo)
        halt(n, FIRN_ENOENT, "slot records are missing: the store was damaged, recover it");
    else
        choose(n, now);
}

void slot_lock_done(struct slot_node *n, const struct slot_now *now, int result)
{
    if (n->at_ != SLOT_AT_LOCK)
        return;
    if (result == 0) {
        n->at_ = SLOT_AT_READ;
        return;
    }
    seen_of(n, n->target_)->skip = true;
    choose(n, now);
}

/* ---- writes ---- */

static struct slot_write *find_mine(struct slot_node *n, uint32_t slot, const struct nonce *req)
{
    if (holding(n) && n->confirmed_.slot == slot && nonce_eq(&n->confirmed_.req, req))
        return &n->confirmed_;
    if (FIRN_MUTANT(adopt_by_owner) && nonce_eq(&n->base_.owner, &n->me)) {
        struct slot_write *w = &n->mine_[++n->serial_ % SLOT_MINE];
        *w = (struct slot_write){ *req,           n->serial_,    slot,          SLOT_ACQUIRE,
                                  n->base_.epoch, n->base_.from, n->base_.until };
        return w;
    }
    for (size_t i = 0; i < SLOT_MINE; i++)
        if (n->mine_[i].serial != 0 && n->mine_[i].slot == slot && nonce_eq(&n->mine_[i].req, req))
            return &n->mine_[i];
    return NULL;
}

/* The write is remembered before it is sent: its answer may arrive, or its effect, or neither. */
static void prepare(struct slot_node *n, const struct slot_record *r)
{
    const struct slot_record *b = &n->base_;
    bool extend = n->doing_ == SLOT_EXTEND;
    firn_assert(n->target_ >= n->params.slot_lo && n->target_ < n->params.slot_hi);
    firn_assert(r->epoch == b->epoch + !extend, "epoch %" PRIu64 " to %" PRIu64, b->epoch,
                r->epoch);
    firn_assert(!nonce_eq(&r->req, &b->req)); /* or the value would come back */
    firn_assert(n->doing_ == SLOT_RELEASE || r->until > b->until,
                "slot %u until %" PRIu64 " to %" PRIu64, n->target_, b->until, r->until);
    n->value_len_ = slot_encode(r, n->value_);
    n->serial_++;
    n->mine_[n->serial_ % SLOT_MINE] = (struct slot_write){
        .req = r->req,
        .serial = n->serial_,
        .slot = n->target_,
        .kind = n->doing_,
        .epoch = r->epoch,
        .from = r->from,
        .until = r->until,
    };
}

/* Each builds on base_. False: there is nothing to write, the node has moved on. */
static bool build_acquire(struct slot_node *n, const struct slot_now *now, const struct nonce *req)
{
    const struct slot_record *b = &n->base_;
    see(n, n->target_, b); /* the scan may have been older */
    uint64_t early = ahead(n, now, b->until);
    if (early > 0 && b->state != SLOT_RETIRED && seen_of(n, n->target_)->mine_by_name &&
        worth_waiting(n, now, b->until)) {
        n->state = SLOT_NO_SLOT;
        n->at_ = SLOT_AT_READ; /* under its lock */
        n->due_ms_ = now->mono_ms + min64(early, n->params.backoff_max_ms);
        return false;
    }
    if (b->state == SLOT_RETIRED || quarantine_left(n, now, b->state, b->until) > 0 ||
        ahead(n, now, b->until) > 0) {
        choose(n, now);
        return false;
    }
    struct slot_record r = *b;
    r.from = max64(max64(b->until, now->f), max64(now->last + 1, 1)); /* tick 0 is never granted */
    if (FIRN_MUTANT(same_tick_slot_change))
        r.from = max64(b->until, now->f);
    if (r.from >= n->params.ts_end) {
        halt(n, FIRN_EEXHAUSTED, firn_error_message(FIRN_EEXHAUSTED));
        return false;
    }
    r.epoch = b->epoch + 1;
    r.state = SLOT_HELD;
    r.owner = n->me;
    memcpy(r.name, n->params.name, sizeof r.name);
    r.until = min64(r.from + n->params.window, n->params.ts_end);
    r.at = now->f;
    r.req = *req;
    firn_assert(r.from < r.until && r.from >= b->until, "from %" PRIu64 " until %" PRIu64, r.from,
                r.until);
    firn_assert(r.from > now->last || FIRN_MUTANT(same_tick_slot_change),
                "from %" PRIu64 " last %" PRIu64, r.from, now->last);
    firn_assert(r.from <= max64(slot_limit(n, now->f), 1), "from %" PRIu64 " F %" PRIu64, r.from,
                now->f);
    prepare(n, &r);
    return true;
}

/* Not "until + window": that would creep into the future. */
static uint64_t extended(const struct slot_node *n, const struct slot_now *now)
{
    return min64(max64(now->f, now->last) + n->params.window, n->params.ts_end);
}

static bool build_extend(struct slot_node *n, const struct slot_now *now, const struct nonce *req)
{
    struct slot_record r = n->base_;
    if (r.until >= n->params.ts_end && now->f >= n->params.ts_end) {
        halt(n, FIRN_EEXHAUSTED, firn_error_message(FIRN_EEXHAUSTED));
        return false;
    }
    r.until = extended(n, now);
    if (r.until <= n->base_.until) { /* a held clock: nothing is being used up */
        n->at_ = SLOT_AT_RENEW;
        n->due_ms_ = now->mono_ms + n->params.renew_every_ms;
        return false;
    }
    r.at = now->f;
    r.req = *req;
    firn_assert(r.until <= n->params.ts_end && r.from == n->base_.from);
    prepare(n, &r);
    return true;
}

static bool build_release(struct slot_node *n, const struct slot_now *now, const struct nonce *req)
{
    static const struct nonce none;
    struct slot_record r = n->base_;
    r.epoch++;
    r.state = SLOT_FREE;
    r.owner = none;
    /* Never below an emitted tick, even if the store has forgotten some of them. */
    r.until = max64(n->params.give_back ? r.from : r.until, now->last + 1);
    firn_assert(n->grant.closed && r.until > now->last, "until %" PRIu64 " last %" PRIu64, r.until,
                now->last);
    r.at = now->f;
    r.req = *req;
    prepare(n, &r);
    return true;
}

static bool build(struct slot_node *n, const struct slot_now *now, const struct nonce *req)
{
    switch (n->doing_) {
    case SLOT_ACQUIRE:
        return build_acquire(n, now, req);
    case SLOT_EXTEND:
        return build_extend(n, now, req);
    case SLOT_RELEASE:
        return build_release(n, now, req);
    }
    return false;
}

/* This write of ours is in the store, whose record is base_. */
static void confirm(struct slot_node *n, const struct slot_now *now, struct slot_write w)
{
    struct slot_grant *g = &n->grant;
    bool same = holding(n) && n->confirmed_.slot == w.slot && n->confirmed_.epoch == w.epoch;
    firn_assert(w.serial != 0 && w.kind != SLOT_RELEASE && w.from <= w.until,
                "slot %u from %" PRIu64 " until %" PRIu64, w.slot, w.from, w.until);
    firn_assert(n->state != SLOT_RELEASING && n->state != SLOT_CLOSED);
    if (same) {
        firn_assert(g->slot == w.slot && g->gen > 0);
        g->until = max64(g->until, w.until);
    } else {
        /* A grant that is found late begins above the ticks emitted since, not at its old from. */
        g->gen++;
        g->slot = w.slot;
        g->until = w.until;
        g->from = FIRN_MUTANT(same_tick_slot_change) ? w.from : max64(w.from, now->last + 1);
        g->closed = false;
        firn_assert(g->from > now->last || FIRN_MUTANT(same_tick_slot_change));
    }
    n->confirmed_ = w;
    n->state = SLOT_ACTIVE;
    n->at_ = SLOT_AT_RENEW;
    n->outcome_ = false;
    n->backoff_ms_ = 0;
    n->due_ms_ = now->mono_ms + n->params.renew_every_ms;
}

void slot_cas_done(struct slot_node *n, const struct slot_now *now, int result)
{
    if (n->at_ != SLOT_AT_WRITE)
        return;
    if (result == 0) {
        /* The register holds the value that we sent. */
        if (slot_parse(n->value_, n->value_len_, &n->base_, NULL) != 0) {
            halt(n, FIRN_EFORMAT, "its new record cannot be read");
            return;
        }
        firn_assert(n->value_len_ > 0 && n->value_len_ <= sizeof n->base_text_);
        memcpy(n->base_text_, n->value_, n->value_len_);
        n->base_len_ = n->value_len_;
        if (n->doing_ == SLOT_RELEASE)
            rest(n, SLOT_CLOSED);
        else
            confirm(n, now, n->mine_[n->serial_ % SLOT_MINE]);
        return;
    }
    if (result == FIRN_ESTORE) {
        halt(n, result, firn_error_message(result));
        return;
    }
    n->at_ = SLOT_AT_READ;
    n->outcome_ = true;
    n->due_ms_ = now->mono_ms;
    if (result != FIRN_ECONFLICT)
        back_off(n, now);
}

/* ---- the answer to a read ---- */

static void try_again(struct slot_node *n, const struct slot_now *now)
{
    n->at_ = SLOT_AT_WRITE;
    n->outcome_ = false;
    n->due_ms_ =
        now->mono_ms; /* the pause was before the read: a store that is back is used at once */
    if (n->backoff_ms_ == 0)
        back_off(n, now);
}

static void outcome_of_acquire(struct slot_node *n, const struct slot_now *now, bool unchanged)
{
    struct slot_write *w = find_mine(n, n->target_, &n->base_.req);
    if (w && w->kind != SLOT_RELEASE) {
        confirm(n, now, *w);
    } else if (unchanged) {
        try_again(n, now);
    } else if (nonce_eq(&n->base_.owner, &n->me)) {
        n->grant.closed = true;
        rest(n, SLOT_TWIN);
    } else {
        see(n, n->target_, &n->base_);
        seen_of(n, n->target_)->skip = true;
        choose(n, now);
    }
}

static void outcome_of_extend(struct slot_node *n, const struct slot_now *now)
{
    const struct slot_record *b = &n->base_;
    firn_assert(holding(n) && n->target_ == n->confirmed_.slot);
    struct slot_write *w = find_mine(n, n->target_, &b->req);
    if (w && w->serial > n->confirmed_.serial) {
        confirm(n, now, *w);
    } else if (w && w->serial == n->confirmed_.serial) {
        try_again(n, now);
    } else if (w || b->epoch < n->confirmed_.epoch ||
               (b->epoch == n->confirmed_.epoch && !nonce_eq(&b->owner, &n->me))) {
        /* Older than the confirmed record, or another history: the store forgot. */
        n->confirmed_.serial = 0;
        rest(n, SLOT_REGRESSED);
    } else if (nonce_eq(&b->owner, &n->me)) {
        n->confirmed_.serial = 0;
        n->grant.closed = true;
        rest(n, SLOT_TWIN);
    } else {
        n->confirmed_.serial = 0;
        look_around(n, SLOT_FENCED, now);
    }
}

/* Closed already: it only matters whether the record is still ours to free. */
static void outcome_of_release(struct slot_node *n, const struct slot_now *now)
{
    struct slot_write *w = find_mine(n, n->target_, &n->base_.req);
    if (w && w->kind != SLOT_RELEASE)
        try_again(n, now);
    else
        rest(n, SLOT_CLOSED);
}

void slot_read_done(struct slot_node *n, const struct slot_now *now, int result, const char *p,
                    size_t len)
{
    if (n->at_ != SLOT_AT_READ)
        return;
    if (FIRN_MUTANT(absent_slot_is_free) && result == FIRN_ENOENT && n->doing_ == SLOT_ACQUIRE) {
        n->base_ = (struct slot_record){ .cluster = n->params.cluster };
        n->base_len_ = 0;
        n->at_ = SLOT_AT_WRITE;
        return;
    }
    if (result == FIRN_ENOENT) {
        halt(n, result, "its record is missing: the store was damaged, recover it");
        return;
    }
    if (result == FIRN_ESTORE) {
        halt(n, result, firn_error_message(result));
        return;
    }
    if (result != 0) {
        back_off(n, now);
        return;
    }
    struct slot_record r;
    if (!understand(n, n->target_, p, len, &r))
        return;
    bool outcome = n->outcome_,
         unchanged = outcome && len == n->base_len_ && memcmp(p, n->base_text_, len) == 0;
    n->base_ = r;
    firn_assert(len <= sizeof n->base_text_); /* or it had not been understood */
    memcpy(n->base_text_, p, len);
    n->base_len_ = len;
    n->outcome_ = false;
    if (n->doing_ == SLOT_RELEASE) {
        outcome_of_release(n, now);
    } else if (n->doing_ == SLOT_EXTEND) {
        outcome_of_extend(n, now);
    } else if (outcome) {
        outcome_of_acquire(n, now, unchanged);
    } else {
        struct slot_write *w = find_mine(n, n->target_, &r.req);
        if (w && w->kind != SLOT_RELEASE)
            confirm(n, now, *w); /* an ACQUIRE given up earlier has landed since */
        else
            n->at_ = SLOT_AT_WRITE;
    }
}

/* ---- the driver's side ---- */

/* The next thing to do, or false: look again, the place has changed. */
static bool step(struct slot_node *n, const struct slot_now *now, const struct nonce *fresh,
                 struct slot_action *out)
{
    *out = (struct slot_action){ .what = SLOT_DO_WAIT, .slot = n->target_, .mono_ms = n->due_ms_ };
    if (n->at_ == SLOT_AT_REST) {
        out->mono_ms = UINT64_MAX;
        return true;
    }
    if (n->at_ == SLOT_AT_RENEW) {
        /* Early when a burst eats the window: the clock alone would notice too late. */
        bool early = slot_left(n, now) < n->params.window / 2 && extended(n, now) > n->base_.until;
        if (now->mono_ms < n->due_ms_ && !early)
            return true;
        firn_assert(holding(n) && n->grant.slot == n->confirmed_.slot);
        n->doing_ = SLOT_EXTEND;
        n->target_ = n->confirmed_.slot;
        n->at_ = SLOT_AT_WRITE;
        n->due_ms_ = now->mono_ms;
        return false;
    }
    if (now->mono_ms < n->due_ms_)
        return true;
    switch (n->at_) {
    case SLOT_AT_SCAN:
        n->doing_ = SLOT_ACQUIRE;
        out->what = SLOT_DO_SCAN;
        return true;
    case SLOT_AT_LOCK:
        out->what = SLOT_DO_LOCK;
        return true;
    case SLOT_AT_READ:
        out->what = SLOT_DO_READ;
        out->fresh = n->outcome_;
        return true;
    case SLOT_AT_WRITE:
        if (!build(n, now, fresh))
            return false;
        out->what = SLOT_DO_CAS;
        out->old = n->base_text_;
        out->old_len = n->base_len_;
        out->value = n->value_;
        out->value_len = n->value_len_;
        firn_assert(out->value_len > 0 && out->slot == n->target_);
        return true;
    case SLOT_AT_RENEW:
    case SLOT_AT_REST:
        break;
    }
    return true;
}

void slot_next(struct slot_node *n, const struct slot_now *now, const struct nonce *fresh,
               struct slot_action *out)
{
    n->jitter_ = (uint16_t)(fresh->b[0] << 8 | fresh->b[1]);
    while (!step(n, now, fresh, out))
        ;
}

void slot_release(struct slot_node *n, const struct slot_now *now)
{
    if (n->state == SLOT_RELEASING || n->state == SLOT_CLOSED)
        return;
    n->grant.closed = true;
    if (!holding(n)) {
        rest(n, SLOT_CLOSED);
        return;
    }
    /* base_ is the last record known; a write still open makes the CAS fail, and the read after it
     * tells what to replace. */
    n->state = SLOT_RELEASING;
    n->doing_ = SLOT_RELEASE;
    n->target_ = n->confirmed_.slot;
    n->at_ = SLOT_AT_WRITE;
    n->outcome_ = false;
    n->backoff_ms_ = 0;
    n->due_ms_ = now->mono_ms;
}

void slot_reborn(struct slot_node *n, const struct nonce *incarnation)
{
    n->me = *incarnation;
    memset(n->mine_, 0, sizeof n->mine_);
    n->confirmed_ = (struct slot_write){ 0 };
    n->state = SLOT_START;
    n->at_ = SLOT_AT_SCAN;
    n->outcome_ = false;
    n->due_ms_ = 0;
    n->backoff_ms_ = 0;
}

void slot_fenced_record(const struct nonce *cluster, const struct slot_record *old, uint64_t floor,
                        uint64_t f, const struct nonce *req, struct slot_record *out)
{
    static const struct nonce none;
    struct slot_record r = { .from = floor };
    if (old)
        r = *old;
    r.cluster = *cluster;
    r.epoch = old ? old->epoch + 1 : 0;
    r.state = old && old->state == SLOT_RETIRED ? SLOT_RETIRED : SLOT_FREE;
    r.owner = none;
    r.until = old ? max64(old->until, floor) : floor;
    r.at = f;
    r.req = *req;
    firn_assert(r.until >= floor && r.from <= r.until, "until %" PRIu64 " floor %" PRIu64, r.until,
                floor);
    *out = r;
}

void slot_retired_record(const struct slot_record *old, uint64_t f, const struct nonce *req,
                         struct slot_record *out)
{
    *out = *old;
    out->state = SLOT_RETIRED;
    out->owner = (struct nonce){ { 0 } };
    out->epoch++;
    out->at = f;
    out->req = *req;
}

uint64_t slot_fence_floor(const struct meta_record *m, uint64_t f, uint64_t s)
{
    /* No grant reaches further than a window beyond the limit, whatever floors there were: so
     * fences one after the other do not carry the slots away from the clock. A floor always rises:
     * that tells a fence. */
    uint64_t now = max64(f, s), span = m->window + m->max_drift + 2 * m->skew_max;
    uint64_t floor = max64(min64(max64(now, m->floor), now + m->window) + span, m->floor + 1);
    firn_assert(floor > m->floor, "floor %" PRIu64 " to %" PRIu64, m->floor, floor);
    return floor;
}
