/*
 * Every codec reads any bytes without reading past them, and what it read it writes and reads
 * again. The first byte chooses the codec.
 */
#include "firn/text.h"

#include <stdlib.h>

static void check(int ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t n, len;
    const struct firn_codec *c = firn_codec_list(&n);
    c += data[0] % n;
    const char *p = (const char *)data + 1;
    char text[FIRN_CODEC_TEXT_BUF];
    uint64_t v, v2;
    struct firn_u128 w, w2;
    size--;

    if (firn_codec_decode64(c, p, size, &v) == 0) {
        check(firn_codec_encode64(c, v, text, sizeof text, &len) == 0);
        check(!c->padded || len == c->width64);
        check(c->padded || len == size); /* decimal: one text for a value */
        check(firn_codec_decode64(c, text, len, &v2) == 0 && v2 == v);
        if (!c->exact) { /* what fits 64 bits fits 128 */
            check(firn_codec_decode128(c, p, size, &w) == 0 && w.hi == 0 && w.lo == v);
        }
    }
    if (firn_codec_decode128(c, p, size, &w) == 0) {
        check(firn_codec_encode128(c, w, text, sizeof text, &len) == 0);
        check(!c->padded || len == c->width128);
        check(c->padded || len == size);
        check(firn_codec_decode128(c, text, len, &w2) == 0 && w2.hi == w.hi && w2.lo == w.lo);
    }
    if (firn_u64_parse(p, size, &v) == 0) {
        check(firn_u64_format(v, text) == size);
        for (size_t i = 0; i < size; i++)
            check(text[i] == p[i]);
    }
    return 0;
}
