#include "t.h"

#include "firn/ulid.h"
#include "id/ulid_text.h"

#include <stdlib.h>

/* A copy that ends where its memory ends: AddressSanitizer sees a read past it. */
static int parse(const char *s, size_t len, struct firn_ulid *out)
{
    char *p = malloc(len ? len : 1);
    T_OK(p != NULL);
    memcpy(p, s, len);
    int r = firn_ulid_parse(p, len, out);
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

/* What the reference implementations refuse too: they do not correct look-alikes. */
T_TEST(ulid_refuses)
{
    static const struct {
        const char *text;
        int error;
    } bad[] = {
        { "", FIRN_EFORMAT },
        { "01ARZ3NDEKTSV4RRFFQ69G5FAI", FIRN_EFORMAT },
        { "01ARZ3NDEKTSV4RRFFQ69G5FAl", FIRN_EFORMAT },
        { "O1ARZ3NDEKTSV4RRFFQ69G5FAV", FIRN_EFORMAT },
        { "01ARZ3NDEKTSV4RRuFQ69G5FAV", FIRN_EFORMAT },
        { "01ARZ3NDEK-TSV4RRFFQ69G5FA", FIRN_EFORMAT },
        { "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", FIRN_ERANGE },
        { "80000000000000000000000000", FIRN_ERANGE },
        { "G0000000000000000000000000", FIRN_ERANGE },
        { "zzzzzzzzzzzzzzzzzzzzzzzzzz", FIRN_ERANGE },
        { "Zzzzzzzzzzzzzzzzzzzzzzzzz!", FIRN_EFORMAT },
    };
    struct firn_ulid id;
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(parse(bad[i].text, strlen(bad[i].text), &id), bad[i].error, "'%s'", bad[i].text);
}

T_TEST(ulid_make_fills_fields)
{
    struct firn_rng r = seeded(), same = r;
    struct firn_ulid id, again;
    uint8_t random[10];
    T_EQ(firn_ulid_make(FIRN_ULID_MS_MAX, &r, &id), 0);
    T_EQ(firn_ulid_unix_ms(&id), FIRN_ULID_MS_MAX);
    T_EQ(firn_ulid_make(1469922850259, &r, &id), 0);
    T_EQ(firn_ulid_unix_ms(&id), 1469922850259);
    memcpy(random, firn_ulid_random(&id), sizeof random);
    T_OK(memcmp(random, id.b + 6, sizeof random) == 0);
    T_EQ(firn_ulid_make(0, &same, &again), 0);
    T_EQ(firn_ulid_unix_ms(&again), 0);
    T_EQ(firn_ulid_make(1469922850259, &same, &again), 0);
    T_EQ(firn_ulid_cmp(&id, &again), 0); /* the random stream decides the rest */
    T_EQ(firn_ulid_make(1469922850259, &same, &again), 0);
    T_OK(firn_ulid_cmp(&id, &again) != 0);
}

static struct firn_ulid ulid(const char *text)
{
    struct firn_ulid id;
    T_EQ(parse(text, strlen(text), &id), 0, "'%s'", text);
    return id;
}

/* Put a generator right behind a given ULID. */
static struct firn_ulid_gen behind(const char *text)
{
    struct firn_ulid last = ulid(text);
    struct firn_ulid_gen g = FIRN_ULID_GEN_INIT;
    for (int i = 0; i < 8; i++) {
        g.hi_ = g.hi_ << 8 | last.b[i];
        g.lo_ = g.lo_ << 8 | last.b[8 + i];
    }
    g.fresh_ms_ = firn_ulid_unix_ms(&last) + 1;
    return g;
}

/* The steps of the specification's examples, a carry into the top 16 bits, and the end. */
T_TEST(ulid_next_counts_up)
{
    static const char *const step[][2] = {
        { "01BX5ZZKBKACTAV9WEVGEMMVRY", "01BX5ZZKBKACTAV9WEVGEMMVRZ" },
        { "01BX5ZZKBKACTAV9WEVGEMMVRZ", "01BX5ZZKBKACTAV9WEVGEMMVS0" },
        { "01BX5ZZKBKZZZZZZZZZZZZZZZX", "01BX5ZZKBKZZZZZZZZZZZZZZZY" },
        { "01BX5ZZKBKZZZZZZZZZZZZZZZY", "01BX5ZZKBKZZZZZZZZZZZZZZZZ" },
        { "01BX5ZZKBK000FZZZZZZZZZZZZ", "01BX5ZZKBK000G000000000000" },
    };
    struct firn_rng r = seeded();
    for (size_t i = 0; i < T_LEN(step); i++) {
        struct firn_ulid_gen g = behind(step[i][0]);
        struct firn_ulid id;
        char text[FIRN_ULID_TEXT_BUF];
        T_EQ(firn_ulid_next(&g, 1508808576371, &r, &id), 0);
        firn_ulid_format(&id, text);
        T_STR(text, step[i][1]);
    }
}

T_TEST(ulid_next_overflows)
{
    struct firn_rng r = seeded();
    struct firn_ulid_gen g = behind("01BX5ZZKBKZZZZZZZZZZZZZZZZ");
    struct firn_ulid id = { { 7 } };
    for (int i = 0; i < 3; i++) { /* again and again, also with an earlier clock */
        T_EQ(firn_ulid_next(&g, 1508808576371, &r, &id), FIRN_EOVERFLOW);
        T_EQ(firn_ulid_next(&g, 1508808576370, &r, &id), FIRN_EOVERFLOW);
    }
    T_EQ(id.b[0], 7);
    T_EQ(firn_ulid_next(&g, 1508808576372, &r, &id), 0); /* until the clock moves on */
    T_EQ(firn_ulid_unix_ms(&id), 1508808576372);
}

T_TEST(ulid_next_rides_out_a_clock_that_steps_back)
{
    static const uint64_t clock_ms[] = { 0, 0, 5, 3, 0, 5, 6, 6, 1, 1000, 999, 1000, 1001 };
    static const uint64_t expect_ms[] = { 0, 0, 5, 5, 5, 5, 6, 6, 6, 1000, 1000, 1000, 1001 };
    struct firn_rng r = seeded();
    struct firn_ulid_gen g = FIRN_ULID_GEN_INIT;
    struct firn_ulid last = { { 0 } }, id;
    for (size_t i = 0; i < T_LEN(clock_ms); i++) {
        T_EQ(firn_ulid_next(&g, clock_ms[i], &r, &id), 0);
        T_EQ(firn_ulid_unix_ms(&id), expect_ms[i], "call %zu", i);
        T_OK(i == 0 || firn_ulid_cmp(&id, &last) > 0, "call %zu", i);
        last = id;
    }
}

T_TEST(ulid_truncated)
{
    static const char whole[] = "01ARZ3NDEKTSV4RRFFQ69G5FAV01ARZ3NDEKTSV4RRFFQ69G5FAV";
    struct firn_ulid id;
    for (size_t len = 0; len < sizeof whole; len++)
        T_EQ(parse(whole, len, &id), len == FIRN_ULID_TEXT_LEN ? 0 : FIRN_EFORMAT, "length %zu",
             len);
}

/* Every byte at every place. */
T_TEST(ulid_every_byte)
{
    for (size_t at = 0; at < FIRN_ULID_TEXT_LEN; at++)
        for (int c = 1; c < 256; c++) {
            char text[] = "00000000000000000000000000";
            struct firn_ulid id;
            text[at] = (char)c;
            int r = parse(text, FIRN_ULID_TEXT_LEN, &id);
            if (!strchr("0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz", c))
                T_EQ(r, FIRN_EFORMAT, "byte %d at %zu", c, at);
            else
                T_EQ(r, at == 0 && c > '7' ? FIRN_ERANGE : 0, "byte %d at %zu", c, at);
        }
    struct firn_ulid id;
    T_EQ(firn_ulid_parse("00000000000000000000000000\0", FIRN_ULID_TEXT_LEN + 1, &id),
         FIRN_EFORMAT);
    char nul[] = "00000000000000000000000000";
    nul[3] = '\0';
    T_EQ(parse(nul, FIRN_ULID_TEXT_LEN, &id), FIRN_EFORMAT);
}

T_TEST(ulid_mistakes)
{
    struct firn_ulid id;
    T_EQ(firn_ulid_parse(NULL, FIRN_ULID_TEXT_LEN, &id), FIRN_EINVAL);
    T_EQ(firn_ulid_parse("01ARZ3NDEKTSV4RRFFQ69G5FAV", FIRN_ULID_TEXT_LEN, NULL), FIRN_EINVAL);
    struct firn_rng r = seeded();
    struct firn_ulid_gen g = FIRN_ULID_GEN_INIT;
    T_EQ(firn_ulid_make(0, NULL, &id), FIRN_EINVAL);
    T_EQ(firn_ulid_make(0, &r, NULL), FIRN_EINVAL);
    T_EQ(firn_ulid_next(NULL, 0, &r, &id), FIRN_EINVAL);
    T_EQ(firn_ulid_next(&g, 0, NULL, &id), FIRN_EINVAL);
    T_EQ(firn_ulid_next(&g, 0, &r, NULL), FIRN_EINVAL);
    T_EQ(firn_ulid_make(FIRN_ULID_MS_MAX + 1, &r, &id), FIRN_ERANGE);
    T_EQ(firn_ulid_next(&g, FIRN_ULID_MS_MAX + 1, &r, &id), FIRN_ERANGE);
    T_EQ(firn_ulid_next(&g, UINT64_MAX, &r, &id), FIRN_ERANGE);
}

T_TEST(ulid_error_leaves_output)
{
    struct firn_ulid id, before;
    memset(&id, 0x5a, sizeof id);
    before = id;
    T_EQ(parse("01ARZ3NDEKTSV4RRFFQ69G5FAU", FIRN_ULID_TEXT_LEN, &id), FIRN_EFORMAT);
    T_EQ(firn_ulid_cmp(&id, &before), 0);
}

T_TEST(ulid_fill_and_nil)
{
    static struct firn_ulid ids[3000];
    struct firn_ulid_gen g = FIRN_ULID_GEN_INIT;
    size_t n = 9;
    T_EQ(firn_ulid_fill(&g, 1800000000000, firn_rng_thread(), ids, T_LEN(ids), &n), 0);
    T_EQ(n, T_LEN(ids));
    for (size_t i = 1; i < n; i++)
        T_OK(firn_ulid_cmp(&ids[i - 1], &ids[i]) < 0);
    T_EQ(firn_ulid_fill(&g, UINT64_MAX, firn_rng_thread(), ids, 5, &n), FIRN_ERANGE);
    g.hi_ |= 0xffff; /* two left in this millisecond */
    g.lo_ = UINT64_MAX - 2;
    T_EQ(firn_ulid_fill(&g, 1800000000000, firn_rng_thread(), ids, 5, &n), 0);
    T_EQ(n, 2);
    T_EQ(firn_ulid_fill(&g, 1800000000000, firn_rng_thread(), ids, 5, &n), FIRN_EOVERFLOW);
    T_EQ(firn_ulid_fill(&g, 0, firn_rng_thread(), NULL, 0, &n), 0);
    T_EQ(n, 0);
    T_EQ(firn_ulid_is_nil(&ids[0]), 0);
    memset(&ids[0], 0, sizeof ids[0]);
    T_EQ(firn_ulid_is_nil(&ids[0]), 1);
}

/* Both paths, on every byte at every place, and on random ULIDs. */
T_TEST(ulid_paths_agree)
{
    static const char text[] = "01ARZ3NDEKTSV4RRFFQ69g5fav";
    for (size_t at = 0; at < FIRN_ULID_TEXT_LEN; at++)
        for (int c = 0; c < 256; c++) {
            struct firn_ulid a = { { 0 } }, b = { { 0 } };
            char copy[sizeof text];
            memcpy(copy, text, sizeof text);
            copy[at] = (char)c;
            T_EQ(firn_ulid_parse(copy, FIRN_ULID_TEXT_LEN, &a), firn__ulid_parse_portable(copy, &b),
                 "byte %d at %zu", c, at);
            T_EQ(firn_ulid_cmp(&a, &b), 0, "byte %d at %zu", c, at);
        }
    for (int i = 0; i < 10000; i++) {
        struct firn_ulid id, back;
        char a[FIRN_ULID_TEXT_BUF], b[FIRN_ULID_TEXT_BUF] = "";
        t_random_bytes(id.b, sizeof id.b);
        firn_ulid_format(&id, a);
        firn__ulid_format_portable(&id, b);
        T_STR(a, b);
        T_EQ(firn_ulid_parse(a, FIRN_ULID_TEXT_LEN, &back), 0);
        T_EQ(firn_ulid_cmp(&id, &back), 0);
    }
}
