/* The grammar of traceparent and tracestate (trace.h). */
#include "wire/trace.h"

enum { KEY_BYTES_MAX = 256, VALUE_BYTES_MAX = 256 };

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 2n digits. False: one of them is none. */
static bool read_hex(const char *p, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        int high = digit(p[2 * i]), low = digit(p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool all_zero(const uint8_t *p, size_t n)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= p[i];
    return any == 0;
}

int trace_parent_read(struct slice text, struct trace_parent *out)
{
    const size_t whole = TRACE_PARENT_BUF - 1;
    const char *p = text.p;
    struct trace_parent t;
    uint8_t version, flags;
    if (!p || text.len < whole || !read_hex(p, 1, &version) || version == 0xff || p[2] != '-' ||
        p[35] != '-' || p[52] != '-' || !read_hex(p + 3, sizeof t.trace, t.trace) ||
        !read_hex(p + 36, sizeof t.span, t.span) || !read_hex(p + 53, 1, &flags))
        return FIRN_EFORMAT;
    if (text.len > whole && (version == 0 || p[whole] != '-'))
        return FIRN_EFORMAT;
    if (all_zero(t.trace, sizeof t.trace) || all_zero(t.span, sizeof t.span))
        return FIRN_EFORMAT;
    t.flags = flags & (TRACE_SAMPLED | TRACE_RANDOM);
    *out = t;
    return 0;
}

void trace_hex(const uint8_t *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

char *trace_parent_write(const struct trace_parent *p, char out[TRACE_PARENT_BUF])
{
    memcpy(out, "00-", 3);
    trace_hex(p->trace, sizeof p->trace, out + 3);
    out[35] = '-';
    trace_hex(p->span, sizeof p->span, out + 36);
    out[52] = '-';
    trace_hex(&p->flags, 1, out + 53);
    return out;
}

/* ---- tracestate ---- */

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool key_ok(struct slice key)
{
    if (key.len == 0 || key.len > KEY_BYTES_MAX || !is_lower(key.p[0]))
        return false;
    for (size_t i = 1; i < key.len; i++)
        if (!is_lower(key.p[i]) && !memchr("_-*/@", key.p[i], 5))
            return false;
    return true;
}

static bool value_ok(struct slice value)
{
    if (value.len == 0 || value.len > VALUE_BYTES_MAX)
        return false;
    for (size_t i = 0; i < value.len; i++)
        if (value.p[i] < ' ' || value.p[i] > '~' || value.p[i] == '=')
            return false;
    return true;
}

static struct slice without_space(struct slice s)
{
    while (s.len > 0 && (*s.p == ' ' || *s.p == '\t')) {
        s.p++;
        s.len--;
    }
    while (s.len > 0 && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
        s.len--;
    return s;
}

bool trace_state_ok(struct slice text)
{
    struct slice keys[TRACE_STATE_MEMBERS_MAX];
    size_t n = 0;
    if (!text.p || text.len > TRACE_STATE_BYTES_MAX)
        return false;
    for (const char *p = text.p, *end = p + text.len; p < end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p)), *stop = comma ? comma : end;
        struct slice member = without_space((struct slice){ p, (size_t)(stop - p) });
        p = comma ? comma + 1 : end;
        if (member.len == 0) /* which the specification allows */
            continue;
        const char *equals = memchr(member.p, '=', member.len);
        if (!equals || n == TRACE_STATE_MEMBERS_MAX)
            return false;
        struct slice key = { member.p, (size_t)(equals - member.p) };
        if (!key_ok(key) || !value_ok((struct slice){ equals + 1, member.len - key.len - 1 }))
            return false;
        for (size_t i = 0; i < n; i++)
            if (keys[i].len == key.len && memcmp(keys[i].p, key.p, key.len) == 0)
                return false;
        keys[n++] = key;
    }
    return true;
}

bool request_id_ok(struct slice text)
{
    if (!text.p || text.len == 0 || text.len > REQUEST_ID_BYTES_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (!is_lower(c) && !(c >= 'A' && c <= 'Z') && !memchr("-._~:/+=@|", c, 10))
            return false;
    }
    return true;
}
