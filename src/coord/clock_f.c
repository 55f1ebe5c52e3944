/*
 * Clock F (clock_f.h): starts when the wall clock is plausible, then follows it without going back.
 * Tests: tests/unit/coord/clock_f.c.
 */
#include "coord/clock_f.h"
#include "coord/mutant.h"
#include "platform/assert.h"

#include <inttypes.h>

void clock_f_init(struct clock_f *c, const struct clock_f_params *params)
{
    *c = (struct clock_f){ .params = *params, .state = CLOCK_WAIT };
}

enum { STOOD_S = 2 }; /* more than one update apart: a single step back is no standing clock */

static bool near(int64_t a, int64_t b, int64_t by)
{
    return a - b <= by && b - a <= by;
}

/* Does anything confirm R? The store's clock, or the age of the last ID in the store. */
static bool plausible(const struct clock_f *c, const struct clock_reading *r, int64_t highest_until)
{
    if (FIRN_MUTANT(follows_bad_clock))
        return true;
    if (r->store != 0 && !c->params.accept)
        return near(r->real, r->store, c->params.skew_max_ns);
    return highest_until == 0 || r->real - highest_until <= c->params.max_idle_ns;
}

static void start(struct clock_f *c, const struct clock_reading *r, int64_t highest_until)
{
    if (r->real < c->params.epoch_ns)
        return;
    if (!plausible(c, r, highest_until) && !c->params.accept)
        return;
    c->off_ns = r->real - r->mono;
    c->floor_ns = r->real;
    c->state = CLOCK_OK;
}

static void follow(struct clock_f *c, const struct clock_reading *r, int64_t highest_until)
{
    int64_t skew = c->params.skew_max_ns;
    int64_t now = clock_f_at(c, r->mono); /* the generators' time: F never goes below */
    int64_t expected = clock_f_at(c, c->last_mono_) + (r->boot - c->last_boot_);
    int64_t target = r->real;
    c->state = CLOCK_OK;
    if (r->real - expected > skew && !plausible(c, r, highest_until)) {
        target = expected;
        c->state = CLOCK_SUSPECT;
    }
    /* Small steps need no confirmation, but many of them would drift away from the store's
     * clock. */
    if (r->store != 0 && !c->params.accept && target > r->store + skew)
        target = r->store + skew;
    /* A clock that stands still never falls behind by more than F ran ahead of it: it shows only
     * here. */
    c->stood_ns_ = r->real > c->last_real_ ? 0 : c->stood_ns_ + (r->boot - c->last_boot_);
    if (target < now - skew || c->stood_ns_ >= STOOD_S * INT64_C(1000000000))
        c->state = CLOCK_HELD;
    c->off_ns = target - r->mono;
    c->floor_ns = now > target ? now : target;
    firn_assert(clock_f_at(c, r->mono) >= now, "F %" PRId64 " to %" PRId64, now,
                clock_f_at(c, r->mono));
}

enum clock_state clock_f_update(struct clock_f *c, const struct clock_reading *r,
                                int64_t highest_until_ns)
{
    int64_t floor = c->floor_ns;
    if (c->state == CLOCK_WAIT)
        start(c, r, highest_until_ns);
    else
        follow(c, r, highest_until_ns);
    firn_assert(c->floor_ns >= floor || floor == 0, "floor %" PRId64 " to %" PRId64, floor,
                c->floor_ns);
    firn_assert(c->state == CLOCK_WAIT || c->floor_ns >= c->params.epoch_ns);
    c->behind_ns = c->state == CLOCK_WAIT ? 0 : r->real - clock_f_at(c, r->mono);
    c->last_mono_ = r->mono;
    c->last_boot_ = r->boot;
    c->last_real_ = r->real;
    return c->state;
}
