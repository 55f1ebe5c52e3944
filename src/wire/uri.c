/*
 * The parts of http.h that read text out of a request: percent-encoding, path segments, query
 * parameters, numbers, lists of media types. Segments and parameters are split first and decoded
 * afterwards, so an encoded '/' or '&' is data and never structure.
 */
#include "wire/http.h"

#include <strings.h>

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int http_decode(struct slice in, bool plus_is_space, char *out, size_t cap, size_t *out_len)
{
    size_t n = 0;
    for (size_t i = 0; i < in.len; i++, n++) {
        char c = in.p[i];
        if (c == '+' && plus_is_space)
            c = ' ';
        if (c == '%') {
            if (in.len - i < 3 || hex(in.p[i + 1]) < 0 || hex(in.p[i + 2]) < 0)
                return FIRN_EFORMAT;
            c = (char)(hex(in.p[i + 1]) << 4 | hex(in.p[i + 2]));
            i += 2;
        }
        if (c == 0)
            return FIRN_EFORMAT;
        if (n + 1 >= cap)
            return FIRN_ENOSPC;
        out[n] = c;
    }
    if (n >= cap)
        return FIRN_ENOSPC;
    out[n] = 0;
    if (out_len)
        *out_len = n;
    return 0;
}

bool http_path_next(struct slice *rest, struct slice *segment)
{
    if (rest->len == 0 || rest->p[0] != '/')
        return false;
    const char *from = rest->p + 1, *end = rest->p + rest->len;
    const char *q = memchr(from, '/', (size_t)(end - from));
    if (!q)
        q = end;
    *segment = (struct slice){ from, (size_t)(q - from) };
    *rest = (struct slice){ q, (size_t)(end - q) };
    return true;
}

bool http_query_next(struct slice *rest, struct slice *name, struct slice *value)
{
    if (!rest->p)
        return false;
    const char *from = rest->p, *end = from + rest->len;
    while (from < end && *from == '&')
        from++;
    if (from == end)
        return false;
    const char *stop = memchr(from, '&', (size_t)(end - from));
    if (!stop)
        stop = end;
    const char *eq = memchr(from, '=', (size_t)(stop - from));
    *name = (struct slice){ from, (size_t)((eq ? eq : stop) - from) };
    *value = eq ? (struct slice){ eq + 1, (size_t)(stop - eq - 1) } : (struct slice){ NULL, 0 };
    *rest = (struct slice){ stop, (size_t)(end - stop) };
    return true;
}

/* Does the encoded `name` spell `word`? A name that cannot be decoded spells nothing. */
static bool spells(struct slice name, const char *word)
{
    size_t n = 0;
    for (size_t i = 0; i < name.len; i++, n++) {
        char c = name.p[i];
        if (c == '+')
            c = ' ';
        if (c == '%') {
            if (name.len - i < 3 || hex(name.p[i + 1]) < 0 || hex(name.p[i + 2]) < 0)
                return false;
            c = (char)(hex(name.p[i + 1]) << 4 | hex(name.p[i + 2]));
            i += 2;
        }
        if (c == 0 || word[n] != c) /* also where `word` ends */
            return false;
    }
    return word[n] == 0;
}

int http_query_get(struct slice query, const char *name, char *out, size_t cap, size_t *out_len)
{
    struct slice key, value, found = { NULL, 0 };
    bool seen = false;
    while (http_query_next(&query, &key, &value)) {
        if (!spells(key, name))
            continue;
        if (seen)
            return FIRN_EINVAL;
        seen = true;
        found = value;
    }
    return seen ? http_decode(found, true, out, cap, out_len) : FIRN_ENOENT;
}

int http_u64(struct slice s, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    bool over = false;
    if (s.len == 0)
        return FIRN_EFORMAT;
    for (size_t i = 0; i < s.len; i++) {
        unsigned d = (unsigned)(uint8_t)s.p[i] - '0';
        if (d > 9)
            return FIRN_EFORMAT;
        over |= __builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, d, &v);
    }
    if (over || v > max)
        return FIRN_ERANGE;
    *out = v;
    return 0;
}

static struct slice trim(struct slice s)
{
    while (s.len > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (struct slice){ s.p + 1, s.len - 1 };
    while (s.len > 0 && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* Takes what stands before the next `mark` off *rest, without the space around it. */
static bool next_part(struct slice *rest, char mark, struct slice *part)
{
    if (!rest->p)
        return false;
    const char *end = rest->p + rest->len, *q = memchr(rest->p, mark, rest->len);
    *part = trim((struct slice){ rest->p, (size_t)((q ? q : end) - rest->p) });
    *rest = q ? (struct slice){ q + 1, (size_t)(end - q - 1) } : (struct slice){ NULL, 0 };
    return true;
}

/* "q=0", "q=0.000": not wanted. */
static bool weight_is_zero(struct slice s)
{
    if (s.len < 3 || (s.p[0] | 0x20) != 'q' || s.p[1] != '=')
        return false;
    for (size_t i = 2; i < s.len; i++)
        if (s.p[i] != '0' && s.p[i] != '.')
            return false;
    return true;
}

bool http_names_type(struct slice value, const char *type)
{
    struct slice range, part;
    size_t len = strlen(type);
    while (next_part(&value, ',', &range)) {
        bool wanted = next_part(&range, ';', &part) && part.len == len &&
                      strncasecmp(part.p, type, len) == 0;
        while (next_part(&range, ';', &part))
            wanted = wanted && !weight_is_zero(part);
        if (wanted)
            return true;
    }
    return false;
}
