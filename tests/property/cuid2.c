#include "t.h"

#include "firn/cuid2.h"

#include <stdlib.h>

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* In one frozen millisecond nothing repeats, and letters and digits come equally often: within 6
 * standard deviations, squared and multiplied by `of` as in (n - total / of)^2 < 36 * variance. */
static void check_even(uint64_t n, uint64_t total, uint64_t of, char c)
{
    int64_t off = (int64_t)(n * of) - (int64_t)total;
    T_OK((uint64_t)(off * off) < 36 * total * (of - 1), "'%c' came %" PRIu64 " times of %" PRIu64,
         c, n, total);
}

T_TEST(cuid2_never_repeats)
{
    typedef char text[FIRN_CUID2_LEN + 1];
    uint64_t n = t_scale(200000), first[128] = { 0 }, rest[128] = { 0 };
    text *ids = malloc(n * sizeof *ids);
    struct firn_rng rng;
    uint8_t seed[FIRN_RNG_SEED_BYTES];
    struct firn_cuid2_gen g;
    T_OK(ids);
    t_random_bytes(seed, sizeof seed);
    firn_rng_init(&rng, seed);
    firn_cuid2_init(&g, "host", 4, &rng);
    for (uint64_t i = 0; i < n; i++) {
        T_EQ(firn_cuid2(&g, FIRN_CUID2_LEN, UINT64_C(1700000000000), &rng, ids[i]), 0);
        T_EQ(firn_cuid2_check(ids[i], FIRN_CUID2_LEN), 0, "'%s'", ids[i]);
        first[(int)ids[i][0]]++;
        for (int c = 2; c < FIRN_CUID2_LEN; c++) /* the first digit of a hash is a trifle uneven */
            rest[(int)ids[i][c]]++;
    }
    for (const char *c = "abcdefghijklmnopqrstuvwxyz"; *c; c++)
        check_even(first[(int)*c], n, 26, *c);
    for (const char *c = "0123456789abcdefghijklmnopqrstuvwxyz"; *c; c++)
        check_even(rest[(int)*c], n * (FIRN_CUID2_LEN - 2), 36, *c);
    qsort(ids, n, sizeof *ids, by_text);
    for (uint64_t i = 1; i < n; i++)
        T_OK(strcmp(ids[i - 1], ids[i]) < 0, "'%s' came twice", ids[i]);
    free(ids);
}
