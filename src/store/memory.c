/*
 * The registers in memory: a sorted array of keys. Small and slow on purpose; it is the backend whose
 * correctness can be seen, and the one the simulated worlds put their faults around.
 */
#include "store/store.h"
#include "id/diag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cell {
    size_t key_len, len;
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
};

struct memory {
    struct firn_store base;
    struct cell *cell; /* by key */
    size_t count, room;
};

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return c ? c : (a_len > b_len) - (a_len < b_len);
}

/* Where `key` is, or where it belongs. */
static size_t find(const struct memory *m, struct firn_slice key, bool *found)
{
    size_t lo = 0, hi = m->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare(m->cell[mid].key, m->cell[mid].key_len, key.p, key.len);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *found = false;
    return lo;
}

static int memory_read(struct firn_store *s, struct firn_slice key, bool fresh,
                       struct firn_record *out, struct firn_diag *d)
{
    (void)fresh, (void)d;
    struct memory *m = (struct memory *)s;
    bool found;
    size_t i = find(m, key, &found);
    if (!found)
        return FIRN_ENOENT;
    memcpy(out->value, m->cell[i].value, m->cell[i].len);
    out->len = m->cell[i].len;
    out->store_ms = 0;
    return 0;
}

static int reserve(struct memory *m, size_t more)
{
    if (m->count + more <= m->room)
        return 0;
    size_t room = (m->count + more) * 2;
    struct cell *cell = realloc(m->cell, room * sizeof *cell);
    if (!cell)
        return FIRN_ENOMEM;
    m->cell = cell;
    m->room = room;
    return 0;
}

static int put(struct memory *m, const struct firn_cas *want)
{
    bool found;
    size_t i = find(m, want->key, &found);
    struct cell *c = &m->cell[i];
    if (found != (want->old.p != NULL))
        return FIRN_ECONFLICT;
    if (found && (c->len != want->old.len || memcmp(c->value, want->old.p, c->len) != 0))
        return FIRN_ECONFLICT;
    if (!want->value.p) {
        if (found) {
            m->count--;
            memmove(c, c + 1, (m->count - i) * sizeof *c);
        }
        return 0;
    }
    if (!found) {
        memmove(c + 1, c, (m->count - i) * sizeof *c);
        m->count++;
        memcpy(c->key, want->key.p, want->key.len);
        c->key_len = want->key.len;
    }
    memcpy(c->value, want->value.p, want->value.len);
    c->len = want->value.len;
    return 0;
}

static int memory_cas_many(struct firn_store *s, const struct firn_cas *want, size_t count,
                           int *result, struct firn_diag *d)
{
    struct memory *m = (struct memory *)s;
    for (size_t i = 0; i < count; i++)
        if (want[i].key.len > STORE_KEY_MAX || want[i].value.len > STORE_VALUE_MAX)
            return firn__diag(d, FIRN_EINVAL, 0, "key or value too long");
    if (reserve(m, count) != 0) /* before the first change, so that all are done or none */
        return firn__diag(d, FIRN_ENOMEM, 0, "no memory for %zu registers", m->count + count);
    for (size_t i = 0; i < count; i++)
        result[i] = put(m, &want[i]);
    return 0;
}

static int memory_cas(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d)
{
    int result = 0, r = memory_cas_many(s, want, 1, &result, d);
    return r ? r : result;
}

static int memory_scan(struct firn_store *s, struct firn_slice prefix, firn_record_fn *each,
                       void *user, struct firn_diag *d)
{
    (void)d;
    struct memory *m = (struct memory *)s;
    bool found;
    for (size_t i = find(m, prefix, &found); i < m->count; i++) {
        const struct cell *c = &m->cell[i];
        if (c->key_len < prefix.len || memcmp(c->key, prefix.p, prefix.len) != 0)
            break;
        int r = each(user, firn_slice(c->key, c->key_len), firn_slice(c->value, c->len));
        if (r != 0)
            return r;
    }
    return 0;
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
    free(m->cell);
    free(m);
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "memory",
    .read = memory_read,
    .cas = memory_cas,
    .cas_many = memory_cas_many,
    .scan = memory_scan,
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
