/* fnv.h - FNV-1a, 64 bits: for telling texts apart that nobody chose to collide. */
#ifndef FIRN_RAFT_FNV_H
#define FIRN_RAFT_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_BEGIN UINT64_C(14695981039346656037)

static inline uint64_t fnv(uint64_t sum, const void *p, size_t len)
{
    for (const unsigned char *c = p, *end = c + len; c < end; c++)
        sum = (sum ^ *c) * UINT64_C(1099511628211);
    return sum;
}

#endif
