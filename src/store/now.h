/* now.h - the clock of the stores' deadlines: signed, because what is left of one may be negative. */
#ifndef FIRN_STORE_NOW_H
#define FIRN_STORE_NOW_H

#include "platform/mono.h"

static inline int64_t store_now_ms(void)
{
    return (int64_t)mono_ms();
}

#endif
