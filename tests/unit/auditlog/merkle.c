/* Trees against the recursive definition of RFC 6962, and every path of every small tree. */
#include "auditlog/merkle.h"
#include "t.h"

#include <stdlib.h>

static struct sha256 sha;

T_TEST(sha256_of_the_standard)
{
    static const uint8_t want[] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                    0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                    0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                    0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad };
    digest_t got;
    T_EQ(sha256_open(&sha), 0);
    for (int i = 0; i < 3; i++) {
        sha256_of(&sha, "abc", 3, got);
        T_OK(memcmp(got, want, sizeof want) == 0);
        sha256_of(&sha, "", 0, got);
        T_EQ(got[0], 0xe3);
    }
    sha256_close(&sha);
    sha256_close(&sha);
}

/* MTH of RFC 6962, section 2.1, with leaves that are digests already. */
static void define(digest_t *v, size_t n, digest_t out)
{
    uint8_t both[65] = { 1 };
    size_t k = 1;
    if (n == 1) {
        memcpy(out, v[0], sizeof(digest_t));
        return;
    }
    while (k * 2 < n)
        k *= 2;
    define(v, k, both + 1);
    define(v + k, n - k, both + 33);
    sha256_of(&sha, both, sizeof both, out);
}

static digest_t leaf[300], copy[300];

static void fill(size_t n)
{
    t_random_bytes(leaf, n * sizeof leaf[0]);
}

static digest_t *fresh(size_t n)
{
    memcpy(copy, leaf, n * sizeof leaf[0]);
    return copy;
}

T_TEST(roots_are_those_of_the_definition)
{
    digest_t want, got;
    T_EQ(sha256_open(&sha), 0);
    for (size_t n = 1; n <= T_LEN(leaf); n++) {
        fill(n);
        define(leaf, n, want);
        merkle_root(&sha, fresh(n), n, got);
        T_OK(memcmp(got, want, sizeof want) == 0, "n=%zu", n);
    }
    sha256_close(&sha);
}

T_TEST(every_path_leads_to_the_root_and_no_other)
{
    digest_t root, got, path[MERKLE_PATH_MAX];
    T_EQ(sha256_open(&sha), 0);
    for (size_t n = 1; n <= 40; n++) {
        fill(n);
        merkle_root(&sha, fresh(n), n, root);
        for (size_t at = 0; at < n; at++) {
            size_t len = merkle_path(&sha, fresh(n), n, at, path);
            T_OK(len <= 6);
            T_EQ(merkle_climb(&sha, leaf[at], at, n, path, len, got), 0);
            T_OK(memcmp(got, root, sizeof root) == 0, "n=%zu at=%zu", n, at);
            T_EQ(merkle_climb(&sha, leaf[at], n, n, path, len, got), FIRN_EFORMAT);
            T_EQ(merkle_climb(&sha, leaf[at], at, n, path, len + 1, got), FIRN_EFORMAT);
            if (len > 0)
                T_EQ(merkle_climb(&sha, leaf[at], at, n, path, len - 1, got), FIRN_EFORMAT);
            for (size_t other = 0; other < n; other++) {
                int r = merkle_climb(&sha, leaf[at], other, n, path, len, got);
                T_EQ(r == 0 && memcmp(got, root, sizeof root) == 0, other == at);
            }
            for (size_t i = 0; i < len; i++) {
                path[i][t_random_below(32)] ^= (uint8_t)(1u << t_random_below(8));
                T_EQ(merkle_climb(&sha, leaf[at], at, n, path, len, got), 0);
                T_OK(memcmp(got, root, sizeof root) != 0);
                merkle_path(&sha, fresh(n), n, at, path);
            }
        }
    }
    T_EQ(merkle_climb(&sha, leaf[0], 0, 0, path, 0, got), FIRN_EFORMAT);
    sha256_close(&sha);
}
