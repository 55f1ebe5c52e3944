/* Hands out blocks of numbers, run by run, and sizes the next block by demand. */
#include "client/block.h"
#include "id/minmax.h"
#include "platform/assert.h"

#include <inttypes.h>

void block_pool_init(struct block_pool *p, uint64_t size_max, uint64_t fresh_ms)
{
    *p = (struct block_pool){ .size = min64(BLOCK_FIRST, size_max),
                              .size_max = size_max,
                              .lasts_ms = fresh_ms ? min64(fresh_ms / 2, BLOCK_LASTS_MS)
                                                   : BLOCK_LASTS_MS };
}

void block_pool_done(struct block_pool *p)
{
    runs_free(&p->now.runs);
    runs_free(&p->next.runs);
}

/* Grows fast, because too small a block makes callers wait; shrinks slowly, because demand
 * varies. */
uint64_t block_size_next(uint64_t size, uint64_t used, uint64_t took_ms, uint64_t lasts_ms,
                         uint64_t size_max)
{
    uint64_t want;
    if (__builtin_mul_overflow(used, lasts_ms, &want))
        want = UINT64_MAX;
    want /= max64(took_ms, 1);
    want = max64(min64(want, size * 8), max64(size / 2, 1));
    return min64(want, size_max);
}

void block_pool_add(struct block_pool *p, struct runs *runs, uint64_t stale_ms, uint64_t now_ms)
{
    struct block *b = p->now.left ? &p->next : &p->now;
    firn_assert(b->left == 0, "left=%" PRIu64, b->left); /* else numbers would get lost */
    runs_free(&b->runs);
    *b = (struct block){ .runs = *runs, .left = runs->numbers, .stale_ms = stale_ms };
    *runs = (struct runs){ 0 };
    if (p->came_ms)
        p->size = block_size_next(p->size, p->used, now_ms - p->came_ms, p->lasts_ms, p->size_max);
    p->came_ms = now_ms;
    p->used = 0;
}

bool block_pool_wants(const struct block_pool *p)
{
    return p->next.left == 0 && p->now.left <= p->now.runs.numbers / 2;
}

uint64_t block_pool_slice(const struct block_pool *p)
{
    return min64(max64(p->size / 16, 1), SLICE_MAX);
}

/* The block in use is empty: the one behind it takes its place. */
static void move_up(struct block_pool *p)
{
    runs_free(&p->now.runs);
    p->now = p->next;
    p->next = (struct block){ .left = 0 };
}

uint64_t block_pool_take(struct block_pool *p, uint64_t most, uint64_t now_ms, struct run *out,
                         uint64_t *out_stale_ms)
{
    struct block *b = &p->now;
    uint64_t stale = 0;
    out->count = 0;
    while (b->left && now_ms >= b->stale_ms) {
        stale += b->left;
        b->left = 0;
        if (p->next.left)
            move_up(p);
    }
    if (b->left == 0)
        return stale;
    firn_assert(b->at < b->runs.n, "run=%zu of %zu, left=%" PRIu64, b->at, b->runs.n, b->left);
    struct run *r = &b->runs.v[b->at];
    *out = (struct run){ r->first, r->step, min64(r->count, most) };
    firn_assert(out->count > 0 && out->count <= b->left, "count=%" PRIu64 " left=%" PRIu64,
                out->count, b->left);
    *out_stale_ms = b->stale_ms;
    r->first += out->count * r->step;
    r->count -= out->count;
    b->at += r->count == 0;
    b->left -= out->count;
    p->used += out->count;
    if (b->left == 0 && p->next.left)
        move_up(p);
    return stale;
}
