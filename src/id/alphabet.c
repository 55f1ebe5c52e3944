/* The reading tables of alphabet.h, written as runs of neighbouring characters.
 * Tested in tests/golden/text.c. */
#include "id/alphabet.h"

#define RUN1(c, digit)  [c] = (digit) + 1
#define RUN2(c, digit)  RUN1(c, digit), RUN1((c) + 1, (digit) + 1)
#define RUN3(c, digit)  RUN2(c, digit), RUN1((c) + 2, (digit) + 2)
#define RUN4(c, digit)  RUN2(c, digit), RUN2((c) + 2, (digit) + 2)
#define RUN5(c, digit)  RUN4(c, digit), RUN1((c) + 4, (digit) + 4)
#define RUN8(c, digit)  RUN4(c, digit), RUN4((c) + 4, (digit) + 4)
#define RUN9(c, digit)  RUN8(c, digit), RUN1((c) + 8, (digit) + 8)
#define RUN10(c, digit) RUN8(c, digit), RUN2((c) + 8, (digit) + 8)
#define RUN11(c, digit) RUN8(c, digit), RUN3((c) + 8, (digit) + 8)
#define RUN14(c, digit) RUN10(c, digit), RUN4((c) + 10, (digit) + 10)
#define RUN26(c, digit) RUN14(c, digit), RUN8((c) + 14, (digit) + 14), RUN4((c) + 22, (digit) + 22)

const uint8_t firn__any_case_digits[256] = { RUN10('0', 0), RUN26('A', 10), RUN26('a', 10) };

const uint8_t firn__base62_digits[256] = { RUN10('0', 0), RUN26('A', 10), RUN26('a', 36) };

const uint8_t firn__base58_digits[256] = { RUN9('1', 0),   RUN8('A', 9),   RUN5('J', 17),
                                           RUN11('P', 22), RUN11('a', 33), RUN14('m', 44) };

const uint8_t firn__base64url_digits[256] = { RUN26('A', 0), RUN26('a', 26), RUN10('0', 52),
                                              RUN1('-', 62), RUN1('_', 63) };

#define CROCKFORD(a)                                                                         \
    RUN8(a, 10), RUN1((a) + 8, 1), RUN2((a) + 9, 18), RUN1((a) + 11, 1), RUN2((a) + 12, 20), \
        RUN1((a) + 14, 0), RUN5((a) + 15, 22), RUN5((a) + 21, 27)

const uint8_t firn__crockford_digits[256] = { RUN10('0', 0), CROCKFORD('A'), CROCKFORD('a') };
