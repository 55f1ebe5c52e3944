/* IDs that were fetched ahead. Tested in tests/unit/auditlog/id_block.c. */
#include "auditlog/id_block.h"

#include <stdlib.h>

enum { SIZE_FIRST = 16 };

size_t id_block_take(struct id_block *b, uint64_t *out, size_t n, uint64_t now_ms,
                     uint64_t *dropped)
{
    if (b->at < b->n && now_ms >= b->stale_ms) {
        if (b->n - b->at > b->n / 2)
            b->size /= 2;
        *dropped += b->n - b->at;
        b->at = b->n = 0; /* not used up: no reason to fetch more */
    }
    size_t got = 0;
    for (; got < n && b->at < b->n; b->at++) {
        if (b->ids[b->at] <= b->last) {
            (*dropped)++;
            continue;
        }
        b->last = out[got++] = b->ids[b->at];
    }
    return got;
}

size_t id_block_want(struct id_block *b, size_t need, size_t max)
{
    if (b->size < SIZE_FIRST)
        b->size = SIZE_FIRST;
    else if (b->at == b->n && b->n > 0)
        b->size = b->size < max / 2 ? b->size * 2 : max;
    size_t want = b->size < max ? b->size : max;
    return want > need ? want : need;
}

void id_block_fill(struct id_block *b, uint64_t *ids, size_t n, uint64_t stale_ms)
{
    free(b->ids);
    b->ids = ids;
    b->at = 0;
    b->n = n;
    b->stale_ms = stale_ms;
}

void id_block_done(struct id_block *b)
{
    free(b->ids);
    b->ids = NULL;
    b->at = b->n = 0;
}
