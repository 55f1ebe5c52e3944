/*
 * term.h - capabilities of stdout: width and colour. Colour: on a terminal, unless NO_COLOR is set
 * or TERM is dumb; CLICOLOR_FORCE=1 forces it in a pipe, too. One thread.
 */
#ifndef FIRN_CLI_TERM_H
#define FIRN_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>

bool term_colour(void);

/* Columns of the terminal; 0 if stdout is none: then nothing needs to be wrapped. */
size_t term_width(void);

/* The escape sequence of a style, or "" where there is no colour. */
enum term_style { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_GOOD, TERM_BAD };
const char *term_style(enum term_style s);

/* Colour number `i` of a few that differ, for bit fields; it starts again after the last. */
const char *term_hue(size_t i);

#endif
