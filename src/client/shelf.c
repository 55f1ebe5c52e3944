/* Shelves of shards: made when first asked for, the oldest dropped when they are too many. */
#include "client/shelf.h"
#include "client/url.h"
#include "platform/assert.h"

#include <stdlib.h>

void shelf_init(struct shelf *s, const struct client_opts *o, uint32_t shard, uint64_t now_ms)
{
    *s = (struct shelf){ .shard = shard, .used_ms = now_ms };
    block_pool_init(&s->pool, o->block, o->fresh_ms);
}

void shelf_done(struct shelf *s)
{
    if (s->fetch)
        trip_done(s->fetch);
    free(s->fetch);
    s->fetch = NULL;
    block_pool_done(&s->pool);
}

static struct shelf **bucket_of(struct shelves *all, uint32_t shard)
{
    return &all->bucket[shard % SHELF_BUCKETS];
}

struct shelf *shelves_next(const struct shelves *all, const struct shelf *s)
{
    if (s && s->next)
        return s->next;
    for (size_t i = s ? s->shard % SHELF_BUCKETS + 1 : 0; i < SHELF_BUCKETS; i++)
        if (all->bucket[i])
            return all->bucket[i];
    return NULL;
}

static void drop(struct shelves *all, struct shelf *s)
{
    struct shelf **at = bucket_of(all, s->shard);
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    shelf_done(s);
    free(s);
    all->n--;
}

/* Drops the shelf that was unused for longest. False: calls wait for each of them. */
static bool make_room(struct shelves *all, uint64_t *out_lost)
{
    struct shelf *oldest = NULL;
    for (struct shelf *s = shelves_next(all, NULL); s; s = shelves_next(all, s))
        if (s->users == 0 && !(s->fetch && s->fetch->polled) &&
            (!oldest || s->used_ms < oldest->used_ms))
            oldest = s;
    if (!oldest)
        return false;
    *out_lost = oldest->pool.now.left + oldest->pool.next.left;
    drop(all, oldest);
    return true;
}

int shelf_of(struct shelves *all, const struct client_opts *o, uint32_t shard, uint64_t now_ms,
             struct shelf **out, uint64_t *out_lost)
{
    firn_assert(shard > 0);
    *out_lost = 0;
    for (struct shelf *s = *bucket_of(all, shard); s; s = s->next)
        if (s->shard == shard) {
            s->used_ms = now_ms;
            *out = s;
            return 0;
        }
    if (all->n == SHELVES_MAX && !make_room(all, out_lost))
        return FIRN_EAGAIN;
    struct shelf *fresh = malloc(sizeof *fresh);
    if (!fresh)
        return FIRN_ENOMEM;
    shelf_init(fresh, o, shard, now_ms);
    fresh->next = *bucket_of(all, shard);
    *bucket_of(all, shard) = fresh;
    all->n++;
    *out = fresh;
    return 0;
}

void shelves_done(struct shelves *all)
{
    for (size_t i = 0; i < SHELF_BUCKETS; i++)
        while (all->bucket[i])
            drop(all, all->bucket[i]);
}
