/*
 * The generator that one thread owns.
 * What all of this protects: (tick_, sequence number) only rises, and every tick that is entered
 * lies below until_. The clock is asked for each ID, but only to see whether it still falls into
 * the range of readings that may go on in the current tick; entering a tick is the one place with
 * decisions. The hot path looks at left_ first: it is 0 after a close and on a page wiped by
 * fork().
 */
#include "firn/gen.h"
#include "id/gen_setup.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(sizeof(struct firn_gen) == 256, "ABI: shrink reserved_ when adding a field");

static uint64_t tick_of(const struct firn_gen *g, uint64_t ns)
{
    return ns < g->epoch_ns_ ? 0 : (ns - g->epoch_ns_) / g->tick_ns_;
}

/* A window may begin at a tick that no clock of 64-bit nanoseconds ever shows: that is "never". */
static uint64_t tick_start_ns(const struct firn_gen *g, uint64_t tick)
{
    uint64_t ns;
    if (__builtin_mul_overflow(tick, g->tick_ns_, &ns) ||
        __builtin_add_overflow(ns, g->epoch_ns_, &ns))
        return UINT64_MAX;
    return ns;
}

/* From which reading on the clock may go on in tick_. Borrowing takes any: it holds the time. */
static void set_accept(struct firn_gen *g)
{
    uint64_t start = tick_start_ns(g, g->tick_);
    g->accept_from_ = 0;
    if (g->policy_ != FIRN_POLICY_BORROW && start > g->backstep_ns_)
        g->accept_from_ = start - g->backstep_ns_;
    g->accept_len_ = start + g->tick_ns_ - g->accept_from_;
}

/* Sleep towards `ns`. False when the caller's patience (`*give_up_ns`, 0 at first) is over. */
static bool wait_until(struct firn_gen *g, uint64_t ns, uint64_t *waited_ns)
{
    uint64_t now = g->clock_->fine_ns(g->clock_);
    if (now >= ns)
        return true;
    uint64_t nap = ns - now < 1000000 ? ns - now : 1000000;
    if (*waited_ns + nap > g->wait_max_ns_)
        return false;
    g->clock_->sleep_ns(g->clock_, nap);
    *waited_ns += firn__slept_ns(now, g->clock_->fine_ns(g->clock_), nap);
    return true;
}

/* Enter the tick that the next ID belongs to, or stay in the current one if the clock allows. */
static __attribute__((noinline)) int enter_tick(struct firn_gen *g)
{
    if (!g->clock_)
        return FIRN_EFORKED;
    if (g->closed_)
        return FIRN_ECLOSED;
    uint64_t waited_ns = 0, now = g->clock_->now_ns(g->clock_);
    for (;;) {
        if (now < g->accept_from_) { /* perhaps only the coarse reading lags */
            now = g->clock_->fine_ns(g->clock_);
            if (now < g->accept_from_) {
                if (g->policy_ != FIRN_POLICY_WAIT || !wait_until(g, g->accept_from_, &waited_ns))
                    return FIRN_ECLOCK;
                now = g->clock_->fine_ns(g->clock_);
                continue;
            }
        }
        g->held_ = max64(g->held_, tick_of(g, now));
        uint64_t tick = max64(g->tick_, g->held_);
        if (tick == g->tick_) {
            if (g->left_ > 0)
                return 0;
            tick++;
        }
        if (tick > g->held_) { /* used up: the finest reading may already be there */
            g->held_ = max64(g->held_, tick_of(g, g->clock_->fine_ns(g->clock_)));
            uint64_t floor = __atomic_load_n(&g->floor_, __ATOMIC_RELAXED);
            if (tick > max64(g->held_, floor) + g->drift_) {
                if (g->policy_ != FIRN_POLICY_WAIT ||
                    !wait_until(g, tick_start_ns(g, tick), &waited_ns))
                    return FIRN_EAGAIN;
                now = g->clock_->fine_ns(g->clock_);
                continue;
            }
            tick = max64(tick, g->held_);
        }
        if (tick >= __atomic_load_n(&g->until_, __ATOMIC_ACQUIRE))
            return tick >= g->end_ ? FIRN_EEXHAUSTED : FIRN_EWINDOW;
        g->tick_ = tick;
        g->next_id_ = tick << g->time_shift_ | g->first_bits_;
        g->left_ = g->lane_count_;
        set_accept(g);
        return 0;
    }
}

/* True if the current tick has numbers left and the clock has not left it. */
static inline bool in_tick(const struct firn_gen *g)
{
    return g->left_ != 0 && g->clock_->now_ns(g->clock_) - g->accept_from_ < g->accept_len_;
}

int firn_gen_next(struct firn_gen *g, uint64_t *out_id)
{
    if (__builtin_expect(!in_tick(g), 0)) {
        int r = enter_tick(g);
        if (r)
            return r;
    }
    *out_id = g->next_id_;
    g->next_id_ += g->step_;
    g->left_--;
    return 0;
}

int firn_gen_next_shard(struct firn_gen *g, uint64_t shard, uint64_t *out_id)
{
    uint64_t id;
    if (g->clock_ && (shard > g->shard_max_ || g->shard_max_ == 0))
        return FIRN_ERANGE;
    int r = firn_gen_next(g, &id);
    if (r == 0)
        *out_id = id | shard << g->shard_shift_;
    return r;
}

/* A loop without branches or memory but the output: compilers make vectors of it. */
static void fill_run(uint64_t *ids, size_t n, uint64_t first, uint64_t step)
{
    typedef uint64_t pair __attribute__((vector_size(16)));
    pair a = { first, first + step }, b = a + 2 * step;
    size_t i = 0;
    for (; i + 4 <= n; i += 4, a += 4 * step, b += 4 * step) {
        memcpy(ids + i, &a, sizeof a);
        memcpy(ids + i + 2, &b, sizeof b);
    }
    for (first += i * step; i < n; i++, first += step)
        ids[i] = first;
}

int firn_gen_fill(struct firn_gen *g, uint64_t *ids, size_t n, size_t *out_n)
{
    if (!g || (!ids && n > 0) || !out_n)
        return FIRN_EINVAL;
    size_t done = 0;
    while (done < n) {
        if (!in_tick(g)) {
            int r = enter_tick(g);
            if (r && done == 0)
                return r;
            if (r)
                break;
        }
        size_t run = n - done < g->left_ ? n - done : (size_t)g->left_;
        fill_run(ids + done, run, g->next_id_, g->step_);
        g->next_id_ += run * g->step_;
        g->left_ -= run;
        done += run;
    }
    *out_n = done;
    return 0;
}

int firn_gen_after(struct firn_gen *g, const struct firn_layout *l, uint64_t id)
{
    struct firn_parts parts;
    if (!g || !l || firn_layout_decompose(l, id, &parts) != 0)
        return FIRN_EINVAL;
    if (!g->clock_)
        return FIRN_EFORKED;
    uint64_t tick = parts.field[FIRN_FIELD_TIME];
    if (tick < g->tick_)
        return 0;
    uint64_t slack = max64(g->drift_, g->backstep_ns_ / g->tick_ns_);
    if (tick > tick_of(g, g->clock_->fine_ns(g->clock_)) + slack)
        return FIRN_ERANGE;
    g->tick_ = tick; /* nothing left in it: the next ID enters a later one */
    g->left_ = 0;
    return 0;
}

void firn_gen_extend(struct firn_gen *g, uint64_t until)
{
    until = until < g->end_ ? until : g->end_; /* beyond it ticks would begin again at 0 */
    uint64_t old = __atomic_load_n(&g->until_, __ATOMIC_RELAXED);
    while (until > old && !__atomic_compare_exchange_n(&g->until_, &old, until, true,
                                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

void firn_gen_set_floor(struct firn_gen *g, uint64_t floor_tick)
{
    __atomic_store_n(&g->floor_, floor_tick, __ATOMIC_RELAXED);
}

void firn_gen_close(struct firn_gen *g, uint64_t *out_last)
{
    g->closed_ = 1;
    g->left_ = 0;
    if (out_last)
        *out_last = g->tick_;
}

int firn_gen_init(struct firn_gen *g, const struct firn_layout *l, const struct firn_gen_opts *opts)
{
    struct gen_setup s;
    if (!g)
        return FIRN_EINVAL;
    int r = firn__gen_setup(l, opts, &s);
    if (r)
        return r;
    struct firn_bits seq = l->field[FIRN_FIELD_SEQ], shard = l->field[FIRN_FIELD_SHARD];
    bool shard_is_identity = l->field[FIRN_FIELD_DC].width + l->field[FIRN_FIELD_NODE].width == 0;
    *g = (struct firn_gen){
        .step_ = seq.width ? UINT64_C(1) << seq.shift : 0,
        .clock_ = s.clock,
        .tick_ = s.from - 1, /* full: the first ID enters `from` or later */
        .until_ = s.until,
        .end_ = s.end,
        .lane_count_ = s.lane_count,
        .first_bits_ = firn_layout_slot_bits(l, opts->slot) |
                       (seq.width ? s.lane_first << seq.shift : 0),
        .epoch_ns_ = s.epoch_ns,
        .tick_ns_ = s.tick_ns,
        .drift_ = s.drift,
        .backstep_ns_ = s.backstep_ns,
        .wait_max_ns_ = s.wait_max_ns,
        .policy_ = s.policy,
        .time_shift_ = l->field[FIRN_FIELD_TIME].shift,
        .shard_shift_ = shard.shift,
        .shard_max_ = shard_is_identity ? 0 : (UINT64_C(1) << shard.width) - 1,
    };
    return 0;
}
