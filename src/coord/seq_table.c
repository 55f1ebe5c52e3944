/* The table of open sequences: hashed by name, replaced by least recent use. */
#include "coord/seq_table.h"
#include "coord/mutant.h"
#include "coord/period.h"
#include "platform/assert.h"

#include <inttypes.h>

void seq_table_init(struct seq_table *t, struct seq_entry *entry, size_t max)
{
    firn_assert(max > 0 && max <= SEQ_TABLE_MAX, "max=%zu", max);
    *t = (struct seq_table){ .entry = entry, .max = max, .turn = 1 };
}

static uint16_t *bucket_of(struct seq_table *t, const char *name, size_t len)
{
    return &t->bucket[record_name_hash(name, len) % SEQ_BUCKETS];
}

static struct seq_entry *look_up(struct seq_table *t, const char *name, size_t len)
{
    for (uint16_t i = *bucket_of(t, name, len); i > 0; i = t->entry[i - 1].next_) {
        struct seq_entry *e = &t->entry[i - 1];
        if (e->name_len == len && memcmp(e->name, name, len) == 0)
            return e;
    }
    return NULL;
}

struct seq_entry *seq_table_find(struct seq_table *t, const char *name, size_t len)
{
    struct seq_entry *e = look_up(t, name, len);
    if (e)
        e->used = ++t->calls;
    return e;
}

/* No number of a gapless sequence would be lost if the entry were forgotten. */
static bool idle(const struct seq_entry *e)
{
    return e->op.mine_count == 0 && e->left.count == 0;
}

static void unlink_entry(struct seq_table *t, const struct seq_entry *e)
{
    uint16_t *at = bucket_of(t, e->name, e->name_len), self = (uint16_t)(e - t->entry + 1);
    while (*at != self) {
        firn_assert(*at > 0); /* it is in its bucket */
        at = &t->entry[*at - 1].next_;
    }
    *at = e->next_;
}

static struct seq_entry *room(struct seq_table *t)
{
    struct seq_entry *best = NULL;
    if (t->count < t->max)
        return &t->entry[t->count++];
    for (size_t i = 0; i < t->count; i++) {
        struct seq_entry *e = &t->entry[i];
        if (e->hot_) {
            e->hot_ = false;
            e->used = ++t->calls;
        }
        if (e->pinned == t->turn && !FIRN_MUTANT(tk_unpinned))
            continue;
        /* An entry with numbers in flight goes last: forgetting it would leave a hole. */
        if (!best || idle(e) > idle(best) || (idle(e) == idle(best) && e->used < best->used))
            best = e;
    }
    if (best && best->name_len > 0)
        unlink_entry(t, best);
    return best;
}

struct seq_entry *seq_table_open(struct seq_table *t, const char *name, size_t len)
{
    firn_assert(len > 0 && len <= RECORD_NAME_MAX, "len=%zu", len);
    struct seq_entry *e = seq_table_find(t, name, len);
    if (e || !(e = room(t)))
        return e;
    uint16_t *bucket = bucket_of(t, name, len);
    memset(e, 0, offsetof(struct seq_entry, op));
    memcpy(e->name, name, len);
    e->name_len = (uint32_t)len;
    e->used = ++t->calls;
    seq_op_init(&e->op);
    e->next_ = *bucket;
    *bucket = (uint16_t)(e - t->entry + 1);
    return e;
}

void seq_table_describe(struct seq_entry *e, const struct seq_record *r)
{
    e->record = *r;
    e->dated = dated_note_parse(r->note, &e->reset, &e->digits) == 0;
    e->ahead = r->mode == SEQ_RANGE && !e->dated;
    e->known = true;
    seq_cache_init(&e->cache);
}

void seq_table_forget(struct seq_table *t, const char *name, size_t len)
{
    struct seq_entry *e = look_up(t, name, len);
    if (!e)
        return;
    e->known = e->dated = e->ahead = false;
    seq_cache_init(&e->cache);
    e->period = e->settled = 0;
    e->left.count = 0;
    e->op.base_len = 0; /* its writes whose outcome is open stay known */
}

void seq_table_pin(struct seq_table *t, struct seq_entry *e)
{
    e->pinned = t->turn;
}

void seq_table_end_turn(struct seq_table *t)
{
    t->turn++;
}

static uint64_t range_end(const struct seq_range *r)
{
    return r->first + r->count * r->step;
}

void seq_table_return(struct seq_entry *e, struct seq_range rest)
{
    bool joined = e->left.count > 0 && range_end(&rest) == e->left.first;
    if (rest.count == 0 || FIRN_MUTANT(tk_rest_dropped))
        return;
    firn_assert(rest.step > 0 && range_end(&rest) > rest.first);
    if (joined)
        rest.count += e->left.count;          /* the other half of the same grant */
    if (joined || e->left.count < rest.count) /* one piece is kept; a smaller one is a hole */
        seq_table_keep(e, rest);
}

void seq_table_keep(struct seq_entry *e, struct seq_range left)
{
    e->left = left;
    e->left_of = e->op.base.req;
}

enum seq_hand seq_table_take(struct seq_table *t, const char *name, size_t len, uint64_t want,
                             bool some, uint64_t now_ms, struct seq_range *out,
                             struct seq_record *out_record, bool *out_fetch)
{
    struct seq_entry *e = look_up(t, name, len);
    *out_fetch = false;
    if (!e || !e->known)
        return SEQ_HAND_UNKNOWN;
    if (!e->ahead)
        return e->dated ? SEQ_HAND_DATED : SEQ_HAND_GAPLESS;
    if (want == 0 || (some ? seq_cache_some(&e->cache, want, now_ms, out)
                           : seq_cache_exactly(&e->cache, want, now_ms, out)) != 0)
        return SEQ_HAND_SHORT;
    firn_assert(out->count - 1 < want, "count=%" PRIu64 " want=%" PRIu64, out->count, want);
    if (out_record)
        *out_record = e->record;
    *out_fetch = seq_cache_ask(&e->cache) > 0;
    e->hot_ = true;
    return SEQ_HAND_TAKEN;
}

int seq_table_peek(struct seq_table *t, const char *name, size_t len, uint64_t *out)
{
    const struct seq_entry *e = look_up(t, name, len);
    if (!e || !e->known || !e->ahead)
        return FIRN_ENOENT;
    const struct seq_range *next = e->cache.cur.count > 0 ? &e->cache.cur : &e->cache.spare;
    if (next->count == 0)
        return FIRN_ENOENT;
    *out = next->first;
    return 0;
}

void seq_table_put(struct seq_entry *e, const struct seq_range *block, bool fresh, uint64_t now_ms)
{
    firn_assert(e->known && e->ahead);
    firn_assert(block->count == 0 || block->step > 0, "count=%" PRIu64, block->count);
    if (fresh && !FIRN_MUTANT(tk_old_block_kept))
        e->cache.cur.count = e->cache.spare.count = 0;
    if (block->count > 0)
        seq_cache_put(&e->cache, block, now_ms);
    else
        seq_cache_failed(&e->cache);
}

void seq_table_drop(struct seq_table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        struct seq_cache *cache = &t->entry[i].cache;
        cache->cur.count = cache->spare.count = 0;
        seq_cache_failed(cache); /* a block that was asked for does not come either */
    }
}
