/*
 * Election time-out from measured pauses (pace.h). It rises at once and falls when the minute in
 * which the pauses were is over. Tests: tests/unit/raft/pace.c.
 */
#include "raft/pace.h"
#include "platform/assert.h"

#include <string.h>

void pace_init(struct pace *p, uint32_t base_ms)
{
    *p = (struct pace){ .base_ms = base_ms, .now_ms = base_ms };
}

static void move_to(struct pace *p, uint64_t now_ms)
{
    uint64_t second = now_ms / 1000 + 1;
    if (second - p->second >= PACE_SECONDS) {
        memset(p->longest, 0, sizeof p->longest);
    } else {
        for (uint64_t s = p->second + 1; s <= second; s++)
            p->longest[s % PACE_SECONDS] = 0;
    }
    p->second = second;
}

void pace_paused(struct pace *p, uint32_t ms, uint64_t now_ms)
{
    move_to(p, now_ms);
    uint32_t *longest = &p->longest[p->second % PACE_SECONDS];
    *longest = ms > *longest ? ms : *longest;
}

void pace_heard(struct pace *p, uint64_t term, uint64_t now_ms)
{
    if (p->heard_ms != 0 && term == p->term && now_ms > p->heard_ms)
        pace_paused(p, (uint32_t)(now_ms - p->heard_ms), now_ms);
    p->heard_ms = now_ms;
    p->term = term;
}

uint32_t pace_timeout(struct pace *p, uint64_t now_ms)
{
    uint32_t first = 0, next = 0;
    move_to(p, now_ms);
    for (int i = 0; i < PACE_SECONDS; i++) {
        uint32_t ms = p->longest[i];
        if (ms > first) {
            next = first;
            first = ms;
        } else if (ms > next) {
            next = ms;
        }
    }
    uint64_t most = (uint64_t)p->base_ms * PACE_MOST, timeout = p->base_ms;
    while (timeout < (uint64_t)next * PACE_PAUSES && timeout < most)
        timeout += timeout / 2 ? timeout / 2 : 1;
    p->now_ms = (uint32_t)(timeout < most ? timeout : most);
    firn_assert(p->now_ms >= p->base_ms, "%u of %u", p->now_ms, p->base_ms);
    return p->now_ms;
}
