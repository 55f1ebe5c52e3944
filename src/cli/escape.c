#include "cli/escape.h"

size_t escape_utf8_len(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] < 0x80)
        return p[0] >= 0x20 && p[0] != 0x7f;
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    static const struct {
        unsigned char lead, min, max;
    } second[] = { { 0xc2, 0xa0, 0xbf },
                   { 0xe0, 0xa0, 0xbf },
                   { 0xed, 0x80, 0x9f },
                   { 0xf0, 0x90, 0xbf },
                   { 0xf4, 0x80, 0x8f } };
    for (size_t i = 0; i < sizeof second / sizeof second[0]; i++)
        if (p[0] == second[i].lead && (p[1] < second[i].min || p[1] > second[i].max))
            return 0;
    return n;
}

void escape_put(FILE *out, const char *p, size_t len, bool json)
{
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        unsigned char c = (unsigned char)p[i];
        n = escape_utf8_len(p + i, len - i);
        if (n > 0) {
            if (json && (c == '"' || c == '\\'))
                putc('\\', out);
            fwrite(p + i, 1, n, out);
        } else if (!json) {
            fprintf(out, "\\x%02x", c);
        } else if (c < 0x80) {
            fprintf(out, "\\u%04x", c);
        } else {
            fputs("\\ufffd", out);
        }
    }
}
