/*
 * text_file.h - small files that settings name (keys, passwords), read whole. Any thread.
 */
#ifndef FIRN_PROXY_TEXT_FILE_H
#define FIRN_PROXY_TEXT_FILE_H

#include "firn/error.h"

#include <stddef.h>

/* The file's bytes, with a NUL behind them, in memory that the caller frees. FIRN_EIO: it cannot be
 * read; FIRN_ERANGE: it has more than `max` bytes; FIRN_ENOMEM. */
FIRN_MUSTUSE int text_file_read(const char *path, size_t max, char **out, size_t *out_len,
                                struct firn_diag *diag);

#endif
