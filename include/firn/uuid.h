/*
 * firn/uuid.h - UUIDs as RFC 9562 has them: versions 1, 3, 4, 5, 6, 7, 8, nil and max.
 * A UUID is sixteen plain bytes, most significant first. Nothing here allocates, blocks or reads a
 * clock: time and randomness are arguments. Functions without a generator may be called from any
 * thread; a generator belongs to one thread, and a child of fork() starts a generator of its own.
 */
#ifndef FIRN_UUID_H
#define FIRN_UUID_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "firn/error.h"
#include "firn/random.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_UUID_TEXT_LEN 36 /* 017f22e2-79b0-7cc3-98c4-dc0c0c07398f */
#define FIRN_UUID_TEXT_BUF 37

/* 100 ns ticks from 1582-10-15, where versions 1 and 6 begin to count, to 1970-01-01. */
#define FIRN_UUID_UNIX_EPOCH_TICKS UINT64_C(0x01b21dd213814000)

struct firn_uuid {
    uint8_t b[16];
};

FIRN_API extern const struct firn_uuid firn_uuid_nil, firn_uuid_max;

/* Namespaces of version 3 and 5 UUIDs: fully qualified domain names, URLs, ISO object identifiers,
 * X.500 distinguished names. */
FIRN_API extern const struct firn_uuid firn_uuid_ns_dns, firn_uuid_ns_url, firn_uuid_ns_oid,
    firn_uuid_ns_x500;

/* Read the 36 characters 8-4-4-4-12, in either case, and nothing else. Any variant and version is
 * taken: what they are, the functions below tell. FIRN_EFORMAT: it is anything else. */
FIRN_API FIRN_MUSTUSE int firn_uuid_parse(const char *p, size_t len, struct firn_uuid *out);

/* The same, and the other ways people write one: urn:uuid:..., {...} around the 36 characters, or
 * 32 digits without hyphens. */
FIRN_API FIRN_MUSTUSE int firn_uuid_parse_any(const char *p, size_t len, struct firn_uuid *out);

/* The same for a text that ends with a NUL. */
static inline FIRN_MUSTUSE int firn_uuid_parse_str(const char *text, struct firn_uuid *out)
{
    return firn_uuid_parse(text, text ? strlen(text) : 0, out);
}

/* Lower case, as the RFC asks of writers, and a NUL. */
FIRN_API void firn_uuid_format(const struct firn_uuid *id, char out[FIRN_UUID_TEXT_BUF]);

/* By bytes, which is also the order of the texts, and of time for versions 6 and 7. */
FIRN_API int firn_uuid_cmp(const struct firn_uuid *a, const struct firn_uuid *b);

/* 1 for the UUID of zeros, which stands for "none"; otherwise 0. */
FIRN_API int firn_uuid_is_nil(const struct firn_uuid *id);

enum firn_uuid_variant {
    FIRN_UUID_NCS,       /* 0xx: Apollo NCS; the nil UUID falls here */
    FIRN_UUID_RFC,       /* 10x: RFC 9562 */
    FIRN_UUID_MICROSOFT, /* 110: early Microsoft GUIDs */
    FIRN_UUID_FUTURE     /* 111: reserved; the max UUID falls here */
};

FIRN_API enum firn_uuid_variant firn_uuid_variant(const struct firn_uuid *id);

/* 0..15; only 1..8 are defined. FIRN_ENOTSUP: the variant is not the RFC's, so the bits mean
 * something else; nil and max are such. */
FIRN_API int firn_uuid_version(const struct firn_uuid *id);

/* When the UUID was made, for versions 1, 6 and 7: in Unix milliseconds, or in 100 ns ticks since
 * 1582-10-15. FIRN_ENOTSUP: the version has no time. FIRN_ERANGE, of unix_ms: before 1970. */
FIRN_API FIRN_MUSTUSE int firn_uuid_unix_ms(const struct firn_uuid *id, uint64_t *out_ms);
FIRN_API FIRN_MUSTUSE int firn_uuid_ticks(const struct firn_uuid *id, uint64_t *out_ticks);

/* The other fields of versions 1 and 6. FIRN_ENOTSUP: it is neither. */
FIRN_API FIRN_MUSTUSE int firn_uuid_clock_seq(const struct firn_uuid *id, uint16_t *out_seq);
FIRN_API FIRN_MUSTUSE int firn_uuid_node(const struct firn_uuid *id, uint8_t out_node[6]);

/* 122 random bits. */
FIRN_API void firn_uuid_v4(struct firn_rng *rng, struct firn_uuid *out);

/* `n` of them, faster than one by one. */
FIRN_API void firn_uuid_v4_fill(struct firn_rng *rng, struct firn_uuid *ids, size_t n);

/* Names: the same namespace and name give the same UUID, by MD5 (3) or SHA-1 (5). */
FIRN_API void firn_uuid_v3(const struct firn_uuid *ns, const void *name, size_t len,
                           struct firn_uuid *out);
FIRN_API void firn_uuid_v5(const struct firn_uuid *ns, const void *name, size_t len,
                           struct firn_uuid *out);

/* The caller's own 122 bits: of `custom` all is kept but the 4 bits of the version (high half of
 * byte 6) and the 2 of the variant (top of byte 8). */
FIRN_API void firn_uuid_v8(const uint8_t custom[16], struct firn_uuid *out);

struct firn_uuid_v7_gen {  /* all private; start from FIRN_UUID_V7_GEN_INIT, or zeros */
    uint64_t fresh_ms_;    /* from this millisecond on the clock is ahead of all IDs made */
    uint32_t counter_;     /* of the last ID */
    uint32_t reserved_[5]; /* growing room; zero */
};
/* clang-format off */
#define FIRN_UUID_V7_GEN_INIT { 0, 0, { 0 } }
/* clang-format on */

/*
 * 48 bits of Unix milliseconds, a counter of 26 bits, 48 random bits (RFC 9562 6.2, method 1). The
 * UUIDs of one generator always rise. The counter starts each millisecond at a random place in its
 * lower half. When it is used up, the time in the UUIDs goes a millisecond ahead of the clock; when
 * the clock stands or steps back, time stays and the counter goes on. FIRN_ERANGE: the time does
 * not fit (in the year 10889).
 */
FIRN_API FIRN_MUSTUSE int firn_uuid_v7(struct firn_uuid_v7_gen *g, uint64_t unix_ms,
                                       struct firn_rng *rng, struct firn_uuid *out);

/* `n` of them with one reading of the clock; their number goes to `*out_n`. 0 if there was at least
 * one, or none was asked for. */
FIRN_API FIRN_MUSTUSE int firn_uuid_v7_fill(struct firn_uuid_v7_gen *g, uint64_t unix_ms,
                                            struct firn_rng *rng, struct firn_uuid *ids, size_t n,
                                            size_t *out_n);

struct firn_uuid_gregorian_gen { /* all private: made by firn_uuid_gregorian_init() */
    uint64_t last_ticks_;        /* of the last ID; the next has more */
    uint64_t clock_ticks_;       /* the latest clock reading: less than it is a step back */
    uint16_t clock_seq_;
    uint8_t node_[6];
    uint64_t reserved_[2];
};

/* A generator of versions 1 and 6 with a random clock sequence. `node` is the six bytes that tell
 * it from all others, copied; NULL, the better choice, draws random ones and marks them as no
 * hardware address by the multicast bit. */
FIRN_API void firn_uuid_gregorian_init(struct firn_uuid_gregorian_gen *g, const uint8_t node[6],
                                       struct firn_rng *rng);

/*
 * 60 bits of 100 ns ticks, clock sequence, node. `unix_ticks` is the Unix time in units of 100 ns.
 * One generator never stamps a tick twice nor an earlier one after a later: a clock that stands,
 * steps back or is outrun leaves it a tick ahead for each ID. A step back also changes the clock
 * sequence, as the RFC demands. Version 6 therefore always rises. FIRN_ERANGE: the time does not
 * fit (in the year 5236).
 */
FIRN_API FIRN_MUSTUSE int firn_uuid_v1(struct firn_uuid_gregorian_gen *g, uint64_t unix_ticks,
                                       struct firn_uuid *out);
FIRN_API FIRN_MUSTUSE int firn_uuid_v6(struct firn_uuid_gregorian_gen *g, uint64_t unix_ticks,
                                       struct firn_uuid *out);

/* The same UUID in the other version's order of bits (RFC 9562 5.6): nothing is lost, and the way
 * back gives what was there before. FIRN_ENOTSUP: `id` is of another version. */
FIRN_API FIRN_MUSTUSE int firn_uuid_v1_to_v6(const struct firn_uuid *id, struct firn_uuid *out);
FIRN_API FIRN_MUSTUSE int firn_uuid_v6_to_v1(const struct firn_uuid *id, struct firn_uuid *out);

#ifdef __cplusplus
}
#endif
#endif
