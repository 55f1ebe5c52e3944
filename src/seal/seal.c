/*
 * Sealed IDs. Block before encryption: 8 bytes ID, high byte first, then 8 zero bytes. AES mixes
 * all of it, so every change to the block turns the zeros into 64 random bits. What must stay true:
 * an ID has exactly one text for a key. The width is therefore fixed, values of 2^128 and above are
 * refused, and no two key ids have the same key.
 */
#include "firn/seal.h"
#include "firn/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "id/bytes.h"
#include "id/hex.h"

enum { BLOCK = 16, KEYS = FIRN_SEAL_KEY_ID_MAX + 1, DIGITS = FIRN_SEAL_TEXT_LEN - 1 };

struct seal_key {
    EVP_CIPHER_CTX *enc, *dec;  /* both set, or neither: no key under this id */
    uint8_t fingerprint[BLOCK]; /* the zero block under this key: equal keys have equal ones */
};

struct firn_seal {
    struct seal_key key[KEYS];
    int current; /* -1: no key yet */
};

/* libfirn keeps its own to itself, and this is another shared library. */
__attribute__((format(printf, 4, 5))) static int fail(struct firn_diag *d, int error, size_t column,
                                                      const char *fmt, ...)
{
    if (!d)
        return error;
    va_list args;
    va_start(args, fmt);
    d->column = column;
    vsnprintf(d->text, sizeof d->text, fmt, args);
    va_end(args);
    return error;
}

/* Key id and block are written with libfirn's base58: letters and digits without 0, O, I and l. */
static const struct firn_codec *base58(void)
{
    return firn_codec_find("base58", 6);
}

/* The value of one digit, or -1. */
static int digit_value(const struct firn_codec *codec, char c)
{
    const char *at = c ? strchr(codec->alphabet, c) : NULL;
    return at ? (int)(at - codec->alphabet) : -1;
}

/* One block. No padding and no chaining: the context keeps nothing from one call to the next. */
static bool block_crypt(EVP_CIPHER_CTX *ctx, const uint8_t in[BLOCK], uint8_t out[BLOCK])
{
    int n = 0;
    return EVP_CipherUpdate(ctx, out, &n, in, BLOCK) == 1 && n == BLOCK;
}

static EVP_CIPHER_CTX *aes_new(const uint8_t key[BLOCK], int encrypt, int *r)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    if (!ctx) {
        *r = FIRN_ENOMEM;
        return NULL;
    }
    if (EVP_CipherInit_ex2(ctx, EVP_aes_128_ecb(), key, NULL, encrypt, NULL) != 1 ||
        EVP_CIPHER_CTX_set_padding(ctx, 0) != 1) {
        EVP_CIPHER_CTX_free(ctx);
        *r = FIRN_ENOTSUP;
        return NULL;
    }
    return ctx;
}

static void key_done(struct seal_key *k)
{
    EVP_CIPHER_CTX_free(k->enc); /* wipes its key schedule; NULL does nothing */
    EVP_CIPHER_CTX_free(k->dec);
    *k = (struct seal_key){ 0 };
}

static int key_init(struct seal_key *k, const uint8_t key[BLOCK])
{
    static const uint8_t zero[BLOCK];
    int r = 0;
    *k = (struct seal_key){ 0 };
    k->enc = aes_new(key, 1, &r);
    if (k->enc)
        k->dec = aes_new(key, 0, &r);
    if (k->dec && !block_crypt(k->enc, zero, k->fingerprint))
        r = FIRN_ENOTSUP;
    if (r != 0)
        key_done(k);
    return r;
}

struct firn_seal *firn_seal_new(void)
{
    struct firn_seal *s = calloc(1, sizeof *s);
    if (s)
        s->current = -1;
    return s;
}

void firn_seal_free(struct firn_seal *s)
{
    if (!s)
        return;
    for (int i = 0; i < KEYS; i++)
        key_done(&s->key[i]);
    free(s);
}

int firn_seal_add_key(struct firn_seal *s, unsigned key_id, const uint8_t key[FIRN_SEAL_KEY_BYTES])
{
    if (!s || !key || key_id >= KEYS || s->key[key_id].enc)
        return FIRN_EINVAL;
    struct seal_key k;
    int r = key_init(&k, key);
    if (r != 0)
        return r;
    for (int i = 0; i < KEYS; i++)
        if (s->key[i].enc && memcmp(s->key[i].fingerprint, k.fingerprint, BLOCK) == 0) {
            key_done(&k);
            return FIRN_EINVAL;
        }
    s->key[key_id] = k;
    s->current = (int)key_id;
    return 0;
}

int firn_seal_use_key(struct firn_seal *s, unsigned key_id)
{
    if (!s)
        return FIRN_EINVAL;
    if (key_id >= KEYS || !s->key[key_id].enc)
        return FIRN_ENOENT;
    s->current = (int)key_id;
    return 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* A line that has a key on it, without blanks around it: KEYID:32 hex digits. NULL is success, else
 * what is wrong and where, without the line's own bytes: those may be a key. */
static const char *key_line(const char *p, size_t len, unsigned *out_id,
                            uint8_t key[FIRN_SEAL_KEY_BYTES], size_t *out_column)
{
    size_t at = 0;
    unsigned id = 0;
    while (at < len && at < 2 && p[at] >= '0' && p[at] <= '9')
        id = id * 10 + (unsigned)(p[at++] - '0');
    *out_column = 1;
    if (at == 0 || (at == 2 && p[0] == '0') || id >= KEYS)
        return "a line begins with a key id from 0 to 57";
    *out_column = at + 1;
    if (at == len || p[at] != ':')
        return "after the key id (0 to 57) comes ':'";

    at++;
    for (size_t i = 0; i < 2 * FIRN_SEAL_KEY_BYTES; i++, at++) {
        int digit = at < len ? hex_digit(p[at]) : -1;
        *out_column = at + 1;
        if (digit < 0)
            return "a key is 32 hex digits, this one is shorter or has something else in it";
        key[i / 2] = (uint8_t)(i % 2 ? key[i / 2] | digit : digit << 4);
    }
    *out_column = at + 1;
    if (at < len)
        return "something follows the key's 32 hex digits";
    *out_id = id;
    return NULL;
}

/* One line without its end. Blank and comment lines are fine and add nothing. */
static int add_line(struct firn_seal *s, const char *p, size_t len, size_t line,
                    struct firn_diag *diag)
{
    const char *comment = len ? memchr(p, '#', len) : NULL;
    size_t start = 0;
    if (comment)
        len = (size_t)(comment - p);
    while (len > 0 && is_blank(p[len - 1]))
        len--;
    while (start < len && is_blank(p[start]))
        start++;
    if (start == len)
        return 0;

    uint8_t key[FIRN_SEAL_KEY_BYTES];
    unsigned id;
    size_t column;
    const char *wrong = key_line(p + start, len - start, &id, key, &column);
    int r;
    if (wrong) {
        r = fail(diag, FIRN_EFORMAT, start + column, "line %zu: %s", line, wrong);
    } else {
        bool taken = s->key[id].enc;
        r = firn_seal_add_key(s, id, key);
        if (r == FIRN_EINVAL)
            r = fail(diag, FIRN_EFORMAT, start + 1,
                     taken ? "line %zu: key id %u comes twice"
                           : "line %zu: the key of id %u is already there under another id",
                     line, id);
        else if (r != 0)
            r = fail(diag, r, 0, "line %zu: %s", line, firn_error_message(r));
    }
    OPENSSL_cleanse(key, sizeof key);
    return r;
}

int firn_seal_from_text(const char *text, size_t len, struct firn_seal **out,
                        struct firn_diag *diag)
{
    if (!text || !out)
        return FIRN_EINVAL;
    struct firn_seal *s = firn_seal_new();
    if (!s)
        return fail(diag, FIRN_ENOMEM, 0, "%s", firn_error_message(FIRN_ENOMEM));

    int r = 0;
    size_t line = 1;
    for (const char *p = text, *end = text + len; r == 0 && p < end; line++) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        r = add_line(s, p, (size_t)((eol ? eol : end) - p), line, diag);
        p = eol ? eol + 1 : end;
    }
    if (r == 0 && s->current < 0)
        r = fail(diag, FIRN_EFORMAT, 0, "there is no key: write a line KEYID:32 hex digits");
    if (r != 0) {
        firn_seal_free(s);
        return r;
    }
    *out = s;
    return 0;
}

int firn_seal_text(struct firn_seal *s, uint64_t id, char out[FIRN_SEAL_TEXT_BUF])
{
    if (!s || !out)
        return FIRN_EINVAL;
    if (s->current < 0)
        return FIRN_ENOENT;
    uint8_t plain[BLOCK] = { 0 }, sealed[BLOCK];
    store_be64(plain, id);
    if (!block_crypt(s->key[s->current].enc, plain, sealed))
        return FIRN_ENOTSUP;

    const struct firn_codec *codec = base58();
    struct firn_u128 block = { load_be64(sealed), load_be64(sealed + 8) };
    out[0] = codec->alphabet[s->current];
    return firn_codec_encode128(codec, block, out + 1, FIRN_SEAL_TEXT_BUF - 1, NULL);
}

int firn_seal_open(struct firn_seal *s, const char *text, size_t len, uint64_t *out_id,
                   struct firn_diag *diag)
{
    if (!s || !text || !out_id)
        return FIRN_EINVAL;
    if (len != FIRN_SEAL_TEXT_LEN)
        return fail(diag, FIRN_EFORMAT, 0, "a sealed ID has %d characters, this has %zu",
                    FIRN_SEAL_TEXT_LEN, len);
    const struct firn_codec *codec = base58();
    for (size_t i = 0; i < len; i++)
        if (digit_value(codec, text[i]) < 0)
            return fail(diag, FIRN_EFORMAT, i + 1,
                        "a sealed ID has only base58 characters: no 0, O, I, l and no signs");
    struct firn_u128 block;
    if (firn_codec_decode128(codec, text + 1, DIGITS, &block) != 0)
        return fail(diag, FIRN_EFORMAT, 2, "the value does not fit 128 bits");

    unsigned key_id = (unsigned)digit_value(codec, text[0]);
    const struct seal_key *k = &s->key[key_id];
    if (!k->dec)
        return fail(diag, FIRN_ENOENT, 1, "sealed with key %u, which is not here", key_id);
    uint8_t sealed[BLOCK], plain[BLOCK];
    store_be64(sealed, block.hi);
    store_be64(sealed + 8, block.lo);
    if (!block_crypt(k->dec, sealed, plain))
        return fail(diag, FIRN_ENOTSUP, 0, "OpenSSL refused to decrypt");

    /* One comparison of all 64 bits: its time does not tell how many of them were right. */
    if (load_be64(plain + 8) != 0)
        return fail(diag, FIRN_EAUTH, 0, "not sealed with key %u, or changed since", key_id);
    *out_id = load_be64(plain);
    return 0;
}
