/* Digit values of Crockford's base 32. Tested in tests/golden/ulid.c. */
#include "id/crockford_u128.h"

#define BAD 0xff
#define DIGITS                                                                              \
    ['0'] = 0, ['1'] = 1, ['2'] = 2, ['3'] = 3, ['4'] = 4, ['5'] = 5, ['6'] = 6, ['7'] = 7, \
    ['8'] = 8, ['9'] = 9
#define LOWER                                                                           \
    ['a'] = 10, ['b'] = 11, ['c'] = 12, ['d'] = 13, ['e'] = 14, ['f'] = 15, ['g'] = 16, \
    ['h'] = 17, ['j'] = 18, ['k'] = 19, ['m'] = 20, ['n'] = 21, ['p'] = 22, ['q'] = 23, \
    ['r'] = 24, ['s'] = 25, ['t'] = 26, ['v'] = 27, ['w'] = 28, ['x'] = 29, ['y'] = 30, ['z'] = 31
#define UPPER                                                                           \
    ['A'] = 10, ['B'] = 11, ['C'] = 12, ['D'] = 13, ['E'] = 14, ['F'] = 15, ['G'] = 16, \
    ['H'] = 17, ['J'] = 18, ['K'] = 19, ['M'] = 20, ['N'] = 21, ['P'] = 22, ['Q'] = 23, \
    ['R'] = 24, ['S'] = 25, ['T'] = 26, ['V'] = 27, ['W'] = 28, ['X'] = 29, ['Y'] = 30, ['Z'] = 31

/* What people misread, as Crockford's rules for reading have it. */
#define MISREAD ['I'] = 1, ['L'] = 1, ['O'] = 0, ['i'] = 1, ['l'] = 1, ['o'] = 0

/* The table is "bad" first and the digits over it, which gcc and clang both warn about. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
const uint8_t firn__crockford_lower[256] = { [0 ... 255] = BAD, DIGITS, LOWER };
const uint8_t firn__crockford_any[256] = { [0 ... 255] = BAD, DIGITS, LOWER, UPPER, MISREAD };
#pragma GCC diagnostic pop
