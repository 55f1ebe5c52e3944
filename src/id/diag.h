/* diag.h - fill a caller's struct firn_diag, which may be NULL. */
#ifndef FIRN_ID_DIAG_H
#define FIRN_ID_DIAG_H

#include "firn/error.h"

/* Write the message and return `error`, so that a check reads: return firn__diag(d, E, col,
 * ...). */
__attribute__((format(printf, 4, 5))) int firn__diag(struct firn_diag *d, int error, size_t column,
                                                     const char *fmt, ...);

#endif
