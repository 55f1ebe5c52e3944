/* A mint on a page of its own, wiped in the child of a fork(), on the system's clocks and
 * entropy. Tested in tests/unit/id/read.c. */
#include "id/gen_setup.h"
#include "id/mint.h"
#include "platform/wipe_page.h"

#include <stdbool.h>

int firn_mint_new(const struct firn_kind *kind, const struct firn_mint_opts *opts,
                  struct firn_mint **out, struct firn_diag *diag)
{
    if (!kind || !opts || !out)
        return FIRN_EINVAL;
    struct firn_mint *m = firn__wipe_page_new(sizeof *m);
    if (!m)
        return FIRN_ENOMEM;
    bool has_layout = opts->size >= SIZE_UP_TO(struct firn_mint_opts, layout) && opts->layout;
    uint64_t tick_us = has_layout ? opts->layout->tick_us : 1000;
    int r = firn__mint_init(m, kind, opts, firn_clock_for_tick(tick_us), firn_rng_thread, diag);
    if (r) {
        firn__wipe_page_free(m, sizeof *m);
        return r;
    }
    *out = m;
    return 0;
}

void firn_mint_free(struct firn_mint *m)
{
    firn__wipe_page_free(m, sizeof *m);
}
