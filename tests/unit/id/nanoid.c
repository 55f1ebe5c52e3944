#include "t.h"

#include "firn/nanoid.h"

#include <stdlib.h>

/* Check a copy that ends where its memory ends: AddressSanitizer sees a read past it. */
static int check_exact(const char *text, size_t len, const struct firn_nanoid_alphabet *a)
{
    char *p = malloc(len);
    memcpy(p, text, len);
    int r = firn_nanoid_check(p, len, a);
    free(p);
    return r;
}

T_TEST(nanoid_alphabet_validates)
{
    struct firn_nanoid_alphabet a, before;
    char all[257];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    all[256] = 0;
    memset(&a, 7, sizeof a);
    before = a;
    T_EQ(firn_nanoid_alphabet_init(&a, "", 0), FIRN_EINVAL);
    T_EQ(firn_nanoid_alphabet_init(&a, "a", 1), FIRN_EINVAL);
    T_EQ(firn_nanoid_alphabet_init(&a, "aa", 2), FIRN_EINVAL);
    T_EQ(firn_nanoid_alphabet_init(&a, "abcda", 5), FIRN_EINVAL);
    T_EQ(firn_nanoid_alphabet_init(&a, "\xff\0\xff", 3), FIRN_EINVAL);
    T_EQ(firn_nanoid_alphabet_init(&a, all, 257), FIRN_EINVAL);
    T_EQ(firn_nanoid_alphabet_init(&a, NULL, 2), FIRN_EINVAL);
    T_EQ(firn_nanoid_alphabet_init(NULL, "ab", 2), FIRN_EINVAL);
    T_OK(memcmp(&a, &before, sizeof a) == 0, "untouched on error");
    for (size_t size = 2; size <= 256; size++) {
        T_EQ(firn_nanoid_alphabet_init(&a, all, size), 0);
        T_EQ(a.size_, size);
        T_OK(a.mask_ >= size - 1 && a.mask_ / 2 < size - 1, "%u for %zu", a.mask_, size);
    }
}

/* The default is written as a table: the same as if it had been built. */
T_TEST(nanoid_default_alphabet)
{
    static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    struct firn_nanoid_alphabet a;
    T_EQ(firn_nanoid_alphabet_init(&a, chars, 64), 0);
    T_EQ(a.size_, firn_nanoid_default.size_);
    T_EQ(a.mask_, firn_nanoid_default.mask_);
    T_OK(memcmp(a.char_, firn_nanoid_default.char_, sizeof a.char_) == 0);
    T_OK(memcmp(a.member_, firn_nanoid_default.member_, sizeof a.member_) == 0);
}

T_TEST(nanoid_writes_its_length)
{
    struct firn_rng *rng = firn_rng_thread();
    struct firn_nanoid_alphabet odd;
    T_EQ(firn_nanoid_alphabet_init(&odd, "xyz", 3), 0);
    for (size_t len = 1; len <= FIRN_NANOID_LEN_MAX; len++) {
        char *out = malloc(len + 1); /* not a byte more */
        T_EQ(firn_nanoid(NULL, len, rng, out), 0);
        T_EQ(strlen(out), len);
        T_EQ(check_exact(out, len, NULL), 0, "'%s'", out);
        T_EQ(firn_nanoid(&odd, len, rng, out), 0);
        T_EQ(strlen(out), len);
        T_EQ(check_exact(out, len, &odd), 0, "'%s'", out);
        free(out);
    }
}

T_TEST(nanoid_refuses)
{
    struct firn_rng *rng = firn_rng_thread();
    char out[FIRN_NANOID_BUF_MAX] = "untouched";
    T_EQ(firn_nanoid(NULL, 0, rng, out), FIRN_EINVAL);
    T_EQ(firn_nanoid(NULL, FIRN_NANOID_LEN_MAX + 1, rng, out), FIRN_EINVAL);
    T_EQ(firn_nanoid(NULL, 21, NULL, out), FIRN_EINVAL);
    T_EQ(firn_nanoid(NULL, 21, rng, NULL), FIRN_EINVAL);
    T_EQ(firn_nanoid_check(NULL, 21, NULL), FIRN_EINVAL);
    T_STR(out, "untouched");
}

T_TEST(nanoid_check)
{
    static const char *const good[] = { "V1StGXR8_Z5jdHi6B-myT", "a", "_", "-", "0123456789",
                                        "Uakgb_J5m9g-0JDMbcJqLJ" };
    static const char *const bad[] = { "",
                                       " ",
                                       "V1StGXR8_Z5jdHi6B-my=",
                                       "V1StGXR8 Z5jdHi6B-myT",
                                       "a\n",
                                       "a+b",
                                       "a/b",
                                       "\xc3\xa9",
                                       "@",
                                       "[",
                                       "`",
                                       "{",
                                       ":",
                                       ".",
                                       ",",
                                       "^" };
    for (size_t i = 0; i < T_LEN(good); i++)
        for (size_t len = 1; len <= strlen(good[i]); len++)
            T_EQ(check_exact(good[i], len, NULL), 0, "'%.*s'", (int)len, good[i]);
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(check_exact(bad[i], strlen(bad[i]), NULL), FIRN_EFORMAT, "'%s'", bad[i]);

    char longest[FIRN_NANOID_LEN_MAX + 1];
    memset(longest, 'a', sizeof longest);
    T_EQ(check_exact(longest, FIRN_NANOID_LEN_MAX, NULL), 0);
    T_EQ(check_exact(longest, FIRN_NANOID_LEN_MAX + 1, NULL), FIRN_EFORMAT);

    struct firn_nanoid_alphabet hex;
    T_EQ(firn_nanoid_alphabet_init(&hex, "0123456789abcdef", 16), 0);
    T_EQ(check_exact("0123456789abcdef", 16, &hex), 0);
    T_EQ(check_exact("0123456789abcdeF", 16, &hex), FIRN_EFORMAT);
    for (int c = 0; c < 256; c++) {
        char one = (char)c;
        int in = c && strchr("0123456789abcdef", c) != NULL;
        T_EQ(check_exact(&one, 1, &hex), in ? 0 : FIRN_EFORMAT, "byte %d", c);
    }
}
