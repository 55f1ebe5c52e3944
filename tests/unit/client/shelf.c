/* Shelves of shards: found again, and which one gives way when there are too many. */
#include "client/shelf.h"
#include "client/url.h"
#include "t.h"

static struct client_opts opts;
static struct shelves all;

static void begin(void)
{
    struct firn_diag d = { 0, "" };
    T_EQ(client_url_parse("firn://a/?mode=prefetch", &opts, &d), 0, "%s", d.text);
    all = (struct shelves){ .n = 0 };
}

static struct shelf *get(uint32_t shard, uint64_t now_ms, uint64_t *lost)
{
    struct shelf *s = NULL;
    T_EQ(shelf_of(&all, &opts, shard, now_ms, &s, lost), 0, "shard %u", shard);
    T_EQ(s->shard, shard);
    return s;
}

static size_t count(void)
{
    size_t n = 0;
    for (struct shelf *s = shelves_next(&all, NULL); s; s = shelves_next(&all, s))
        n++;
    return n;
}

T_TEST(a_shard_keeps_its_shelf)
{
    uint64_t lost;
    begin();
    T_EQ(count(), 0);
    struct shelf *seven = get(7, 1, &lost), *other = get(7 + SHELF_BUCKETS, 1, &lost);
    T_OK(seven != other);
    T_OK(get(7, 2, &lost) == seven && get(7 + SHELF_BUCKETS, 2, &lost) == other);
    get(UINT32_MAX, 3, &lost);
    T_EQ(count(), 3);
    T_EQ(seven->used_ms, 2);
    shelves_done(&all);
    T_EQ(count(), 0);
    T_EQ(all.n, 0);
}

T_TEST(the_one_unused_for_longest_gives_way)
{
    uint64_t lost;
    begin();
    for (uint32_t i = 1; i <= SHELVES_MAX; i++)
        get(i, 1000 + i, &lost);
    struct runs some = { 0 };
    T_EQ(runs_add_run(&some, (struct run){ 100, 1, 40 }), 0);
    block_pool_add(&get(2, 1002, &lost)->pool, &some, NEVER_MS, 1002);
    get(1, 5000, &lost); /* now shard 2 is the oldest */
    T_EQ(lost, 0);
    get(SHELVES_MAX + 1, 5001, &lost);
    T_EQ(lost, 40);
    T_EQ(count(), SHELVES_MAX);
    T_EQ(get(2, 5002, &lost)->pool.now.left, 0, "it is a new one, in the place of shard 3");
    T_EQ(lost, 0);
    shelves_done(&all);
}

T_TEST(calls_that_wait_keep_theirs)
{
    struct shelf *s = NULL;
    uint64_t lost;
    begin();
    for (uint32_t i = 1; i <= SHELVES_MAX; i++)
        get(i, i, &lost)->users = 1;
    T_EQ(shelf_of(&all, &opts, SHELVES_MAX + 1, 9999, &s, &lost), FIRN_EAGAIN);
    get(500, 9999, &lost)->users = 0;
    get(SHELVES_MAX + 1, 9999, &lost);
    T_EQ(count(), SHELVES_MAX);
    for (struct shelf *k = shelves_next(&all, NULL); k; k = shelves_next(&all, k))
        T_OK(k->shard != 500);
    shelves_done(&all);
}
