/*
 * firn/ulid.h - ULID: 48 bits of Unix milliseconds and 80 random bits, 26 characters that sort by
 * time. Follows the ULID specification. Functions without a generator keep no state: call them from
 * any thread. A struct firn_ulid_gen, like the struct firn_rng it draws from, belongs to one
 * thread; a child of fork() must start its copy anew, or it repeats the parent's IDs.
 */
#ifndef FIRN_ULID_H
#define FIRN_ULID_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "firn/error.h"
#include "firn/random.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_ULID_TEXT_LEN 26
#define FIRN_ULID_TEXT_BUF 27
#define FIRN_ULID_MS_MAX   0xffffffffffffu /* in the year 10889 */

struct firn_ulid {
    uint8_t b[16]; /* high byte first: memcmp() order is time order */
};

/* A new ULID with 80 fresh random bits. Two of one millisecond come in no order: for that take a
 * generator. FIRN_ERANGE: unix_ms is above FIRN_ULID_MS_MAX. */
FIRN_API FIRN_MUSTUSE int firn_ulid_make(uint64_t unix_ms, struct firn_rng *rng,
                                         struct firn_ulid *out);

/* A monotonic generator: each ULID is greater than the one before it. */
struct firn_ulid_gen { /* all private: complete only so that it can live in your stack or struct */
    uint64_t
        fresh_ms_; /* from this millisecond on random bits are drawn anew; 0: nothing made yet */
    uint64_t hi_, lo_; /* the last ULID as a number */
    uint64_t reserved_;
};
#define FIRN_ULID_GEN_INIT \
    {                      \
        0, 0, 0, 0         \
    }

/* In a new millisecond draw 80 random bits; in the same one, or when the clock went back, take the
 * last ULID plus one, so that neither its time nor its order ever goes back. FIRN_EOVERFLOW: the
 * random part cannot be counted up any more, which ends when the clock reaches a later millisecond.
 * FIRN_ERANGE: unix_ms is above FIRN_ULID_MS_MAX. On error the generator is as before. */
FIRN_API FIRN_MUSTUSE int firn_ulid_next(struct firn_ulid_gen *g, uint64_t unix_ms,
                                         struct firn_rng *rng, struct firn_ulid *out);

/* Up to `n` of them with one reading of the clock, rising; their number goes to `*out_n`. 0 if
 * there was at least one, or none was asked for. */
FIRN_API FIRN_MUSTUSE int firn_ulid_fill(struct firn_ulid_gen *g, uint64_t unix_ms,
                                         struct firn_rng *rng, struct firn_ulid *ids, size_t n,
                                         size_t *out_n);

/* 26 characters of Crockford's base32 in either case. The letters I, L, O and U are refused: the
 * specification leaves them out of its alphabet and its reference implementations do not read them
 * as 1, 1 and 0. FIRN_EFORMAT: another length or character. FIRN_ERANGE: above
 * 7ZZZZZZZZZZZZZZZZZZZZZZZZZ, that is, more than 128 bits. */
FIRN_API FIRN_MUSTUSE int firn_ulid_parse(const char *p, size_t len, struct firn_ulid *out);

/* The same for a text that ends with a NUL. */
static inline FIRN_MUSTUSE int firn_ulid_parse_str(const char *text, struct firn_ulid *out)
{
    return firn_ulid_parse(text, text ? strlen(text) : 0, out);
}

/* Upper case, with a NUL. */
FIRN_API void firn_ulid_format(const struct firn_ulid *id, char out[FIRN_ULID_TEXT_BUF]);

/* 1 for the ULID of zeros, otherwise 0. */
FIRN_API int firn_ulid_is_nil(const struct firn_ulid *id);

FIRN_API uint64_t firn_ulid_unix_ms(const struct firn_ulid *id);

/* The 10 random bytes, borrowed from `id`. */
FIRN_API const uint8_t *firn_ulid_random(const struct firn_ulid *id);

/* Less than, equal to or greater than 0, as a is before, the same as or after b. */
FIRN_API int firn_ulid_cmp(const struct firn_ulid *a, const struct firn_ulid *b);

#ifdef __cplusplus
}
#endif
#endif
