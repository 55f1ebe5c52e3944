/*
 * head_key.h - Ed25519 signatures of heads. One private key signs; a set of public keys checks, so
 * that an old and a new one are both good while a key changes. Keys are PEM texts as
 * `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write them. What is signed is
 * "firn audit head 1", a NUL and the binary form of the head.
 *
 * A struct head_signer and a struct head_keys that no longer change serve any thread.
 */
#ifndef FIRN_AUDITLOG_HEAD_KEY_H
#define FIRN_AUDITLOG_HEAD_KEY_H

#include "auditlog/head.h"

enum { HEAD_KEYS_MAX = 16 };

struct head_signer; /* opaque */
struct head_keys;   /* opaque */

/* FIRN_EFORMAT: no private key in PEM, or one with a passphrase. FIRN_ENOTSUP: not Ed25519. */
FIRN_MUSTUSE int head_signer_new(struct slice pem, struct head_signer **out,
                                 struct firn_diag *diag);
void head_signer_free(struct head_signer *s);

/* Its public key as PEM, for those who check; appended. */
void head_signer_public(const struct head_signer *s, struct buf *out);

/* FIRN_ENOMEM. */
FIRN_MUSTUSE int head_sign(const struct head_signer *s, const struct head *h, struct head_sig *out);

FIRN_MUSTUSE int head_keys_new(struct head_keys **out); /* without a key */
void head_keys_free(struct head_keys *k);

/* Adds every public key of the text; one that is there already counts once. FIRN_EFORMAT: there is
 * none, or what is there is not a public key. FIRN_ENOTSUP: not Ed25519. FIRN_ERANGE: too many.
 * Then the set is as before. */
FIRN_MUSTUSE int head_keys_add(struct head_keys *k, struct slice pem, struct firn_diag *diag);

size_t head_keys_count(const struct head_keys *k);

/* 0: the signature is of one of the keys. FIRN_ENOENT: none of them has its `key`, or there is no
 * signature. FIRN_EAUTH: it is not the key's signature of this head. */
FIRN_MUSTUSE int head_check(const struct head_keys *k, const struct head *h,
                            const struct head_sig *sig);

#endif
