/* gen_setup.h - what the two generators have in common: options checked and turned into numbers. */
#ifndef FIRN_ID_GEN_SETUP_H
#define FIRN_ID_GEN_SETUP_H

#include "firn/gen.h"
#include "id/minmax.h"

struct gen_setup {
    const struct firn_clock *clock;
    uint64_t from, until;            /* ticks */
    uint64_t end;                    /* 2^time bits: the first tick that does not exist */
    uint64_t lane_first, lane_count; /* sequence numbers */
    uint64_t drift, backstep_ns;     /* ticks, ns */
    uint64_t wait_max_ns;
    uint64_t epoch_ns, tick_ns;
    uint32_t policy;
};

int firn__gen_setup(const struct firn_layout *l, const struct firn_gen_opts *opts,
                    struct gen_setup *out);

/* How long a nap was: what the clock shows, or what was planned if it does not move forward. Short
 * naps end early, so the plan alone would use up a caller's patience in no time. */
static inline uint64_t firn__slept_ns(uint64_t before_ns, uint64_t after_ns, uint64_t planned_ns)
{
    return after_ns > before_ns ? after_ns - before_ns : planned_ns;
}

/* Copy a caller's struct of any age. `first_size` is what it had in the first release: less means
 * that the caller forgot the INIT macro, and every other field with it (FIRN_EINVAL).
 * FIRN_ENOTSUP: it asks for more than this library knows. */
int firn__sized_copy(void *dst, size_t dst_size, const void *src, size_t src_size,
                     size_t first_size);

/* The size that a struct had when `last` was its last field. */
#define SIZE_UP_TO(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))
#define GEN_OPTS_FIRST_SIZE    SIZE_UP_TO(struct firn_gen_opts, clock)

#endif
