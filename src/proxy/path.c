/* Canonical paths, prefixes and rewrites. */
#include "proxy/path.h"
#include "id/hex.h"
#include "wire/url.h"

#include <ctype.h>
#include <string.h>

static bool unreserved(int c)
{
    return c < 0x80 && (isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~');
}

/* Drops the last segment of out[0..len), which ends with '/'; "/" has none. */
static size_t drop_segment(const char *out, size_t len)
{
    len--;
    while (len > 0 && out[len - 1] != '/')
        len--;
    return len;
}

/* Whether parameters of a segment begin here: ';', and for servers that decode first also %3B. */
static bool has_parameters(const char *p, size_t n)
{
    return n > 0 && (*p == ';' || (n >= 3 && memcmp(p, "%3B", 3) == 0));
}

/* "..;x" and ".;x": servers that drop parameters, as Java's do, read ".." after this gateway has
 * compared the path with its routes. */
static bool is_dots_with_parameters(const char *p, size_t n)
{
    size_t dots = n > 1 && p[1] == '.' ? 2 : 1;
    return n > dots && p[0] == '.' && has_parameters(p + dots, n - dots);
}

/* At the end of a segment that begins at `from`: resolves "." and "..". Returns the new length, 0 when
 * there is nothing above. `more`: a slash follows. */
static size_t end_segment(char *out, size_t from, size_t len, bool more)
{
    size_t n = len - from;
    if (n == 1 && out[from] == '.')
        return from;
    if (n == 2 && out[from] == '.' && out[from + 1] == '.')
        return drop_segment(out, from);
    if (more && n > 0)
        out[len++] = '/';
    return len;
}

static int refuse(const char **why, const char *text)
{
    *why = text;
    return FIRN_EFORMAT;
}

int path_canonical(struct slice path, char *out, size_t cap, size_t *out_len, const char **why)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t len = 1, from = 1; /* of the segment in hand */
    if (path.len == 0 || path.p[0] != '/')
        return refuse(why, "the path does not begin with '/'");
    if (cap < path.len)
        return FIRN_ENOSPC;
    out[0] = '/';
    for (size_t i = 1; i <= path.len; i++) {
        int c = i < path.len ? (uint8_t)path.p[i] : '/'; /* the end ends a segment, too */
        if (c == '/') {
            if (is_dots_with_parameters(out + from, len - from))
                return refuse(why, "the path holds '.' or '..' with parameters");
            if (has_parameters(out + from, len - from)) /* without them it is "//" */
                return refuse(why, "the path holds an empty segment with parameters");
            len = from = end_segment(out, from, len, i < path.len);
            if (len == 0)
                return refuse(why, "the path leads above its root");
            continue;
        }
        if (c != '%') {
            out[len++] = (char)c;
            continue;
        }
        int high = i + 2 < path.len ? hex_digit(path.p[i + 1]) : -1;
        int low = i + 2 < path.len ? hex_digit(path.p[i + 2]) : -1;
        if (high < 0 || low < 0)
            return refuse(why, "a '%' in the path is not followed by two hexadecimal digits");
        c = high << 4 | low;
        i += 2;
        if (c == '/' || c == '\\' || c < 0x20 || c == 0x7f)
            return refuse(why, "the path holds an encoded slash, backslash or control character");
        if (unreserved(c)) {
            out[len++] = (char)c;
        } else {
            out[len++] = '%';
            out[len++] = digits[high];
            out[len++] = digits[low];
        }
    }
    *out_len = len;
    return 0;
}

/* Where the parameters that begin at `i` end. */
static size_t skip_parameters(struct slice path, size_t i)
{
    const char *slash = memchr(path.p + i, '/', path.len - i);
    return slash ? (size_t)(slash - path.p) : path.len;
}

size_t path_taken(struct slice path, struct slice prefix)
{
    size_t i = 0, k = 0;
    if (path.len >= prefix.len && memcmp(path.p, prefix.p, prefix.len) == 0)
        i = k = prefix.len;
    while (k < prefix.len && i < path.len) {
        if (path.p[i] == prefix.p[k]) {
            i++;
            k++;
        } else if (prefix.p[k] == '/' && has_parameters(path.p + i, path.len - i)) {
            i = skip_parameters(path, i);
        } else {
            return 0;
        }
    }
    if (k < prefix.len)
        return 0;
    if (prefix.p[k - 1] == '/' || i == path.len || path.p[i] == '/')
        return i;
    return has_parameters(path.p + i, path.len - i) ? skip_parameters(path, i) : 0;
}

bool path_below(struct slice path, struct slice prefix)
{
    return path_taken(path, prefix) > 0;
}

struct slice path_segment(struct slice path, uint32_t n)
{
    struct slice s = { NULL, 0 };
    while (n > 0 && url_path_next(&path, &s))
        n--;
    const char *end = s.len > 0 ? memchr(s.p, ';', s.len) : NULL;
    if (end)
        s.len = (size_t)(end - s.p);
    return n == 0 && s.len > 0 ? s : (struct slice){ NULL, 0 };
}

int path_rewrite(struct slice path, struct slice prefix, struct slice to, char *out, size_t cap,
                 size_t *out_len)
{
    size_t taken = path_taken(path, prefix);
    struct slice rest = { path.p + taken, path.len - taken };
    while (to.len > 0 && to.p[to.len - 1] == '/')
        to.len--;
    bool slash = rest.len == 0 ? to.len == 0 : rest.p[0] != '/';
    size_t len = to.len + slash + rest.len;
    if (len > cap)
        return FIRN_ENOSPC;
    memcpy(out, to.p, to.len);
    if (slash)
        out[to.len] = '/';
    memcpy(out + to.len + slash, rest.p, rest.len);
    *out_len = len;
    return 0;
}
