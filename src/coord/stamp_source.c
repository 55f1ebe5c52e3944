/*
 * One grant after another: when the generators of a grant are closed, and when new ones begin.
 * Tests: tests/unit/coord/stamp_source.c, with threads tests/unit/server/minter.c; the simulator
 * runs it with faults.
 */
#include "coord/stamp_source.h"
#include "coord/mutant.h"
#include "platform/assert.h"

void stamp_source_init(struct stamp_source *s, const struct stamp_plan *p,
                       const struct firn_clock *clock, struct stamp_set *set, uint32_t sets)
{
    *s = (struct stamp_source){ .plan = p, .clock = clock, .set = set, .sets = sets };
}

static void end_grant(struct stamp_source *s)
{
    if (s->now && !FIRN_MUTANT(st_old_left_open))
        stamps_end(&s->now->stamps, s->plan, &s->above);
    s->now = NULL;
}

static struct stamp_set *unused(struct stamp_source *s)
{
    uint32_t i = 0;
    while (i < s->sets && s->set[i].users > 0)
        i++;
    firn_assert(i < s->sets, "more than %u users", s->sets - 1);
    return &s->set[i];
}

struct stamps *stamp_source_follow(struct stamp_source *s, struct stamps *old,
                                   const struct lease_view *v)
{
    if (old)
        ((struct stamp_set *)(void *)old)->users--; /* its first member */
    bool over = s->closed || v->grant.closed || v->grant.gen == 0;
    if (s->now && (over || v->grant.gen != s->now->stamps.gen))
        end_grant(s);
    if (over)
        return NULL;
    if (s->now) {
        stamps_follow(&s->now->stamps, s->plan, v, &s->above, s->clock);
    } else {
        s->now = unused(s);
        stamps_begin(&s->now->stamps, s->plan, v, &s->above, s->clock);
    }
    s->now->users++;
    return &s->now->stamps;
}

void stamp_source_close(struct stamp_source *s)
{
    s->closed = true;
    end_grant(s);
}

uint64_t stamp_source_highest(const struct stamp_source *s)
{
    return stamps_above_highest(&s->above, s->plan);
}
