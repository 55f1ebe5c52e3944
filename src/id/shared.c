/*
 * The generator that threads share. (tick, seq) of the next ID is one atomic word, so that a
 * sequence number that overflows carries into the tick by itself: the common path is one clock read
 * and one fetch_add. A number that was taken and may not be used (its tick is stale, too far ahead
 * or beyond the window) is given back, or burned if others drew since; neither repeats anything.
 * Closing exchanges the word with CLOSED. Later additions keep it at or above CLOSED, and a
 * thread that drew a number before the exchange drew one that the closer's `last` covers.
 */
#include "firn/gen.h"
#include "id/gen_setup.h"

#include <stdbool.h>
#include <string.h>

/* Above every word: time and sequence have at most 63 bits, and nobody draws 2^62 numbers after an
 * end. So a layout that ends at 2^63 is exhausted there, not closed. */
#define CLOSED (UINT64_C(3) << 62)

_Static_assert(sizeof(struct firn_shared) == 256, "ABI: shrink reserved_ when adding a field");

static uint64_t load(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static void raise(uint64_t *p, uint64_t value, int order)
{
    uint64_t old = load(p);
    while (value > old &&
           !__atomic_compare_exchange_n(p, &old, value, true, order, __ATOMIC_RELAXED)) {
    }
}

/* Division by the tick through its reciprocal: the estimate is exact or one too small. */
static uint64_t tick_of(const struct firn_shared *g, uint64_t ns)
{
    if (ns < g->epoch_ns_)
        return 0;
    uint64_t since = ns - g->epoch_ns_;
    uint64_t tick = (uint64_t)(((unsigned __int128)since * g->reciprocal_) >> 64);
    return tick + (since - tick * g->tick_ns_ >= g->tick_ns_);
}

static uint64_t make_id(const struct firn_shared *g, uint64_t word)
{
    return word >> g->seq_bits_ << g->time_shift_ | (word & g->seq_mask_) << g->seq_shift_ |
           g->identity_;
}

/* Has the clock, at `ns`, stepped back further than is ridden out? held_ was shown by it once. */
static bool stepped_back(const struct firn_shared *g, uint64_t ns)
{
    return g->policy_ != FIRN_POLICY_BORROW &&
           load(&g->held_) * g->tick_ns_ + g->epoch_ns_ > ns + g->backstep_ns_;
}

/* The rare part of may_stamp(): ahead of the clock, or at the window's end. */
static __attribute__((noinline)) int may_stamp_ahead(struct firn_shared *g, uint64_t tick,
                                                     uint64_t ns, uint64_t now)
{
    if (tick >= __atomic_load_n(&g->until_, __ATOMIC_ACQUIRE))
        return tick >= CLOSED >> g->seq_bits_ ? FIRN_ECLOSED
               : tick >= g->end_              ? FIRN_EEXHAUSTED
                                              : FIRN_EWINDOW;
    if (tick <= now)
        return 0;
    if (stepped_back(g, ns))
        return FIRN_ECLOCK;
    uint64_t reached = max64(max64(load(&g->held_), load(&g->floor_)), now);
    return tick <= reached + load(&g->drift_) ? 0 : FIRN_EAGAIN;
}

/* May an ID be stamped `tick` when the clock shows `ns`, which is the tick `now`? Ahead of the
 * clock only as far as policy and the highest time ever shown allow. */
static inline int may_stamp(struct firn_shared *g, uint64_t tick, uint64_t ns, uint64_t now)
{
    if (__builtin_expect(tick <= now && tick < __atomic_load_n(&g->until_, __ATOMIC_ACQUIRE), 1))
        return 0;
    return may_stamp_ahead(g, tick, ns, now);
}

/* Take `n` numbers of one tick at a time, slowly and surely: look before each step. */
static int take_slowly(struct firn_shared *g, size_t n, uint64_t *out_word, size_t *out_n)
{
    uint64_t waited_ns = 0;
    for (;;) {
        uint64_t ns = g->clock_->fine_ns(g->clock_), now = tick_of(g, ns);
        uint64_t word = load(&g->word_), first = word;
        if (word >= CLOSED)
            return FIRN_ECLOSED;
        if (word >> g->seq_bits_ < now)
            first = now << g->seq_bits_; /* a later tick: start its sequence */
        uint64_t tick = first >> g->seq_bits_;
        int r = may_stamp(g, tick, ns, now);
        if (r == 0) {
            uint64_t left = g->seq_mask_ + 1 - (first & g->seq_mask_);
            size_t run = n < left ? n : (size_t)left;
            raise(&g->held_, now, __ATOMIC_RELAXED);
            if (!__atomic_compare_exchange_n(&g->word_, &word, first + run, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_RELAXED))
                continue;
            *out_word = first;
            *out_n = run;
            return 0;
        }
        if (r != FIRN_EAGAIN && r != FIRN_ECLOCK)
            return r;
        /* Until the clock gets there, no thread needs to try the fast path. */
        uint64_t drift = load(&g->drift_);
        uint64_t resume_ns = g->epoch_ns_ + (tick - (tick < drift ? tick : drift)) * g->tick_ns_;
        if (r == FIRN_EAGAIN)
            __atomic_store_n(&g->resume_ns_, resume_ns, __ATOMIC_RELAXED);
        if (g->policy_ != FIRN_POLICY_WAIT)
            return r;
        uint64_t nap = resume_ns > ns && resume_ns - ns < 1000000 ? resume_ns - ns : 1000000;
        if (waited_ns + nap > g->wait_max_ns_)
            return r;
        g->clock_->sleep_ns(g->clock_, nap);
        waited_ns += firn__slept_ns(ns, g->clock_->fine_ns(g->clock_), nap);
    }
}

int firn_shared_next(struct firn_shared *g, uint64_t *out_id)
{
    if (__builtin_expect(!g->clock_, 0))
        return FIRN_EFORKED;
    uint64_t ns = g->clock_->now_ns(g->clock_), word;
    if (__builtin_expect(ns >= load(&g->resume_ns_), 1)) {
        word = __atomic_fetch_add(&g->word_, 1, __ATOMIC_ACQ_REL);
        uint64_t tick = word >> g->seq_bits_, now = tick_of(g, ns);
        if (__builtin_expect(tick >= now && may_stamp(g, tick, ns, now) == 0, 1)) {
            if (__builtin_expect((word & g->seq_mask_) == 0, 0)) /* a tick entered by a carry */
                raise(&g->held_, now, __ATOMIC_RELAXED);
            *out_id = make_id(g, word);
            return 0;
        }
        /* Give the number back if no thread drew one since: then none can hold it or a higher
         * one. */
        uint64_t after = word + 1;
        if (word < CLOSED)
            __atomic_compare_exchange_n(&g->word_, &after, word, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED);
    }
    size_t n;
    int r = take_slowly(g, 1, &word, &n);
    if (r == 0)
        *out_id = make_id(g, word);
    return r;
}

int firn_shared_fill(struct firn_shared *g, uint64_t *ids, size_t n, size_t *out_n)
{
    if (!g || (!ids && n > 0) || !out_n)
        return FIRN_EINVAL;
    if (!g->clock_)
        return FIRN_EFORKED;
    size_t done = 0;
    while (done < n) {
        uint64_t word;
        size_t run;
        int r = take_slowly(g, n - done, &word, &run);
        if (r && done == 0)
            return r;
        if (r)
            break;
        uint64_t first = make_id(g, word), step = UINT64_C(1) << g->seq_shift_;
        for (size_t i = 0; i < run; i++)
            ids[done + i] = first + i * step;
        done += run;
    }
    *out_n = done;
    return 0;
}

void firn_shared_extend(struct firn_shared *g, uint64_t until)
{
    /* Beyond the end ticks would begin again at 0. */
    raise(&g->until_, until < g->end_ ? until : g->end_, __ATOMIC_RELEASE);
}

void firn_shared_set_floor(struct firn_shared *g, uint64_t floor_tick)
{
    __atomic_store_n(&g->floor_, floor_tick, __ATOMIC_RELAXED);
}

void firn_shared_close(struct firn_shared *g, uint64_t *out_last)
{
    uint64_t word = __atomic_exchange_n(&g->word_, CLOSED, __ATOMIC_ACQ_REL);
    if (out_last && word < CLOSED)
        *out_last = (word - 1) >> g->seq_bits_;
}

int firn_shared_init(struct firn_shared *g, const struct firn_layout *l,
                     const struct firn_gen_opts *opts)
{
    struct gen_setup s;
    if (!g)
        return FIRN_EINVAL;
    int r = firn__gen_setup(l, opts, &s);
    if (r)
        return r;
    struct firn_bits time = l->field[FIRN_FIELD_TIME], seq = l->field[FIRN_FIELD_SEQ];
    if (opts->lanes > 1)
        return FIRN_EINVAL;
    *g = (struct firn_shared){
        .word_ = s.from << seq.width,
        .clock_ = s.clock,
        .until_ = s.until,
        .held_ = 0,
        .epoch_ns_ = s.epoch_ns,
        .tick_ns_ = s.tick_ns,
        .reciprocal_ = UINT64_MAX / s.tick_ns,
        .identity_ = firn_layout_slot_bits(l, opts->slot),
        .seq_mask_ = (UINT64_C(1) << seq.width) - 1,
        .end_ = s.end,
        .drift_ = s.drift,
        .backstep_ns_ = s.backstep_ns,
        .wait_max_ns_ = s.wait_max_ns,
        .policy_ = s.policy,
        .seq_bits_ = seq.width,
        .seq_shift_ = seq.shift,
        .time_shift_ = time.shift,
    };
    return 0;
}
