/*
 * alarm.h - something that happens later on a loop, coarsely (ALARM_TICK_MS): deadlines of whole
 * requests, and what is done now and then. All on the loop's thread.
 */
#ifndef FIRN_NET_ALARM_H
#define FIRN_NET_ALARM_H

#include "net/loop.h"

enum { ALARM_TICK_MS = 20 };

struct alarm { /* zeroed is not set; all private */
    void (*fn)(struct alarm *a);
    struct loop *loop;
    uint64_t at_ms;
    struct alarm *next, **prev;
};

/* Calls fn(a) once in `ms` or a little more, unless it is set anew or cleared before. FIRN_ENOMEM.
 */
FIRN_MUSTUSE int alarm_set(struct loop *l, struct alarm *a, uint64_t ms,
                           void (*fn)(struct alarm *a));
void alarm_clear(struct alarm *a); /* does nothing to one that is not set */

/* By loop.c. */
void alarms_free(struct loop *l);

#endif
