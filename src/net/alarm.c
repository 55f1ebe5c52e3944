/*
 * Alarms of a loop: a list that one timer walks while it is not empty. A few thousand entries cost
 * microseconds a tick, and setting and clearing cost nothing. Tested in tests/unit/net/proxy.c.
 */
#include "net/alarm.h"
#include "net/conn.h"

#include <stdlib.h>

struct alarms {
    uv_timer_t timer;
    struct alarm *first;
};

static void link_to(struct alarm *a, struct alarm **list)
{
    a->next = *list;
    a->prev = list;
    if (a->next)
        a->next->prev = &a->next;
    *list = a;
}

void alarm_clear(struct alarm *a)
{
    if (!a->prev)
        return;
    *a->prev = a->next;
    if (a->next)
        a->next->prev = a->prev;
    a->prev = NULL;
    a->next = NULL;
}

static void on_tick(uv_timer_t *h)
{
    struct alarms *all = h->data;
    /* Moved over one by one, so that a call may set and clear any of them. */
    struct alarm *seen = NULL;
    while (all->first) {
        struct alarm *a = all->first;
        alarm_clear(a);
        if (a->at_ms > uv_now(h->loop))
            link_to(a, &seen);
        else
            a->fn(a);
    }
    all->first = seen;
    if (seen)
        seen->prev = &all->first;
    else
        uv_timer_stop(h);
}

int alarm_set(struct loop *l, struct alarm *a, uint64_t ms, void (*fn)(struct alarm *a))
{
    if (!l->alarms) {
        l->alarms = calloc(1, sizeof *l->alarms);
        if (!l->alarms)
            return FIRN_ENOMEM;
        uv_timer_init(&l->uv, &l->alarms->timer);
        l->alarms->timer.data = l->alarms;
    }
    alarm_clear(a);
    a->fn = fn;
    a->loop = l;
    a->at_ms = uv_now(&l->uv) + (ms ? ms : 1); /* never in the tick that runs */
    link_to(a, &l->alarms->first);
    if (!uv_is_active((uv_handle_t *)&l->alarms->timer))
        uv_timer_start(&l->alarms->timer, on_tick, ALARM_TICK_MS, ALARM_TICK_MS);
    return 0;
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

void alarms_free(struct loop *l)
{
    if (!l->alarms)
        return;
    firn_assert(!l->alarms->first, "an alarm is set");
    uv_close((uv_handle_t *)&l->alarms->timer, on_closed);
    l->alarms = NULL;
}
