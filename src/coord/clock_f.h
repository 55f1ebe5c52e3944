/*
 * clock_f.h - clock F (docs/protocol.md 4.1): the wall clock without steps back and without leaps.
 * Pure: readings come in, two numbers come out, with which any thread computes
 *     F = max(floor_ns, CLOCK_MONOTONIC + off_ns)          Unix time in ns
 * Call clock_f_update() every second with fresh readings. Uniqueness does not rest on it; it
 * keeps timestamps honest and slots from being poisoned by a wrong date. Every step of R is
 * counted, whatever F makes of it.
 */
#ifndef FIRN_COORD_CLOCK_F_H
#define FIRN_COORD_CLOCK_F_H

#include <stdbool.h>
#include <stdint.h>

#include "firn/error.h"

struct clock_reading { /* all taken together, ns */
    int64_t real;      /* R, CLOCK_REALTIME */
    int64_t mono;      /* CLOCK_MONOTONIC: stands while the machine is suspended */
    int64_t boot;      /* CLOCK_BOOTTIME: counts on while it is */
    int64_t store;     /* S, the store's clock; 0: it has none */
};

struct clock_f_params {
    int64_t epoch_ns;    /* the layout's epoch; R before it is no time at all */
    int64_t skew_max_ns; /* 10 s: a larger jump must be plausible */
    int64_t max_idle_ns; /* 30 d: without S, R may be at most this far above the highest until */
    bool accept;         /* --accept-clock: take R as it is at the start */
};

enum clock_state {
    CLOCK_WAIT,    /* not started: before the epoch, or not plausible; there is no F */
    CLOCK_OK,      /* follows R */
    CLOCK_HELD,    /* R is half a second or more behind F, or stands: F stands until R catches up */
    CLOCK_SUSPECT, /* R is far ahead and nothing confirms it yet: F counts on without R */
};

/* As /v1/node, the metrics and the log call it: wait, ok, held, suspect. */
const char *clock_state_name(enum clock_state s);

struct clock_steps {      /* R against CLOCK_BOOTTIME, between two updates */
    uint64_t back, ahead; /* how many by half a second or more */
    int64_t last_ns;      /* the last of them; below 0: back */
};

struct clock_f {
    struct clock_f_params params;
    bool in_use; /* set by the caller: IDs are stamped with F, so a leap must last */
    enum clock_state state;
    int64_t off_ns, floor_ns; /* F = max(floor, mono + off) */
    int64_t behind_ns;        /* F - R at the last update: above 0 while R is behind */
    struct clock_steps steps;
    int64_t last_mono_, last_boot_, last_real_;
    int64_t trust_ns_; /* R - CLOCK_BOOTTIME when F last followed R */
    int64_t stood_ns_; /* for how long R has not moved on */
    int64_t leapt_ns_; /* for how long R has run, without a step, where it leapt to */
};

/* Not started: clock_f_update() starts it when R is plausible. */
void clock_f_init(struct clock_f *c, const struct clock_f_params *params);

/* `highest_until_ns`: the highest until known of any slot as Unix ns, 0 for none (a fresh
 * store). */
enum clock_state clock_f_update(struct clock_f *c, const struct clock_reading *r,
                                int64_t highest_until_ns);

/* F at this monotonic time, Unix ns. Only when started (state other than CLOCK_WAIT). */
static inline int64_t clock_f_at(const struct clock_f *c, int64_t mono_ns)
{
    int64_t f = mono_ns + c->off_ns;
    return f > c->floor_ns ? f : c->floor_ns;
}

#endif
