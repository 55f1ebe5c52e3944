/* gunzip.h - reads a gzip file from a descriptor as if it were plain. */
#ifndef FIRN_CLI_VERIFY_GUNZIP_H
#define FIRN_CLI_VERIFY_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gunzip;

static inline bool gunzip_is(const void *p, size_t len)
{
    const unsigned char *b = p;
    return len >= 2 && b[0] == 0x1f && b[1] == 0x8b;
}

/* `first` are the bytes that were read already, copied. NULL: no memory. */
struct gunzip *gunzip_new(int fd, const void *first, size_t len);
void gunzip_free(struct gunzip *g);

/* As read(2), with what the file contains: 0 at its end; negative for an error, and `*why`
 * (borrowed) says which. */
ssize_t gunzip_read(struct gunzip *g, void *out, size_t cap, const char **why);

/* Bytes of the file that were read so far. */
uint64_t gunzip_bytes(const struct gunzip *g);

#endif
