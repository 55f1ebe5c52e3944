/* The encodings of firn convert: reads and writes values, and names the character that is wrong. */
#include "cli/encoding.h"
#include "cli/say.h"

#include "firn/ulid.h"
#include "firn/uuid.h"
#include "id/bytes.h"
#include "id/diag.h"

#include <string.h>

enum { ENCODINGS_MAX = 32 };

static const struct encoding notations[] = {
    { "uuid",
      "128 bits as a UUID: 8-4-4-4-12 hex digits; the version bits are neither set nor "
      "checked",
      NULL, true },
    { "ulid", "128 bits as a ULID: 26 characters of Crockford base32", NULL, true },
};
enum { NOTATIONS = sizeof notations / sizeof notations[0] };

const struct encoding *encoding_list(size_t *out_n)
{
    static struct encoding all[ENCODINGS_MAX];
    static size_t n;
    if (n == 0) {
        size_t codecs;
        const struct firn_codec *c = firn_codec_list(&codecs);
        for (size_t i = 0; i < codecs && i < ENCODINGS_MAX - NOTATIONS; i++)
            all[n++] = (struct encoding){ c[i].name, c[i].about, &c[i], c[i].ordered };
        for (size_t i = 0; i < NOTATIONS; i++)
            all[n++] = notations[i];
    }
    *out_n = n;
    return all;
}

const struct encoding *encoding_find(const char *name)
{
    size_t n;
    const struct encoding *e = encoding_list(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(e[i].name, name) == 0)
            return &e[i];
    return NULL;
}

static struct firn_u128 from_bytes(const uint8_t b[16])
{
    return (struct firn_u128){ load_be64(b), load_be64(b + 8) };
}

/* The first character outside the codec's alphabet, 0 if there is none. Check symbols and
 * look-alikes, which the codec also accepts, are letters and a few signs: only other characters
 * are reported. */
static size_t foreign_column(const struct firn_codec *c, const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char ch = p[i];
        bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
        if (ch && strchr(c->alphabet, ch))
            continue;
        if (letter && c->any_case && (strchr(c->alphabet, ch ^ 0x20) || strchr("ilouILOU", ch)))
            continue;
        if (ch && c->checked && i + 1 == len && strchr("*~$=uU", ch))
            continue;
        return i + 1;
    }
    return 0;
}

static int codec_failed(const struct firn_codec *c, unsigned bits, const char *p, size_t len, int r,
                        struct firn_diag *d)
{
    char shown[SAY_TEXT_BUF];
    size_t column = foreign_column(c, p, len), width = bits == 64 ? c->width64 : c->width128;
    if (r == FIRN_ERANGE)
        return firn__diag(d, r, 0, "more than %u bits%s", bits,
                          bits == 64 ? ": give --bits 128" : "");
    if (column)
        return firn__diag(d, r, column, "'%s' at column %zu is not in the alphabet of %s",
                          say_text(p + column - 1, 1, shown), column, c->name);
    if (c->exact && len != width)
        return firn__diag(d, r, 0, "%zu characters, but %s has %u for 64 bits and %u for 128", len,
                          c->name, c->width64, c->width128);
    if (len > width)
        return firn__diag(d, r, 0, "%zu characters are too many: %s has at most %zu for %u bits",
                          len, c->name, width, bits);
    if (c->checked)
        return firn__diag(d, r, 0,
                          "the check symbol at the end does not match: a character is "
                          "mistyped or missing");
    if (len > 1 && p[0] == c->alphabet[0])
        return firn__diag(d, r, 1, "a leading zero: %s writes none", c->name);
    return firn__diag(d, r, 0,
                      "malformed %s: bits are set after the last byte, or the text is too short",
                      c->name);
}

static int codec_read(const struct firn_codec *c, unsigned bits, const char *p, size_t len,
                      struct encoding_value *out, struct firn_diag *d)
{
    struct encoding_value v = { .bits = 64 };
    int r = FIRN_ERANGE;
    if (bits == 64 || (bits == 0 && len <= c->width64)) {
        r = firn_codec_decode64(c, p, len, &v.v.lo);
        if (r != 0 && (bits == 64 || r != FIRN_ERANGE))
            return codec_failed(c, 64, p, len, r, d);
    }
    if (r != 0) {
        v.bits = 128;
        r = firn_codec_decode128(c, p, len, &v.v);
        if (r != 0)
            return codec_failed(c, 128, p, len, r, d);
    }
    *out = v;
    return 0;
}

static int notation_read(const struct encoding *e, const char *p, size_t len,
                         struct encoding_value *out, struct firn_diag *d)
{
    struct firn_uuid uuid;
    struct firn_ulid ulid;
    if (e == encoding_find("uuid")) {
        int r = firn_uuid_parse_any(p, len, &uuid);
        if (r != 0)
            return firn__diag(d, r, 0, "a UUID is 8-4-4-4-12 hex digits");
        *out = (struct encoding_value){ from_bytes(uuid.b), 128 };
        return 0;
    }
    int r = firn_ulid_parse(p, len, &ulid);
    if (r != 0)
        return firn__diag(d, r, 0, "a ULID is 26 characters of Crockford base32, 0 to 7 first");
    *out = (struct encoding_value){ from_bytes(ulid.b), 128 };
    return 0;
}

int encoding_read(const struct encoding *e, unsigned bits, const char *p, size_t len,
                  struct encoding_value *out, struct firn_diag *diag)
{
    if (len == 0)
        return firn__diag(diag, FIRN_EFORMAT, 0, "the text is empty");
    if (e->codec)
        return codec_read(e->codec, bits, p, len, out, diag);
    if (bits == 64)
        return firn__diag(diag, FIRN_ERANGE, 0, "%s has 128 bits: leave out --bits 64", e->name);
    return notation_read(e, p, len, out, diag);
}

int encoding_write(const struct encoding *e, struct encoding_value v, char out[ENCODING_TEXT_BUF])
{
    struct firn_uuid uuid;
    struct firn_ulid ulid;
    if (e->codec && v.bits == 64)
        return firn_codec_encode64(e->codec, v.v.lo, out, ENCODING_TEXT_BUF, NULL);
    if (e->codec)
        return firn_codec_encode128(e->codec, v.v, out, ENCODING_TEXT_BUF, NULL);
    if (v.bits == 64)
        return FIRN_ERANGE;
    if (e == encoding_find("uuid")) {
        store_be64(uuid.b, v.v.hi);
        store_be64(uuid.b + 8, v.v.lo);
        firn_uuid_format(&uuid, out);
        return 0;
    }
    store_be64(ulid.b, v.v.hi);
    store_be64(ulid.b + 8, v.v.lo);
    firn_ulid_format(&ulid, out);
    return 0;
}
