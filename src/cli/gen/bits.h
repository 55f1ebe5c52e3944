/*
 * bits.h - a picture of the bits of an ID, field by field.
 * With colour each field is a coloured run of bits; without, letters stand below the bits. Both
 * refer to the legend, a table with the letters and colours that the caller prints. One thread.
 */
#ifndef FIRN_CLI_GEN_BITS_H
#define FIRN_CLI_GEN_BITS_H

#include <stddef.h>
#include <stdint.h>

enum { BITS_RUNS_MAX = 16 };

struct bits_run {
    const char *name;   /* borrowed */
    unsigned bit, bits; /* where it begins, from the high end; bits 0: nowhere */
};

struct bits {
    const struct bits_run *run; /* borrowed */
    size_t runs;
    char letter[BITS_RUNS_MAX]; /* of each run */
};

void bits_init(struct bits *b, const struct bits_run *run, size_t runs);

/* Draw `n` bits of `bytes`, high bit first; NULL: only the fields, for a layout. */
void bits_draw(const struct bits *b, const uint8_t *bytes, unsigned n, size_t indent);

/* The letter and the colour (of term.h) of run number `i`. */
const char *bits_colour(size_t i);

#endif
