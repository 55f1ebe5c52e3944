/* base36.h - numbers in base 36, lower case, as CUID2 writes them. */
#ifndef FIRN_ID_BASE36_H
#define FIRN_ID_BASE36_H

#include <stddef.h>
#include <stdint.h>

enum { FIRN__BASE36_U64_MAX = 13, FIRN__BASE36_512_MAX = 100 };

/* Both write no leading zeros ("0" for 0) and no NUL, and return the number of digits. */
size_t firn__base36_u64(uint64_t v, char out[FIRN__BASE36_U64_MAX]);

/* 64 bytes as one number, most significant first. */
size_t firn__base36_512(const uint8_t bytes[64], char out[FIRN__BASE36_512_MAX]);

#endif
