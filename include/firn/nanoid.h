/*
 * firn/nanoid.h - NanoID: random characters of an alphabet, 21 of A-Za-z0-9_- unless asked
 * otherwise. Every character is equally likely, whatever the alphabet's size. All functions may be
 * called from any thread, with a struct firn_rng of that thread; a prepared alphabet may be shared.
 */
#ifndef FIRN_NANOID_H
#define FIRN_NANOID_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"
#include "firn/random.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_NANOID_LEN     21 /* of a default NanoID: 126 random bits */
#define FIRN_NANOID_LEN_MAX 255
#define FIRN_NANOID_BUF_MAX 256

struct firn_nanoid_alphabet { /* all private: made by firn_nanoid_alphabet_init() */
    uint16_t size_;           /* 2..256 */
    uint8_t mask_;            /* the smallest 2^k - 1 that reaches size_ - 1 */
    uint8_t char_[256];
    uint8_t member_[32]; /* one bit for each byte value */
};

/* A-Za-z0-9_- */
FIRN_API extern const struct firn_nanoid_alphabet firn_nanoid_default;

/* Take `size` distinct bytes as an alphabet, copied. FIRN_EINVAL: not 2..256 of them, or one comes
 * twice. An alphabet may hold any byte, NUL too. */
FIRN_API FIRN_MUSTUSE int firn_nanoid_alphabet_init(struct firn_nanoid_alphabet *a,
                                                    const char *chars, size_t size);

/* Write `len` characters and a NUL to `out`, which has room for len + 1. A NULL alphabet is the
 * default. FIRN_EINVAL: `len` is not 1..FIRN_NANOID_LEN_MAX. */
FIRN_API FIRN_MUSTUSE int firn_nanoid(const struct firn_nanoid_alphabet *a, size_t len,
                                      struct firn_rng *rng, char *out);

/* 0 if the text could be a NanoID of this alphabet (NULL: the default): 1..FIRN_NANOID_LEN_MAX
 * characters, all of it. FIRN_EFORMAT: it could not. */
FIRN_API FIRN_MUSTUSE int firn_nanoid_check(const char *p, size_t len,
                                            const struct firn_nanoid_alphabet *a);

#ifdef __cplusplus
}
#endif
#endif
