/* The two forms of a head. */
#include "auditlog/head.h"
#include "firn/text.h"
#include "id/bytes.h"
#include "id/diag.h"
#include "id/hex.h"
#include "platform/assert.h"
#include "wire/text.h"
#include "wire/trace.h"

#include <inttypes.h>
#include <string.h>

enum { VERSION = 1, HEAD_MARK = 2, VALUE_MAX = 2 * HEAD_SIG_BYTES };

#define MAGIC "firn-audit-head-1"

/* --- what a head may be --- */

bool head_writer_ok(const char *name, size_t len)
{
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
    for (size_t i = 0; i < len && i <= HEAD_WRITER_MAX; i++)
        if (!memchr(all, name[i], sizeof all - 1))
            return false;
    return len > 0 && len <= HEAD_WRITER_MAX;
}

static bool is_zero(const digest_t d)
{
    static const digest_t zero;
    return memcmp(d, zero, sizeof zero) == 0;
}

static bool sane(const struct head *h)
{
    return h->seq > 0 && h->rows > 0 && h->rows <= HEAD_ROWS_MAX && h->first <= h->last &&
           h->last - h->first >= h->rows - 1 && (h->seq == 1) == is_zero(h->previous);
}

/* --- binary --- */

size_t head_encode(const struct head *h, uint8_t out[HEAD_BYTES_MAX])
{
    size_t len = strlen(h->writer);
    uint8_t *p = out;
    firn_assert(head_writer_ok(h->writer, len) && sane(h), "seq=%" PRIu64 " rows=%u", h->seq,
                h->rows);
    *p++ = VERSION;
    store_be32(p, h->shard);
    p += 4;
    *p++ = (uint8_t)len;
    memcpy(p, h->writer, len);
    p += len;
    store_be64(p, h->seq);
    store_be64(p + 8, h->first);
    store_be64(p + 16, h->last);
    store_be32(p + 24, h->rows);
    p += 28;
    memcpy(p, h->root, SHA256_BYTES);
    memcpy(p + SHA256_BYTES, h->index, SHA256_BYTES);
    memcpy(p + 2 * (size_t)SHA256_BYTES, h->previous, SHA256_BYTES);
    p += 3 * (size_t)SHA256_BYTES;
    store_be64(p, (uint64_t)h->time_us);
    return (size_t)(p + 8 - out);
}

int head_decode(const void *from, size_t len, struct head *out)
{
    const uint8_t *p = from;
    struct head h = { .shard = 0 };
    const size_t fixed = HEAD_BYTES_MAX - HEAD_WRITER_MAX;
    if (len < fixed || p[0] != VERSION || len != fixed + p[5] ||
        !head_writer_ok((const char *)p + 6, p[5]))
        return FIRN_EFORMAT;
    h.shard = load_be32(p + 1);
    memcpy(h.writer, p + 6, p[5]);
    p += 6 + p[5];
    h.seq = load_be64(p);
    h.first = load_be64(p + 8);
    h.last = load_be64(p + 16);
    h.rows = load_be32(p + 24);
    p += 28;
    memcpy(h.root, p, SHA256_BYTES);
    memcpy(h.index, p + SHA256_BYTES, SHA256_BYTES);
    memcpy(h.previous, p + 2 * (size_t)SHA256_BYTES, SHA256_BYTES);
    h.time_us = (int64_t)load_be64(p + 3 * (size_t)SHA256_BYTES);
    if (!sane(&h))
        return FIRN_EFORMAT;
    *out = h;
    return 0;
}

void head_digest(struct sha256 *sha, const struct head *h, digest_t out)
{
    uint8_t bytes[1 + HEAD_BYTES_MAX] = { HEAD_MARK };
    sha256_of(sha, bytes, 1 + head_encode(h, bytes + 1), out);
}

/* --- text --- */

static void put_hex(struct text *t, const char *name, const uint8_t *p, size_t n)
{
    char hex[VALUE_MAX + 1];
    trace_hex(p, n, hex);
    text_addf(t, " %s=%s", name, hex);
}

size_t head_write(const struct head *h, const struct head_sig *sig, char out[HEAD_TEXT_BUF])
{
    struct text t = { .p = out, .cap = HEAD_TEXT_BUF };
    text_addf(
        &t, MAGIC " shard=%u writer=%s seq=%" PRIu64 " first=%" PRIu64 " last=%" PRIu64 " rows=%u",
        h->shard, h->writer, h->seq, h->first, h->last, h->rows);
    put_hex(&t, "root", h->root, SHA256_BYTES);
    put_hex(&t, "index", h->index, SHA256_BYTES);
    put_hex(&t, "previous", h->previous, SHA256_BYTES);
    text_addf(&t, " time_us=%" PRId64, h->time_us);
    if (sig && sig->there) {
        put_hex(&t, "key", sig->key, HEAD_KEY_BYTES);
        put_hex(&t, "sig", sig->bytes, HEAD_SIG_BYTES);
    }
    firn_assert(!t.truncated);
    return t.len;
}

/* The value of ` name=value`, which must be next. */
static bool next_value(struct slice *text, const char *name, struct slice *out)
{
    size_t n = strlen(name);
    if (text->len < n + 2 || text->p[0] != ' ' || memcmp(text->p + 1, name, n) != 0 ||
        text->p[n + 1] != '=')
        return false;
    const char *from = text->p + n + 2, *end = text->p + text->len;
    const char *space = memchr(from, ' ', (size_t)(end - from));
    *out = (struct slice){ from, (size_t)((space ? space : end) - from) };
    *text = (struct slice){ from + out->len, (size_t)(end - from) - out->len };
    return true;
}

static bool next_u64(struct slice *text, const char *name, uint64_t max, uint64_t *out)
{
    struct slice v;
    return next_value(text, name, &v) && (v.len == 1 || (v.len > 1 && *v.p != '0')) &&
           firn_u64_parse(v.p, v.len, out) == 0 && *out <= max;
}

static bool next_i64(struct slice *text, const char *name, int64_t *out)
{
    uint64_t n;
    struct slice v, rest = *text;
    if (next_value(&rest, name, &v) && v.len > 1 && *v.p == '-') {
        if (v.p[1] == '0' || firn_u64_parse(v.p + 1, v.len - 1, &n) != 0 ||
            n > UINT64_C(1) + INT64_MAX)
            return false;
        *out = (int64_t)(0 - n);
        *text = rest;
        return true;
    }
    if (!next_u64(text, name, INT64_MAX, &n))
        return false;
    *out = (int64_t)n;
    return true;
}

static bool next_hex(struct slice *text, const char *name, uint8_t *out, size_t n)
{
    struct slice v;
    return next_value(text, name, &v) && v.len == 2 * n && hex_bytes(v.p, n, out);
}

static bool next_writer(struct slice *text, char out[HEAD_WRITER_MAX + 1])
{
    struct slice v;
    if (!next_value(text, "writer", &v) || !head_writer_ok(v.p, v.len))
        return false;
    memcpy(out, v.p, v.len);
    out[v.len] = '\0';
    return true;
}

/* The name of the field that is not there or not right, or NULL. */
static const char *read_fields(struct slice *t, struct head *h, struct head_sig *sig)
{
    uint64_t shard = 0, rows = 0;
    if (!next_u64(t, "shard", UINT32_MAX, &shard))
        return "shard";
    if (!next_writer(t, h->writer))
        return "writer";
    if (!next_u64(t, "seq", UINT64_MAX, &h->seq))
        return "seq";
    if (!next_u64(t, "first", UINT64_MAX, &h->first))
        return "first";
    if (!next_u64(t, "last", UINT64_MAX, &h->last))
        return "last";
    if (!next_u64(t, "rows", HEAD_ROWS_MAX, &rows))
        return "rows";
    if (!next_hex(t, "root", h->root, SHA256_BYTES))
        return "root";
    if (!next_hex(t, "index", h->index, SHA256_BYTES))
        return "index";
    if (!next_hex(t, "previous", h->previous, SHA256_BYTES))
        return "previous";
    if (!next_i64(t, "time_us", &h->time_us))
        return "time_us";
    h->shard = (uint32_t)shard;
    h->rows = (uint32_t)rows;
    if (t->len == 0)
        return NULL;
    if (!next_hex(t, "key", sig->key, HEAD_KEY_BYTES))
        return "key";
    if (!next_hex(t, "sig", sig->bytes, HEAD_SIG_BYTES))
        return "sig";
    sig->there = true;
    return t->len == 0 ? NULL : "end";
}

int head_read(struct slice text, struct head *out, struct head_sig *sig, struct firn_diag *d)
{
    struct head h = { .shard = 0 };
    struct head_sig s = { .there = false };
    struct slice rest = text;
    const size_t magic = sizeof MAGIC - 1;
    if (text.len < magic || memcmp(text.p, MAGIC, magic) != 0)
        return firn__diag(d, FIRN_EFORMAT, 1, "a head begins with " MAGIC);
    rest = (struct slice){ text.p + magic, text.len - magic };
    const char *wrong = read_fields(&rest, &h, &s);
    if (wrong)
        return firn__diag(d, FIRN_EFORMAT, text.len - rest.len + 1, "the head's %s is malformed",
                          wrong);
    if (!sane(&h))
        return firn__diag(d, FIRN_EFORMAT, 1,
                          "the head contradicts itself: rows, first, last, seq and previous");
    *out = h;
    if (sig)
        *sig = s;
    return 0;
}
