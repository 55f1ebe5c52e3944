/*
 * encoding.h - the ways to write 64- and 128-bit values that `firn convert` knows: the codecs of
 * firn/text.h, and UUIDs and ULIDs as notations of 128 bits.
 */
#ifndef FIRN_CLI_ENCODING_H
#define FIRN_CLI_ENCODING_H

#include "firn/text.h"

#include <stdbool.h>

struct encoding {
    const char *name, *about;
    const struct firn_codec *codec; /* NULL: a notation of 128 bits only */
    bool ordered;
};

#define ENCODING_TEXT_BUF FIRN_CODEC_TEXT_BUF

struct encoding_value {
    struct firn_u128 v;
    unsigned bits; /* 64 or 128 */
};

const struct encoding *encoding_list(size_t *out_n);
const struct encoding *encoding_find(const char *name); /* or NULL */

/* Read a text of `bits` bits, 64 or 128; 0: by its size, 64 if the value fits. On error a
 * FIRN_E... code; the diag says why. */
int encoding_read(const struct encoding *e, unsigned bits, const char *p, size_t len,
                  struct encoding_value *out, struct firn_diag *diag);

/* FIRN_ERANGE: a value of 64 bits has no such form. */
int encoding_write(const struct encoding *e, struct encoding_value v, char out[ENCODING_TEXT_BUF]);

#endif
