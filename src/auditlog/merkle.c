/* Merkle trees: level by level, in the place of the leaves. */
#include "auditlog/merkle.h"
#include "platform/assert.h"

#include <string.h>

static void join(struct sha256 *h, const digest_t left, const digest_t right, digest_t out)
{
    uint8_t both[1 + 2 * SHA256_BYTES] = { MERKLE_NODE };
    memcpy(both + 1, left, SHA256_BYTES);
    memcpy(both + 1 + SHA256_BYTES, right, SHA256_BYTES);
    sha256_of(h, both, sizeof both, out);
}

/* The level above, in the same place; returns its size. */
static size_t rise(struct sha256 *h, digest_t *v, size_t n)
{
    for (size_t i = 0; i + 1 < n; i += 2)
        join(h, v[i], v[i + 1], v[i / 2]);
    if (n % 2 && n > 1)
        memcpy(v[n / 2], v[n - 1], SHA256_BYTES);
    return n / 2 + n % 2;
}

void merkle_root(struct sha256 *h, digest_t *leaves, size_t n, digest_t out)
{
    firn_assert(n > 0);
    while (n > 1)
        n = rise(h, leaves, n);
    memcpy(out, leaves[0], SHA256_BYTES);
}

size_t merkle_path(struct sha256 *h, digest_t *leaves, size_t n, size_t at,
                   digest_t path[MERKLE_PATH_MAX])
{
    size_t len = 0;
    firn_assert(at < n, "at=%zu n=%zu", at, n);
    for (; n > 1; at /= 2) {
        if ((at ^ 1) < n) {
            firn_assert(len < MERKLE_PATH_MAX);
            memcpy(path[len++], leaves[at ^ 1], SHA256_BYTES);
        }
        n = rise(h, leaves, n);
    }
    return len;
}

int merkle_climb(struct sha256 *h, const digest_t leaf, uint64_t at, uint64_t n,
                 const digest_t *path, size_t path_n, digest_t out)
{
    size_t used = 0;
    digest_t up;
    memcpy(up, leaf, SHA256_BYTES);
    if (at >= n)
        return FIRN_EFORMAT;
    for (; n > 1; at /= 2, n = n / 2 + n % 2) {
        if ((at ^ 1) >= n)
            continue;
        if (used == path_n)
            return FIRN_EFORMAT;
        if (at & 1)
            join(h, path[used], up, up);
        else
            join(h, up, path[used], up);
        used++;
    }
    if (used != path_n)
        return FIRN_EFORMAT;
    memcpy(out, up, SHA256_BYTES);
    return 0;
}
