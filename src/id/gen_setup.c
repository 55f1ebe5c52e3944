/* Checks the options of a generator and turns them into its fields.
 * Tested in tests/unit/id/gen.c. */
#include "id/gen_setup.h"

#include <string.h>

enum { WAIT_MAX_MS = 1000, DRIFT_MAX_MS = 5000, BACKSTEP_MAX_MS = 20 };

/* A tail that we do not know must be zero, or it asks too much. */
int firn__sized_copy(void *dst, size_t dst_size, const void *src, size_t src_size,
                     size_t first_size)
{
    if (src_size < first_size)
        return FIRN_EINVAL;
    const unsigned char *s = src;
    for (size_t i = dst_size; i < src_size; i++)
        if (s[i] != 0)
            return FIRN_ENOTSUP;
    memset(dst, 0, dst_size);
    memcpy(dst, src, src_size < dst_size ? src_size : dst_size);
    return 0;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value ? value : otherwise;
}

/* The stand-alone window starts at the next tick, read from the finest clock: whatever a process
 * before this one stamped under the wait and error policies lies below. */
static int open_window(const struct firn_gen_opts *o, struct gen_setup *s)
{
    uint64_t now_ns = s->clock->fine_ns(s->clock);
    if (now_ns < s->epoch_ns)
        return FIRN_ECLOCK;
    uint64_t now = (now_ns - s->epoch_ns) / s->tick_ns;
    s->from = o->from ? o->from : now + 1;
    s->until = o->until ? o->until : s->end;
    if (s->from >= s->end || now >= s->end)
        return FIRN_EEXHAUSTED;
    return s->until < s->from || s->until > s->end ? FIRN_EINVAL : 0;
}

int firn__gen_setup(const struct firn_layout *l, const struct firn_gen_opts *opts,
                    struct gen_setup *out)
{
    struct firn_gen_opts o;
    if (!l || !opts || firn_layout_check(l, 0, NULL) != 0)
        return FIRN_EINVAL;
    int r = firn__sized_copy(&o, sizeof o, opts, opts->size, GEN_OPTS_FIRST_SIZE);
    if (r)
        return r;
    if (l->flags & FIRN_LAYOUT_DECODE_ONLY)
        return FIRN_ENOTSUP;
    uint64_t lanes = or_default(o.lanes, 1);
    uint64_t seq_count = UINT64_C(1) << l->field[FIRN_FIELD_SEQ].width;
    if (!o.clock || o.slot >= firn_layout_slots(l) || o.policy > FIRN_POLICY_BORROW ||
        o.lane >= lanes || lanes > seq_count)
        return FIRN_EINVAL;

    struct gen_setup s = { .clock = o.clock, .policy = o.policy };
    s.end = UINT64_C(1) << l->field[FIRN_FIELD_TIME].width;
    s.lane_count = seq_count / lanes;
    s.lane_first = s.lane_count * o.lane;
    s.tick_ns = l->tick_us * 1000;
    /* After the year 2554 nanoseconds do not fit: no clock has reached such an epoch. */
    if (__builtin_mul_overflow((uint64_t)l->epoch_ms, UINT64_C(1000000), &s.epoch_ns))
        return FIRN_ECLOCK;
    s.wait_max_ns = or_default(o.wait_max_ms, WAIT_MAX_MS) * UINT64_C(1000000);
    s.backstep_ns = or_default(o.backstep_max_ms, BACKSTEP_MAX_MS) * UINT64_C(1000000);
    if (o.policy == FIRN_POLICY_BORROW)
        s.drift = or_default(o.max_drift_ms, DRIFT_MAX_MS) * UINT64_C(1000) / l->tick_us;
    r = open_window(&o, &s);
    if (r == 0)
        *out = s;
    return r;
}
