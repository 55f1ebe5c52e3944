/*
 * buf.h - bytes that grow up to a bound, and slices that borrow them.
 * A struct buf collects output (or input that must outlive a read). It never grows past `max`: an
 * append that would exceed it, or that finds no memory, drops its bytes and sets `failed`, which
 * stays set; the owner checks once at the end instead of after every append. One thread.
 */
#ifndef FIRN_WIRE_BUF_H
#define FIRN_WIRE_BUF_H

#include "platform/assert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Borrowed bytes, no NUL at the end. p == NULL means "absent", which is not the same as empty. */
struct slice {
    const char *p;
    size_t len;
};

/* Whether it equals `text` byte for byte. An absent slice equals none. */
static inline bool slice_is(struct slice s, const char *text)
{
    return s.p && s.len == strlen(text) && memcmp(s.p, text, s.len) == 0;
}

/* How often `self` is repeated at the start of `rest`, byte for byte; at most `max`. */
size_t slice_repeats(struct slice self, struct slice rest, size_t max);

struct buf { /* all zero but `max` is a valid, empty buffer that owns no memory */
    char *p;
    size_t len; /* bytes in use, from p on */
    size_t cap;
    size_t max; /* bound on len, in bytes */
    bool failed;
};

static inline void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){ .max = max };
}

/* Frees the memory; the buffer is empty, not failed and usable again. */
void buf_done(struct buf *b);

/* Makes room for n more bytes. False, and `failed`, beyond the bound or without memory. */
bool buf_grow(struct buf *b, size_t n);

/* n writable bytes at the end, or NULL. buf_commit() then adds those that were written. */
static inline char *buf_room(struct buf *b, size_t n)
{
    if (__builtin_expect(b->cap - b->len < n, 0) && !buf_grow(b, n))
        return NULL;
    return b->p + b->len;
}

static inline void buf_commit(struct buf *b, size_t n)
{
    firn_assert(n <= b->cap - b->len, "n=%zu len=%zu cap=%zu", n, b->len, b->cap);
    b->len += n;
}

static inline void buf_add(struct buf *b, const void *p, size_t n)
{
    char *to = n > 0 ? buf_room(b, n) : NULL;
    if (to) {
        memcpy(to, p, n);
        b->len += n;
    }
}

static inline void buf_add_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

/* Decimal digits, without printf. */
void buf_add_u64(struct buf *b, uint64_t v);
void buf_add_i64(struct buf *b, int64_t v);

/* Slow: not for the hot path. */
__attribute__((format(printf, 2, 3))) void buf_addf(struct buf *b, const char *fmt, ...);

/* Removes the first n bytes. */
void buf_consume(struct buf *b, size_t n);

/* Writes v as decimal digits so that they end before `end`; returns where they begin. */
static inline char *digits_before(char *end, uint64_t v)
{
    do
        *--end = (char)('0' + v % 10);
    while (v /= 10);
    return end;
}

#endif
