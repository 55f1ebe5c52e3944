/*
 * CUID2 as the reference implementation makes it: the hash of the texts of time, salt, counter and
 * fingerprint, as one number in base 36. Its first digit is dropped because it is not uniform; the
 * ID takes its letter in place of the second.
 */
#include "firn/cuid2.h"
#include "id/base36.h"
#include "id/cuid2_hash.h"
#include "id/rng_take.h"
#include "id/sha3.h"

/* Where the reference starts its counter: below this, six base 36 digits and some room. */
#define COUNTER_START_MAX 476782367u

enum { INPUT_MAX = 2 * FIRN__BASE36_U64_MAX + FIRN_CUID2_LEN_MAX };

/* Digits of a hash from `skip` on. Padding holds when a hash is tiny, once in 36^67 times or so. */
static void hash_digits(const void *a, size_t a_len, const void *b, size_t b_len, size_t skip,
                        char *out, size_t len)
{
    uint8_t hash[FIRN__SHA3_512_BYTES];
    char text[FIRN__BASE36_512_MAX];
    memset(text, '0', sizeof text);
    firn__sha3_512(a, a_len, b, b_len, hash);
    firn__base36_512(hash, text);
    memcpy(out, text + skip, len);
}

void firn__cuid2_fingerprint(const void *host, size_t host_len,
                             const char entropy[FIRN_CUID2_LEN_MAX], char out[FIRN_CUID2_LEN_MAX])
{
    hash_digits(host, host_len, entropy, FIRN_CUID2_LEN_MAX, 1, out, FIRN_CUID2_LEN_MAX);
}

void firn__cuid2_hash(const struct cuid2_input *in, const char fingerprint[FIRN_CUID2_LEN_MAX],
                      char *out)
{
    char text[INPUT_MAX];
    size_t n = firn__base36_u64(in->unix_ms, text);
    memcpy(text + n, in->salt, in->len);
    n += in->len;
    n += firn__base36_u64(in->counter, text + n);
    out[0] = in->letter;
    hash_digits(text, n, fingerprint, FIRN_CUID2_LEN_MAX, 2, out + 1, in->len - 1);
    out[in->len] = '\0';
}

/* Uniform base 36 digits: bytes from 7 * 36 up would favour the first ones. */
static void random_digits(struct firn_rng *rng, char *out, size_t len)
{
    uint8_t random[FIRN_CUID2_LEN_MAX];
    for (size_t n = 0; n < len;) {
        size_t draw = len - n;
        firn__rng_take(rng, random, draw);
        for (size_t i = 0; i < draw; i++)
            if (random[i] < 7 * 36)
                out[n++] = "0123456789abcdefghijklmnopqrstuvwxyz"[random[i] % 36];
    }
}

void firn_cuid2_init(struct firn_cuid2_gen *g, const void *host, size_t host_len,
                     struct firn_rng *rng)
{
    char entropy[FIRN_CUID2_LEN_MAX];
    random_digits(rng, entropy, sizeof entropy);
    firn__cuid2_fingerprint(host, host_len, entropy, g->fingerprint_);
    g->counter_ = firn_rng_below(rng, COUNTER_START_MAX);
}

int firn_cuid2(struct firn_cuid2_gen *g, size_t len, uint64_t unix_ms, struct firn_rng *rng,
               char *out)
{
    if (!g || !rng || !out || len < FIRN_CUID2_LEN_MIN || len > FIRN_CUID2_LEN_MAX)
        return FIRN_EINVAL;
    char salt[FIRN_CUID2_LEN_MAX];
    random_digits(rng, salt, len);
    struct cuid2_input in = { .unix_ms = unix_ms,
                              .counter = g->counter_++,
                              .letter = (char)('a' + firn_rng_below(rng, 26)),
                              .salt = salt,
                              .len = len };
    firn__cuid2_hash(&in, g->fingerprint_, out);
    return 0;
}

int firn_cuid2_check(const char *p, size_t len)
{
    if (!p)
        return FIRN_EINVAL;
    if (len < FIRN_CUID2_LEN_MIN || len > FIRN_CUID2_LEN_MAX || p[0] < 'a' || p[0] > 'z')
        return FIRN_EFORMAT;
    for (size_t i = 1; i < len; i++)
        if (!((p[i] >= 'a' && p[i] <= 'z') || (p[i] >= '0' && p[i] <= '9')))
            return FIRN_EFORMAT;
    return 0;
}
