/* Blocks that grow by doubling. Tested in tests/unit/proxy/arena.c. */
#include "proxy/arena.h"

#include <stdalign.h>
#include <stdlib.h>

enum { FIRST_BYTES = 2048, BLOCK_BYTES_MAX = 64 * 1024 };

struct arena_block {
    struct arena_block *next;
    size_t len, cap;
    alignas(max_align_t) char bytes[];
};

static struct arena_block *more(struct arena *a, size_t n)
{
    size_t cap = a->blocks ? 2 * a->blocks->cap : FIRST_BYTES;
    if (cap > BLOCK_BYTES_MAX)
        cap = BLOCK_BYTES_MAX;
    if (cap < n)
        cap = n;
    struct arena_block *b = calloc(1, sizeof *b + cap);
    if (!b)
        return NULL;
    b->cap = cap;
    b->next = a->blocks;
    a->blocks = b;
    return b;
}

void *arena_get(struct arena *a, size_t n)
{
    const size_t unit = alignof(max_align_t);
    struct arena_block *b = a->blocks;
    if (a->failed || n > a->max - a->used) {
        a->failed = true;
        return NULL;
    }
    if (!b || b->cap - b->len < n)
        b = more(a, n);
    if (!b) {
        a->failed = true;
        return NULL;
    }
    void *p = b->bytes + b->len;
    size_t taken = (n + unit - 1) / unit * unit;
    b->len = taken < b->cap - b->len ? b->len + taken : b->cap;
    a->used += n;
    return p;
}

struct slice arena_copy(struct arena *a, struct slice text)
{
    char *p = arena_get(a, text.len + 1);
    if (!p)
        return (struct slice){ NULL, 0 };
    if (text.len)
        memcpy(p, text.p, text.len);
    return (struct slice){ p, text.len };
}

void arena_done(struct arena *a)
{
    for (struct arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    a->blocks = NULL;
    a->used = 0;
    a->failed = false;
}
