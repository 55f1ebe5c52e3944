/* Generators on pages of their own, which the kernel wipes in the child of a fork().
 * Tested in tests/property/gen.c. */
#include "firn/gen.h"
#include "id/gen_setup.h"
#include "platform/wipe_page.h"

/* The caller's options with the system's clock filled in where none was given. */
static int with_clock(const struct firn_layout *l, const struct firn_gen_opts *opts,
                      struct firn_gen_opts *out)
{
    if (!l || !opts)
        return FIRN_EINVAL;
    int r = firn__sized_copy(out, sizeof *out, opts, opts->size, GEN_OPTS_FIRST_SIZE);
    if (r)
        return r;
    out->size = sizeof *out;
    if (!out->clock)
        out->clock = firn_clock_for_tick(l->tick_us);
    return 0;
}

int firn_gen_new(const struct firn_layout *l, const struct firn_gen_opts *opts,
                 struct firn_gen **out)
{
    struct firn_gen_opts o;
    int r = with_clock(l, opts, &o);
    if (r || !out)
        return r ? r : FIRN_EINVAL;
    struct firn_gen *g = firn__wipe_page_new(sizeof *g);
    if (!g)
        return FIRN_ENOMEM;
    r = firn_gen_init(g, l, &o);
    if (r) {
        firn__wipe_page_free(g, sizeof *g);
        return r;
    }
    *out = g;
    return 0;
}

void firn_gen_free(struct firn_gen *g)
{
    firn__wipe_page_free(g, sizeof *g);
}

int firn_shared_new(const struct firn_layout *l, const struct firn_gen_opts *opts,
                    struct firn_shared **out)
{
    struct firn_gen_opts o;
    int r = with_clock(l, opts, &o);
    if (r || !out)
        return r ? r : FIRN_EINVAL;
    struct firn_shared *g = firn__wipe_page_new(sizeof *g);
    if (!g)
        return FIRN_ENOMEM;
    r = firn_shared_init(g, l, &o);
    if (r) {
        firn__wipe_page_free(g, sizeof *g);
        return r;
    }
    *out = g;
    return 0;
}

void firn_shared_free(struct firn_shared *g)
{
    firn__wipe_page_free(g, sizeof *g);
}
