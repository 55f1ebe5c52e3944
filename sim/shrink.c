/* Shortens a failing plan: removes faults while the same rule still breaks (ddmin). */
#include "shrink.h"

#include <stdlib.h>

enum { RUNS_MAX = 2000 };

static bool still_fails(struct world *w, struct plan *p, const char *oracle)
{
    struct counters keep = sometimes;
    world_run(w, p);
    sometimes = keep;
    return w->failed && strcmp(w->oracle, oracle) == 0;
}

/* The plan without faults [at, at + n). */
static void without(struct plan *out, const struct plan *p, size_t at, size_t n)
{
    *out = *p;
    memmove(&out->fault[at], &out->fault[at + n], (p->count - at - n) * sizeof p->fault[0]);
    out->count = p->count - n;
}

int shrink(struct world *w, struct plan *p, const char *oracle)
{
    struct plan *smaller = malloc(sizeof *smaller);
    int runs = 0;
    if (!smaller)
        return 0;
    for (size_t n = p->count / 2; n > 0;) {
        bool any = false;
        for (size_t at = 0; at + n <= p->count && runs < RUNS_MAX;) {
            without(smaller, p, at, n);
            runs++;
            if (still_fails(w, smaller, oracle)) {
                *p = *smaller;
                any = true;
            } else {
                at += n;
            }
        }
        if (!any || n > p->count)
            n /= 2;
    }
    world_reset(w, p); /* nothing of the smaller plan is in use any more */
    free(smaller);
    return runs;
}
