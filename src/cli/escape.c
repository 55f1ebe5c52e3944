/* Makes bytes safe to show on a terminal. */
#include "cli/escape.h"
#include "wire/utf8.h"

size_t escape_shown_len(const char *text, size_t len)
{
    size_t n = utf8_next(text, len);
    return n && utf8_is_control(text, n) ? 0 : n;
}

void escape_put(FILE *out, const char *p, size_t len)
{
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = escape_shown_len(p + i, len - i);
        if (n > 0)
            fwrite(p + i, 1, n, out);
        else
            fprintf(out, "\\x%02x", (unsigned char)p[i]);
    }
}
