/*
 * firn/cuid2.h - CUID2: a random letter, then base 36 digits of a SHA3-512 over time, randomness, a
 * counter and a fingerprint of the host. It tells nothing of what went in, not even the time.
 * A generator belongs to one thread. A CUID2 has no binary form: it is its text.
 */
#ifndef FIRN_CUID2_H
#define FIRN_CUID2_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"
#include "firn/random.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_CUID2_LEN     24 /* the usual length */
#define FIRN_CUID2_LEN_MIN 2
#define FIRN_CUID2_LEN_MAX 32
#define FIRN_CUID2_BUF_MAX 33

struct firn_cuid2_gen { /* all private: made by firn_cuid2_init() */
    uint64_t counter_;
    char fingerprint_[FIRN_CUID2_LEN_MAX];
};

/* `host` is anything that tells this process from others (host name, process id); it is mixed with
 * randomness and hashed, not kept. It may be NULL with length 0: randomness alone does. */
FIRN_API void firn_cuid2_init(struct firn_cuid2_gen *g, const void *host, size_t host_len,
                              struct firn_rng *rng);

/* Write `len` characters and a NUL to `out`, which has room for len + 1. FIRN_EINVAL: `len` is not
 * FIRN_CUID2_LEN_MIN..FIRN_CUID2_LEN_MAX. Short ones repeat soon: 24 is for life. */
FIRN_API FIRN_MUSTUSE int firn_cuid2(struct firn_cuid2_gen *g, size_t len, uint64_t unix_ms,
                                     struct firn_rng *rng, char *out);

/* 0 if the text could be a CUID2: a letter a-z, then 1 to 31 of 0-9a-z. FIRN_EFORMAT: it cannot. */
FIRN_API FIRN_MUSTUSE int firn_cuid2_check(const char *p, size_t len);

#ifdef __cplusplus
}
#endif
#endif
