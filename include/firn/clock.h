/*
 * firn/clock.h - where generators get the time from.
 * A clock is three functions. To add state, make struct firn_clock the first member of your own
 * struct. Clocks may step back, freeze or jump: generators never repeat an ID because of it.
 */
#ifndef FIRN_CLOCK_H
#define FIRN_CLOCK_H

#include <stdint.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct firn_clock {
    /* Unix nanoseconds; the hot path's reading, may lag behind fine_ns by some milliseconds. */
    uint64_t (*now_ns)(const struct firn_clock *c);
    /* The same time at the best resolution; asked when a tick is used up. */
    uint64_t (*fine_ns)(const struct firn_clock *c);
    /* Wait about `ns`; may return early. */
    void (*sleep_ns)(const struct firn_clock *c, uint64_t ns);
};

/* The system's clocks; the objects are constant and serve any number of threads.
 * precise: clock_gettime(CLOCK_REALTIME). coarse: CLOCK_REALTIME_COARSE, four times cheaper, moves
 * in steps of 1 to 10 ms; IDs may carry a time that much older. */
FIRN_API const struct firn_clock *firn_clock_precise(void);
FIRN_API const struct firn_clock *firn_clock_coarse(void);

/* The default for a tick: coarse from 1 ms on, precise below. */
FIRN_API const struct firn_clock *firn_clock_for_tick(uint64_t tick_us);

/* The processor's time stamp counter, anchored to the precise clock again every 10 ms or so. It
 * belongs to one thread. */
struct firn_clock_tsc {
    struct firn_clock base;
    uint64_t anchor_tsc_, anchor_ns_; /* all private */
    uint64_t anchor_span_;            /* ticks of the counter until the next anchor */
    uint64_t ns_per_tick_32_;         /* nanoseconds per tick, times 2^32 */
};

/* FIRN_ENOTSUP: the counter is not invariant here, or there is none. Takes about 2 ms to
 * calibrate. */
FIRN_API FIRN_MUSTUSE int firn_clock_tsc_init(struct firn_clock_tsc *c);

/* A clock for tests: it shows what it is told. sleep_ns moves it forward unless it is frozen. */
struct firn_clock_virtual {
    struct firn_clock base;
    uint64_t ns;     /* what fine_ns answers */
    uint64_t lag_ns; /* how far now_ns is behind */
    int frozen;
};

FIRN_API void firn_clock_virtual_init(struct firn_clock_virtual *c, uint64_t ns);

#ifdef __cplusplus
}
#endif
#endif
