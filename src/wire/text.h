/*
 * text.h - printf into a fixed buffer, piece by piece.
 * The text always ends with a NUL. What does not fit is dropped from its end. Belongs to one
 * thread.
 */
#ifndef FIRN_WIRE_TEXT_H
#define FIRN_WIRE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text { /* start from { .p = buffer, .cap = sizeof buffer } */
    char *p;
    size_t len, cap; /* len: without the NUL; cap: with it, at least 1 */
    bool truncated;  /* something was dropped; stays set */
};

__attribute__((format(printf, 2, 3))) void text_addf(struct text *t, const char *format, ...);

#endif
