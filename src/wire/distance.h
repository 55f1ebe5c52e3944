/* distance.h - edit distance between words, for suggestions in errors. */
#ifndef FIRN_WIRE_DISTANCE_H
#define FIRN_WIRE_DISTANCE_H

#include <stddef.h>

enum { NEAREST_LEN_MAX = 64 }; /* texts are compared up to here: requests must not buy work */

/* Inserted, removed, changed or swapped neighbouring letters. */
size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len);

/* Whether a distance is small enough for words of this length to be a typing error. */
int edit_is_slip(size_t distance, size_t len);

#endif
