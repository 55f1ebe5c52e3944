#include "t.h"

#include "firn/ksuid.h"

#include <stdlib.h>

/* A copy that ends where its memory ends: AddressSanitizer sees a read past it. */
static int parse(const char *s, size_t len, struct firn_ksuid *out)
{
    char *p = malloc(len ? len : 1);
    T_OK(p != NULL);
    memcpy(p, s, len);
    int r = firn_ksuid_parse(p, len, out);
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

T_TEST(ksuid_refuses)
{
    static const struct {
        const char *text;
        int error;
    } bad[] = {
        { "", FIRN_EFORMAT },
        { "0ujtsYcgvSTl8PAuAdqWYSMnLO_", FIRN_EFORMAT },
        { " ujtsYcgvSTl8PAuAdqWYSMnLOv", FIRN_EFORMAT },
        { "aWgEPTl1tmebfsQzFP4bxwgy80W", FIRN_ERANGE }, /* one above the greatest */
        { "aWgEPTl1tmebfsQzFP4bxwgy810", FIRN_ERANGE },
        { "aWgEPTl1tmebfsQzFP4bxwgz000", FIRN_ERANGE },
        { "aWgEPTl1tmebfsQzFQ000000000", FIRN_ERANGE },
        { "aX0000000000000000000000000", FIRN_ERANGE },
        { "zzzzzzzzzzzzzzzzzzzzzzzzzzz", FIRN_ERANGE },
        { "zzzzzzzzzzzzzzzzzzzzzzzzzz/", FIRN_EFORMAT },
    };
    struct firn_ksuid id;
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(parse(bad[i].text, strlen(bad[i].text), &id), bad[i].error, "'%s'", bad[i].text);
}

T_TEST(ksuid_make_fills_fields)
{
    struct firn_rng r = seeded(), same = r;
    struct firn_ksuid id, again;
    T_EQ(firn_ksuid_make(1507608047999, &r, &id), 0);
    T_EQ(firn_ksuid_unix_ms(&id), 1507608047000);
    T_OK(firn_ksuid_payload(&id) == id.b + 4);
    T_EQ(firn_ksuid_make(1507608047000, &same, &again), 0);
    T_EQ(firn_ksuid_cmp(&id, &again), 0);
    T_EQ(firn_ksuid_make(1507608047000, &same, &again), 0);
    T_OK(memcmp(firn_ksuid_payload(&id), firn_ksuid_payload(&again), 16) != 0);
}

T_TEST(ksuid_make_knows_its_time)
{
    struct firn_rng r = seeded();
    struct firn_ksuid id;
    const uint64_t epoch_ms = 1400000000000, last_ms = epoch_ms + (uint64_t)UINT32_MAX * 1000 + 999;
    T_EQ(firn_ksuid_make(epoch_ms, &r, &id), 0);
    T_EQ(firn_ksuid_unix_ms(&id), epoch_ms);
    T_EQ(firn_ksuid_make(last_ms, &r, &id), 0);
    T_EQ(firn_ksuid_unix_ms(&id), last_ms - 999);
    T_EQ(firn_ksuid_make(epoch_ms - 1, &r, &id), FIRN_ERANGE);
    T_EQ(firn_ksuid_make(0, &r, &id), FIRN_ERANGE);
    T_EQ(firn_ksuid_make(last_ms + 1, &r, &id), FIRN_ERANGE);
    T_EQ(firn_ksuid_make(UINT64_MAX, &r, &id), FIRN_ERANGE);
}

T_TEST(ksuid_truncated)
{
    static const char whole[] = "0ujtsYcgvSTl8PAuAdqWYSMnLOv0ujtsYcgvSTl8PAuAdqWYSMnLOv";
    struct firn_ksuid id;
    for (size_t len = 0; len < sizeof whole; len++)
        T_EQ(parse(whole, len, &id), len == FIRN_KSUID_TEXT_LEN ? 0 : FIRN_EFORMAT, "length %zu",
             len);
}

/* Every byte at every place. */
T_TEST(ksuid_every_byte)
{
    for (size_t at = 0; at < FIRN_KSUID_TEXT_LEN; at++)
        for (int c = 1; c < 256; c++) {
            char text[] = "000000000000000000000000000";
            struct firn_ksuid id;
            text[at] = (char)c;
            int r = parse(text, FIRN_KSUID_TEXT_LEN, &id);
            if (!strchr("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", c))
                T_EQ(r, FIRN_EFORMAT, "byte %d at %zu", c, at);
            else
                T_EQ(r, at == 0 && c > 'a' ? FIRN_ERANGE : 0, "byte %d at %zu", c, at);
        }
    struct firn_ksuid id;
    T_EQ(firn_ksuid_parse("000000000000000000000000000\0", FIRN_KSUID_TEXT_LEN + 1, &id),
         FIRN_EFORMAT);
    char nul[] = "000000000000000000000000000";
    nul[3] = '\0';
    T_EQ(parse(nul, FIRN_KSUID_TEXT_LEN, &id), FIRN_EFORMAT);
}

T_TEST(ksuid_mistakes)
{
    struct firn_ksuid id;
    T_EQ(firn_ksuid_parse(NULL, FIRN_KSUID_TEXT_LEN, &id), FIRN_EINVAL);
    T_EQ(firn_ksuid_parse("0ujtsYcgvSTl8PAuAdqWYSMnLOv", FIRN_KSUID_TEXT_LEN, NULL), FIRN_EINVAL);
    struct firn_rng r = seeded();
    T_EQ(firn_ksuid_make(1700000000000, NULL, &id), FIRN_EINVAL);
    T_EQ(firn_ksuid_make(1700000000000, &r, NULL), FIRN_EINVAL);
}

T_TEST(ksuid_error_leaves_output)
{
    struct firn_ksuid id, before;
    memset(&id, 0x5a, sizeof id);
    before = id;
    T_EQ(parse("0ujtsYcgvSTl8PAuAdqWYSMnLO-", FIRN_KSUID_TEXT_LEN, &id), FIRN_EFORMAT);
    T_EQ(firn_ksuid_cmp(&id, &before), 0);
}
