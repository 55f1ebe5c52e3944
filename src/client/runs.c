/* Collects numbers as runs of first, step and count. Tested in tests/unit/client/block.c. */
#include "client/runs.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdlib.h>

int runs_add_run(struct runs *r, struct run run)
{
    if (run.count == 0)
        return 0;
    if (r->n == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 4;
        struct run *grown = realloc(r->v, cap * sizeof *grown);
        if (!grown)
            return FIRN_ENOMEM;
        r->v = grown;
        r->cap = cap;
    }
    r->v[r->n++] = run;
    r->numbers += run.count;
    return 0;
}

int runs_add(struct runs *r, uint64_t number)
{
    struct run *last = r->n ? &r->v[r->n - 1] : NULL;
    if (last && last->count == 1)
        last->step = number - last->first; /* the second number of a run tells its step */
    if (last && number - last->first == last->step * last->count && last->step != 0 &&
        last->step < UINT64_C(1) << 32) {
        last->count++;
        r->numbers++;
        return 0;
    }
    return runs_add_run(r, (struct run){ number, 1, 1 });
}

void runs_expand(const struct runs *r, uint64_t *out)
{
    const uint64_t *from = out;
    for (size_t i = 0; i < r->n; i++)
        for (uint64_t k = 0; k < r->v[i].count; k++)
            *out++ = r->v[i].first + k * r->v[i].step;
    firn_assert((uint64_t)(out - from) == r->numbers, "wrote=%td of %" PRIu64, out - from,
                r->numbers);
}

void runs_clear(struct runs *r)
{
    r->n = 0;
    r->numbers = 0;
}

void runs_free(struct runs *r)
{
    free(r->v);
    *r = (struct runs){ 0 };
}
