/* Registers in memory as a sorted array of pointers: simple, and fast enough for the tens of
 * thousands of registers that a store has. */
#include "store/map.h"
#include "store/check.h"
#include "platform/assert.h"

#include <stdlib.h>
#include <string.h>

static bool equal(struct firn_slice a, struct firn_slice b)
{
    return a.len == b.len && store_compare(a, b) == 0;
}

void map_done(struct map *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->cell[i]);
    free(m->cell);
    *m = (struct map){ 0 };
}

size_t map_find(const struct map *m, struct firn_slice key, bool *found)
{
    size_t lo = 0, hi = m->count;
    *found = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = store_compare(map_key(m, mid), key);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int reserve(struct map *m, size_t more)
{
    if (m->count + more <= m->room)
        return 0;
    size_t room = (m->count + more) * 2;
    struct map_cell **cell = realloc(m->cell, room * sizeof *cell);
    if (!cell)
        return FIRN_ENOMEM;
    m->cell = cell;
    m->room = room;
    return 0;
}

static void copy(char *to, struct firn_slice from)
{
    if (from.len > 0)
        memcpy(to, from.p, from.len);
}

static struct map_cell *cell_new(const struct firn_cas *want)
{
    struct map_cell *c = malloc(sizeof *c + want->key.len + want->value.len);
    if (c) {
        c->key_len = want->key.len;
        c->len = want->value.len;
        copy(c->bytes, want->key);
        copy(c->bytes + c->key_len, want->value);
    }
    return c;
}

/* Compares, and takes `next` in on success; it stays the caller's otherwise. */
static int put(struct map *m, const struct firn_cas *want, struct map_cell *next)
{
    bool found;
    size_t i = map_find(m, want->key, &found);
    if (found != (want->old.p != NULL) || (found && !equal(map_value(m, i), want->old)))
        return FIRN_ECONFLICT;
    firn_assert(i <= m->count && m->count <= m->room, "i=%zu count=%zu", i, m->count);
    if (found)
        free(m->cell[i]);
    if (found && !next) {
        m->count--;
        memmove(&m->cell[i], &m->cell[i + 1], (m->count - i) * sizeof *m->cell);
        return 0;
    }
    if (!found && next) {
        firn_assert(m->count < m->room, "count=%zu", m->count);
        firn_assert(i == 0 || store_compare(map_key(m, i - 1), want->key) < 0);
        firn_assert(i == m->count || store_compare(map_key(m, i), want->key) > 0);
        memmove(&m->cell[i + 1], &m->cell[i], (m->count - i) * sizeof *m->cell);
        m->count++;
    }
    if (next) {
        firn_assert(store_compare(firn_slice(next->bytes, next->key_len), want->key) == 0);
        m->cell[i] = next;
    }
    return 0;
}

int map_cas(struct map *m, const struct firn_cas *want, size_t count, int *result)
{
    for (size_t i = 0; i < count; i++)
        if (want[i].key.len > MAP_KEY_MAX || want[i].value.len > STORE_VALUE_MAX)
            return FIRN_EINVAL;
    if (count == 0)
        return 0;
    /* Everything that can fail comes before the first change, so that all are done or none. */
    struct map_cell **next = calloc(count, sizeof *next);
    bool ok = next && reserve(m, count) == 0;
    for (size_t i = 0; i < count && ok; i++)
        ok = !want[i].value.p || (next[i] = cell_new(&want[i]));
    for (size_t i = 0; i < count && next; i++) {
        if (ok)
            result[i] = put(m, &want[i], next[i]);
        if (!ok || result[i] != 0)
            free(next[i]);
    }
    free(next);
    return ok ? 0 : FIRN_ENOMEM;
}

int map_read(const struct map *m, struct firn_slice key, struct firn_record *out)
{
    bool found;
    size_t i = map_find(m, key, &found);
    if (!found)
        return FIRN_ENOENT;
    firn_assert(map_value(m, i).len <= sizeof out->value, "len=%zu", map_value(m, i).len);
    copy(out->value, map_value(m, i));
    out->len = map_value(m, i).len;
    out->store_ms = 0;
    return 0;
}

int map_scan(const struct map *m, struct firn_slice prefix, struct firn_slice after,
             firn_record_fn *each, void *user)
{
    bool found;
    size_t i = map_find(m, after.p ? after : prefix, &found);
    for (i += after.p && found; i < m->count; i++) {
        struct firn_slice key = map_key(m, i);
        if (!store_begins(key, prefix))
            break;
        int r = each(user, key, map_value(m, i));
        if (r != 0)
            return r;
    }
    return 0;
}
