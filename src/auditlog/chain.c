/* Rows to digests, digests to a tree, trees to heads. */
#include "auditlog/chain.h"
#include "id/bytes.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ROW_VERSION = 1 };

/* --- rows --- */

int chain_hasher_open(struct chain_hasher *h)
{
    *h = (struct chain_hasher){ .bytes = { .max = CHAIN_ROW_BYTES_MAX } };
    return sha256_open(&h->sha);
}

void chain_hasher_close(struct chain_hasher *h)
{
    sha256_close(&h->sha);
    canon_done(&h->canon);
    buf_done(&h->bytes);
}

static void put_text(struct buf *b, struct slice s)
{
    uint8_t len[4];
    store_be32(len, (uint32_t)s.len);
    buf_add(b, len, sizeof len);
    buf_add(b, s.p, s.len);
}

int chain_row_digest(struct chain_hasher *h, const struct chain_row *row, digest_t out)
{
    struct buf *b = &h->bytes;
    uint8_t fixed[2 + 3 * 8] = { MERKLE_LEAF, ROW_VERSION };
    store_be64(fixed + 2, row->id);
    store_be64(fixed + 10, row->map_version);
    store_be64(fixed + 18, (uint64_t)row->at_us);
    b->len = 0;
    b->failed = false;
    buf_add(b, fixed, sizeof fixed);
    put_text(b, row->tenant);
    put_text(b, row->user);
    put_text(b, row->actor);
    put_text(b, row->action);
    size_t at = b->len;
    put_text(b, (struct slice){ NULL, 0 }); /* its length comes later */
    if (b->failed)
        return FIRN_ENOMEM;
    int r = canon_json(&h->canon, row->detail, b);
    if (r)
        return r;
    store_be32(b->p + at, (uint32_t)(b->len - at - 4));
    sha256_of(&h->sha, b->p, b->len, out);
    return 0;
}

/* --- batches --- */

int chain_batch_open(struct chain_batch *b)
{
    *b = (struct chain_batch){
        .leaves = { .max = HEAD_ROWS_MAX * sizeof(struct chain_leaf) },
        .scratch = { .max = (size_t)HEAD_ROWS_MAX * SHA256_BYTES },
        .index = { .max = (size_t)HEAD_ROWS_MAX * CHAIN_INDEX_BYTES },
    };
    return chain_hasher_open(&b->hasher);
}

void chain_batch_close(struct chain_batch *b)
{
    chain_hasher_close(&b->hasher);
    buf_done(&b->leaves);
    buf_done(&b->scratch);
    buf_done(&b->index);
}

void chain_batch_clear(struct chain_batch *b)
{
    b->leaves.len = b->scratch.len = b->index.len = 0;
    b->leaves.failed = b->scratch.failed = b->index.failed = false;
}

size_t chain_batch_rows(const struct chain_batch *b)
{
    return b->leaves.len / sizeof(struct chain_leaf);
}

const struct chain_leaf *chain_batch_leaves(const struct chain_batch *b)
{
    return (const struct chain_leaf *)(const void *)b->leaves.p;
}

int chain_batch_add_leaf(struct chain_batch *b, const struct chain_leaf *leaf)
{
    if (chain_batch_rows(b) == HEAD_ROWS_MAX)
        return FIRN_ERANGE;
    buf_add(&b->leaves, leaf, sizeof *leaf);
    return b->leaves.failed ? FIRN_ENOMEM : 0;
}

int chain_batch_add(struct chain_batch *b, const struct chain_row *row)
{
    struct chain_leaf leaf = { .id = row->id };
    int r = chain_row_digest(&b->hasher, row, leaf.digest);
    return r ? r : chain_batch_add_leaf(b, &leaf);
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const struct chain_leaf *)a)->id, y = ((const struct chain_leaf *)b)->id;
    return (x > y) - (x < y);
}

/* The digests alone, where a tree can be built on them. NULL: no memory. */
static digest_t *copy_digests(struct chain_batch *b)
{
    size_t n = chain_batch_rows(b);
    const struct chain_leaf *v = chain_batch_leaves(b);
    b->scratch.len = 0;
    char *to = buf_room(&b->scratch, n * SHA256_BYTES);
    for (size_t i = 0; to && i < n; i++)
        memcpy(to + i * SHA256_BYTES, v[i].digest, SHA256_BYTES);
    return (digest_t *)(void *)to;
}

int chain_batch_end(struct chain_batch *b)
{
    size_t n = chain_batch_rows(b);
    struct chain_leaf *v = (struct chain_leaf *)(void *)b->leaves.p;
    bool sorted = true;
    if (n == 0)
        return FIRN_EINVAL;
    for (size_t i = 1; i < n; i++)
        sorted = sorted && v[i - 1].id < v[i].id;
    if (!sorted)
        qsort(v, n, sizeof *v, by_id);
    for (size_t i = 1; !sorted && i < n; i++)
        if (v[i - 1].id == v[i].id)
            return FIRN_EINVAL;
    b->index.len = 0;
    char *to = buf_room(&b->index, n * CHAIN_INDEX_BYTES);
    digest_t *digests = copy_digests(b);
    if (!to || !digests)
        return FIRN_ENOMEM;
    for (size_t i = 0; i < n; i++, to += CHAIN_INDEX_BYTES) {
        store_be64(to, v[i].id);
        memcpy(to + 8, v[i].digest, CHAIN_TAG_BYTES);
    }
    buf_commit(&b->index, n * CHAIN_INDEX_BYTES);
    sha256_of(&b->hasher.sha, b->index.p, b->index.len, b->index_digest);
    merkle_root(&b->hasher.sha, digests, n, b->root);
    return 0;
}

int chain_batch_path(struct chain_batch *b, uint64_t id, uint64_t *out_at,
                     digest_t path[MERKLE_PATH_MAX], size_t *out_n)
{
    const struct chain_leaf key = { .id = id }, *v = chain_batch_leaves(b);
    size_t n = chain_batch_rows(b);
    const struct chain_leaf *hit = n ? bsearch(&key, v, n, sizeof *v, by_id) : NULL;
    digest_t *digests = hit ? copy_digests(b) : NULL;
    if (!hit || !digests)
        return hit ? FIRN_ENOMEM : FIRN_ENOENT;
    *out_at = (uint64_t)(hit - v);
    *out_n = merkle_path(&b->hasher.sha, digests, n, (size_t)(hit - v), path);
    return 0;
}

uint64_t chain_index_id(const void *index, size_t i)
{
    return load_be64((const char *)index + i * CHAIN_INDEX_BYTES);
}

const uint8_t *chain_index_tag(const void *index, size_t i)
{
    return (const uint8_t *)index + i * CHAIN_INDEX_BYTES + 8;
}

/* --- the chain --- */

int chain_start(struct chain *c, uint32_t shard, const char *writer)
{
    size_t len = strlen(writer);
    if (!head_writer_ok(writer, len))
        return FIRN_EINVAL;
    *c = (struct chain){ .shard = shard };
    memcpy(c->writer, writer, len);
    return 0;
}

void chain_resume(struct chain *c, struct sha256 *sha, const struct head *last)
{
    *c = (struct chain){ .shard = last->shard, .seq = last->seq };
    memcpy(c->writer, last->writer, sizeof c->writer);
    head_digest(sha, last, c->last);
}

int chain_head(const struct chain *c, const struct chain_batch *b, int64_t time_us,
               struct head *out)
{
    size_t n = chain_batch_rows(b);
    const struct chain_leaf *v = chain_batch_leaves(b);
    firn_assert(n > 0 && b->index.len == n * CHAIN_INDEX_BYTES, "rows=%zu index=%zu", n,
                b->index.len);
    if (c->seq == UINT64_MAX)
        return FIRN_EOVERFLOW;
    *out = (struct head){ .shard = c->shard,
                          .seq = c->seq + 1,
                          .first = v[0].id,
                          .last = v[n - 1].id,
                          .rows = (uint32_t)n,
                          .time_us = time_us };
    memcpy(out->writer, c->writer, sizeof out->writer);
    memcpy(out->root, b->root, sizeof out->root);
    memcpy(out->index, b->index_digest, sizeof out->index);
    memcpy(out->previous, c->last, sizeof out->previous);
    return 0;
}

bool chain_follows(const struct chain *c, const struct head *h)
{
    return h->shard == c->shard && strcmp(h->writer, c->writer) == 0 && c->seq < UINT64_MAX &&
           h->seq == c->seq + 1 && memcmp(h->previous, c->last, sizeof c->last) == 0;
}

void chain_advance(struct chain *c, struct sha256 *sha, const struct head *h)
{
    firn_assert(chain_follows(c, h), "seq=%" PRIu64 " after %" PRIu64, h->seq, c->seq);
    c->seq = h->seq;
    head_digest(sha, h, c->last);
}
