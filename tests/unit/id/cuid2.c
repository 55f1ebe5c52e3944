#include "t.h"

#include "firn/cuid2.h"

#include <stdlib.h>

/* Check a copy that ends where its memory ends: AddressSanitizer sees a read past it. */
static int check_exact(const char *text, size_t len)
{
    char *p = malloc(len);
    memcpy(p, text, len);
    int r = firn_cuid2_check(p, len);
    free(p);
    return r;
}

T_TEST(cuid2_writes_its_length)
{
    struct firn_rng *rng = firn_rng_thread();
    struct firn_cuid2_gen g;
    firn_cuid2_init(&g, "host", 4, rng);
    for (size_t len = FIRN_CUID2_LEN_MIN; len <= FIRN_CUID2_LEN_MAX; len++) {
        char *out = malloc(len + 1); /* not a byte more */
        T_EQ(firn_cuid2(&g, len, UINT64_C(1700000000000), rng, out), 0);
        T_EQ(strlen(out), len);
        T_EQ(check_exact(out, len), 0, "'%s'", out);
        T_EQ(firn_cuid2(&g, len, UINT64_MAX, rng, out), 0); /* the longest input */
        T_EQ(check_exact(out, len), 0, "'%s'", out);
        free(out);
    }
}

T_TEST(cuid2_longest_input)
{
    struct firn_rng *rng = firn_rng_thread();
    struct firn_cuid2_gen g;
    char out[FIRN_CUID2_BUF_MAX];
    firn_cuid2_init(&g, NULL, 0, rng);
    g.counter_ = UINT64_MAX;
    T_EQ(firn_cuid2(&g, FIRN_CUID2_LEN_MAX, UINT64_MAX, rng, out), 0);
    T_EQ(check_exact(out, FIRN_CUID2_LEN_MAX), 0);
    T_EQ(g.counter_, 0);
}

T_TEST(cuid2_refuses)
{
    struct firn_rng *rng = firn_rng_thread();
    struct firn_cuid2_gen g;
    char out[64] = "untouched";
    firn_cuid2_init(&g, NULL, 0, rng);
    T_OK(g.counter_ < 476782367);
    T_EQ(firn_cuid2(&g, 0, 0, rng, out), FIRN_EINVAL);
    T_EQ(firn_cuid2(&g, 1, 0, rng, out), FIRN_EINVAL);
    T_EQ(firn_cuid2(&g, 33, 0, rng, out), FIRN_EINVAL);
    T_EQ(firn_cuid2(NULL, 24, 0, rng, out), FIRN_EINVAL);
    T_EQ(firn_cuid2(&g, 24, 0, NULL, out), FIRN_EINVAL);
    T_EQ(firn_cuid2(&g, 24, 0, rng, NULL), FIRN_EINVAL);
    T_EQ(firn_cuid2_check(NULL, 24), FIRN_EINVAL);
    T_STR(out, "untouched");
}

T_TEST(cuid2_check)
{
    static const char *const good[] = { "a0", "zz", "tz4a98xxat96iws9zmbrgj3a",
                                        "pfh0haxfpzowht3oi213cqos",
                                        "a0123456789abcdefghijklmnopqrstu" };
    static const char *const bad[] = {
        "",
        "a",
        "0a",
        "1z4a98xxat96iws9zmbrgj3a",
        "Tz4a98xxat96iws9zmbrgj3a",
        "tz4a98xxat96iws9zmbrgj3A",
        "tz4a98xxat96iws9-mbrgj3a",
        "tz4a98xxat96iws9zmbrgj3 ",
        "tz4a98xxat96iws9zmbrgj3\n",
        " tz4a98xxat96iws9zmbrgj3",
        "tz4a98xxat96iws9zmbrg\xc3\xa9",
        "a0123456789abcdefghijklmnopqrstuv",
        "`0",
        "{0",
        "a/",
        "a:",
        "a`",
        "a{",
    };
    for (size_t i = 0; i < T_LEN(good); i++)
        for (size_t len = 0; len <= strlen(good[i]); len++)
            T_EQ(check_exact(good[i], len), len < 2 ? FIRN_EFORMAT : 0, "'%.*s'", (int)len,
                 good[i]);
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(check_exact(bad[i], strlen(bad[i])), FIRN_EFORMAT, "'%s'", bad[i]);
}
