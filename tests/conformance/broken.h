/*
 * broken.h - a store around a store that breaks one promise, so that the suite can show that it
 * would notice.
 */
#ifndef BROKEN_H
#define BROKEN_H

#include "store/store.h"

/* The names of what can be broken, in one line, for a usage text. */
extern const char broken_modes[];

/* NULL: no such mode, or out of memory. `inner` is transferred on success. */
struct firn_store *broken_new(struct firn_store *inner, const char *mode);

#endif
