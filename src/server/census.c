/* Counts the sequences of a store in pages. Tested in tests/unit/server/census.c. */
#include "server/census.h"

static int count_one(void *user, const char *name, size_t len, const struct seq_record *r)
{
    (void)name, (void)len, (void)r;
    ++*(uint64_t *)user;
    return 0;
}

static uint64_t sum(uint64_t n, int64_t by)
{
    return by < 0 && (uint64_t)-by > n ? 0 : n + (uint64_t)by;
}

uint64_t census_step(struct census *c, struct tickets *t, uint64_t now_ms, _Atomic uint64_t *count)
{
    bool more = false;
    if (now_ms < c->due_ms)
        return c->due_ms;
    if (c->at[0] == '\0') {
        c->walked = 0;
        c->changed = 0;
    }
    int r = ticket_page(t, c->at, CENSUS_PAGE, count_one, &c->walked, &more, NULL);
    bool ends = r != 0 || !more;
    /* The first walk shows what it has; a later one replaces the number when it is whole. What was
     * created behind it during the walk counts twice until the next one. */
    if (r == 0 && (!more || !c->whole))
        atomic_store_explicit(count, sum(c->walked, c->changed), memory_order_relaxed);
    c->whole |= r == 0 && !more;
    if (ends)
        c->at[0] = '\0';
    c->due_ms = now_ms + (ends ? CENSUS_MS : CENSUS_REST_MS);
    return c->due_ms;
}

void census_changed(struct census *c, int by, _Atomic uint64_t *count)
{
    c->changed += by;
    uint64_t now = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, sum(now, by), memory_order_relaxed);
}
