#include "t.h"

#include "firn/tsid.h"

#include <stdlib.h>

#define NOW UINT64_C(1700000000000)

/* Parse a copy that ends where its memory ends: AddressSanitizer sees a read past it. */
static int parse_exact(const char *text, size_t len, struct firn_tsid *out)
{
    char *p = malloc(len);
    memcpy(p, text, len);
    int r = firn_tsid_parse(p, len, out);
    free(p);
    return r;
}

T_TEST(tsid_parse)
{
    static const struct {
        const char *text;
        int r;
    } cases[] = {
        { "0DXBQ9H279R05", 0 },
        { "0dxbq9h279r05", 0 },
        { "0dXbQ9h279R05", 0 },
        { "FZZZZZZZZZZZZ", 0 },
        { "fzzzzzzzzzzzz", 0 },
        { "G000000000000", FIRN_ERANGE },
        { "ZZZZZZZZZZZZZ", FIRN_ERANGE },
        { "", FIRN_EFORMAT },
        { "0DXBQ9H279R0", FIRN_EFORMAT },
        { "0DXBQ9H279R050", FIRN_EFORMAT },
        { "0DXBQ9H279R0U", FIRN_EFORMAT },
        { "0DXBQ-H279R05", FIRN_EFORMAT },
        { " DXBQ9H279R05", FIRN_EFORMAT },
        { "0DXBQ9H279R0\n", FIRN_EFORMAT },
        { "GDXBQ9H279R0U", FIRN_EFORMAT },
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        struct firn_tsid id = firn_tsid_from_u64(77);
        T_EQ(parse_exact(cases[i].text, strlen(cases[i].text), &id), cases[i].r, "'%s'",
             cases[i].text);
        T_OK((firn_tsid_u64(&id) == 77) == (cases[i].r != 0), "'%s'", cases[i].text);
    }
    struct firn_tsid id;
    for (size_t len = 0; len < FIRN_TSID_TEXT_LEN; len++)
        T_EQ(parse_exact("0DXBQ9H279R05", len, &id), FIRN_EFORMAT);
    T_EQ(firn_tsid_parse(NULL, 13, &id), FIRN_EINVAL);
    T_EQ(firn_tsid_parse("0DXBQ9H279R05", 13, NULL), FIRN_EINVAL);
}

T_TEST(tsid_parse_every_byte)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyzILOilo";
    for (size_t at = 0; at < FIRN_TSID_TEXT_LEN; at++)
        for (int c = 0; c < 256; c++) {
            char text[] = "0DXBQ9H279R05";
            struct firn_tsid id;
            text[at] = (char)c;
            const char *digit = c ? strchr(digits, c) : NULL;
            int expect = digit ? 0 : FIRN_EFORMAT;
            if (digit && at == 0 && !strchr("0123456789ABCDEFabcdefILOilo", c))
                expect = FIRN_ERANGE;
            T_EQ(parse_exact(text, FIRN_TSID_TEXT_LEN, &id), expect, "byte %d at %zu", c, at);
        }
}

T_TEST(tsid_random)
{
    struct firn_rng *rng = firn_rng_thread();
    struct firn_tsid id;
    const uint64_t last = FIRN_TSID_EPOCH_MS + (UINT64_C(1) << 42) - 1;
    T_EQ(firn_tsid_random(FIRN_TSID_EPOCH_MS, NOW, rng, &id), 0);
    T_EQ(firn_tsid_unix_ms(&id, FIRN_TSID_EPOCH_MS), NOW);
    T_EQ(firn_tsid_random(0, NOW, rng, &id), 0);
    T_EQ(firn_tsid_unix_ms(&id, 0), NOW);
    T_EQ(firn_tsid_random(FIRN_TSID_EPOCH_MS, FIRN_TSID_EPOCH_MS, rng, &id), 0);
    T_EQ(firn_tsid_random(FIRN_TSID_EPOCH_MS, last, rng, &id), 0);
    T_EQ(firn_tsid_unix_ms(&id, FIRN_TSID_EPOCH_MS), last);
    T_EQ(firn_tsid_random(FIRN_TSID_EPOCH_MS, last + 1, rng, &id), FIRN_ERANGE);
    T_EQ(firn_tsid_random(FIRN_TSID_EPOCH_MS, FIRN_TSID_EPOCH_MS - 1, rng, &id), FIRN_ERANGE);
    T_EQ(firn_tsid_random(0, NOW, NULL, &id), FIRN_EINVAL);
    T_EQ(firn_tsid_random(0, NOW, rng, NULL), FIRN_EINVAL);
}

T_TEST(tsid_gen_init)
{
    struct firn_tsid_gen g;
    T_EQ(firn_tsid_gen_init(&g, FIRN_TSID_EPOCH_MS, 0, 0), 0);
    T_EQ(firn_tsid_gen_init(&g, FIRN_TSID_EPOCH_MS, 0, 1), FIRN_EINVAL);
    T_EQ(firn_tsid_gen_init(&g, FIRN_TSID_EPOCH_MS, 10, 1023), 0);
    T_EQ(firn_tsid_gen_init(&g, FIRN_TSID_EPOCH_MS, 10, 1024), FIRN_EINVAL);
    T_EQ(firn_tsid_gen_init(&g, FIRN_TSID_EPOCH_MS, 20, (1u << 20) - 1), 0);
    T_EQ(firn_tsid_gen_init(&g, FIRN_TSID_EPOCH_MS, 21, 0), FIRN_EINVAL);
    T_EQ(firn_tsid_gen_init(&g, FIRN_TSID_EPOCH_MS, 64, 0), FIRN_EINVAL);
    T_EQ(firn_tsid_gen_init(NULL, FIRN_TSID_EPOCH_MS, 0, 0), FIRN_EINVAL);
}

static uint32_t next(struct firn_tsid_gen *g, uint64_t clock_ms, uint64_t expect_ms)
{
    struct firn_tsid id;
    T_EQ(firn_tsid_next(g, clock_ms, firn_rng_thread(), &id), 0);
    T_EQ(firn_tsid_unix_ms(&id, FIRN_TSID_EPOCH_MS), expect_ms, "at clock %" PRIu64, clock_ms);
    return firn_tsid_tail(&id);
}

T_TEST(tsid_counts_within_a_millisecond)
{
    struct firn_tsid_gen g;
    T_EQ(firn_tsid_gen_init(&g, FIRN_TSID_EPOCH_MS, 10, 753), 0);
    uint32_t a = next(&g, NOW, NOW);
    T_EQ(a >> 12, 753);
    T_OK((a & 0xfff) < 0x800, "the top counter bit starts clear");
    T_EQ(next(&g, NOW, NOW), a + 1);
    T_EQ(next(&g, NOW - 500, NOW), a + 2); /* a step back: time stays */
    T_EQ(next(&g, NOW + 1, NOW + 1) >> 12, 753);

    g.counter_ = 0xffe;
    T_EQ(next(&g, NOW + 1, NOW + 1), 753u << 12 | 0xfff);
    a = next(&g, NOW + 1, NOW + 2); /* used up: one ahead of the clock */
    T_EQ(a >> 12, 753);
    T_OK((a & 0xfff) < 0x800);
    T_EQ(next(&g, NOW + 2, NOW + 2), a + 1);
}

T_TEST(tsid_next_limits)
{
    struct firn_rng *rng = firn_rng_thread();
    struct firn_tsid_gen g;
    struct firn_tsid id = firn_tsid_from_u64(77);
    const uint64_t last = FIRN_TSID_EPOCH_MS + (UINT64_C(1) << 42) - 1;
    T_EQ(firn_tsid_gen_init(&g, FIRN_TSID_EPOCH_MS, 20, 5), 0);
    T_EQ(firn_tsid_next(&g, FIRN_TSID_EPOCH_MS - 1, rng, &id), FIRN_ERANGE);
    T_EQ(firn_tsid_next(&g, last + 1, rng, &id), FIRN_ERANGE);
    T_EQ(firn_tsid_next(NULL, NOW, rng, &id), FIRN_EINVAL);
    T_EQ(firn_tsid_next(&g, NOW, NULL, &id), FIRN_EINVAL);
    T_EQ(firn_tsid_next(&g, NOW, rng, NULL), FIRN_EINVAL);
    T_EQ(firn_tsid_u64(&id), 77);
    next(&g, FIRN_TSID_EPOCH_MS, FIRN_TSID_EPOCH_MS);
    next(&g, last, last);
    g.counter_ = g.counter_max_;
    T_EQ(firn_tsid_next(&g, last, rng, &id), FIRN_ERANGE);
    T_EQ(firn_tsid_u64(&id), 77);
}

T_TEST(tsid_reads_what_people_misread)
{
    struct firn_tsid a, b;
    static const char *const same[][2] = { { "0DXBQ9H279R01", "0DXBQ9H279R0I" },
                                           { "0DXBQ9H279R01", "0dxbq9h279r0l" },
                                           { "0DXBQ9H279R00", "ODXBQ9H279ROo" },
                                           { "1DXBQ9H279R00", "LDXBQ9H279R00" },
                                           { "1DXBQ9H279R00", "iDXBQ9H279R00" } };
    for (size_t i = 0; i < T_LEN(same); i++) {
        T_EQ(firn_tsid_parse_str(same[i][0], &a), 0);
        T_EQ(firn_tsid_parse_str(same[i][1], &b), 0);
        T_EQ(firn_tsid_cmp(&a, &b), 0, "%s", same[i][1]);
    }
}
