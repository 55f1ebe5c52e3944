/* Checks and comparisons that all engines share. */
#include "store/check.h"
#include "id/diag.h"

#include <string.h>
#include <time.h>

int store_check_key(struct firn_slice key, size_t max, struct firn_diag *d)
{
    return key.len <= max ? 0
                          : firn__diag(d, FIRN_EINVAL, 0, "key too long (%zu bytes, at most %zu)",
                                       key.len, max);
}

int store_check_writes(const struct firn_cas *want, size_t count, size_t max, struct firn_diag *d)
{
    if (count > max)
        return firn__diag(d, FIRN_EINVAL, 0, "%zu registers in one write, at most %zu", count, max);
    for (size_t i = 0; i < count; i++) {
        size_t old = want[i].old.len, len = want[i].value.len;
        int r = store_check_key(want[i].key, STORE_KEY_MAX, d);
        if (r != 0)
            return r;
        if (old > STORE_VALUE_MAX || len > STORE_VALUE_MAX)
            return firn__diag(d, FIRN_EINVAL, 0, "value too long (%zu bytes, at most %d)",
                              old > len ? old : len, STORE_VALUE_MAX);
        if (!want[i].old.p && !want[i].value.p)
            return firn__diag(d, FIRN_EINVAL, 0,
                              "nothing to write: a register to be removed needs its old value");
    }
    return 0;
}

bool store_unchanged(int r, const struct firn_record *rec, struct firn_slice old)
{
    if (r == FIRN_ENOENT)
        return !old.p;
    return r == 0 && old.p && store_compare(firn_slice(rec->value, rec->len), old) == 0;
}

int store_compare(struct firn_slice a, struct firn_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

bool store_begins(struct firn_slice s, struct firn_slice with)
{
    return s.len >= with.len && (with.len == 0 || memcmp(s.p, with.p, with.len) == 0);
}

void store_sleep_ms(int64_t ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    if (ms > 0)
        nanosleep(&t, NULL);
}
