/* The first offenders of a check, by line. */
#include "cli/verify/offenders.h"
#include "firn/error.h"

#include <stdlib.h>

int offenders_init(struct offenders *o, size_t max)
{
    *o = (struct offenders){ .max = max };
    o->list = calloc(max + 1, sizeof *o->list);
    return o->list ? 0 : FIRN_ENOMEM;
}

void offenders_done(struct offenders *o)
{
    free(o->list);
    *o = (struct offenders){ 0 };
}

/* Repeats are found in the order of IDs but shown in the order of lines, so the list is a heap
 * with the last line on top. */
struct offender *offenders_room(struct offenders *o, uint64_t where)
{
    struct offender *h = o->list;
    size_t i;
    o->count++;
    if (o->len < o->max) {
        i = o->len++;
        for (; i > 0 && h[(i - 1) / 2].where < where; i = (i - 1) / 2)
            h[i] = h[(i - 1) / 2];
    } else {
        if (o->max == 0 || h[0].where < where)
            return NULL;
        i = 0;
        for (size_t kid; (kid = 2 * i + 1) < o->len; i = kid) {
            if (kid + 1 < o->len && h[kid + 1].where > h[kid].where)
                kid++;
            if (h[kid].where < where)
                break;
            h[i] = h[kid];
        }
    }
    h[i].where = where;
    return &h[i];
}

static int by_where(const void *a, const void *b)
{
    const struct offender *x = a, *y = b;
    return (x->where > y->where) - (x->where < y->where);
}

void offenders_sort(struct offenders *o)
{
    qsort(o->list, o->len, sizeof *o->list, by_where);
}
