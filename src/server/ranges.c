/* The table of blocks in hand, direct mapped by a hash of the sequence's name. */
#include "server/ranges.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <string.h>

void ranges_init(struct ranges *r)
{
    *r = (struct ranges){ .mutex = PTHREAD_MUTEX_INITIALIZER };
}

void ranges_done(struct ranges *r)
{
    pthread_mutex_destroy(&r->mutex);
}

static struct range_entry *place_of(struct ranges *r, const char *name, size_t len)
{
    return &r->entry[record_name_hash(name, len) % RANGES_MAX];
}

static struct range_entry *find(struct ranges *r, const char *name, size_t len)
{
    struct range_entry *e = place_of(r, name, len);
    return e->name_len == len && memcmp(e->name, name, len) == 0 ? e : NULL;
}

int ranges_take(struct ranges *r, const char *name, size_t len, uint64_t want, bool some,
                uint64_t now_ms, struct seq_range *out, struct seq_record *out_record,
                bool *out_fetch)
{
    *out_fetch = false;
    pthread_mutex_lock(&r->mutex);
    struct range_entry *e = find(r, name, len);
    int error = !e     ? FIRN_ENOENT
                : some ? seq_cache_some(&e->cache, want, now_ms, out)
                       : seq_cache_exactly(&e->cache, want, now_ms, out);
    if (error == 0) {
        firn_assert(out->count - 1 < want, "count=%" PRIu64 " want=%" PRIu64, out->count, want);
        if (out_record)
            *out_record = e->record;
        *out_fetch = seq_cache_ask(&e->cache) > 0;
    }
    pthread_mutex_unlock(&r->mutex);
    return error;
}

int ranges_peek(struct ranges *r, const char *name, size_t len, uint64_t *out)
{
    pthread_mutex_lock(&r->mutex);
    const struct range_entry *e = find(r, name, len);
    const struct seq_range *next = !e                       ? NULL
                                   : e->cache.cur.count > 0 ? &e->cache.cur
                                                            : &e->cache.spare;
    firn_assert(!next || next == &e->cache.cur || e->cache.cur.count == 0);
    int error = next && next->count > 0 ? 0 : FIRN_ENOENT;
    if (error == 0)
        *out = next->first;
    pthread_mutex_unlock(&r->mutex);
    return error;
}

void ranges_close(struct ranges *r, const char *name, size_t len)
{
    pthread_mutex_lock(&r->mutex);
    struct range_entry *e = find(r, name, len);
    if (e)
        *e = (struct range_entry){ .name_len = 0 };
    pthread_mutex_unlock(&r->mutex);
}

bool ranges_asked(struct ranges *r, const char *name, size_t len)
{
    pthread_mutex_lock(&r->mutex);
    const struct range_entry *e = find(r, name, len);
    bool asked = e && e->cache.asked;
    pthread_mutex_unlock(&r->mutex);
    return asked;
}

uint64_t ranges_want(struct ranges *r, const char *name, size_t len)
{
    pthread_mutex_lock(&r->mutex);
    const struct range_entry *e = find(r, name, len);
    uint64_t want = e ? e->cache.want : SEQ_BLOCK_MIN;
    pthread_mutex_unlock(&r->mutex);
    return want;
}

void ranges_put(struct ranges *r, const char *name, size_t len, const struct seq_record *record,
                const struct seq_range *block, bool fresh, uint64_t now_ms)
{
    firn_assert(len > 0 && len <= RECORD_NAME_MAX, "len=%zu", len);
    firn_assert(block->count == 0 || block->step > 0, "count=%" PRIu64, block->count);
    pthread_mutex_lock(&r->mutex);
    struct range_entry *e = find(r, name, len);
    if (!e) {
        e = place_of(r, name, len);
        *e = (struct range_entry){ .name_len = len, .record = *record };
        memcpy(e->name, name, len);
        seq_cache_init(&e->cache);
    } else if (fresh) {
        e->cache.cur.count = e->cache.spare.count = 0;
    }
    firn_assert(e->name_len == len && memcmp(e->name, name, len) == 0);
    if (block->count > 0)
        seq_cache_put(&e->cache, block, now_ms);
    else
        seq_cache_failed(&e->cache);
    pthread_mutex_unlock(&r->mutex);
}

void ranges_drop(struct ranges *r)
{
    pthread_mutex_lock(&r->mutex);
    for (size_t i = 0; i < RANGES_MAX; i++) {
        struct seq_cache *cache = &r->entry[i].cache;
        cache->cur.count = cache->spare.count = 0;
        seq_cache_failed(cache); /* a block that was asked for does not come either */
    }
    pthread_mutex_unlock(&r->mutex);
}
