/* md5.h - MD5 (RFC 1321), for version 3 UUIDs only: it is broken as a seal, fine as a name. */
#ifndef FIRN_ID_MD5_H
#define FIRN_ID_MD5_H

#include <stddef.h>
#include <stdint.h>

enum { FIRN__MD5_BYTES = 16 };

/* The hash of `a` followed by `b`; a piece of length 0 may be NULL. */
void firn__md5(const void *a, size_t a_len, const void *b, size_t b_len,
               uint8_t out[FIRN__MD5_BYTES]);

#endif
