/*
 * alphabet.h - from a character to its digit. Entries hold digit + 1, so that everything not named
 * is 0: "not in the alphabet". Subtracting 1 in 64 bits turns that into all ones, which a reader
 * may OR into an error word instead of branching at every character.
 */
#ifndef FIRN_ID_ALPHABET_H
#define FIRN_ID_ALPHABET_H

#include <stdint.h>

extern const uint8_t firn__any_case_digits[256];  /* 0-9 then a-z or A-Z: decimal up to base36 */
extern const uint8_t firn__base62_digits[256];    /* 0-9 A-Z a-z */
extern const uint8_t firn__base58_digits[256];    /* the same without 0, I, O, l */
extern const uint8_t firn__base64url_digits[256]; /* A-Z a-z 0-9 - _ */
extern const uint8_t firn__crockford_digits[256]; /* with i, l, o read as 1, 1, 0 */

static inline uint64_t alphabet_digit(const uint8_t digits[256], char c)
{
    return (uint64_t)digits[(unsigned char)c] - 1;
}

#endif
