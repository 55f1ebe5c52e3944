/*
 * firn/text.h - 64- and 128-bit values as text, and back.
 * A codec is a row of one table: decimal, hex, Crockford's base32 with and without its check
 * symbol, base32hex, base36, base58, base62, base64url. Each row says whether its texts sort as the
 * values do. Decoders are strict: one value has one text, but for letter case and the look-alikes
 * of Crockford's alphabet, and for zeros left out in front where a codec pads.
 * Nothing here keeps state: any function may be called from any thread.
 */
#ifndef FIRN_TEXT_H
#define FIRN_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- decimal, the hot path ------------------------------------------------------------------- */

#define FIRN_U64_TEXT_BUF 21 /* the 20 digits of 2^64-1 and NUL */

/* Write the shortest decimal text and a NUL; the answer is its length, 1..20. */
FIRN_API size_t firn_u64_format(uint64_t v, char out[FIRN_U64_TEXT_BUF]);

/* Digits only and no zero in front but in "0" itself, so a value has one text.
 * FIRN_EFORMAT: anything else, or nothing. FIRN_ERANGE: more than 2^64-1. */
FIRN_API FIRN_MUSTUSE int firn_u64_parse(const char *p, size_t len, uint64_t *out);

/* --- codecs ---------------------------------------------------------------------------------- */

struct firn_u128 {
    uint64_t hi, lo;
};

struct firn_codec {       /* a row of the table: read it, never make one */
    const char *name;     /* "base62" */
    const char *about;    /* one line for people */
    const char *alphabet; /* digit 0 first; check symbols are not in it */
    uint8_t width64;      /* characters of a text, check symbol included; of the longest: decimal */
    uint8_t width128;
    uint8_t padded;    /* 1: every text has exactly that width */
    uint8_t ordered;   /* 1: texts of one width sort (strcmp) as the values do */
    uint8_t any_case;  /* 1: upper and lower case read the same */
    uint8_t exact;     /* 1: reads only whole texts; 0: zeros may be left out in front */
    uint8_t checked;   /* 1: the last character is a check symbol */
    uint8_t reserved_; /* 0 */
};

#define FIRN_CODEC_TEXT_BUF 40 /* holds every text of every codec and its NUL */

/* The table, `*n` rows. Rows are only ever added at its end. */
FIRN_API const struct firn_codec *firn_codec_list(size_t *n);

/* The row of that name, or NULL. */
FIRN_API const struct firn_codec *firn_codec_find(const char *name, size_t len);

/* Write the text and a NUL to `out`, which has room for `cap` bytes, and the text's length to
 * `*out_len` (may be NULL). FIRN_ENOSPC: text and NUL do not fit; FIRN_EINVAL: not a row of the
 * table. On error nothing is written. */
FIRN_API FIRN_MUSTUSE int firn_codec_encode64(const struct firn_codec *codec, uint64_t v, char *out,
                                              size_t cap, size_t *out_len);
FIRN_API FIRN_MUSTUSE int firn_codec_encode128(const struct firn_codec *codec, struct firn_u128 v,
                                               char *out, size_t cap, size_t *out_len);

/* Read a whole text. A codec that pads accepts 1 to width characters (base32hex and base64url,
 * which write bytes rather than a number, exactly the width; a check symbol is one more).
 * FIRN_EFORMAT: a character that is not in the alphabet, a wrong length, a wrong check symbol, bits
 * set behind the last byte, a zero in front of a decimal number. FIRN_ERANGE: more than 64 or 128
 * bits. */
FIRN_API FIRN_MUSTUSE int firn_codec_decode64(const struct firn_codec *codec, const char *p,
                                              size_t len, uint64_t *out);
FIRN_API FIRN_MUSTUSE int firn_codec_decode128(const struct firn_codec *codec, const char *p,
                                               size_t len, struct firn_u128 *out);

#ifdef __cplusplus
}
#endif
#endif
