/*
 * jwks.h - the keys that tokens are verified with: JSON Web Key Sets (RFC 7517), PEM public keys
 * and shared secrets.
 * Each key has exactly one algorithm, which follows from what the key is and not from what a token
 * says: a secret HS256, an RSA key RS256, a P-256 key ES256, an Ed25519 key EdDSA. So a public key
 * can never be taken for a secret, and "none" is no algorithm of any key.
 * A set is filled by one thread; then any number of threads may read it.
 */
#ifndef FIRN_PROXY_JWKS_H
#define FIRN_PROXY_JWKS_H

#include "firn/error.h"
#include "wire/buf.h"

#include <openssl/types.h>

enum {
    JWKS_KEYS_MAX = 64,
    JWKS_BYTES_MAX = 256 * 1024, /* of a key set's text */
    JWKS_KID_MAX = 128,
    JWKS_SECRET_MIN = 32, /* bytes; RFC 7518 asks for as many as the hash has */
    JWKS_SECRET_MAX = 512,
    JWKS_RSA_BITS_MIN = 2048,
    JWKS_RSA_BITS_MAX = 8192, /* bounds what one verification costs */
};

enum jwt_alg { JWT_HS256, JWT_RS256, JWT_ES256, JWT_EDDSA, JWT_ALGS };

/* As the header member "alg" has it: "HS256". */
const char *jwt_alg_name(enum jwt_alg alg);

struct jwks_key {
    enum jwt_alg alg;
    bool named;                 /* it has a kid, which a token must name if the token names one */
    bool any_kid;               /* configured without a kid: for tokens with any kid */
    char kid[JWKS_KID_MAX + 1]; /* with a NUL */
    EVP_PKEY *pkey;             /* NULL for HS256 */
    size_t secret_len;
    unsigned char secret[JWKS_SECRET_MAX];
};

struct jwks {       /* zeroed: an empty set */
    size_t n;       /* keys in use */
    size_t ignored; /* keys of the text with another use, type, curve or algorithm */
    struct jwks_key key[JWKS_KEYS_MAX];
};

/* Adds the keys of a JWKS ({"keys":[...]}), or of one JWK. Keys that this program cannot use are
 * passed over, as the RFC asks; it is an error if no key is left. FIRN_EFORMAT, with the place or
 * the key: not JSON, a key that is damaged, too weak, private, or a kid that is there twice.
 * FIRN_ERANGE: too many keys or bytes. FIRN_ENOMEM. On error the set is as before. */
FIRN_MUSTUSE int jwks_read(struct jwks *set, const char *p, size_t len, struct firn_diag *d);

/* Adds one key. `kid` may be NULL: then it is for tokens with any kid or none. The PEM text is a
 * PUBLIC KEY. Errors as above. */
FIRN_MUSTUSE int jwks_add_secret(struct jwks *set, const char *kid, const void *p, size_t len,
                                 struct firn_diag *d);
FIRN_MUSTUSE int jwks_add_pem(struct jwks *set, const char *kid, const char *p, size_t len,
                              struct firn_diag *d);

/* The one key for a token, or NULL, then *out_ambiguous says if more than one would fit. A token
 * without kid gets the only key of its algorithm. `alg` and `kid` as the token has them; `kid`
 * absent where it has none. */
const struct jwks_key *jwks_find(const struct jwks *set, struct slice alg, struct slice kid,
                                 bool *out_ambiguous);

/* Whether a key of that kid exists, of any algorithm: for a better message. */
bool jwks_knows(const struct jwks *set, struct slice kid);

/* Frees the keys and wipes the secrets; the set is empty again. */
void jwks_done(struct jwks *set);

#endif
