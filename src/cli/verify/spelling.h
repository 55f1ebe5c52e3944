/*
 * spelling.h - what of a line is the ID. A file's first line may begin with a byte order mark, and
 * a UUID may be written in either case, and is the same ID in both. Pure.
 */
#ifndef FIRN_CLI_VERIFY_SPELLING_H
#define FIRN_CLI_VERIFY_SPELLING_H

#include <stdbool.h>
#include <string.h>

#include "firn/uuid.h"

enum spelling_mark {
    SPELLING_PLAIN,
    SPELLING_UTF8,  /* skip SPELLING_UTF8_BYTES */
    SPELLING_UTF16, /* each character is two bytes: lines and IDs cannot be told */
};
enum { SPELLING_UTF8_BYTES = 3 };

static inline enum spelling_mark spelling_mark(const char *p, size_t len)
{
    if (len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        return SPELLING_UTF8;
    return len >= 2 && (memcmp(p, "\xff\xfe", 2) == 0 || memcmp(p, "\xfe\xff", 2) == 0)
               ? SPELLING_UTF16
               : SPELLING_PLAIN;
}

/* The text that stands for all spellings of an ID: for a UUID with capitals `buf` with the same in
 * small letters, otherwise the line itself. */
static inline const char *spelling_one(const char *p, size_t len, char buf[FIRN_UUID_TEXT_BUF])
{
    struct firn_uuid id;
    if (len != FIRN_UUID_TEXT_LEN || p[8] != '-' || firn_uuid_parse(p, len, &id) != 0)
        return p;
    firn_uuid_format(&id, buf);
    return buf;
}

#endif
