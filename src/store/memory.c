/*
 * The store in memory. Small on purpose: its correctness can be seen, and the simulator injects its
 * faults around it. Tested by tests/conformance.
 */
#include "store/check.h"
#include "store/map.h"
#include "id/diag.h"

#include <stdio.h>
#include <stdlib.h>

struct memory {
    struct firn_store base;
    struct map map;
};

static int memory_read(struct firn_store *s, struct firn_slice key, bool fresh,
                       struct firn_record *out, struct firn_diag *d)
{
    (void)fresh, (void)d;
    return map_read(&((struct memory *)s)->map, key, out);
}

static int memory_cas_many(struct firn_store *s, const struct firn_cas *want, size_t count,
                           int *result, struct firn_diag *d)
{
    struct memory *m = (struct memory *)s;
    int r = store_check_writes(want, count, SIZE_MAX, d);
    if (r == 0)
        r = map_cas(&m->map, want, count, result);
    if (r == FIRN_ENOMEM)
        return firn__diag(d, r, 0, "no memory for %zu registers", m->map.count + count);
    return r;
}

static int memory_scan(struct firn_store *s, struct firn_slice prefix, struct firn_slice after,
                       firn_record_fn *each, void *user, struct firn_diag *d)
{
    (void)d;
    return map_scan(&((struct memory *)s)->map, prefix, after, each, user);
}

static int memory_identity(struct firn_store *s, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    (void)s, (void)d;
    snprintf(out, STORE_ID_TEXT_BUF, "memory");
    return 0;
}

static void memory_close(struct firn_store *s)
{
    struct memory *m = (struct memory *)s;
    map_done(&m->map);
    free(m);
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "memory",
    .read = memory_read,
    .cas_many = memory_cas_many,
    .scan_after = memory_scan,
    .identity = memory_identity,
    .close = memory_close,
};

int firn_store_memory_new(struct firn_store **out)
{
    struct memory *m = calloc(1, sizeof *m);
    if (!m)
        return FIRN_ENOMEM;
    m->base.ops = &ops;
    *out = &m->base;
    return 0;
}
