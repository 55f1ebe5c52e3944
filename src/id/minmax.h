/* minmax.h - the smaller and the larger of two numbers. */
#ifndef FIRN_ID_MINMAX_H
#define FIRN_ID_MINMAX_H

#include <stdint.h>

static inline uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
