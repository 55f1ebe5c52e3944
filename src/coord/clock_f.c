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

const char *clock_state_name(enum clock_state s)
{
    static const char *const names[] = {
        [CLOCK_WAIT] = "wait", [CLOCK_OK] = "ok", [CLOCK_HELD] = "held", [CLOCK_SUSPECT] = "suspect"
    };
    return names[s];
}

#define SECOND INT64_C(1000000000)
#define STEP   (SECOND / 2)  /* NTP slews what is smaller, or steps it without harm */
#define STOOD  (2 * SECOND)  /* more than one update apart */
#define LASTED (60 * SECOND) /* a leap that nothing can confirm or deny is followed after this */

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
    c->trust_ns_ = r->real - r->boot;
    c->state = CLOCK_OK;
}

/* How far R moved against CLOCK_BOOTTIME since the last update; a clock that stands makes no
 * step. */
static int64_t step_of(struct clock_f *c, const struct clock_reading *r)
{
    int64_t by = (r->real - c->last_real_) - (r->boot - c->last_boot_);
    if (near(by, 0, STEP - 1) || r->real == c->last_real_)
        return 0;
    if (by < 0)
        c->steps.back++;
    else
        c->steps.ahead++;
    return c->steps.last_ns = by;
}

/* Far ahead of what F expects: may F follow? With S, S decides. Without, R must also run there for
 * a minute, so that a wrong time which is soon corrected poisons no slot. Before the first ID
 * nothing can be poisoned, and a clock that is set at boot is awaited. */
static bool may_leap(struct clock_f *c, const struct clock_reading *r, int64_t highest_until,
                     bool stepped)
{
    bool runs = !stepped && r->real > c->last_real_;
    c->leapt_ns_ = runs ? c->leapt_ns_ + (r->boot - c->last_boot_) : 0;
    return plausible(c, r, highest_until) &&
           (!c->in_use || (r->store != 0 && !c->params.accept) || c->leapt_ns_ >= LASTED);
}

static void follow(struct clock_f *c, const struct clock_reading *r, int64_t highest_until)
{
    int64_t skew = c->params.skew_max_ns;
    int64_t now = clock_f_at(c, r->mono); /* the generators' time: F never goes below */
    int64_t expected = clock_f_at(c, c->last_mono_) + (r->boot - c->last_boot_);
    int64_t target = r->real, stepped = step_of(c, r);
    c->state = CLOCK_OK;
    /* R that was held and is set right again is no leap: it is where it would have been. */
    if (r->real - expected <= skew || r->real - (c->trust_ns_ + r->boot) <= skew) {
        c->leapt_ns_ = 0;
    } else if (!may_leap(c, r, highest_until, stepped != 0)) {
        target = expected;
        c->state = CLOCK_SUSPECT;
    }
    /* Small steps need no confirmation, but many of them would drift away from the store's
     * clock. */
    if (r->store != 0 && !c->params.accept && target > r->store + skew) {
        target = r->store + skew;
        c->state = CLOCK_SUSPECT;
    }
    /* A clock that stands still never falls behind by more than F ran ahead of it: it shows only
     * here. */
    c->stood_ns_ = r->real != c->last_real_ ? 0 : c->stood_ns_ + (r->boot - c->last_boot_);
    if (r->real <= now - STEP || (c->state == CLOCK_OK && c->stood_ns_ >= STOOD))
        c->state = CLOCK_HELD;
    if (c->state == CLOCK_OK)
        c->trust_ns_ = r->real - r->boot;
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
    c->behind_ns = c->state == CLOCK_WAIT ? 0 : clock_f_at(c, r->mono) - r->real;
    c->last_mono_ = r->mono;
    c->last_boot_ = r->boot;
    c->last_real_ = r->real;
    return c->state;
}
