/*
 * key.h - parts of keys that clients choose (paths, header values, user names), written so that no
 * choice can look like another key. Used for keys in Redis and in memory. Any thread.
 */
#ifndef FIRN_PROXY_KEY_H
#define FIRN_PROXY_KEY_H

#include "wire/buf.h"

enum { KEY_PART_BYTES_MAX = 256 };

/* Appends the bytes: letters, digits, '.', '-' and '_' as they are, all others, ':' and '%' too,
 * as %XX. What would be longer than KEY_PART_BYTES_MAX becomes "~" and its SHA-256 in hex; "~" is
 * never written otherwise. */
void key_part(struct buf *out, const char *p, size_t len);

#endif
