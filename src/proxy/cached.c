/*
 * Values of the cache, written and read: "firn-cache 1 CHECKSUM\n", then "STATUS STORED UNTIL AGE
 * LEN LEN LEN\n" in decimal digits, then identity, lines and body with these lengths. The checksum
 * is over everything behind its line.
 */
#include "proxy/cached.h"
#include "proxy/cache_policy.h"
#include "wire/http_line.h"

#include <stdio.h>

enum {
    SUM_DIGITS = 16,
    NUMBERS = 7,
    NUMBERS_BYTES_MAX = NUMBERS * 21 + 1,
    SKEW_MS = 10 * 1000,
};

static const char begin[] = "firn-cache 1 ";
enum { BEGIN_LEN = sizeof begin - 1, FIRST_LEN = BEGIN_LEN + SUM_DIGITS + 1 };

static uint64_t sum_of(const char *p, size_t len)
{
    static const struct siphash_key key = { 1, 1 }; /* against accidents, not against an enemy */
    return siphash(key, p, len);
}

static void write_sum(uint64_t sum, char *to)
{
    for (int i = SUM_DIGITS - 1; i >= 0; i--, sum >>= 4)
        to[i] = "0123456789abcdef"[sum & 15];
}

struct cache_value *cached_write(const struct cached *m)
{
    char numbers[NUMBERS_BYTES_MAX + 1];
    int n = snprintf(numbers, sizeof numbers, "%u %llu %llu %u %zu %zu %zu\n", m->status,
                     (unsigned long long)m->stored_ms, (unsigned long long)m->until_ms, m->age_s,
                     m->identity.len, m->lines.len, m->body.len);
    size_t parts = (size_t)n + m->identity.len + m->lines.len + m->body.len;
    struct cache_value *v = cache_value_new(FIRST_LEN + parts);
    if (!v)
        return NULL;
    char *p = v->p + FIRST_LEN;
    const struct slice part[] = { { numbers, (size_t)n }, m->identity, m->lines, m->body };
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        if (part[i].len)
            memcpy(p, part[i].p, part[i].len);
        p += part[i].len;
    }
    memcpy(v->p, begin, BEGIN_LEN);
    write_sum(sum_of(v->p + FIRST_LEN, parts), v->p + BEGIN_LEN);
    v->p[FIRST_LEN - 1] = '\n';
    return v;
}

static bool numbers_of(struct slice line, uint64_t out[NUMBERS])
{
    for (size_t i = 0; i < NUMBERS; i++) {
        const char *space = line.len ? memchr(line.p, ' ', line.len) : NULL;
        size_t n = space ? (size_t)(space - line.p) : line.len;
        if ((i == NUMBERS - 1) != !space ||
            http_u64((struct slice){ line.p, n }, INT64_MAX, &out[i]) != 0)
            return false;
        line = space ? (struct slice){ space + 1, line.len - n - 1 } : (struct slice){ NULL, 0 };
    }
    return true;
}

static bool lines_ok(struct slice lines)
{
    const char *end = lines.p + lines.len, *why;
    struct slice name, value;
    size_t n = 0;
    for (const char *q = lines.p; q < end; n++)
        if (n == HTTP_FIELDS_MAX || !(q = http_field(q, end, &name, &value, &why)))
            return false;
    return true;
}

int cached_view(struct slice v, struct cached *out)
{
    uint64_t n[NUMBERS];
    if (v.len <= FIRST_LEN || memcmp(v.p, begin, BEGIN_LEN) != 0 || v.p[FIRST_LEN - 1] != '\n')
        return FIRN_EFORMAT;
    struct slice rest = { v.p + FIRST_LEN, v.len - FIRST_LEN };
    size_t most = rest.len < NUMBERS_BYTES_MAX ? rest.len : NUMBERS_BYTES_MAX;
    const char *nl = memchr(rest.p, '\n', most);
    if (!nl || !numbers_of((struct slice){ rest.p, (size_t)(nl - rest.p) }, n))
        return FIRN_EFORMAT;
    size_t left = rest.len - (size_t)(nl + 1 - rest.p);
    if (n[0] < 200 || n[0] > 599 || n[3] > INT32_MAX || n[4] > left || n[5] > left - n[4] ||
        n[6] != left - n[4] - n[5])
        return FIRN_EFORMAT;
    *out = (struct cached){ .identity = { nl + 1, n[4] },
                            .status = (unsigned)n[0],
                            .stored_ms = n[1],
                            .until_ms = n[2],
                            .age_s = (uint32_t)n[3],
                            .lines = { nl + 1 + n[4], n[5] },
                            .body = { nl + 1 + n[4] + n[5], n[6] } };
    return 0;
}

int cached_read(struct slice v, struct cached *out)
{
    char sum[SUM_DIGITS];
    if (v.len <= FIRST_LEN)
        return FIRN_EFORMAT;
    write_sum(sum_of(v.p + FIRST_LEN, v.len - FIRST_LEN), sum);
    if (memcmp(v.p + BEGIN_LEN, sum, SUM_DIGITS) != 0)
        return FIRN_EFORMAT;
    int e = cached_view(v, out);
    return e == 0 && !lines_ok(out->lines) ? FIRN_EFORMAT : e;
}

bool cached_fresh(const struct cached *m, uint64_t now_ms)
{
    return m->stored_ms <= now_ms + SKEW_MS && now_ms < m->until_ms &&
           m->until_ms - m->stored_ms <= (uint64_t)CACHE_TTL_MAX_S * 1000;
}

uint64_t cached_age_s(const struct cached *m, uint64_t now_ms)
{
    return m->age_s + (now_ms > m->stored_ms ? (now_ms - m->stored_ms) / 1000 : 0);
}

static struct slice opaque(struct slice tag)
{
    bool weak = tag.len > 2 && tag.p[0] == 'W' && tag.p[1] == '/';
    return weak ? (struct slice){ tag.p + 2, tag.len - 2 } : tag;
}

bool cached_etag_in(struct slice list, struct slice etag)
{
    struct slice want = opaque(etag);
    if (!list.p || !etag.p || want.len < 2)
        return false;
    for (const char *p = list.p, *end = p + list.len; p < end;) {
        while (p < end && (*p == ' ' || *p == '\t' || *p == ','))
            p++;
        if (p < end && *p == '*')
            return true;
        const char *from = p;
        if (end - p > 2 && p[0] == 'W' && p[1] == '/')
            p += 2;
        const char *quote = p < end && *p == '"' ? memchr(p + 1, '"', (size_t)(end - p - 1)) : NULL;
        if (!quote)
            return false;
        p = quote + 1;
        struct slice tag = opaque((struct slice){ from, (size_t)(p - from) });
        if (tag.len == want.len && memcmp(tag.p, want.p, tag.len) == 0)
            return true;
    }
    return false;
}
