/*
 * firn/ksuid.h - KSUID: 32 bits of seconds since 2014-05-13 and 128 random bits, 27 characters of
 * base62 that sort by time. As segmentio/ksuid writes and reads them.
 * Nothing here keeps state: call it from any thread, each with its own struct firn_rng.
 */
#ifndef FIRN_KSUID_H
#define FIRN_KSUID_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "firn/error.h"
#include "firn/random.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_KSUID_TEXT_LEN      27
#define FIRN_KSUID_TEXT_BUF      28
#define FIRN_KSUID_EPOCH_S       1400000000u /* Unix seconds that are a KSUID's second 0 */
#define FIRN_KSUID_PAYLOAD_BYTES 16

struct firn_ksuid {
    uint8_t b[20]; /* high byte first: memcmp() order is time order */
};

/* A new KSUID with fresh random bits. Two of one second come in no order. FIRN_ERANGE: the time is
 * before FIRN_KSUID_EPOCH_S or 2^32 seconds and more after it (June 2150). */
FIRN_API FIRN_MUSTUSE int firn_ksuid_make(uint64_t unix_ms, struct firn_rng *rng,
                                          struct firn_ksuid *out);

/* 27 characters, 0-9 A-Z a-z. FIRN_EFORMAT: another length or character. FIRN_ERANGE: above
 * aWgEPTl1tmebfsQzFP4bxwgy80V, that is, more than 160 bits. */
FIRN_API FIRN_MUSTUSE int firn_ksuid_parse(const char *p, size_t len, struct firn_ksuid *out);

/* The same for a text that ends with a NUL. */
static inline FIRN_MUSTUSE int firn_ksuid_parse_str(const char *text, struct firn_ksuid *out)
{
    return firn_ksuid_parse(text, text ? strlen(text) : 0, out);
}

/* With a NUL. */
FIRN_API void firn_ksuid_format(const struct firn_ksuid *id, char out[FIRN_KSUID_TEXT_BUF]);

/* When it was made: whole seconds, as Unix milliseconds. */
FIRN_API uint64_t firn_ksuid_unix_ms(const struct firn_ksuid *id);

/* The 16 random bytes, borrowed from `id`. */
FIRN_API const uint8_t *firn_ksuid_payload(const struct firn_ksuid *id);

/* Less than, equal to or greater than 0, as a is before, the same as or after b. */
FIRN_API int firn_ksuid_cmp(const struct firn_ksuid *a, const struct firn_ksuid *b);

#ifdef __cplusplus
}
#endif
#endif
