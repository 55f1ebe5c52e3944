/* sha1.h - SHA-1 (RFC 3174), for version 5 UUIDs only: it is broken as a seal, fine as a name. */
#ifndef FIRN_ID_SHA1_H
#define FIRN_ID_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { FIRN__SHA1_BYTES = 20 };

/* The hash of `a` followed by `b`; a piece of length 0 may be NULL. */
void firn__sha1(const void *a, size_t a_len, const void *b, size_t b_len,
                uint8_t out[FIRN__SHA1_BYTES]);

#endif
