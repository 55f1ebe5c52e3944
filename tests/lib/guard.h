/* guard.h - a copy of some bytes that ends right before a page that cannot be touched, so that a
 * parser that reads one byte too many dies, with or without a sanitizer. */
#ifndef GUARD_H
#define GUARD_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GUARD_BYTES = 256 * 1024, GUARD_PAGE = 4096 };

/* Valid until the next call. */
static inline char *guard_copy(const void *p, size_t len)
{
    static char *base;
    if (!base) {
        base = mmap(NULL, GUARD_BYTES + GUARD_PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED || mprotect(base + GUARD_BYTES, GUARD_PAGE, PROT_NONE) != 0)
            abort();
    }
    if (len > GUARD_BYTES)
        abort();
    char *to = base + GUARD_BYTES - len;
    if (len > 0)
        memcpy(to, p, len);
    return to;
}

#endif
