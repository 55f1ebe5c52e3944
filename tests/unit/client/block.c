/* Runs of numbers, and the two blocks that they are handed out of. */
#include "client/block.h"
#include "t.h"

#include <stdlib.h>

T_TEST(runs_give_back_what_was_put_in)
{
    for (int round = 0; round < 200; round++) {
        struct runs r = { 0 };
        uint64_t in[300], out[300], n = 1 + t_random_below(300), next = t_random();
        for (uint64_t i = 0; i < n; i++) {
            next += t_random_below(4) ? (uint64_t)(1 + round % 3) : t_random();
            in[i] = next;
            T_EQ(runs_add(&r, next), 0);
        }
        T_EQ(r.numbers, n);
        runs_expand(&r, out);
        for (uint64_t i = 0; i < n; i++)
            T_EQ(out[i], in[i], "round %d, number %llu", round, (unsigned long long)i);
        runs_free(&r);
    }
}

T_TEST(a_block_is_few_runs)
{
    struct runs r = { 0 };
    for (uint64_t i = 0; i < 100000; i++)
        T_EQ(runs_add(&r, (i / 4096) << 22 | i % 4096), 0);
    T_OK(r.n <= 2 * 25, "%zu", r.n);
    runs_free(&r);
}

static void add(struct block_pool *p, uint64_t first, uint64_t n, uint64_t stale, uint64_t now)
{
    struct runs r = { 0 };
    T_EQ(runs_add_run(&r, (struct run){ first, 1, n }), 0);
    block_pool_add(p, &r, stale, now);
    T_EQ(r.numbers, 0);
}

T_TEST(two_blocks_one_behind_the_other)
{
    struct block_pool p;
    struct run run;
    uint64_t stale;
    block_pool_init(&p, 1000, 0);
    T_OK(block_pool_wants(&p));
    T_EQ(block_pool_take(&p, 10, 1, &run, &stale), 0);
    T_EQ(run.count, 0);
    add(&p, 100, 10, NEVER_MS, 1);
    T_OK(!block_pool_wants(&p), "full");
    T_EQ(block_pool_take(&p, 6, 1, &run, &stale), 0);
    T_EQ(run.first, 100);
    T_EQ(run.count, 6);
    T_OK(block_pool_wants(&p), "half empty");
    add(&p, 200, 10, NEVER_MS, 2);
    T_OK(!block_pool_wants(&p));
    block_pool_take(&p, 100, 1, &run, &stale);
    T_EQ(run.first, 106);
    T_EQ(run.count, 4);
    block_pool_take(&p, 100, 1, &run, &stale);
    T_EQ(run.first, 200);
    T_EQ(run.count, 10);
    T_OK(block_pool_wants(&p));
    block_pool_done(&p);
}

/* No number comes twice, none is too old, none but stale ones is lost: whatever the order of
 * events. */
T_TEST(every_number_once_and_fresh)
{
    enum { N = 200000 };
    static unsigned char seen[N];
    struct block_pool p;
    uint64_t now = 1000, next = 0, stale_count = 0, taken = 0;
    memset(seen, 0, sizeof seen);
    block_pool_init(&p, 5000, 100);
    while (next + 5000 < N) {
        now += t_random_below(20);
        if (block_pool_wants(&p) && t_random_below(3) == 0) {
            uint64_t n = 1 + t_random_below(p.size);
            add(&p, next, n, now + t_random_below(100), now);
            next += n;
        }
        struct run run;
        uint64_t stale_at = 0;
        stale_count += block_pool_take(&p, 1 + t_random_below(64), now, &run, &stale_at);
        if (run.count)
            T_OK(now < stale_at, "fresh");
        for (uint64_t i = 0; i < run.count; i++) {
            T_OK(!seen[run.first + i], "%llu twice", (unsigned long long)(run.first + i));
            seen[run.first + i] = 1;
        }
        taken += run.count;
    }
    T_EQ(taken + stale_count + p.now.left + p.next.left, next);
    T_OK(taken > 0 && stale_count > 0, "both happened");
    block_pool_done(&p);
}

T_TEST(size_follows_demand)
{
    T_EQ(block_size_next(64, 64, 1, 1000, 100000), 512);    /* at most eight times as many */
    T_EQ(block_size_next(64, 64, 1000, 1000, 100000), 64);  /* lasts as long as it should */
    T_EQ(block_size_next(64, 1, 100000, 1000, 100000), 32); /* falls by half */
    T_EQ(block_size_next(1, 0, 100000, 1000, 100000), 1);   /* never 0 */
    T_EQ(block_size_next(90000, 90000, 1, 1000, 100000), 100000);
    T_EQ(block_size_next(64, UINT64_MAX, 0, 1000, 100000), 512);
    uint64_t size = BLOCK_FIRST; /* a steady rate of 50,000 per second is found */
    for (int i = 0; i < 20; i++)
        size = block_size_next(size, size, size * 1000 / 50000, 1000, 100000);
    T_OK(size > 40000 && size < 60000, "%llu", (unsigned long long)size);
}
