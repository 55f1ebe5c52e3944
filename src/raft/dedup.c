/* Results of recent requests: a ring of rows, and a hash table of their nonces. */
#include "raft/dedup.h"
#include "id/fnv.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 2 * DEDUP_MAX };
_Static_assert(DEDUP_MAX < UINT16_MAX, "a row plus 1 has to fit into a link");

static uint16_t *bucket_of(const struct dedup *k, const uint64_t nonce[2])
{
    return &k->bucket[fnv_word(fnv_word(FNV_BEGIN, nonce[0]), nonce[1]) % BUCKETS];
}

void dedup_done(struct dedup *k)
{
    for (size_t i = 0; k->row && i < DEDUP_MAX; i++)
        free(k->row[i].result);
    free(k->row);
    free(k->bucket);
    *k = (struct dedup){ NULL, NULL };
}

static bool make_room(struct dedup *k)
{
    if (!k->row)
        k->row = calloc(DEDUP_MAX, sizeof *k->row);
    if (!k->bucket)
        k->bucket = calloc(BUCKETS, sizeof *k->bucket);
    return k->row && k->bucket;
}

static void take_out(struct dedup *k, uint16_t at)
{
    firn_assert(at >= 1 && at <= DEDUP_MAX, "row=%u", at);
    uint16_t *link = bucket_of(k, k->row[at - 1].nonce);
    for (unsigned steps = 0; *link != at; steps++) {
        firn_assert(*link != 0 && *link <= DEDUP_MAX && steps < DEDUP_MAX, "row=%u link=%u", at,
                    *link);
        link = &k->row[*link - 1].next;
    }
    *link = k->row[at - 1].next;
    free(k->row[at - 1].result);
}

bool dedup_add(struct dedup *k, uint64_t number, const uint64_t nonce[2], const uint8_t *result,
               size_t len)
{
    firn_assert(len > 0 && len <= UINT16_MAX, "request=%" PRIu64 " len=%zu", number, len);
    uint8_t *copy = make_room(k) ? malloc(len) : NULL;
    if (!copy)
        return false;
    memcpy(copy, result, len);
    uint16_t at = (uint16_t)(number % DEDUP_MAX + 1);
    struct dedup_row *row = &k->row[at - 1];
    if (row->result)
        take_out(k, at);
    uint16_t *first = bucket_of(k, nonce);
    *row = (struct dedup_row){ { nonce[0], nonce[1] }, copy, (uint16_t)len, *first };
    firn_assert(*first != at, "row=%u would follow itself", at);
    *first = at;
    return true;
}

const struct dedup_row *dedup_find(const struct dedup *k, const uint64_t nonce[2])
{
    for (uint16_t at = k->bucket ? *bucket_of(k, nonce) : 0; at; at = k->row[at - 1].next) {
        firn_assert(at <= DEDUP_MAX && k->row[at - 1].result, "row=%u is empty", at);
        const struct dedup_row *row = &k->row[at - 1];
        if (row->nonce[0] == nonce[0] && row->nonce[1] == nonce[1])
            return row;
    }
    return NULL;
}
