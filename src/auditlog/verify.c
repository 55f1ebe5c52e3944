/*
 * Heads by number, then rows and heads side by side. Open batches are a heap by the next ID that
 * each expects; the lowest of them is what the next row must be.
 */
#include "auditlog/verify.h"
#include "platform/assert.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *title, *text;
} findings[] = {
#define FINDING(name, title, text) { title, text },
    FINDINGS(FINDING)
#undef FINDING
};

const char *finding_title(enum finding_kind kind)
{
    return findings[kind].title;
}

const char *finding_text(enum finding_kind kind)
{
    return findings[kind].text;
}

/* --- heads --- */

void verify_heads_start(struct verify_heads *v, struct sha256 *sha, const struct head_keys *keys,
                        const struct head *trusted, finding_fn *found, void *user)
{
    *v = (struct verify_heads){ .sha = sha, .keys = keys, .found = found, .user = user };
    if (!trusted)
        return;
    chain_resume(&v->chain, sha, trusted);
    v->begun = true;
}

static bool tell_head(struct verify_heads *v, enum finding_kind kind, const char *writer,
                      uint64_t seq)
{
    struct finding f = { .kind = kind, .shard = v->chain.shard, .writer = writer, .seq = seq };
    v->ended = v->ended || !v->found(v->user, &f);
    return !v->ended;
}

static void check_link(struct verify_heads *v, const struct head *h)
{
    const struct chain *c = &v->chain;
    if (chain_follows(c, h))
        return;
    if (h->seq > c->seq + 1)
        tell_head(v, FINDING_HEAD_MISSING, h->writer, c->seq + 1);
    else if (h->seq == c->seq + 1 && c->seq > 0)
        tell_head(v, FINDING_HEAD_CHANGED, h->writer, c->seq);
    else
        tell_head(v, FINDING_HEAD_CHANGED, h->writer, h->seq);
}

static void check_signature(struct verify_heads *v, const struct head *h,
                            const struct head_sig *sig)
{
    if (!v->keys)
        return;
    if (!sig || !sig->there) {
        v->unsigned_from = v->unsigned_from ? v->unsigned_from : h->seq;
        return;
    }
    int r = head_check(v->keys, h, sig);
    if (r == 0)
        v->unsigned_from = 0;
    else
        tell_head(v, r == FIRN_ENOENT ? FINDING_KEY_UNKNOWN : FINDING_SIGNATURE_WRONG, h->writer,
                  h->seq);
}

bool verify_heads_next(struct verify_heads *v, const struct head *h, const struct head_sig *sig)
{
    if (v->ended)
        return false;
    if (!v->begun) {
        int r = chain_start(&v->chain, h->shard, h->writer);
        firn_assert(r == 0, "r=%d", r); /* a head has a writer's name */
        v->begun = true;
    }
    check_link(v, h);
    if (!v->ended)
        check_signature(v, h, sig);
    chain_resume(&v->chain, v->sha, h);
    v->checked++;
    return !v->ended;
}

bool verify_heads_end(struct verify_heads *v, const struct head *checkpoint)
{
    digest_t want;
    if (!v->ended && v->unsigned_from)
        tell_head(v, FINDING_HEAD_UNSIGNED, v->chain.writer, v->unsigned_from);
    if (v->ended || !checkpoint)
        return !v->ended;
    head_digest(v->sha, checkpoint, want);
    if (v->chain.seq < checkpoint->seq)
        tell_head(v, FINDING_CHAIN_SHORT, checkpoint->writer, v->chain.seq + 1);
    else if (v->chain.seq == checkpoint->seq && memcmp(want, v->chain.last, sizeof want) != 0)
        tell_head(v, FINDING_HEAD_CHANGED, checkpoint->writer, checkpoint->seq);
    return !v->ended;
}

/* --- rows --- */

struct open_batch {
    struct head head;
    size_t at;      /* the row that is expected next */
    bool whole;     /* all rows are in the range and were right so far: the root can be checked */
    size_t have;    /* digests */
    char *index;    /* the head's, behind it digests of rows */
    digest_t *rows; /* those that were seen */
};

struct verify_rows {
    uint64_t from, to;
    finding_fn *found;
    void *user;
    struct chain_hasher hasher;
    struct open_batch **heap;
    size_t open, cap;
    uint64_t last_first; /* of the last head */
    uint64_t last_id;    /* of the last row */
    bool any_head, any_row, ended;
    uint32_t shard;
    uint64_t compared;
};

int verify_rows_new(uint32_t shard, uint64_t from, uint64_t to, finding_fn *found, void *user,
                    struct verify_rows **out)
{
    struct verify_rows *v = calloc(1, sizeof *v);
    if (!v)
        return FIRN_ENOMEM;
    *v = (struct verify_rows){
        .shard = shard, .from = from, .to = to, .found = found, .user = user
    };
    int r = chain_hasher_open(&v->hasher);
    if (r) {
        free(v);
        return r;
    }
    *out = v;
    return 0;
}

static void batch_free(struct open_batch *b)
{
    free(b->index);
    free(b->rows);
    free(b);
}

void verify_rows_free(struct verify_rows *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->open; i++)
        batch_free(v->heap[i]);
    free(v->heap);
    chain_hasher_close(&v->hasher);
    free(v);
}

uint64_t verify_rows_compared(const struct verify_rows *v)
{
    return v->compared;
}

static int tell(struct verify_rows *v, enum finding_kind kind, uint64_t id, const struct head *of)
{
    struct finding f = { .kind = kind,
                         .id = id,
                         .shard = v->shard,
                         .writer = of ? of->writer : "",
                         .seq = of ? of->seq : 0 };
    v->ended = v->ended || !v->found(v->user, &f);
    return v->ended ? FIRN_ECLOSED : 0;
}

/* --- the heap --- */

static uint64_t expects(const struct open_batch *b)
{
    return chain_index_id(b->index, b->at);
}

static void swap(struct verify_rows *v, size_t a, size_t b)
{
    struct open_batch *t = v->heap[a];
    v->heap[a] = v->heap[b];
    v->heap[b] = t;
}

static void sift_down(struct verify_rows *v, size_t i)
{
    for (;;) {
        size_t low = i;
        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < v->open; k++)
            if (expects(v->heap[k]) < expects(v->heap[low]))
                low = k;
        if (low == i)
            return;
        swap(v, i, low);
        i = low;
    }
}

static int push(struct verify_rows *v, struct open_batch *b)
{
    if (v->open == VERIFY_OPEN_MAX)
        return FIRN_ERANGE;
    if (v->open == v->cap) {
        size_t cap = v->cap ? v->cap * 2 : 16;
        struct open_batch **grown = realloc(v->heap, cap * sizeof *grown);
        if (!grown)
            return FIRN_ENOMEM;
        v->heap = grown;
        v->cap = cap;
    }
    size_t i = v->open++;
    v->heap[i] = b;
    for (; i > 0 && expects(v->heap[i]) < expects(v->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(v, i, (i - 1) / 2);
    return 0;
}

/* --- batches --- */

/* After its last row: the root, over digests of which the index has only the beginning. */
static int conclude(struct verify_rows *v, struct open_batch *b)
{
    digest_t root;
    if (!b->whole || b->have != b->head.rows)
        return 0;
    merkle_root(&v->hasher.sha, b->rows, b->have, root);
    return memcmp(root, b->head.root, sizeof root) == 0
               ? 0
               : tell(v, FINDING_BATCH_CHANGED, 0, &b->head);
}

/* The lowest batch has dealt with the row that it expected. */
static int step(struct verify_rows *v)
{
    struct open_batch *b = v->heap[0];
    int r = 0;
    b->at++;
    if (b->at == b->head.rows || expects(b) > v->to) {
        r = conclude(v, b);
        v->heap[0] = v->heap[--v->open];
        batch_free(b);
    }
    sift_down(v, 0);
    return r;
}

/* Rows below `id` that batches expect are missing. */
static int pass_over(struct verify_rows *v, uint64_t id, bool all)
{
    int r = 0;
    while (r == 0 && v->open && (all || expects(v->heap[0]) < id)) {
        struct open_batch *b = v->heap[0];
        b->whole = false;
        r = tell(v, FINDING_ROW_MISSING, expects(b), &b->head);
        if (r == 0)
            r = step(v);
    }
    return r;
}

/* IDs that rise, from the head's first to its last. */
static bool index_sane(const struct head *h, const char *index)
{
    for (size_t i = 1; i < h->rows; i++)
        if (chain_index_id(index, i - 1) >= chain_index_id(index, i))
            return false;
    return chain_index_id(index, 0) == h->first && chain_index_id(index, h->rows - 1) == h->last;
}

int verify_rows_head(struct verify_rows *v, const struct head *h, struct slice index)
{
    digest_t digest;
    if (v->ended)
        return FIRN_ECLOSED;
    if (h->shard != v->shard || (v->any_head && h->first < v->last_first) ||
        (v->any_row && h->first <= v->last_id && h->first >= v->from))
        return FIRN_EINVAL;
    v->any_head = true;
    v->last_first = h->first;
    if (h->last < v->from || h->first > v->to)
        return 0;
    sha256_of(&v->hasher.sha, index.p ? index.p : "", index.len, digest);
    if (index.len != (size_t)h->rows * CHAIN_INDEX_BYTES ||
        memcmp(digest, h->index, sizeof digest) != 0 || !index_sane(h, index.p))
        return tell(v, FINDING_INDEX_CHANGED, 0, h);
    struct open_batch *b = calloc(1, sizeof *b);
    if (!b)
        return FIRN_ENOMEM;
    *b = (struct open_batch){ .head = *h, .whole = h->first >= v->from && h->last <= v->to };
    b->index = malloc(index.len);
    b->rows = malloc((size_t)h->rows * SHA256_BYTES);
    int r = b->index && b->rows ? 0 : FIRN_ENOMEM;
    if (r == 0) {
        memcpy(b->index, index.p, index.len);
        while (b->at < h->rows && expects(b) < v->from)
            b->at++;
        if (b->at == h->rows || expects(b) > v->to) { /* none of them is in the range */
            batch_free(b);
            return 0;
        }
        r = push(v, b);
    }
    if (r)
        batch_free(b);
    return r;
}

int verify_rows_row(struct verify_rows *v, const struct chain_row *row)
{
    digest_t digest;
    if (v->ended)
        return FIRN_ECLOSED;
    if (row->id < v->from || row->id > v->to || (v->any_row && row->id <= v->last_id))
        return FIRN_EINVAL;
    v->any_row = true;
    v->last_id = row->id;
    int r = pass_over(v, row->id, false);
    if (r)
        return r;
    if (v->open == 0 || expects(v->heap[0]) != row->id)
        return tell(v, FINDING_ROW_ADDED, row->id, NULL);
    struct open_batch *b = v->heap[0];
    r = chain_row_digest(&v->hasher, row, digest);
    if (r == FIRN_ENOMEM)
        return r;
    if (r || memcmp(digest, chain_index_tag(b->index, b->at), CHAIN_TAG_BYTES) != 0) {
        b->whole = false;
        r = tell(v, FINDING_ROW_CHANGED, row->id, &b->head);
    } else {
        memcpy(b->rows[b->have++], digest, sizeof digest);
        v->compared++;
    }
    if (r == 0)
        r = step(v);
    while (r == 0 && v->open && expects(v->heap[0]) == row->id) {
        v->heap[0]->whole = false;
        r = tell(v, FINDING_ROW_TWICE, row->id, &v->heap[0]->head);
        if (r == 0)
            r = step(v);
    }
    return r;
}

int verify_rows_end(struct verify_rows *v)
{
    return v->ended ? FIRN_ECLOSED : pass_over(v, 0, true);
}
