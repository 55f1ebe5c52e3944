/*
 * firn/seal.h - sealed IDs: a 64-bit ID as text for the public, which can be neither counted
 * through nor changed. The text is one AES-128 block over (ID, 64 zero bits) in base58; opening it
 * demands the zeros back. One character in front names the key, so that keys can be rotated.
 * Library: libfirn-seal, which needs OpenSSL 3.
 *
 * What it does not do:
 *  - It is deterministic: an ID under one key always gives the same text, so a reader of two texts
 *    knows whether they are the same ID, and the first character tells which key, that is roughly
 *    when. Sealing the ID again under a new key gives another text for the same ID.
 *  - The proof is 64 bits: a guessed text opens with a chance of 1 in 2^64 for each try. That stops
 *    guessing over a network; it is no signature.
 *  - It does not say what the ID is of. An order's text opens as a user's if both use the same key:
 *    give each kind its own keys, or look the opened ID up as the kind that you expect.
 *  - It does not expire, and a text is not permission: who has it can pass it on.
 *
 * Threads: a struct firn_seal belongs to one thread at a time, opening and sealing included,
 * because the AES contexts inside are working memory. Give each thread its own, made from the same
 * keys.
 */
#ifndef FIRN_SEAL_H
#define FIRN_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_SEAL_KEY_BYTES  16
#define FIRN_SEAL_KEY_ID_MAX 57 /* one base58 character */
#define FIRN_SEAL_TEXT_LEN   23 /* the key id, then 22 characters: 128 bits */
#define FIRN_SEAL_TEXT_BUF   24

struct firn_seal;

/* A seal without keys. NULL: out of memory. */
FIRN_API struct firn_seal *firn_seal_new(void);
FIRN_API void firn_seal_free(struct firn_seal *s); /* wipes the keys */

/*
 * Add a key (copied), which becomes the one to seal with. All keys added can open. Keys are random
 * bytes, not passwords.
 * FIRN_EINVAL: `key_id` is above FIRN_SEAL_KEY_ID_MAX or taken, or the same key is there under
 * another id: a text could then name either and still open. FIRN_ENOMEM. FIRN_ENOTSUP: OpenSSL
 * gives no AES.
 */
FIRN_API FIRN_MUSTUSE int firn_seal_add_key(struct firn_seal *s, unsigned key_id,
                                            const uint8_t key[FIRN_SEAL_KEY_BYTES]);

/* Seal with this key from now on. To rotate among several machines, add the new key everywhere
 * first and use it only then: no text should reach a machine that cannot open it. FIRN_ENOENT: no
 * such key. */
FIRN_API FIRN_MUSTUSE int firn_seal_use_key(struct firn_seal *s, unsigned key_id);

/*
 * A seal with the keys of a key file's text, one line each, written KEYID:32 hex digits. Blank
 * lines, and all from a '#' on, are skipped. The last key is the one to seal with; a new key is
 * therefore written above it first, and moved to the end when every machine has it. *out is the
 * caller's to free, and so is wiping the text.
 * FIRN_EFORMAT: a line is something else, an id or a key comes twice, or there is no key; `diag`
 * names the line (its column is the place in that line) and never repeats a key. FIRN_ENOMEM,
 * FIRN_ENOTSUP: as above.
 */
FIRN_API FIRN_MUSTUSE int firn_seal_from_text(const char *text, size_t len, struct firn_seal **out,
                                              struct firn_diag *diag);

/* Write the sealed text of `id`, always FIRN_SEAL_TEXT_LEN characters, and a NUL. FIRN_ENOENT:
 * there is no key yet. FIRN_ENOTSUP: OpenSSL refused. */
FIRN_API FIRN_MUSTUSE int firn_seal_text(struct firn_seal *s, uint64_t id,
                                         char out[FIRN_SEAL_TEXT_BUF]);

/*
 * The ID that a text was sealed from. FIRN_EFORMAT: this is no sealed ID (length, a character that
 * base58 does not have, a value that 128 bits do not hold). FIRN_ENOENT: its key is not here.
 * FIRN_EAUTH: it was not sealed with that key, or was changed since. FIRN_ENOTSUP: OpenSSL refused.
 */
FIRN_API FIRN_MUSTUSE int firn_seal_open(struct firn_seal *s, const char *text, size_t len,
                                         uint64_t *out_id, struct firn_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
