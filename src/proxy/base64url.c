/* Reads base64url: four characters at a time into three bytes. */
#include "proxy/base64url.h"
#include "id/alphabet.h"

int base64url_read(struct slice text, void *out, size_t cap, size_t *out_len)
{
    const size_t tail = text.len % 4, len = text.len / 4 * 3 + (tail ? tail - 1 : 0);
    unsigned char *to = out;
    uint32_t bits = 0;
    if (tail == 1)
        return FIRN_EFORMAT;
    if (len > cap)
        return FIRN_ENOSPC;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = firn__base64url_digits[(unsigned char)text.p[i]];
        if (digit == 0)
            return FIRN_EFORMAT;
        bits = bits << 6 | (digit - 1);
        if (i % 4 == 3) {
            *to++ = (unsigned char)(bits >> 16);
            *to++ = (unsigned char)(bits >> 8);
            *to++ = (unsigned char)bits;
            bits = 0;
        }
    }
    if (tail == 2) {
        if (bits & 0xf)
            return FIRN_EFORMAT;
        *to++ = (unsigned char)(bits >> 4);
    } else if (tail == 3) {
        if (bits & 0x3)
            return FIRN_EFORMAT;
        *to++ = (unsigned char)(bits >> 10);
        *to++ = (unsigned char)(bits >> 2);
    }
    *out_len = len;
    return 0;
}
