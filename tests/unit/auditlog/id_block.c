/* Blocks of IDs: rising order over changes of the generator, age, size. */
#include "t.h"

#include "auditlog/id_block.h"

#include <stdlib.h>

static uint64_t *run(uint64_t first, size_t n)
{
    uint64_t *ids = calloc(n, sizeof *ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = first + i;
    return ids;
}

T_TEST(id_block_gives_in_order)
{
    struct id_block b = { 0 };
    uint64_t out[8], dropped = 0;
    T_EQ(id_block_take(&b, out, 8, 0, &dropped), 0);
    id_block_fill(&b, run(100, 5), 5, 1000);
    T_EQ(id_block_take(&b, out, 3, 0, &dropped), 3);
    T_EQ(out[2], 102);
    T_EQ(id_block_take(&b, out, 8, 999, &dropped), 2);
    T_EQ(out[1], 104);
    T_EQ(dropped, 0);
    id_block_done(&b);
}

/* Another generator's clock is behind: what is not above the last one is not used. */
T_TEST(id_block_never_goes_back)
{
    struct id_block b = { 0 };
    uint64_t out[8], dropped = 0;
    id_block_fill(&b, run(100, 5), 5, 1000);
    T_EQ(id_block_take(&b, out, 5, 0, &dropped), 5);
    id_block_fill(&b, run(102, 5), 5, 1000); /* 102, 103, 104 | 105, 106 */
    T_EQ(id_block_take(&b, out, 8, 0, &dropped), 2);
    T_EQ(out[0], 105);
    T_EQ(dropped, 3);
    id_block_done(&b);
}

T_TEST(id_block_drops_what_is_old)
{
    struct id_block b = { 0 };
    uint64_t out[8], dropped = 0;
    id_block_fill(&b, run(100, 5), 5, 1000);
    T_EQ(id_block_take(&b, out, 1, 0, &dropped), 1);
    T_EQ(id_block_take(&b, out, 1, 1000, &dropped), 0);
    T_EQ(dropped, 4);
    id_block_done(&b);
}

T_TEST(id_block_size_follows_demand)
{
    struct id_block b = { 0 };
    uint64_t out[5000], dropped = 0;
    size_t n = id_block_want(&b, 1, 4096);
    for (int i = 0; i < 20; i++) { /* each is used up in time */
        id_block_fill(&b, run(1 + (uint64_t)i * 10000, n), n, 1000);
        T_EQ(id_block_take(&b, out, n, 0, &dropped), n);
        n = id_block_want(&b, 1, 4096);
    }
    T_EQ(n, 4096);
    T_EQ(id_block_want(&b, 5000, 4096), 5000); /* as many as are needed, whatever the bound */
    for (int i = 0; i < 20; i++) {             /* each becomes old */
        id_block_fill(&b, run(1000000 + (uint64_t)i * 10000, n), n, 1000);
        T_EQ(id_block_take(&b, out, 1, 0, &dropped), 1);
        T_EQ(id_block_take(&b, out, 1, 1000, &dropped), 0);
        n = id_block_want(&b, 1, 4096);
    }
    T_OK(n < 64, "%zu", n);
    id_block_done(&b);
}
