/* uuid_set.h - put version and variant over whatever bits are there. */
#ifndef FIRN_ID_UUID_SET_H
#define FIRN_ID_UUID_SET_H

#include "firn/uuid.h"
#include "id/bytes.h"

/* The halves of a UUID as integers, with 48 | version | 12 and variant | 62 bits. One store of all
 * 16 bytes: a reader that soon loads them at once would wait for two stores to retire. */
static inline void uuid_set(struct firn_uuid *out, uint64_t version, uint64_t high, uint64_t low)
{
    typedef uint64_t halves __attribute__((vector_size(16)));
    high = (high & ~UINT64_C(0xf000)) | version << 12;
    low = (low & UINT64_MAX >> 2) | UINT64_C(1) << 63;
    halves bytes = { __builtin_bswap64(high), __builtin_bswap64(low) };
    memcpy(out->b, &bytes, sizeof bytes);
}

#endif
