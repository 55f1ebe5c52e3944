/* escape.h - any bytes, made safe to show on a terminal. */
#ifndef FIRN_CLI_ESCAPE_H
#define FIRN_CLI_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/* Length of the UTF-8 character at `text` if it is safe to show, else 0: no control character.
 * len > 0. */
size_t escape_shown_len(const char *text, size_t len);

/* Writes \xNN for each byte that is not safe to show. */
void escape_put(FILE *out, const char *p, size_t len);

#endif
