/* read.h - what firn_detect() needs of the readers beside firn/read.h. */
#ifndef FIRN_ID_READ_H
#define FIRN_ID_READ_H

#include "firn/read.h"

/* NanoIDs and CUID2s may have any length, and nearly every word is one. They are looked for only in
 * texts of their usual length: 0 for a text of another. 1 for every other kind. */
int firn__read_usual_length(const struct firn_kind *kind, size_t len);

#endif
