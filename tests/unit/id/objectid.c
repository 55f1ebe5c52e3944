#include "t.h"

#include "firn/objectid.h"

#include <stdlib.h>

/* A copy that ends where its memory ends: AddressSanitizer sees a read past it. */
static int parse(const char *s, size_t len, struct firn_objectid *out)
{
    char *p = malloc(len ? len : 1);
    T_OK(p != NULL);
    memcpy(p, s, len);
    int r = firn_objectid_parse(p, len, out);
    free(p);
    return r;
}

static struct firn_rng seeded(void)
{
    uint8_t seed[FIRN_RNG_SEED_BYTES] = { 1, 2, 3 };
    struct firn_rng r;
    firn_rng_init(&r, seed);
    return r;
}

T_TEST(objectid_refuses)
{
    static const char *const bad[] = { "", "507f1f77bcf86cd79943901", "507f1f77bcf86cd79943901g",
                                       "507f1f77-cf86cd799439011", "0x7f1f77bcf86cd799439011" };
    struct firn_objectid id;
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(parse(bad[i], strlen(bad[i]), &id), FIRN_EFORMAT, "'%s'", bad[i]);
}

T_TEST(objectid_next_fills_fields)
{
    struct firn_rng r = seeded();
    struct firn_objectid_gen g, other;
    struct firn_objectid a, b;
    firn_objectid_gen_init(&g, &r);
    firn_objectid_gen_init(&other, &r);
    T_EQ(firn_objectid_next(&g, 1350508407123, &a), 0);
    T_EQ(firn_objectid_next(&g, 1350508407124, &b), 0);
    T_EQ(firn_objectid_unix_ms(&a), 1350508407000);
    T_OK(memcmp(firn_objectid_random(&a), firn_objectid_random(&b), 5) == 0);
    T_EQ(firn_objectid_counter(&b), (firn_objectid_counter(&a) + 1) & FIRN_OBJECTID_COUNTER_MAX);
    T_EQ(firn_objectid_next(&other, 1350508407124, &b), 0);
    T_OK(memcmp(firn_objectid_random(&a), firn_objectid_random(&b), 5) != 0);
    T_OK(firn_objectid_random(&a) == a.b + 4);
}

T_TEST(objectid_counter_wraps_and_runs_out)
{
    struct firn_rng r = seeded();
    struct firn_objectid_gen g;
    struct firn_objectid first, id;
    firn_objectid_gen_init(&g, &r);
    T_EQ(firn_objectid_next(&g, 1000, &first), 0);
    uint32_t expect = firn_objectid_counter(&first);
    for (uint32_t i = 0; i < FIRN_OBJECTID_COUNTER_MAX; i++) {
        expect = (expect + 1) & FIRN_OBJECTID_COUNTER_MAX;
        if (firn_objectid_next(&g, 1000, &id) != 0 || firn_objectid_counter(&id) != expect)
            T_OK(0, "counter %u is %u", expect, firn_objectid_counter(&id));
    }
    T_EQ(firn_objectid_next(&g, 1999, &id), FIRN_EAGAIN);
    T_EQ(firn_objectid_next(&g, 5, &id), FIRN_EAGAIN); /* an earlier clock changes nothing */
    T_EQ(firn_objectid_next(&g, 2000, &id), 0);
    T_EQ(firn_objectid_counter(&id), firn_objectid_counter(&first));
    T_OK(firn_objectid_cmp(&first, &id) < 0);
}

T_TEST(objectid_reads_both_cases)
{
    struct firn_objectid a, b;
    char text[FIRN_OBJECTID_TEXT_BUF];
    T_EQ(parse("507F191E810C19729DE860EA", 24, &a), 0);
    T_EQ(parse("507f191e810C19729de860ea", 24, &b), 0);
    T_EQ(firn_objectid_cmp(&a, &b), 0);
    firn_objectid_format(&a, text);
    T_STR(text, "507f191e810c19729de860ea");
}

T_TEST(objectid_truncated)
{
    static const char whole[] = "507f1f77bcf86cd799439011507f1f77bcf86cd799439011";
    struct firn_objectid id;
    for (size_t len = 0; len < sizeof whole; len++)
        T_EQ(parse(whole, len, &id), len == FIRN_OBJECTID_TEXT_LEN ? 0 : FIRN_EFORMAT, "length %zu",
             len);
}

/* Every byte at every place. */
T_TEST(objectid_every_byte)
{
    for (size_t at = 0; at < FIRN_OBJECTID_TEXT_LEN; at++)
        for (int c = 1; c < 256; c++) {
            char text[] = "000000000000000000000000";
            struct firn_objectid id;
            text[at] = (char)c;
            int r = parse(text, FIRN_OBJECTID_TEXT_LEN, &id);
            if (!strchr("0123456789abcdefABCDEF", c))
                T_EQ(r, FIRN_EFORMAT, "byte %d at %zu", c, at);
            else
                T_EQ(r, 0, "byte %d at %zu", c, at);
        }
    struct firn_objectid id;
    T_EQ(firn_objectid_parse("000000000000000000000000\0", FIRN_OBJECTID_TEXT_LEN + 1, &id),
         FIRN_EFORMAT);
    char nul[] = "000000000000000000000000";
    nul[3] = '\0';
    T_EQ(parse(nul, FIRN_OBJECTID_TEXT_LEN, &id), FIRN_EFORMAT);
}

T_TEST(objectid_mistakes)
{
    struct firn_objectid id;
    T_EQ(firn_objectid_parse(NULL, FIRN_OBJECTID_TEXT_LEN, &id), FIRN_EINVAL);
    T_EQ(firn_objectid_parse("507f1f77bcf86cd799439011", FIRN_OBJECTID_TEXT_LEN, NULL),
         FIRN_EINVAL);
    struct firn_rng r = seeded();
    struct firn_objectid_gen g;
    firn_objectid_gen_init(&g, &r);
    T_EQ(firn_objectid_next(NULL, 0, &id), FIRN_EINVAL);
    T_EQ(firn_objectid_next(&g, 0, NULL), FIRN_EINVAL);
    T_EQ(firn_objectid_next(&g, ((uint64_t)UINT32_MAX + 1) * 1000, &id), FIRN_ERANGE);
    T_EQ(firn_objectid_next(&g, UINT64_MAX, &id), FIRN_ERANGE);
}

T_TEST(objectid_error_leaves_output)
{
    struct firn_objectid id, before;
    memset(&id, 0x5a, sizeof id);
    before = id;
    T_EQ(parse("507f1f77bcf86cd79943901g", FIRN_OBJECTID_TEXT_LEN, &id), FIRN_EFORMAT);
    T_EQ(firn_objectid_cmp(&id, &before), 0);
}
