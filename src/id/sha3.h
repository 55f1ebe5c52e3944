/* sha3.h - SHA3-512 (FIPS 202), which CUID2 squeezes its letters from. */
#ifndef FIRN_ID_SHA3_H
#define FIRN_ID_SHA3_H

#include <stddef.h>
#include <stdint.h>

enum { FIRN__SHA3_512_BYTES = 64 };

/* The hash of `a` followed by `b`; a piece of length 0 may be NULL. */
void firn__sha3_512(const void *a, size_t a_len, const void *b, size_t b_len,
                    uint8_t out[FIRN__SHA3_512_BYTES]);

#endif
