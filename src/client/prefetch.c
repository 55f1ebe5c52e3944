/*
 * prefetch mode: blocks of numbers fetched ahead by the threads that use them.
 * A thread that takes a slice of a block also looks, without waiting, whether the next block
 * arrived or must be requested. A thread waits only when no number is left.
 */
#include "client/internal.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COARSE_LAG_MS = 11 }; /* the hot path's clock is behind by a step of 10 ms at most */

static void failed(struct core *c, int error, const char *text)
{
    c->fetched.count++;
    c->fetched.error = error;
    snprintf(c->fetched.why, sizeof c->fetched.why, "%s", text);
}

static void begin(struct core *c)
{
    struct request q = { .kind = REQUEST_NUMBERS, .n = c->pool.size };
    if (c->opts->seq[0] && atomic_load(&c->sequence) == SEQUENCE_UNKNOWN)
        sequence_request(c, &q);
    c->fetch = malloc(sizeof *c->fetch);
    if (!c->fetch) {
        failed(c, FIRN_ENOMEM, "no memory for a block");
        return;
    }
    trip_start(c->fetch, c, &q);
}

/* The trip is over: adds the block, or notes the failure. */
static void take_in(struct core *c, struct trip *t)
{
    const struct client_opts *o = c->opts;
    if (t->error == FIRN_EINVAL && t->request.kind == REQUEST_NUMBERS && t->request.n > 1) {
        c->pool.size = c->pool.size_max = t->request.n / 2; /* the server limits it to fewer */
        return;
    }
    if (t->error) {
        failed(c, t->error, t->why);
        if (c->pool.size > 1)
            c->pool.size /= 2; /* it may have taken longer than the time-out */
        return;
    }
    if (t->request.kind == REQUEST_GET) {
        enum sequence s = sequence_read(t->body, t->body_len);
        if (s == SEQUENCE_GAPLESS)
            failed(c, FIRN_EINVAL,
                   "the sequence is gapless: numbers fetched ahead could be holes; use mode=remote "
                   "or a range sequence");
        else
            atomic_store(&c->sequence, s);
        return;
    }
    atomic_fetch_add_explicit(&c->stats.blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->stats.block_ids, t->answer.numbers.numbers, memory_order_relaxed);
    if (t->request.n < c->pool.size) /* fewer had to be asked for */
        c->pool.size = t->request.n;
    /* No number is older than the request that brought it. */
    uint64_t stale = o->fresh_ms ? t->began_us / 1000 + o->fresh_ms - COARSE_LAG_MS : NEVER_MS;
    block_pool_add(&c->pool, &t->answer.numbers, stale, mono_ms());
}

void prefetch_tend(struct core *c)
{
    for (int rounds = 0; rounds < 4; rounds++) {
        uint64_t failures = c->fetched.count;
        if (!c->fetch && block_pool_wants(&c->pool))
            begin(c);
        if (!c->fetch || c->fetch->polled)
            return;
        if (!trip_step(c->fetch)) {
            async_watch(c, c->fetch);
            return;
        }
        take_in(c, c->fetch);
        trip_done(c->fetch);
        free(c->fetch);
        c->fetch = NULL;
        pthread_cond_broadcast(&c->news);
        if (c->fetched.count != failures)
            return; /* the next call that needs a block tries again */
    }
}

int prefetch_take(struct core *c, uint64_t most, uint64_t end_ms, struct run *out,
                  uint64_t *out_stale_ms, struct firn_diag *d)
{
    uint64_t failures = c->fetched.count;
    for (;;) {
        uint64_t stale = block_pool_take(&c->pool, most, mono_ms(), out, out_stale_ms);
        if (stale)
            atomic_fetch_add_explicit(&c->stats.stale_ids, stale, memory_order_relaxed);
        if (c->fetch || block_pool_wants(&c->pool))
            prefetch_tend(c);
        if (out->count)
            return 0;
        if (c->pool.now.left)
            continue;
        if (c->fetched.count != failures)
            return firn__diag(d, c->fetched.error, 0, "%s", c->fetched.why);
        if (mono_ms() >= end_ms)
            return firn__diag(d, FIRN_EAGAIN, 0, "no block of IDs arrived before the deadline");
        await_trip(c, c->fetch, end_ms);
    }
}
