/* Percent-encodes parts of keys. */
#include "proxy/key.h"

#include <openssl/sha.h>

static bool plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

static char digit(unsigned v)
{
    return "0123456789ABCDEF"[v & 15];
}

void key_part(struct buf *out, const char *p, size_t len)
{
    size_t long_as = 0;
    for (size_t i = 0; i < len && long_as <= KEY_PART_BYTES_MAX; i++)
        long_as += plain(p[i]) ? 1 : 3;
    if (long_as > KEY_PART_BYTES_MAX) {
        unsigned char sum[SHA256_DIGEST_LENGTH];
        SHA256((const unsigned char *)p, len, sum);
        buf_add(out, "~", 1);
        for (size_t i = 0; i < sizeof sum; i++)
            buf_add(out, (char[2]){ digit(sum[i] >> 4), digit(sum[i]) }, 2);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        if (plain(p[i]))
            buf_add(out, &p[i], 1);
        else
            buf_add(out, (char[3]){ '%', digit(c >> 4), digit(c) }, 3);
    }
}
