/* Shards: dealt evenly, and the shard of a user never changes. */
#include "t.h"

#include "auditlog/shard_map.h"

#include <stdio.h>

static uint32_t shard_of(const char *tenant, const char *user)
{
    return shard_of_user((struct slice){ tenant, strlen(tenant) },
                         (struct slice){ user, strlen(user) });
}

T_TEST(shard_map_deals_in_turn)
{
    struct shard_map m;
    T_EQ(shard_map_deal(0, &m), FIRN_ERANGE);
    T_EQ(shard_map_deal(33, &m), FIRN_ERANGE);
    for (size_t n = 1; n <= SHARDS; n++) {
        unsigned count[SHARDS] = { 0 };
        T_EQ(shard_map_deal(n, &m), 0);
        T_EQ(m.version, 1);
        for (uint32_t s = 0; s < SHARDS; s++) {
            T_EQ(shard_map_database(&m, s), s % n);
            count[shard_map_database(&m, s)]++;
        }
        for (size_t i = 0; i < n; i++)
            T_OK(count[i] == SHARDS / n || count[i] == SHARDS / n + 1);
    }
}

/* Rows are found by these values: a test that fails here would lose them. */
T_TEST(shard_of_user_is_frozen)
{
    static const struct {
        const char *tenant, *user;
        uint32_t shard;
    } rows[] = {
        { "default", "1", 12 },
        { "default", "user1", 24 },
        { "default", "user2", 24 },
        { "shop", "user1", 22 },
        { "shop", "", 27 },
        { "a", "b", 21 },
        { "default", "\xe4\xb8\x96", 18 },
    };
    for (size_t i = 0; i < T_LEN(rows); i++)
        T_EQ(shard_of(rows[i].tenant, rows[i].user), rows[i].shard, "%s %s", rows[i].tenant,
             rows[i].user);
}

T_TEST(shard_of_user_tells_tenant_and_user_apart)
{
    unsigned same = 0;
    for (int i = 0; i < 1000; i++) {
        char a[32], b[32];
        snprintf(a, sizeof a, "x%d", i);
        snprintf(b, sizeof b, "%d", i);
        same += shard_of("t", a) == shard_of("tx", b);
    }
    T_OK(same < 100, "%u of 1000", same);
}

T_TEST(shard_of_user_spreads)
{
    unsigned count[SHARDS] = { 0 };
    for (int i = 0; i < 32000; i++) {
        char user[32];
        snprintf(user, sizeof user, "user%d", i);
        count[shard_of("default", user)]++;
    }
    for (size_t s = 0; s < SHARDS; s++)
        T_OK(count[s] > 800 && count[s] < 1200, "shard %zu: %u", s, count[s]);
}
