/*
 * text_file.h - small files that settings name (keys, passwords), read whole. Any thread.
 */
#ifndef FIRN_PROXY_TEXT_FILE_H
#define FIRN_PROXY_TEXT_FILE_H

#include "firn/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

/* The file's bytes, with a NUL behind them, in memory that the caller frees. FIRN_EIO: it cannot be
 * read; FIRN_ERANGE: it has more than `max` bytes; FIRN_ENOMEM. */
FIRN_MUSTUSE int text_file_read(const char *path, size_t max, char **out, size_t *out_len,
                                struct firn_diag *diag);

/* What tells one state of a file from another. */
struct file_look {
    struct timespec at;
    off_t size; /* -1: there is none */
    ino_t inode;
};
struct file_look file_look_at(const char *path); /* NULL: no file */
bool file_look_same(const struct file_look *a, const struct file_look *b);

#endif
