/*
 * Growing buffers and slices.
 * Growth doubles, so the size of the appended pieces does not matter; the first allocation already
 * holds a small response.
 */
#include "wire/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_CAP_BYTES = 256 };

void buf_done(struct buf *b)
{
    free(b->p);
    buf_init(b, b->max);
}

bool buf_grow(struct buf *b, size_t n)
{
    size_t need;
    if (b->failed || __builtin_add_overflow(b->len, n, &need) || need > b->max) {
        b->failed = true;
        return false;
    }
    if (need <= b->cap)
        return true;
    size_t cap = b->cap < FIRST_CAP_BYTES ? FIRST_CAP_BYTES : b->cap;
    while (cap < need)
        cap = cap > b->max / 2 ? b->max : cap * 2;
    char *p = realloc(b->p, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void buf_add_u64(struct buf *b, uint64_t v)
{
    char text[20], *end = text + sizeof text, *p = digits_before(end, v);
    buf_add(b, p, (size_t)(end - p));
}

void buf_add_i64(struct buf *b, int64_t v)
{
    if (v < 0)
        buf_add(b, "-", 1);
    buf_add_u64(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *to = n < 0 ? NULL : buf_room(b, (size_t)n + 1); /* vsnprintf wants its NUL */
    if (to) {
        vsnprintf(to, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void buf_consume(struct buf *b, size_t n)
{
    firn_assert(n <= b->len, "n=%zu len=%zu", n, b->len);
    b->len -= n;
    if (b->len > 0)
        memmove(b->p, b->p + n, b->len);
}

size_t slice_repeats(struct slice self, struct slice rest, size_t max)
{
    size_t n = 0;
    for (const char *p = rest.p, *end = p + rest.len;
         n < max && (size_t)(end - p) >= self.len && memcmp(p, self.p, self.len) == 0;
         p += self.len)
        n++;
    return n;
}
