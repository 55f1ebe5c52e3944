/* printf into a fixed buffer, piece by piece. */
#include "wire/text.h"
#include "platform/assert.h"

#include <stdarg.h>
#include <stdio.h>

void text_addf(struct text *t, const char *format, ...)
{
    firn_assert(t->len < t->cap, "len=%zu cap=%zu", t->len, t->cap);
    va_list args;
    va_start(args, format);
    size_t room = t->cap - t->len;
    int n = vsnprintf(t->p + t->len, room, format, args);
    va_end(args);
    bool fits = n >= 0 && (size_t)n < room;
    t->len += fits ? (size_t)n : n < 0 ? 0 : room - 1;
    t->p[t->len] = '\0';
    t->truncated |= !fits;
}
