/* escape.h - any bytes, made safe to show: on a terminal, or inside a JSON string. */
#ifndef FIRN_CLI_ESCAPE_H
#define FIRN_CLI_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Length of the UTF-8 sequence at `text` that is safe to show, 0 if there is none: no control
 * character (C0, DEL, C1), nothing overlong, no surrogate. len > 0. */
size_t escape_utf8_len(const char *text, size_t len);

/* For a terminal \xNN stands for what is not printable text, in JSON \u00NN for control characters
 * and U+FFFD for bytes that are not UTF-8. The quotes around a JSON string are the caller's. */
void escape_put(FILE *out, const char *p, size_t len, bool json);

#endif
