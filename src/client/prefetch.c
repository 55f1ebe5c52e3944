/*
 * prefetch mode: blocks of numbers fetched ahead by the threads that use them, for each shard.
 * A thread that takes a slice of a block also looks, without waiting, whether the next block
 * arrived or must be requested. A thread waits only when no number is left.
 */
#include "client/internal.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COARSE_LAG_MS = 11, /* the hot path's clock is behind by a step of 10 ms at most */
    IDLE_MS = 60000,    /* a shelf that nobody asks for is not refilled by the way */
};

static void failed(struct shelf *s, int error, const char *text)
{
    s->fetched.count++;
    s->fetched.error = error;
    s->refused = error == FIRN_ERANGE;
    snprintf(s->fetched.why, sizeof s->fetched.why, "%s", text);
}

/* Requests a block. `q` names the request that it is for; NULL: none. */
static void begin(struct core *c, struct shelf *s, const struct request *for_q)
{
    struct request q = { .kind = REQUEST_NUMBERS, .n = s->pool.size, .shard = s->shard };
    if (c->opts->seq[0] && atomic_load(&c->sequence) == SEQUENCE_UNKNOWN)
        sequence_request(c, &q);
    if (for_q) {
        memcpy(q.id, for_q->id, sizeof q.id);
        memcpy(q.traceparent, for_q->traceparent, sizeof q.traceparent);
    }
    s->fetch = malloc(sizeof *s->fetch);
    if (!s->fetch) {
        failed(s, FIRN_ENOMEM, "no memory for a block");
        return;
    }
    trip_start(s->fetch, c, &q);
    s->fetch->what = "block";
}

/* The trip is over: adds the block, or notes the failure. */
static void take_in(struct core *c, struct shelf *s, struct trip *t)
{
    const struct client_opts *o = c->opts;
    struct block_pool *pool = &s->pool;
    if (t->error == FIRN_EINVAL && t->request.kind == REQUEST_NUMBERS && t->request.n > 1) {
        pool->size = pool->size_max = t->request.n / 2; /* the server limits it to fewer */
        return;
    }
    if (t->error) {
        failed(s, t->error, t->why);
        if (pool->size > 1)
            pool->size /= 2; /* it may have taken longer than the time-out */
        return;
    }
    if (t->request.kind == REQUEST_GET) {
        enum sequence seq = sequence_read(t->body, t->body_len);
        if (seq == SEQUENCE_GAPLESS)
            failed(s, FIRN_EINVAL,
                   "the sequence is gapless: numbers fetched ahead could be holes; use mode=remote "
                   "or a range sequence");
        else
            atomic_store(&c->sequence, seq);
        return;
    }
    s->refused = false;
    atomic_fetch_add_explicit(&c->stats.blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->stats.block_ids, t->answer.numbers.numbers, memory_order_relaxed);
    if (t->request.n < pool->size) /* fewer had to be asked for */
        pool->size = t->request.n;
    /* No number is older than the request that brought it. */
    uint64_t stale = o->fresh_ms ? t->began_us / 1000 + o->fresh_ms - COARSE_LAG_MS : NEVER_MS;
    block_pool_add(pool, &t->answer.numbers, stale, mono_ms());
}

static void tend(struct core *c, struct shelf *s, const struct request *for_q)
{
    for (int rounds = 0; rounds < 4; rounds++) {
        uint64_t failures = s->fetched.count;
        if (!s->fetch && block_pool_wants(&s->pool))
            begin(c, s, for_q);
        if (!s->fetch || s->fetch->polled)
            return;
        if (!trip_step(s->fetch)) {
            async_watch(c, s->fetch);
            return;
        }
        take_in(c, s, s->fetch);
        trip_done(s->fetch);
        free(s->fetch);
        s->fetch = NULL;
        pthread_cond_broadcast(&c->news);
        if (s->fetched.count != failures)
            return; /* the next call that needs a block tries again */
    }
}

void prefetch_tend(struct core *c)
{
    uint64_t now = mono_ms();
    tend(c, &c->shelf, NULL);
    for (struct shelf *s = shelves_next(&c->shelves, NULL); s; s = shelves_next(&c->shelves, s))
        if (s->fetch || (!s->refused && now < s->used_ms + IDLE_MS))
            tend(c, s, NULL);
}

int prefetch_shelf(struct core *c, uint32_t shard, struct shelf **out, struct firn_diag *d)
{
    uint64_t lost = 0;
    int r = 0;
    *out = &c->shelf;
    if (shard > 0)
        r = shelf_of(&c->shelves, c->opts, shard, mono_ms(), out, &lost);
    if (lost)
        atomic_fetch_add_explicit(&c->stats.stale_ids, lost, memory_order_relaxed);
    return r ? firn__diag(d, r, 0, "calls wait for blocks of %d shards: ask again when some end",
                          SHELVES_MAX)
             : 0;
}

/* As prefetch_take(), on a shelf that stays. */
static int take(struct core *c, struct shelf *s, const struct prefetch *p, struct run *out,
                uint64_t *out_stale_ms, struct firn_diag *d)
{
    uint64_t failures = s->fetched.count;
    for (;;) {
        uint64_t stale = block_pool_take(&s->pool, p->most, mono_ms(), out, out_stale_ms);
        if (stale)
            atomic_fetch_add_explicit(&c->stats.stale_ids, stale, memory_order_relaxed);
        if (s->fetch || block_pool_wants(&s->pool))
            tend(c, s, p->for_q);
        if (out->count)
            return 0;
        if (s->pool.now.left)
            continue;
        if (s->fetched.count != failures)
            return firn__diag(d, s->fetched.error, 0, "%s", s->fetched.why);
        if (mono_ms() >= p->end_ms)
            return firn__diag(d, FIRN_EAGAIN, 0, "no block of IDs arrived before the deadline");
        await_trip(c, s->fetch, p->end_ms);
    }
}

int prefetch_take(struct core *c, struct shelf *s, const struct prefetch *p, struct run *out,
                  uint64_t *out_stale_ms, struct firn_diag *d)
{
    s->users++;
    int r = take(c, s, p, out, out_stale_ms, d);
    s->users--;
    return r;
}
