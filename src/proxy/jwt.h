/*
 * jwt.h - verifies JSON Web Tokens (RFC 7519) in the compact form of a signature (RFC 7515), and
 * takes the claims out of them that services get as headers.
 *
 * The order is fixed: size, three parts, header, key, signature, and only then the claims; nothing
 * that a token says is used before its signature is right, but "alg" and "kid", which can only
 * choose one of our own keys (jwks.h). Headers that name keys (jwk, jku, x5u) are never looked at,
 * one with "crit" is refused. Everything has a bound, and nothing is allocated but by OpenSSL.
 *
 * A checker is one set of rules, with a cache of the tokens that passed it: because another set has
 * another checker, a token that one audience accepted is never taken for good by another. A checker
 * belongs to one thread; the keys are borrowed and may be shared.
 */
#ifndef FIRN_PROXY_JWT_H
#define FIRN_PROXY_JWT_H

#include "proxy/jwks.h"

enum {
    JWT_TOKEN_MAX = 8192,   /* bytes of a token */
    JWT_HEADER_MAX = 1024,  /* bytes of its header, decoded */
    JWT_PAYLOAD_MAX = 6144, /* bytes of its claims, decoded */
    JWT_COPIES_MAX = 8,     /* claims that become headers */
    JWT_TEXT_MAX = 512,     /* bytes of them together */
};

/* What is right or wrong with a token. The names are stable: for the log and for metrics. Clients
 * are told none of them. */
#define JWT_VERDICTS(X)                                                                       \
    X(OK, "ok", "the token is valid")                                                         \
    X(MISSING, "missing", "the request has no bearer token")                                  \
    X(TOO_LONG, "too_long", "the token is too long")                                          \
    X(FORMAT, "format", "the token is not three parts in base64url")                          \
    X(HEADER, "header", "the token's header is not a JSON object with alg")                   \
    X(CRITICAL, "critical", "the token's header has crit, no extension is supported")         \
    X(UNKNOWN_KEY, "unknown_key", "no key has the token's kid")                               \
    X(ALGORITHM, "algorithm", "no key of the token's algorithm may verify it")                \
    X(AMBIGUOUS_KEY, "ambiguous_key", "the token has no kid and more than one key would fit") \
    X(SIGNATURE, "signature", "the token's signature is wrong")                               \
    X(CLAIMS, "claims", "the token's claims are not a JSON object, or one has a wrong type")  \
    X(NO_EXPIRY, "no_expiry", "the token has no exp")                                         \
    X(EXPIRED, "expired", "the token has expired")                                            \
    X(NOT_YET, "not_yet", "the token is not valid yet")                                       \
    X(ISSUER, "issuer", "the token is from another issuer")                                   \
    X(AUDIENCE, "audience", "the token is for another audience")                              \
    X(CLAIM_MISSING, "claim_missing", "a claim that a header needs is missing")               \
    X(CLAIM_VALUE, "claim_value", "a claim's value cannot be sent as a header")               \
    X(INTERNAL, "internal", "OpenSSL failed: out of memory?")

enum jwt_verdict {
#define X(name, word, text) JWT_##name,
    JWT_VERDICTS(X)
#undef X
};

const char *jwt_verdict_name(enum jwt_verdict v); /* "expired" */
const char *jwt_verdict_text(enum jwt_verdict v); /* "the token has expired" */

/* WWW-Authenticate of the 401, one for all refused tokens. RFC 6750 wants no error where the
 * request had no token. */
const char *jwt_challenge(enum jwt_verdict v);

/* A claim of the outermost object that becomes a header. Strings, numbers and booleans are sent as
 * they are, an array of strings (roles) joined with commas; a string with a comma in such an array
 * is refused, as is what cannot stand in a header. */
struct jwt_copy {
    const char *claim;  /* "sub" */
    const char *header; /* "X-User-ID"; whatever the client sends under this name must be dropped */
    bool required;      /* a token without it, or with an empty one, is refused */
};

struct jwt_stats {         /* counted by the checker's thread; fields may be read by any */
    uint64_t hits, misses; /* of the cache */
    uint64_t verdict[JWT_INTERNAL + 1];
};

struct jwt_rules { /* texts are borrowed as long as the checker lives */
    const char *const *issuers;
    size_t issuers_n; /* 0: any */
    const char *const *audiences;
    size_t audiences_n;    /* 0: any. One of the token's must be one of these */
    uint32_t leeway_s;     /* how far clocks may differ, for exp and nbf */
    bool expiry_optional;  /* accept tokens without exp */
    uint32_t cached_max_s; /* how long a token may stay in the cache; 0: until it expires */
    struct jwt_copy copy[JWT_COPIES_MAX];
    size_t copies_n;
    uint32_t cache_size; /* tokens, about 700 bytes each; rounded up to a power of two; 0: none */
    struct jwt_stats
        *stats; /* borrowed: where to count, so that it outlives the checker; NULL: own */
};

/* What a valid token says. A plain value. */
struct jwt_identity {
    int64_t from_s, until_s; /* Unix seconds, leeway included; until_s is the first invalid one */
    uint16_t end[JWT_COPIES_MAX]; /* where the value of each copy ends in `text` */
    char text[JWT_TEXT_MAX];
};

/* The value of rules->copy[i]; empty: the token has none. */
static inline struct slice jwt_copy_of(const struct jwt_identity *id, size_t i)
{
    size_t from = i ? id->end[i - 1] : 0;
    return (struct slice){ id->text + from, id->end[i] - from };
}

struct jwt_checker;

/* `keys` is borrowed. FIRN_EINVAL: too many copies. FIRN_ENOMEM. */
FIRN_MUSTUSE int jwt_checker_new(const struct jwt_rules *rules, const struct jwks *keys,
                                 struct jwt_checker **out);
void jwt_checker_free(struct jwt_checker *c); /* NULL is fine */

/* Other keys from now on. Forgets the cached tokens: what a removed key signed is not valid any
 * more. */
void jwt_checker_keys(struct jwt_checker *c, const struct jwks *keys);

/* The token of an Authorization value ("Bearer abc"); absent if there is none. More than one such
 * header in a request must be refused by the caller. */
struct slice jwt_bearer(struct slice authorization);

/* Checks a token at a time in Unix seconds. *out is set for JWT_OK only. */
enum jwt_verdict jwt_check(struct jwt_checker *c, struct slice token, int64_t now_s,
                           struct jwt_identity *out);

void jwt_stats(const struct jwt_checker *c, struct jwt_stats *out);

#endif
